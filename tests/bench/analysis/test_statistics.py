import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mipl.bench.published import published
from mipl.bench.statistics import average_ranks, compare, critical_difference, mean_and_std
from scipy import stats


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


@given(st.lists(st.tuples(st.integers(0, 250), st.integers(0, 250)), min_size=2, max_size=10))
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


@pytest.mark.parametrize(("a", "b"), [({}, {}), ({0: 0.5}, {0: 0.1}), ({0: 0.5, 1: 0.6}, {1: 0.1, 2: 0.2})])
def test_fewer_than_two_common_splits_are_not_tested(a, b):
    result = compare(a, b)
    assert result.verdict == "untested"
    assert math.isnan(result.p)


def test_std_is_the_sample_standard_deviation_and_undefined_for_one_split():
    assert mean_and_std(by_split(0.1, 0.2, 0.6)) == pytest.approx((0.3, math.sqrt(0.07)))
    mean, std = mean_and_std(by_split(0.4))
    assert mean == 0.4
    assert math.isnan(std)


def test_average_ranks_share_ties():
    assert average_ranks(np.array([[0.5, 0.5, 0.9]])).tolist() == [2.5, 2.5, 1.0]


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_critical_difference_uses_the_printed_quantiles_of_demsar(k, q):
    assert critical_difference(k, 20) == pytest.approx(q * math.sqrt(k * (k + 1) / 120), abs=2e-3)


def test_published_markers_add_up_to_the_papers_win_tie_loss_table():
    pll = {"PL-kNN", "CLPL", "LSB-CMM", "SURE", "GM-PLL", "PL-AGGD"}
    counts = {r: Counter() for r in (1, 2, 3)}
    for (method, group, _, r), figure in published(0.5).items():
        if method in pll:
            assert group in ("Mean", "MaxMin")
            counts[r][figure.outcome] += 1
    assert counts == {1: Counter(win=60), 2: Counter(win=60), 3: Counter(win=59, tie=1)}


def test_published_variants_lose_as_often_as_the_paper_says():
    for method, share in (("MIPLGP-uniform", 0.86667), ("MIPLGP-naive", 0.93333)):
        outcomes = [f.outcome for (m, *_), f in published(0.5).items() if m == method]
        assert len(outcomes) == 15
        assert outcomes.count("win") / 15 == pytest.approx(share, abs=1e-5)


def test_published_figures_cover_the_tables_and_mark_what_is_unconfirmed():
    paper = published(0.5)
    assert len(paper) == 3 * 15 + 12 * 15 + 4 * 5
    assert paper["MIVAE", "", "fmnist", 1].std == 0.213
    assert all(figure.confirmed for figure in paper.values())
    later = published(0.7)
    assert later["FastMIPL", "", "mnist", 1].mean == 0.999
    assert not any(f.confirmed for (m, *_), f in later.items() if m == "DEMIPL")
    assert all(f.confirmed != f.source.endswith("as recalled, unconfirmed") for f in later.values())
