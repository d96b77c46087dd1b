"""Fixtures shared by the tests of the bench."""

from __future__ import annotations

import numpy as np
import pytest

import mipl


@pytest.fixture
def bags(tmp_path):
    """A file with ten bags, the even ones of class 0."""
    rng = np.random.default_rng(0)
    file = tmp_path / "bags.npz"
    dataset = mipl.MIPLDataset([rng.normal(size=(3, 4)) for _ in range(10)], [{0, 1}] * 10, labels=[0, 1] * 5)
    dataset.save(file)
    return file
