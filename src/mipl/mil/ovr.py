"""OneVsRest: binary multi-instance learners on bags with candidate sets."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from mipl.bags import Bags
from mipl.base import MIPLClassifier
from mipl.errors import DataError
from mipl.mil.base import MILClassifier

__all__ = ["OneVsRest"]


class OneVsRest(MIPLClassifier):
    r"""One binary multi-instance learner a class, the class against the rest.

    A subclass names its learner, ``class VGPMILBags(OneVsRest, learner=VGPMIL)``, and has the learner's parameters
    beside its own. All q problems share one front end (inducing points, kernel features); it is fitted once, with the
    bags of each candidate label as groups.

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
    candidate_policy : {"any", "duplicate"}
        How bags with several candidates train the learner of class c. ``"any"``: positive if c is a candidate, else
        negative. ``"duplicate"``: the paper's recomposition; the bag is given each of its candidates in turn, so it
        occurs as a positive bag for c and as a negative one for each other candidate. With one candidate a bag both
        are the same.
    n_jobs : int or None
        How many learners are fitted at once, as in joblib; each uses one core.
    **params
        Parameters of the learner.

    Attributes
    ----------
    front_end_ : FrontEnd
    learners_ : list of q MILClassifier
        Fitted on the features of `front_end_`.
    """

    learner: ClassVar[type[MILClassifier]]

    def __init_subclass__(cls, learner: type[MILClassifier], **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.learner = learner
        cls.citation = learner.citation
        own = [p for p in inspect.signature(OneVsRest.__init__).parameters.values() if p.kind is p.KEYWORD_ONLY]
        cls.__signature__ = inspect.Signature([*own, *inspect.signature(learner).parameters.values()])

    def __init__(self, *, candidate_policy: str = "any", n_jobs: int | None = None, **params: Any) -> None:
        self.candidate_policy = candidate_policy
        self.n_jobs = n_jobs
        for name, parameter in inspect.signature(self.learner).parameters.items():
            setattr(self, name, params.pop(name, parameter.default))
        if params:
            raise TypeError(f"{type(self).__name__} has no parameter {next(iter(params))!r}")

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(inspect.signature(cls).parameters)

    def _fit(self, bags: Bags, candidates: NDArray[np.bool_]) -> None:
        copies = label_copies(candidates, self.candidate_policy)
        learner = self.learner(**{name: getattr(self, name) for name in inspect.signature(self.learner).parameters})
        self.front_end_ = learner._front_end().fit(bags, candidates)
        features = self.front_end_.transform(bags)
        with threadpool_limits(1):
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
    if policy == "any":
        return np.stack([1 - positive, positive], axis=-1)
    if policy == "duplicate":
        return np.stack([positive.sum(axis=1, keepdims=True) - positive, positive], axis=-1)
    raise DataError(f"unknown candidate_policy {policy!r}; use 'any' or 'duplicate'")


def _fit_one(learner: MILClassifier, features: NDArray[Any], bags: Bags, copies: NDArray[np.int64]) -> MILClassifier:
    learner._fit(features, bags, copies)
    return learner
