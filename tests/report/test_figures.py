"""The figures of the page: histogram, calibration, shares and confused classes, against counts by hand."""

from __future__ import annotations

import numpy as np
import pytest
from report_pages import made_up

from mipl.report.certainty import calibration_error, histogram, levels
from mipl.report.confusion import Pair, confused_pairs
from mipl.report.shares import Share, class_shares

POSTERIOR = np.array([[0.55, 0.45, 0.0], [0.0, 0.58, 0.42], [0.97, 0.0, 0.03], [0.0, 0.0, 1.0]])
TRUTH = np.array(["class 1", "class 1", None, "class 2"], dtype=object)
SETS = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1]], dtype=bool)


@pytest.fixture
def found():
    return made_up(4, q=3, posterior=POSTERIOR, candidates=SETS, truth=TRUTH)


def test_every_answer_is_in_one_bin_and_those_that_are_known_are_right_or_wrong(found):
    bins = {(b.low, b.high): (b.count, b.right, b.wrong) for b in histogram(found)}
    assert next(iter(bins)) == (0.5, 0.6)
    assert bins[0.5, 0.6] == (2, 1, 1)
    assert bins[0.95, 0.99] == (1, 0, 0)
    assert bins[0.99, 1] == (1, 1, 0)
    assert sum(count for count, _, _ in bins.values()) == 4


def test_calibration_is_the_weighted_distance_from_the_diagonal(found):
    # Two known answers near 0.565 of which half are right, and one of probability 1 that is right.
    assert calibration_error(histogram(found)) == pytest.approx((2 * 0.065 + 0) / 3)
    assert calibration_error(histogram(made_up())) is None


def test_answers_that_are_all_sure_are_still_a_histogram():
    posterior = np.tile([0.995, 0.005, 0.0, 0.0], (40, 1))
    bins = histogram(made_up(posterior=posterior, candidates=None))
    assert [(b.low, b.count) for b in bins] == [(0.7, 0), (0.8, 0), (0.9, 0), (0.95, 0), (0.99, 40)]


def test_levels_partition_the_answers():
    assert levels(np.array([0.1, 0.69, 0.7, 0.94, 0.95, 1.0])).__dict__ == {"sure": 2, "likely": 2, "doubtful": 2}


def test_shares_before_count_candidates_alike_and_after_by_probability(found):
    shares = {share.name: share for share in class_shares(found)}
    assert shares["class 0"] == Share("class 0", before=0.25, after=pytest.approx(0.38), true=0.0)
    assert shares["class 1"] == Share("class 1", before=0.25, after=pytest.approx(0.2575), true=pytest.approx(2 / 3))
    assert shares["class 2"].before == 0.5
    after = [share.after for share in class_shares(found)]
    assert after == sorted(after, reverse=True)


def test_confused_classes_are_those_that_compete_and_those_known_to_be_mixed_up(found):
    assert confused_pairs(found) == [
        Pair(0, 1, unsure=1, expected=pytest.approx(0.45), known=1),
        Pair(1, 2, unsure=1, expected=pytest.approx(0.42), known=0),
    ]
    assert len(confused_pairs(made_up(200, q=20), most=5)) == 5
