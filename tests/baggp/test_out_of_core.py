"""A fit to a scan is the fit to the same bags in memory, but for rounding, whatever the files and the memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mipl
from mipl.baggp import blocks as blocks_module

ARRAYS = ["coef_", "coef_variance_", "stacking_weights_", "posterior_", "feature_map_", "landmarks_", "bag_digests_"]


@pytest.fixture
def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """What holds for millions of instances, with hundreds: a sample for the landmarks, and several runs."""
    monkeypatch.setattr(blocks_module.divide, "__defaults__", (100,))
    monkeypatch.setattr("mipl.baggp.estimator.SAMPLE_INSTANCES", 300)
    monkeypatch.setattr("mipl.baggp.estimator.JOINED_INSTANCES", 0)


def write(ds: mipl.MIPLDataset, folder: Path, n_files: int, layout: str = "nested") -> mipl.Scan:
    for i, rows in enumerate(np.array_split(np.arange(len(ds)), n_files)):
        path = folder / f"{i}.parquet"
        if layout == "nested":
            ds[rows].save(path)
        else:
            ds[rows].to_frame().to_parquet(path)
    return mipl.scan(folder)


@pytest.mark.parametrize(("n_files", "budget"), [(1, None), (5, 0)])
def test_a_fit_to_files_is_the_fit_to_the_bags_in_memory(
    small_sample: None, tmp_path: Path, n_files: int, budget: float | None
) -> None:
    ds = mipl.load("digits", r=1, seed=0)
    inside = mipl.BagGP(n_landmarks=60).fit(ds)
    outside = mipl.BagGP(n_landmarks=60, memory_budget=budget).fit(write(ds, tmp_path, n_files))
    for name in ("landmarks_", "bag_digests_", "classes_"):
        np.testing.assert_array_equal(getattr(inside, name), getattr(outside, name))
    # Sums are taken in the order of the files, and the search for the most probable weights makes more of it.
    np.testing.assert_allclose(outside.resolve(ds), inside.posterior_, atol=1e-3)
    np.testing.assert_allclose(outside.predict_proba(ds), inside.predict_proba(ds), atol=1e-3)
    np.testing.assert_array_equal(outside.predict(ds), inside.predict(ds))


def test_a_scan_that_fits_into_the_sample_is_read_whole(tmp_path: Path) -> None:
    ds = mipl.load("digits", r=1, seed=0)[:60]
    inside, outside = (mipl.BagGP(n_landmarks=40).fit(bags) for bags in (ds, write(ds, tmp_path, 2)))
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(inside, name), getattr(outside, name))


def test_a_scan_brings_its_own_candidates(tmp_path: Path) -> None:
    ds = mipl.load("digits", r=1, seed=0)[:40]
    with pytest.raises(mipl.errors.DataError, match="brings its own"):
        mipl.BagGP().fit(write(ds, tmp_path, 1), ds.candidates)
    with pytest.raises(mipl.errors.DataError, match=r"SURE needs all bags in memory.*sample"):
        mipl.make("SURE").fit(mipl.scan(tmp_path))


@pytest.mark.parametrize(
    "model",
    [mipl.BagGP(n_landmarks=40, cross_fit=0), mipl.MIPLGP(n_landmarks=40, engine="low-rank", max_iter=2)],
    ids=["BagGP", "MIPLGP"],
)
def test_a_class_that_no_bag_of_a_scan_has_is_not_possible(tmp_path: Path, model: mipl.base.MIPLClassifier) -> None:
    ds = mipl.load("digits", r=1, seed=0)[:40]
    some = ds[~ds.candidates[:, 0]]
    with pytest.warns(UserWarning, match=f"no training bag has the candidate {ds.classes[0].item()!r}, so") as caught:
        model.fit(write(some, tmp_path, 2))
    assert [w.filename for w in caught if "no training bag" in str(w.message)] == [__file__]
    assert not model.predict_proba(ds)[:, 0].any()
    assert not model.resolve(mipl.scan(tmp_path))[:, 0].any()
