"""ClusterClassifier: a method whose `fit` can be given a client of a Dask cluster."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, ClassVar, Self

from mipl.base import MIPLClassifier
from mipl.streams import BagStream

__all__ = ["ClusterClassifier"]

#: The client that the present `fit` was given: it is no part of the model, and must not be saved with it.
_CLIENT: ContextVar[Any] = ContextVar("client", default=None)


class ClusterClassifier(MIPLClassifier):
    """Base of methods that learn on a cluster, if they are given one; `_client` tells them."""

    _fit_depth: ClassVar[int] = 7

    def fit(
        self,
        bags: Any,
        candidates: Any = None,
        classes: Any = None,
        *,
        background: Any = None,
        groups: Any = None,
        sample_weight: Any = None,
        client: Any = None,
    ) -> Self:
        """Learn from bags and what is known of their labels, as `MIPLClassifier.fit`; a `mipl.Scan` is read in blocks.

        Parameters
        ----------
        bags, candidates, classes, background, groups, sample_weight
            As in `MIPLClassifier.fit`.
        client : distributed.Client, default=None
            A client of the Dask cluster that does the work; None for this process, or for the cluster that a scan is
            `on`. The model has the same bits, on machines of one kind, whatever becomes of single workers meanwhile.

        Returns
        -------
        self
        """
        if client is not None and isinstance(bags, BagStream):
            bags = bags.on(client)
        token = _CLIENT.set(getattr(bags, "client", None) if client is None else client)
        try:
            return super().fit(
                bags, candidates, classes, background=background, groups=groups, sample_weight=sample_weight
            )
        finally:
            _CLIENT.reset(token)

    @property
    def _client(self) -> Any:
        """The client of the `fit` that is under way, or None."""
        return _CLIENT.get()

    @property
    def fits_in_blocks(self) -> bool:
        """Whether bags may be in files or on a cluster, with the parameters as they are."""
        return True
