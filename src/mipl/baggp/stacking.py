r"""What held-out candidate sets say: how far to trust the two models.

False candidates are drawn at random, so the probability that a model gives to a held-out bag's candidate *set* tells
how good and how well calibrated it is; no label is needed. The bag likelihood is fitted without an eighth of the bags;
for these the bag regression has left-out evidence anyway. Where the two models give the classes of a bag the log odds
:math:`z^{(1)}_b` and :math:`z^{(2)}_b`, the answer is

.. math:: \hat p_b = (1 - \epsilon)\, \mathrm{softmax}(w_1 z^{(1)}_b + w_2 z^{(2)}_b) + \epsilon / q,

a product of experts, but for bags of which neither knows anything. The weights w and the share :math:`\epsilon` of
such bags are fitted by the likelihood of the candidate sets, with a log-normal prior on w around one half and a
logistic-normal one on :math:`\epsilon` around 2 %. A model of fewer bags is less sure than the one that is used in the
end: the more bags are held out, the more cautious the probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit
from torch import Tensor

from mipl.baggp.likelihood import fit_bag_likelihood
from mipl.baggp.shards import Shard

__all__ = ["Trust", "trust_by_held_out"]

_TRAINING_SHARE = 0.875
_MIN_HELD_OUT = 8
_WEIGHT, _STRANGE = 0.5, 0.02
#: Precisions of the priors on log w and logit epsilon, in held-out bags.
_WEIGHT_PRECISION, _STRANGE_PRECISION = 2.0, 0.5
#: Log odds below the best class at which an expert has nothing more to say against a class.
_CERTAIN = 30.0


class Trust(NamedTuple):
    r"""How the answers of the two models become one.

    weights : (2,), w
    strange : float, :math:`\epsilon`
    """

    weights: NDArray[np.float64]
    strange: float

    def probabilities(self, cautious: Tensor, sharp: Tensor) -> Tensor:
        """Probabilities (m, q) of the labels, from the log evidence (m, q) of bag regression and of bag likelihood."""
        w1, w2 = self.weights.tolist()
        product = torch.softmax(w1 * _against_best(cautious) + w2 * _against_best(sharp), dim=1)
        return (1 - self.strange) * product + self.strange / product.shape[1]


def trust_by_held_out(
    shards: Sequence[Shard], eigenvalues: Tensor, prior: Tensor, log_evidence: Tensor, kappa: float | None
) -> Trust:
    """Fit the bag likelihood to most of the bags and see what it, and the bag regression, say of the rest.

    log_evidence : (m, q), what the bag regression says of each bag with that bag left out. Bags must be in random
    order. With too few of them, the modes of the priors are taken.
    """
    if all(bool(shard.candidates.all()) for shard in shards):
        return Trust(np.zeros(2), 0.0)  # the candidates say nothing
    kept = [max(1, round(_TRAINING_SHARE * len(shard.candidates))) for shard in shards]
    counts = [len(shard.candidates) for shard in shards]
    if sum(counts) - sum(kept) < _MIN_HELD_OUT:
        return Trust(np.full(2, _WEIGHT), _STRANGE)
    parts = [shard.split(k) for shard, k in zip(shards, kept, strict=True)]
    training = [first for first, _ in parts]
    held_out = [rest for _, rest in parts if len(rest.candidates)]
    priors = torch.cat([p[:k] for p, k in zip(prior.split(counts), kept, strict=True)])
    cautious = torch.cat([z[k:] for z, k in zip(log_evidence.split(counts), kept, strict=True)])
    model = fit_bag_likelihood(training, eigenvalues * _TRAINING_SHARE, priors, kappa)
    sharp = torch.cat([model.log_evidence(rest) for rest in held_out])
    return _fit_trust(cautious, sharp, torch.cat([rest.candidates for rest in held_out]))


def _fit_trust(cautious: Tensor, sharp: Tensor, candidates: Tensor) -> Trust:
    """The most probable weights and share of strange bags, given the log evidence (m, q) of both models."""
    start = np.array([math.log(_WEIGHT), math.log(_WEIGHT), logit(_STRANGE)])
    precision = np.array([_WEIGHT_PRECISION, _WEIGHT_PRECISION, _STRANGE_PRECISION])

    def trust(x: NDArray[np.float64]) -> Trust:
        return Trust(np.exp(x[:2]), float(expit(x[2])))

    def objective(x: NDArray[np.float64]) -> float:
        of_set = (trust(x).probabilities(cautious, sharp) * candidates).sum(dim=1)
        return 0.5 * float(precision @ (x - start) ** 2) - float(torch.log(of_set).sum())

    return trust(minimize(objective, start, method="Nelder-Mead").x)


def _against_best(log_evidence: Tensor) -> Tensor:
    """Log odds (m, q) against the best class of each bag, cut off where a class is out of the question."""
    return (log_evidence - log_evidence.amax(dim=1, keepdim=True)).clamp(min=-_CERTAIN)
