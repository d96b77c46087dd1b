"""Labels of the instances of positive bags, against an enumeration of all labellings."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logit

from mipl.bags import Bags
from mipl.mil.bag_labels import InstanceLabels, positive_bag_labels


def _label_bound(c: NDArray[np.float64], p: NDArray[np.float64]) -> float:
    """Sum over all labellings of a bag of q(y) (y'c + log p(bag positive | y) - log q(y))."""
    total = 0.0
    for labelling in product((0, 1), repeat=len(c)):
        y = np.array(labelling)
        log_q = np.log(np.where(y == 1, p, 1 - p)).sum()
        total += np.exp(log_q) * (y @ c - (0 if y.any() else np.log(1e12)) - log_q)
    return total


def test_updating_labels_in_turn_raises_the_bound_of_every_bag_to_a_value_that_enumeration_confirms() -> None:
    rng = np.random.default_rng(1)
    bags = Bags(np.zeros((25, 1)), [0, 1, 4, 10, 16, 25])
    c, p = rng.normal(-3, 2, 25), rng.uniform(0.05, 0.6, 25)
    labels = positive_bag_labels(bags, c, InstanceLabels(logit(p), np.zeros(5)))
    for b, (low, high) in enumerate(zip(bags.offsets[:-1], bags.offsets[1:], strict=True)):
        q = np.clip(labels.probability[low:high], 1e-15, 1 - 1e-15)
        assert _label_bound(c[low:high], q) >= _label_bound(c[low:high], p[low:high])
        assert labels.bound[b] + labels.probability[low:high] @ c[low:high] == pytest.approx(
            _label_bound(c[low:high], q), abs=1e-6
        )


def test_a_bag_that_looks_negative_makes_its_likeliest_instance_the_witness() -> None:
    bags = Bags(np.zeros((5, 1)), [0, 4, 5])
    evidence = np.array([-6.0, -4.0, -5.0, -7.0, -9.0])
    labels = positive_bag_labels(bags, evidence, InstanceLabels(np.full(5, -8.0), np.zeros(2)))
    assert np.array_equal(labels.probability > 0.5, [False, True, False, False, True])
