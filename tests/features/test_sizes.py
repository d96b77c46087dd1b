"""Front ends give the same features whatever the size of the instances, and whatever rows are beside one."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.preprocessing import MinMaxScaler

from mipl.features import CommonScale, Projection, UnitRange, UnitRows

X = (np.random.default_rng(0).standard_normal((50, 6)) * [1, 10, 1e-3, 1e4, 0, 1] + 3).astype(np.float32)


def test_unit_ranges_are_scikit_learns_to_the_last_digit() -> None:
    np.testing.assert_array_equal(UnitRange().fit_transform(X), MinMaxScaler().fit_transform(X))


@pytest.mark.parametrize("exponent", [-120, -100, -40, 40, 100, 110])
def test_unit_ranges_do_not_depend_on_the_size_of_features(exponent: int) -> None:
    expected = UnitRange().fit_transform(X)
    np.testing.assert_allclose(UnitRange().fit_transform(np.ldexp(X, exponent)), expected, atol=1e-3)


def test_a_range_that_overflows_and_a_feature_that_varies_by_rounding_only() -> None:
    rows = np.array([[-3.4e38, 1.0], [3.4e38, 1.0 + 2e-7], [0.0, 1.0]], dtype=np.float32)
    found = UnitRange().fit_transform(rows)
    np.testing.assert_allclose(found[:, 0], [0, 1, 0.5])
    assert (np.abs(found[:, 1]) < 1e-6).all()


def test_unit_ranges_of_new_values_are_finite_however_far_they_are() -> None:
    far = UnitRange().fit(X * np.float32(1e-30)).transform(np.full((1, 6), 3.4e38))
    assert np.isfinite(far).all()


def test_usual_sizes_are_left_alone_and_others_are_changed_by_a_power_of_two() -> None:
    usual = np.array([[0.0, 255.0]], dtype=np.float32)
    np.testing.assert_array_equal(CommonScale().fit(usual).transform(usual), usual)
    for scale in (1e-44, 1e-30, 1e30, 1e38):
        rows = (np.array([[1.0, -3.0, 0.5]]) * scale).astype(np.float32)
        found = CommonScale().fit(rows).transform(rows)
        assert 0.5 <= np.abs(found).max() < 1
        np.testing.assert_array_equal(found * rows[0, 0], rows * found[0, 0])
        assert np.isfinite(CommonScale().fit(rows).transform([[3.4e38, -3.4e38, 1e-45]])).all()


@pytest.mark.parametrize("power", [0.5, 1.0])
@pytest.mark.parametrize("exponent", [-110, -80, 60, 100])
def test_unit_rows_do_not_depend_on_the_size_of_a_row(power: float, exponent: int) -> None:
    rows = np.abs(X)
    found = UnitRows(power=power).fit_transform(np.ldexp(rows, exponent))
    np.testing.assert_allclose(found, UnitRows(power=power).fit_transform(rows), rtol=1e-5)


def test_projections_are_those_of_scikit_learn() -> None:
    rows = np.random.default_rng(1).standard_normal((80, 20)).astype(np.float32)
    ours, theirs = Projection(5).fit(rows), PCA(5).fit(rows)
    np.testing.assert_allclose(ours.transform(rows), theirs.transform(rows), atol=1e-5)
    np.testing.assert_allclose(ours.transform(rows[:1]), theirs.transform(rows[:1]), atol=1e-5)


def test_projections_of_a_row_do_not_depend_on_the_rows_beside_it() -> None:
    rows = np.random.default_rng(1).standard_normal((600, 64)).astype(np.float32)
    projection = Projection(50).fit(rows)
    together = projection.transform(rows)
    for start, stop in [(0, 1), (7, 12), (30, 70), (100, 400)]:
        np.testing.assert_allclose(projection.transform(rows[start:stop]), together[start:stop], rtol=0, atol=1e-12)


@pytest.mark.parametrize("wild", [1e9, -1e9, 1e30, -3e38])
def test_usual_values_beside_a_wild_one_stay_apart(wild: float) -> None:
    rows = np.vstack([X[:, [0, 5]], np.full((1, 2), wild, dtype=np.float32)])
    found = UnitRange().fit_transform(rows)[:-1].astype(np.float64)
    expected = X[:, [0, 5]].astype(np.float64)
    np.testing.assert_allclose(
        (found - found[0]) / (found[1] - found[0]), (expected - expected[0]) / (expected[1] - expected[0]), rtol=1e-3
    )
