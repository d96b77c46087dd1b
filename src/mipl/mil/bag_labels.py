"""The labels of the instances of a positive bag: at least one is positive."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, expit, log_expit

from mipl.bags import Bags

__all__ = ["InstanceLabels", "inherited_labels", "positive_bag_labels"]

Array = NDArray[np.float64]
#: log H of the paper: how much likelier a bag's label is when it is the maximum of its instances' labels.
_LOG_H = 12 * np.log(10)


class InstanceLabels(NamedTuple):
    """q(y) of the instances of positive bags.

    Attributes
    ----------
    log_odds : (n,)
        Of y = 1.
    bound : (m,)
        What the labels of a bag add to the evidence lower bound: their entropy and the expected log likelihood of
        the bag's label.
    """

    log_odds: Array
    bound: Array

    @property
    def probability(self) -> Array:
        """q(y = 1) (n,)."""
        return expit(self.log_odds)


def inherited_labels(bags: Bags) -> InstanceLabels:
    """Where the updates start: all instances of a positive bag are as positive as the bag."""
    return InstanceLabels(np.full(bags.n_instances, _LOG_H), np.zeros(len(bags)))


def positive_bag_labels(bags: Bags, evidence: Array, previous: InstanceLabels) -> InstanceLabels:
    r"""Update q(y) of every instance given the others of its bag, the instance with most evidence first.

    With evidence :math:`c_n` for :math:`y_n = 1` (n,) and the bag's label :math:`\max_n y_n = 1` a factor
    :math:`H = 10^{12}` likelier than not, the best factor of one instance is

    .. math:: q(y_n = 1) = \sigma \big( c_n + \log H \textstyle\prod_{k \ne n} q(y_k = 0) \big).

    The instances of a bag take turns, because updating all at once can lower the bound: where none looks positive,
    all would become so. The k-th instances of all bags are updated together. Taking turns in the order of evidence
    makes the likeliest instance the witness of a bag that has none.

    Parameters
    ----------
    evidence : (n,)
    previous : InstanceLabels
        q(y) so far.
    """
    order = np.lexsort((-evidence, bags.bag_of_instance))
    largest_first = np.argsort(-bags.sizes, kind="stable")
    n_longer = np.searchsorted(-bags.sizes[largest_first], -np.arange(bags.sizes.max()), side="left")
    log_odds = previous.log_odds.copy()
    log_negative = log_expit(-log_odds)
    log_none = bags.sum(log_negative)  # log of the probability that the bag has no positive instance
    for k, count in enumerate(n_longer):
        active = largest_first[:count]
        turn = order[bags.offsets[active] + k]
        others = np.minimum(log_none[active] - log_negative[turn], 0)
        log_odds[turn] = evidence[turn] + _LOG_H * np.exp(others)
        updated = log_expit(-log_odds[turn])
        log_none[active] = others + updated
        log_negative[turn] = updated
    entropy = bags.sum(entr(expit(log_odds)) + entr(expit(-log_odds)))
    return InstanceLabels(log_odds, entropy - _LOG_H * np.exp(log_none))
