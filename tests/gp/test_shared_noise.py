"""The structure of repeated noises: every row once, and its noises recovered."""

from __future__ import annotations

import numpy as np
import pytest
from dense_low_rank import noises

from mipl.gp.shared_noise import MAX_LEVELS, shared_noise


@pytest.mark.parametrize("structure", noises())
def test_groups_partition_the_rows_and_tell_their_noises(structure: str) -> None:
    noise = noises()[structure]
    shared = shared_noise(noise)
    np.testing.assert_array_equal(np.sort(np.concatenate([g.rows for g in shared.groups])), np.arange(len(noise)))
    for group in shared.groups:
        told = np.tile(shared.usual, (len(group.rows), 1))
        for level in group.levels:
            c, value = shared.levels[level]
            told[:, c] = value
        for c in group.varying:
            told[:, c] = noise[group.rows, c]
        np.testing.assert_array_equal(told, noise[group.rows])


def test_candidate_sets_are_the_groups() -> None:
    noise = noises()["candidate sets"]
    shared = shared_noise(noise)
    assert len(shared.groups) == len(np.unique(noise, axis=0))
    assert not any(group.varying for group in shared.groups)
    assert shared.usual[-1] == 1.1, "the negative class is a candidate everywhere"


def test_a_class_with_many_noises_varies() -> None:
    few, many = (np.tile(np.arange(float(k)), 60)[: 60 * MAX_LEVELS, None] for k in (MAX_LEVELS + 1, MAX_LEVELS + 2))
    assert len(shared_noise(few).levels) == MAX_LEVELS
    assert shared_noise(many).levels == []
    assert len(shared_noise(many).groups) == 2
