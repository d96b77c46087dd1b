"""The labels of the instances of a bag, given that the bag's label is their maximum."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from mipl.bags import Bags

__all__ = ["InstanceLabels", "positive_bag_labels"]

Array = NDArray[np.float64]


class InstanceLabels(NamedTuple):
    """q(y) of the instances of positive bags: marginals (n,) and the entropy of each bag's joint distribution (m,)."""

    probability: Array
    entropy: Array


def positive_bag_labels(bags: Bags, log_odds: Array) -> InstanceLabels:
    r"""The exact distribution of instance labels whose maximum is one.

    Independent labels :math:`y_n \in \{0, 1\}` with log-odds :math:`c_n` (n,), conditioned on at least one being
    positive, have in a bag

    .. math:: q(y_n = 1) = \frac{\sigma(c_n)}{1 - \prod_k \sigma(-c_k)}, \qquad
              \log Z = \log \Big( \prod_k (1 + e^{c_k}) - 1 \Big), \qquad
              H(q) = \log Z - \sum_n q(y_n = 1)\, c_n.

    In a negative bag all labels are zero. Everything is kept in logarithms: a bag whose instances all look negative
    still shares one witness out among them.

    >>> labels = positive_bag_labels(Bags.from_list([[[0.0], [0.0]]]), np.array([-50.0, -50.0]))
    >>> labels.probability.round(6)
    array([0.5, 0.5])
    """
    log_all = bags.sum(np.logaddexp(0, log_odds))  # log prod (1 + e^c)
    log_some = np.log(-np.expm1(-log_all))  # log of 1 - prod sigma(-c)
    probability = np.exp(np.minimum(log_expit(log_odds) - bags.spread(log_some), 0))
    entropy = log_all + log_some - bags.sum(probability * log_odds)
    return InstanceLabels(probability, entropy)
