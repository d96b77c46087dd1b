r"""The exact posterior of a bag's label and of its instances' labels, given instance class probabilities.

A bag b holds independent instances j with class probabilities :math:`p_{jc}`, the last class n being "negative".
Exactly one label c of the bag is true: at least one instance carries it, all others are negative. Its evidence is

.. math:: Z_{bc} = \prod_{j \in b} (p_{jc} + p_{jn}) - \prod_{j \in b} p_{jn}.

With logits :math:`g_{jc} = \log p_{jc} - \log p_{jn}` and everything divided by :math:`\prod_j p_{jn}`,

.. math::
    s_{bc} = \sum_{j \in b} \mathrm{softplus}(g_{jc}), \qquad
    l_{bc} = \log(e^{s_{bc}} - 1), \qquad
    P_{bc} = \mathrm{softmax}_{c}(l_{bc} + \log \pi_{bc}), \qquad
    R_{jc} = P_{bc} \, \frac{\sigma(g_{jc})}{1 - e^{-s_{bc}}},

where :math:`\pi_{bc}` is a prior on the bag's label, zero off its candidates; :math:`R_{jc}` is the posterior that
instance j carries c. Nothing is approximated, and everything stays in log space, so logits of any size and bags of any
length are fine. Tensors keep their device and dtype; bags are segments given by their offsets (m + 1,).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

__all__ = [
    "BagEvidence",
    "bag_evidence",
    "instance_posterior",
    "label_posterior",
    "segment_sum",
    "set_log_likelihood",
    "spread",
]

#: Below this largest logit of a bag, softplus(g) = exp(g) to all digits and would soon underflow.
_TINY = -60.0


class BagEvidence(NamedTuple):
    r"""The evidence of every label in every bag.

    log_evidence : (m, q), :math:`l_{bc}`
    log_any : (m, q), :math:`\log(1 - e^{-s_{bc}})`: the chance that any instance carries c, if c alone may occur
    """

    log_evidence: Tensor
    log_any: Tensor


def bag_evidence(logits: Tensor, offsets: Tensor, background: Tensor | None = None) -> BagEvidence:
    """Sum the instance logits (n, q) of each bag up to the evidence of its labels (m, q).

    Entries of a `background` mask, broadcast to (m, q), are of a class that no instance carries: its evidence is that
    all instances are negative, the product of :math:`p_{jn}`, whatever its logits are.
    """
    s = segment_sum(softplus(logits), offsets)
    log_any = torch.log(-torch.expm1(-s))
    top = torch.segment_reduce(logits, "max", offsets=offsets, axis=0)
    tiny = top < _TINY
    if bool(tiny.any()):
        by_sum = top + torch.log(segment_sum(torch.exp(logits - spread(top, offsets)), offsets))
        log_any = torch.where(tiny, by_sum, log_any)
    log_evidence = s + log_any
    if background is not None:
        log_evidence = log_evidence.masked_fill(background, 0.0)
        log_any = log_any.masked_fill(background, torch.inf)  # so that no instance carries it
    return BagEvidence(log_evidence, log_any)


def label_posterior(log_evidence: Tensor, log_prior: Tensor) -> Tensor:
    """Combine log evidence (m, q) and log prior (m, q), -inf off the candidates, to the label's posterior (m, q)."""
    return torch.softmax(log_evidence + log_prior, dim=-1)


def set_log_likelihood(log_odds: Tensor, log_prior: Tensor) -> Tensor:
    """Log probability (m,) of what is known of the labels, under the softmax of log odds (m, q).

    With a log prior (m, q) of zero on the candidates and -inf beside them it is the probability of the candidate set.
    """
    return torch.logsumexp(log_odds + log_prior, dim=-1) - torch.logsumexp(log_odds, dim=-1)


def instance_posterior(logits: Tensor, evidence: BagEvidence, posterior: Tensor, offsets: Tensor) -> Tensor:
    """Probability (n, q) that an instance carries c, given logits (n, q) and the bag label's posterior (m, q).

    The probability that it is negative is what the rows leave to one.
    """
    share = torch.exp(logsigmoid(logits) - spread(evidence.log_any, offsets)).clamp_(max=1.0)
    return share * spread(posterior, offsets)


def segment_sum(values: Tensor, offsets: Tensor) -> Tensor:
    """Sum rows (n, k) over each bag, to (m, k)."""
    return torch.segment_reduce(values, "sum", offsets=offsets, axis=0)


def spread(values: Tensor, offsets: Tensor) -> Tensor:
    """Repeat rows (m, k) for every instance of the bag, to (n, k)."""
    return torch.repeat_interleave(values, offsets.diff(), dim=0)
