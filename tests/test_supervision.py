"""Supervision: selection, and the column of the background class."""

from __future__ import annotations

import numpy as np
import pytest

from mipl.errors import DataError
from mipl.supervision import Supervision, background_column, check_sample_weight


def test_a_selection_takes_the_bags_and_leaves_the_background():
    everything = Supervision(
        np.array([[True, False], [True, True], [False, True]]),
        np.array([[2.0, 0.0], [1.0, 3.0], [0.0, 1.0]]),
        background=1,
        groups=np.array([4, 5, 6]),
        sample_weight=np.array([1.0, 2.0, 3.0]),
    )
    for index in ([2, 0], np.array([2, 0])):
        part = everything[index]
        assert len(part) == 2
        assert part.candidates.tolist() == [[False, True], [True, False]]
        assert part.weights.tolist() == [[0, 1], [2, 0]]
        assert part.groups.tolist() == [6, 4]
        assert part.sample_weight.tolist() == [3, 1]
        assert part.background == 1
    assert everything[np.array([False, True, False])].groups.tolist() == [5]
    plain = Supervision(everything.candidates)[1:]
    assert (plain.weights, plain.background, plain.groups, plain.sample_weight) == (None, None, None, None)


@pytest.mark.parametrize(
    ("background", "classes", "column"),
    [(None, ["a", "b"], None), ("b", ["a", "b"], 1), (np.str_("a"), ["a", "b"], 0), (np.int64(4), [2, 4], 1)],
)
def test_the_background_is_a_label(background, classes, column):
    assert background_column(background, np.array(classes)) == column


@pytest.mark.parametrize("background", ["c", 1, True, ["a"]])
def test_a_background_that_is_no_class_is_refused(background):
    with pytest.raises(DataError, match=r"is not among the classes \['a', 'b'\]"):
        background_column(background, np.array(["a", "b"]))


@pytest.mark.parametrize("weight", [1e-300, 1e31])
def test_weights_that_no_method_can_compute_with_are_refused(weight: float):
    with pytest.raises(DataError, match=r"bag 1 has the sample weight .*divide all weights by their mean"):
        check_sample_weight([1.0, weight, 0.0], 3)
    assert check_sample_weight([1e30, 1e-30, 0.0], 3).tolist() == [1e30, 1e-30, 0.0]
