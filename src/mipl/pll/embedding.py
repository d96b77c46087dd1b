"""Mean and MaxMin: one vector per bag, so that partial-label learners can be used on bags."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils._param_validation import StrOptions

from mipl.bags import Bags
from mipl.base import MIPLClassifier
from mipl.errors import ParameterError
from mipl.pll.base import PLLClassifier

__all__ = ["EmbeddedPLL", "embed_bags"]


def embed_bags(bags: Bags, scheme: str) -> NDArray[np.float32]:
    """Describe each bag by one vector.

    Parameters
    ----------
    bags : Bags
        m bags with d features.
    scheme : {"mean", "maxmin"}
        "mean" averages the instances; "maxmin" joins the largest and the smallest value of each feature.

    Returns
    -------
    (m, d) or (m, 2d) array

    Examples
    --------
    >>> embed_bags(Bags.from_list([[[0.0, 1.0], [2.0, 5.0]]]), "maxmin")
    array([[2., 5., 0., 1.]], dtype=float32)
    """
    if scheme == "mean":
        # Summed in double precision, so that the order of the instances leaves no trace in the rounded mean.
        return bags.mean(bags.instances.astype(np.float64)).astype(np.float32)
    if scheme == "maxmin":
        return np.concatenate([bags.max(bags.instances), bags.min(bags.instances)], axis=1)
    raise ParameterError(f"unknown embedding {scheme!r}; use 'mean' or 'maxmin'")


class EmbeddedPLL(MIPLClassifier):
    """A partial-label learner on one vector per bag.

    Parameters
    ----------
    learner : PLLClassifier
        The learner on plain arrays; it is cloned, not changed.
    embed : {"mean", "maxmin"}, default="mean"
        How a bag becomes a vector, see `embed_bags`.

    Attributes
    ----------
    learner_ : PLLClassifier
        The learner, fitted on the embedded bags.

    Examples
    --------
    >>> from mipl.pll import PLkNN
    >>> model = EmbeddedPLL(PLkNN(n_neighbors=3), embed="maxmin")
    >>> model.set_params(learner__n_neighbors=5)
    EmbeddedPLL(embed='maxmin', learner=PLkNN(n_neighbors=5))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "learner": [PLLClassifier],
        "embed": [StrOptions({"mean", "maxmin"})],
    }

    def __init__(self, learner: PLLClassifier, *, embed: str = "mean") -> None:
        self.learner = learner
        self.embed = embed

    @property
    def name(self) -> str:  # type: ignore[override]
        """The learner's name."""
        return self.learner.name or type(self.learner).__name__

    @property
    def citation(self) -> str:  # type: ignore[override]
        """Where the learner was published."""
        return self.learner.citation

    @property
    def supports_sample_weight(self) -> bool:  # type: ignore[override]
        """Whether the learner can weight samples."""
        return self.learner.supports_sample_weight

    @property
    def _no_sample_weight(self) -> str:  # type: ignore[override]
        return self.learner._no_sample_weight

    def _fit(self, bags: Bags, candidates: NDArray[np.bool_]) -> None:
        self.learner_ = clone(self.learner).fit(embed_bags(bags, self.embed), candidates)

    def _fit_weighted(self, bags: Bags, candidates: NDArray[np.bool_], sample_weight: NDArray[np.float64]) -> None:
        Z = embed_bags(bags, self.embed)
        self.learner_ = clone(self.learner).fit(Z, candidates, sample_weight=sample_weight)

    def _predict_proba(self, bags: Bags) -> NDArray[np.floating[Any]]:
        proba: NDArray[np.floating[Any]] = self.learner_.predict_proba(embed_bags(bags, self.embed))
        return proba

    def _resolve(self, bags: Bags, candidates: NDArray[np.bool_]) -> NDArray[np.floating[Any]]:
        posterior: NDArray[np.floating[Any]] = self.learner_.resolve(embed_bags(bags, self.embed), candidates)
        return posterior
