"""The structure of repeated noises: every row once, and its noises recovered."""

from __future__ import annotations

import numpy as np
import pytest
from dense_low_rank import noises

from mipl.gp.low_rank_sums import MAX_LEVELS, noise_levels, row_groups


@pytest.mark.parametrize("structure", noises())
def test_groups_partition_the_rows_and_tell_their_noises(structure: str) -> None:
    noise = noises()[structure]
    shared = noise_levels(noise)
    groups = row_groups(noise, shared)
    np.testing.assert_array_equal(np.sort(np.concatenate([g.rows for g in groups])), np.arange(len(noise)))
    for group in groups:
        told = np.tile(shared.usual, (len(group.rows), 1))
        for level in group.levels:
            c, value = shared.levels[level]
            told[:, c] = value
        for c in [shared.varying[k] for k in group.varying]:
            told[:, c] = noise[group.rows, c]
        np.testing.assert_array_equal(told, noise[group.rows])


def test_candidate_sets_are_the_groups() -> None:
    noise = noises()["candidate sets"]
    shared = noise_levels(noise)
    groups = row_groups(noise, shared)
    assert len(groups) == len(np.unique(noise, axis=0))
    assert not any(group.varying for group in groups)
    assert shared.usual[-1] == 1.1, "the negative class is a candidate everywhere"


def test_a_class_with_many_noises_varies() -> None:
    few, many = (np.tile(np.arange(float(k)), 60)[: 60 * MAX_LEVELS, None] for k in (MAX_LEVELS + 1, MAX_LEVELS + 2))
    assert len(noise_levels(few).levels) == MAX_LEVELS
    assert noise_levels(many).levels == []
    assert noise_levels(many).varying == [0]
    assert len(row_groups(many, noise_levels(many))) == 2
