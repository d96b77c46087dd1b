"""Mean and MaxMin: one vector a bag, so that partial-label learners can be used on bags."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mipl.bags import Bags
from mipl.base import MIPLClassifier
from mipl.errors import DataError
from mipl.pll.base import PLLClassifier

__all__ = ["EmbeddedPLL", "embed_bags"]


def embed_bags(bags: Bags, scheme: str) -> NDArray[np.float32]:
    """Describe each bag by one vector.

    ``"mean"`` averages the instances (m, d); ``"maxmin"`` joins the largest and the smallest value of each feature
    (m, 2d).

    >>> embed_bags(Bags.from_list([[[0.0, 1.0], [2.0, 5.0]]]), "maxmin")
    array([[2., 5., 0., 1.]], dtype=float32)
    """
    if scheme == "mean":
        # Summed in double precision, so that the order of the instances leaves no trace in the rounded mean.
        return bags.mean(bags.instances.astype(np.float64)).astype(np.float32)
    if scheme == "maxmin":
        return np.concatenate([bags.max(bags.instances), bags.min(bags.instances)], axis=1)
    raise DataError(f"unknown embedding {scheme!r}; use 'mean' or 'maxmin'")


class EmbeddedPLL(MIPLClassifier):
    """A partial-label learner on one vector a bag.

    A subclass names its learner, ``class SUREBags(EmbeddedPLL, learner=SURE)``, and has the learner's parameters
    beside `embed`.

    Parameters
    ----------
    embed : {"mean", "maxmin"}
        How a bag becomes a vector, see `embed_bags`.
    **params
        Parameters of the learner.

    Attributes
    ----------
    learner_ : PLLClassifier
        The learner, fitted on the embedded bags.
    """

    learner: ClassVar[type[PLLClassifier]]

    def __init_subclass__(cls, learner: type[PLLClassifier], **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.learner = learner
        cls.citation = learner.citation
        inherited = inspect.signature(EmbeddedPLL.__init__).parameters

        def init(self: EmbeddedPLL, **params: Any) -> None:
            EmbeddedPLL.__init__(self, **params)

        # scikit-learn reads names and defaults of parameters (clone, set_params, repr) from this signature.
        init.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inherited["self"], inherited["embed"], *inspect.signature(learner).parameters.values()]
        )
        cls.__init__ = init  # type: ignore[method-assign]

    def __init__(self, *, embed: str = "mean", **params: Any) -> None:
        self.embed = embed
        for name, parameter in inspect.signature(self.learner).parameters.items():
            setattr(self, name, params.pop(name, parameter.default))
        if params:
            raise TypeError(f"{type(self).__name__} has no parameter {next(iter(params))!r}")

    def _fit(self, bags: Bags, candidates: NDArray[np.bool_]) -> None:
        params = {name: getattr(self, name) for name in inspect.signature(self.learner).parameters}
        self.learner_ = self.learner(**params).fit(embed_bags(bags, self.embed), candidates)

    def _predict_proba(self, bags: Bags) -> NDArray[np.floating[Any]]:
        return self.learner_.predict_proba(embed_bags(bags, self.embed))

    def _resolve(self, bags: Bags, candidates: NDArray[np.bool_]) -> NDArray[np.floating[Any]]:
        return self.learner_.resolve(embed_bags(bags, self.embed), candidates)
