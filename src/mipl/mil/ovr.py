"""OneVsRest: binary multi-instance learners on bags with candidate sets."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

from mipl.bags import Bags
from mipl.base import MIPLClassifier
from mipl.mil.base import MILClassifier
from mipl.parameters import check_parameters

__all__ = ["OneVsRest", "label_copies"]


class OneVsRest(MIPLClassifier):
    r"""One binary multi-instance learner per class, the class against the rest.

    All q problems share one front end (inducing points, kernel features); it is fitted once, with the bags of each
    candidate label as groups.

    **Decision.** The MIPLGP paper (its section 4.2.2) takes the one class whose learner says positive, the most
    confident among several, and where all say negative the class whose negative is least confident. In each case this
    is the class with the largest probability :math:`p_c` of being positive. Given that exactly one label of a bag
    is true and that the learners judge independently,

    .. math:: P(c) \propto p_c \prod_{k \ne c} (1 - p_k) \propto \frac{p_c}{1 - p_c},

    so `predict_proba` is the softmax of the learners' log-odds. It ranks as :math:`p_c` does, so `predict` follows the
    paper's rule, also where the :math:`p_c` are too close to zero or one to be told apart as numbers. An instance may
    also be negative for all learners, a further class with log-odds zero.

    Parameters
    ----------
    learner : MILClassifier
        The binary learner; it is cloned for each class, not changed.
    candidate_policy : {"any", "duplicate"}, default="any"
        How bags with several candidates train the learner of class c. ``"any"``: positive if c is a candidate, else
        negative. ``"duplicate"``: the paper's recomposition; the bag is given each of its candidates in turn, so it
        occurs as a positive bag for c and as a negative one for each other candidate. With one candidate per bag both
        are the same.
    n_jobs : int or None, default=None
        How many learners are fitted at once, as in joblib; each uses one core.

    Attributes
    ----------
    front_end_ : FrontEnd
        What turns instances into features, for all learners.
    learners_ : list of q MILClassifier
        Fitted on the features of `front_end_`.

    Examples
    --------
    >>> from mipl.mil import VGPMIL
    >>> OneVsRest(VGPMIL(n_inducing=100), candidate_policy="duplicate")
    OneVsRest(candidate_policy='duplicate', learner=VGPMIL(n_inducing=100))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "learner": [MILClassifier],
        "candidate_policy": [StrOptions({"any", "duplicate"})],
        "n_jobs": [Interval(Integral, 1, None, closed="left"), Interval(Integral, None, -1, closed="right"), None],
    }

    def __init__(self, learner: MILClassifier, *, candidate_policy: str = "any", n_jobs: int | None = None) -> None:
        self.learner = learner
        self.candidate_policy = candidate_policy
        self.n_jobs = n_jobs

    @property
    def name(self) -> str:  # type: ignore[override]
        """The learner's name."""
        return self.learner.name or type(self.learner).__name__

    @property
    def citation(self) -> str:  # type: ignore[override]
        """Where the learner was published."""
        return self.learner.citation

    def _fit(self, bags: Bags, candidates: NDArray[np.bool_]) -> None:
        learner = clone(self.learner)
        check_parameters(learner)
        copies = label_copies(candidates, self.candidate_policy)
        self.front_end_ = learner._front_end().fit(bags, candidates)
        features = self.front_end_.transform(bags)
        self.learners_ = Parallel(n_jobs=self.n_jobs, prefer=learner.parallel)(
            delayed(_fit_one)(clone(learner), features, bags, copies[:, c]) for c in range(copies.shape[1])
        )

    def _predict_proba(self, bags: Bags) -> NDArray[np.float64]:
        return softmax(self._log_odds(bags)[0], axis=1)

    def _predict_instances(self, bags: Bags) -> NDArray[np.float64]:
        log_odds = self._log_odds(bags)[1]
        return softmax(np.concatenate([log_odds, np.zeros((len(log_odds), 1))], axis=1), axis=1)

    def _log_odds(self, bags: Bags) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Log-odds of bags (m, q) and of instances (n, q) under each class's learner."""
        features = self.front_end_.transform(bags)
        per_class = [learner._log_odds(features, bags) for learner in self.learners_]
        bag_odds, instance_odds = zip(*per_class, strict=True)
        return np.stack(bag_odds, axis=1), np.stack(instance_odds, axis=1)


def label_copies(candidates: NDArray[np.bool_], policy: str) -> NDArray[np.int64]:
    """How often bags occur as negative and as positive bags of each class, (m, q, 2), from their mask (m, q).

    >>> label_copies(np.array([[True, False, True]]), "duplicate")[0].tolist()
    [[1, 1], [2, 0], [1, 1]]
    """
    positive = candidates.astype(np.int64)
    negative = 1 - positive if policy == "any" else positive.sum(axis=1, keepdims=True) - positive
    return np.stack([negative, positive], axis=-1)


def _fit_one(learner: MILClassifier, features: NDArray[Any], bags: Bags, copies: NDArray[np.int64]) -> MILClassifier:
    learner._fit(features, bags, copies)
    return learner
