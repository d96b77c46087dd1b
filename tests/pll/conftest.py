"""Small problems that several learners are tested on."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def separated_classes():
    """40 samples of three classes around centres of their own, their candidate sets, and their labels."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 40)
    samples = rng.normal(size=(40, 4)) + 2 * np.eye(4)[labels]
    candidates = rng.random((40, 3)) < 0.4
    candidates[np.arange(40), labels] = True
    return samples, candidates, labels


@pytest.fixture
def random_candidates():
    """30 samples without any structure, and random sets among five candidates."""
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(30, 4))
    candidates = rng.random((30, 5)) < 0.4
    candidates[np.arange(30), rng.integers(0, 5, 30)] = True
    return samples, candidates
