import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mipl.bench.analysis.statistics import average_ranks, compare, critical_difference, spread


def by_split(*scores):
    return dict(enumerate(scores))


def test_t_test_equals_a_hand_calculation():
    # differences 1, 2, 3, 4 hundredths: mean 2.5, variance 5/3, t = 2.5 / sqrt(5/3 / 4) = 3.8730 with 3 degrees of
    # freedom; the t distribution with 3 degrees has the closed form below.
    a, b = by_split(0.51, 0.52, 0.53, 0.54), by_split(0.50, 0.50, 0.50, 0.50)
    t = 2.5 / math.sqrt(5 / 3 / 4)
    x = t / math.sqrt(3)
    cdf = 0.5 + (x / (1 + x**2) + math.atan(x)) / math.pi
    result = compare(a, b)
    assert result.p == pytest.approx(2 * (1 - cdf), rel=1e-9)
    assert (result.verdict, result.n) == ("win", 4)
    assert compare(b, a).verdict == "loss"


@given(st.lists(st.tuples(st.integers(0, 250), st.integers(0, 250)), min_size=3, max_size=10))
def test_t_test_equals_scipy_wherever_differences_vary(counts):
    a, b = np.array(counts).T / 250
    result = compare(by_split(*a), by_split(*b))
    if np.ptp(a - b) > 1e-9:
        expected = stats.ttest_rel(a, b)
        assert result.p == pytest.approx(expected.pvalue, abs=1e-12)
        assert (result.verdict == "win") == (expected.pvalue < 0.05 and expected.statistic > 0)
    else:
        assert result.p in (0.0, 1.0)


def test_equal_scores_are_a_tie_and_a_constant_difference_is_certain():
    same = by_split(0.7, 0.8, 0.9)
    assert compare(same, same) == compare(same, dict(same))
    assert compare(same, same).verdict == "tie"
    assert compare(same, same).p == 1.0
    shifted = {s: v - 0.1 for s, v in same.items()}
    assert compare(same, shifted).verdict == "win"
    assert compare(shifted, same).verdict == "loss"


def test_only_common_splits_are_paired():
    reference = {0: 0.9, 1: 0.91, 2: 0.93, 7: 0.1}
    other = {2: 0.83, 1: 0.80, 0: 0.8, 5: 0.99}
    assert compare(reference, other) == compare({k: reference[k] for k in (0, 1, 2)}, {k: other[k] for k in (0, 1, 2)})
    assert compare(reference, other).n == 3


@pytest.mark.parametrize(
    ("a", "b"), [({}, {}), ({0: 0.5}, {0: 0.1}), ({0: 0.5, 1: 0.6, 3: 0.7}, {1: 0.4, 2: 0.2, 3: 0.5})]
)
def test_fewer_than_three_common_splits_are_not_tested(a, b):
    result = compare(a, b)
    assert result.verdict == "untested"
    assert math.isnan(result.p)


def test_std_is_the_sample_standard_deviation_and_undefined_for_one_split():
    found = spread([0.1, 0.2, 0.6])
    assert (found.mean, found.std) == pytest.approx((0.3, math.sqrt(0.07)))
    assert (found.n, found.lowest, found.highest) == (3, 0.1, 0.6)
    one = spread([0.4])
    assert one.mean == 0.4
    assert math.isnan(one.std)


def test_unknown_values_are_left_out_of_a_spread():
    assert spread([0.1, None, math.nan, 0.3]) == spread([0.1, 0.3])
    nothing = spread([None])
    assert nothing.n == 0
    assert all(math.isnan(v) for v in (nothing.mean, nothing.std, nothing.lowest, nothing.highest))


def test_average_ranks_share_ties():
    assert average_ranks(np.array([[0.5, 0.5, 0.9]])).tolist() == [2.5, 2.5, 1.0]


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_critical_difference_uses_the_printed_quantiles_of_demsar(k, q):
    assert critical_difference(k, 20) == pytest.approx(q * math.sqrt(k * (k + 1) / 120), abs=2e-3)
