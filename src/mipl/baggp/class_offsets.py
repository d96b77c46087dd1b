r"""Class offsets: a soft expectation that the classes are about equally frequent.

A class that wins a few bags too many attracts more instances, wins more bags by them, and may swallow the others. What
is added to the log evidence of class c works against this: the fixed point of

.. math:: o_c = -w \log\big(q \cdot \mathrm{mean}_b P_{bc}\big), \qquad
    P_b = \mathrm{softmax}_{c \in S_b}(l_{bc} + \log \pi_{bc} + o_c), \qquad w = 0.9.

Offsets are a few nats as a rule: they decide between classes where bags are ambiguous and leave clear bags alone, so
that frequent classes stay frequent where the bags say so. The larger w, the closer the shares come to equality.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mipl.bag_posterior import label_posterior
from mipl.baggp.constants import MIN_CLASS_SHARE, OFFSET_STEPS, OFFSET_STRENGTH

__all__ = ["class_offsets"]


def class_offsets(log_evidence: Tensor, log_prior: Tensor, W: Tensor) -> Tensor:
    """The offsets (F, q) of fits with log evidence and log prior (m, F, q) and weights W (m, F) of the bags."""
    # Offsets are factors of the odds. They are a few nats, so what is lost here to underflow they would not bring back.
    odds = label_posterior(log_evidence, log_prior)
    total = W.sum(dim=0)[:, None]
    offset = torch.zeros_like(log_evidence[0])
    for _ in range(OFFSET_STEPS):
        factor = torch.exp(offset)
        per_bag = W / torch.einsum("mfq,fq->mf", odds, factor)
        share = factor * torch.einsum("mf,mfq->fq", per_bag, odds) / total
        offset = 0.5 * (offset - OFFSET_STRENGTH * torch.log((share * share.shape[1]).clamp(min=MIN_CLASS_SHARE)))
    return offset
