r"""From features to instance logits, from these to the evidence of bags, and from two experts to one answer.

This is all of BagGP that is not learning: `fit` uses it to read held-out bags, `predict` to read new ones.

An *expert* gives instance j the logit :math:`g_{jc}` of label c against negative; `mipl.bag_posterior` sums the logits
of a bag up to the log evidence :math:`l_{bc}` of its labels, to which the expert's class offset :math:`o_c` is added.
The answers :math:`z^{(k)}_b = l^{(k)}_b + o^{(k)}` of two experts are stacked:

.. math:: \hat p_b = (1 - \epsilon)\, \mathrm{softmax}(w_1 z^{(1)}_b + w_2 z^{(2)}_b) + \epsilon / q,

a weighted product of experts, except for the outlier rate :math:`\epsilon`, the share of bags of which neither expert
knows anything.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mipl.bag_posterior import bag_evidence, instance_posterior
from mipl.baggp.blocks import Block, thin_product
from mipl.baggp.constants import CHUNK_ROWS, MAX_LOG_ODDS

__all__ = ["Answer", "BagModel", "Expert", "Stacking", "against_best"]


class Expert(NamedTuple):
    r"""A linear model of instance logits, :math:`g_j = \phi_j^\top \mathrm{coef} + \mathrm{intercept}`.

    Where the coefficients have a posterior variance, logits are averaged over what the coefficients may be: with
    :math:`v_j = \sum_k \phi_{jk}^2 \mathrm{variance}_k` they are divided by :math:`\sqrt{1 + \pi v_j / 8}` (MacKay's
    moderated output), so that an instance unlike those seen in training says less.

    Attributes
    ----------
    coef : (R, q)
    intercept : (q,)
    class_offset : (q,), added to the log evidence of a bag
    background : (q,) bool, the class that no instance carries, or None
    variance : (R,) posterior variance of the coefficients, or None for logits as they are
    """

    coef: Tensor
    intercept: Tensor
    class_offset: Tensor
    background: Tensor | None = None
    variance: Tensor | None = None

    def logits(self, features: Tensor) -> Tensor:
        """Instance logits (n, q) of features (n, R)."""
        g = thin_product(features, self.coef.to(features.dtype)).contiguous().double() + self.intercept
        return self.moderate(g, features)

    def moderate(self, logits: Tensor, features: Tensor) -> Tensor:
        """Logits (n, q) of the mean coefficients, averaged over what the coefficients may be."""
        if self.variance is None:
            return logits
        weights = self.variance.to(features.dtype)
        v = torch.cat([chunk.square() @ weights for chunk in features.split(CHUNK_ROWS)]).double()
        return logits / torch.sqrt(1 + math.pi / 8 * v)[:, None]

    @staticmethod
    def read(block: Block, expert: Expert) -> Tensor:
        """Log evidence (m_b, q) of the labels of a block's bags."""
        return expert.log_evidence(expert.logits(block.features), block.offsets)

    def log_evidence(self, logits: Tensor, offsets: Tensor) -> Tensor:
        """Log evidence (m, q) of the labels of bags, class offsets included, from instance logits (n, q)."""
        return bag_evidence(logits, offsets, self.background).log_evidence + self.class_offset


class Stacking(NamedTuple):
    r"""How the answers of the two experts become one.

    Attributes
    ----------
    weights : (2,), w
    outlier_rate : float, :math:`\epsilon`
    """

    weights: NDArray[np.float64]
    outlier_rate: float

    @property
    def second_share(self) -> float:
        """The share of the second expert in the answer, whatever the scale of the weights."""
        total = float(self.weights.sum())
        return float(self.weights[1]) / total if total > 0 else 0.5

    def probabilities(self, first: Tensor, second: Tensor) -> Tensor:
        """Probabilities (m, q) of the labels, from the log evidence (m, q) of both experts."""
        w1, w2 = self.weights.tolist()
        product = torch.softmax(w1 * against_best(first) + w2 * against_best(second), dim=1)
        return (1 - self.outlier_rate) * product + self.outlier_rate / product.shape[1]


class Answer(NamedTuple):
    """What both experts say together.

    Attributes
    ----------
    logits : (n, q), of instances against negative: the mean of both experts', each with its share in the answer
    probabilities : (m, q), of the bags' labels
    """

    logits: Tensor
    probabilities: Tensor


class BagModel(NamedTuple):
    """The two experts, and how they are stacked."""

    regression: Expert
    likelihood: Expert
    stacking: Stacking

    def answer(self, logits: Tensor, offsets: Tensor) -> Answer:
        """The answer for bags (m + 1,) from the instance logits (n, 2, q) of both experts."""
        mask = self.regression.background
        evidence = bag_evidence(logits.flatten(1), offsets, None if mask is None else mask.repeat(2)).log_evidence
        first, second = evidence.view(-1, *logits.shape[1:]).unbind(1)
        share = self.stacking.second_share
        return Answer(
            (1 - share) * logits[:, 0] + share * logits[:, 1],
            self.stacking.probabilities(first + self.regression.class_offset, second + self.likelihood.class_offset),
        )

    @staticmethod
    def read(block: Block, model: BagModel) -> Tensor:
        """Probabilities (m_b, q) of the labels of a block's bags."""
        return model.answer(model.logits(block.features), block.offsets).probabilities

    def logits(self, features: Tensor) -> Tensor:
        """Instance logits (n, 2, q) of both experts, from one product."""
        experts = (self.regression, self.likelihood)
        coef = torch.cat([expert.coef for expert in experts], dim=1).to(features.dtype)
        intercept = torch.stack([expert.intercept for expert in experts])
        g = thin_product(features, coef).contiguous().double().view(len(features), *intercept.shape) + intercept
        for i, expert in enumerate(experts):
            if expert.variance is not None:
                g[:, i] = expert.moderate(g[:, i], features)
        return g

    def instance_probabilities(self, answer: Answer, offsets: Tensor) -> Tensor:
        """Probabilities (n, q + 1) that an instance carries each label, the last column that it carries none."""
        evidence = bag_evidence(answer.logits, offsets, self.regression.background)
        carries = instance_posterior(answer.logits, evidence, answer.probabilities, offsets)
        negative = (1 - carries.sum(dim=1, keepdim=True)).clamp(min=0)
        return torch.cat([carries, negative], dim=1)


def against_best(log_evidence: Tensor) -> Tensor:
    """Log odds (m, q) against the best class of each bag, cut off where a class is out of the question."""
    return (log_evidence - log_evidence.amax(dim=1, keepdim=True)).clamp(min=-MAX_LOG_ODDS)
