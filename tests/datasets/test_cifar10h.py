"""CIFAR-10H: patches of photographs with people's votes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

import mipl
from mipl import DataError
from mipl.datasets.cifar10h import cut_patches


@pytest.fixture(scope="module")
def photographs() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)


@pytest.mark.parametrize(("patch", "stride"), [(16, 8), (16, 16), (8, 4), (32, 1), (1, 31), (20, 3)])
def test_patches_are_squares_of_the_photograph_row_by_row(photographs: np.ndarray, patch: int, stride: int) -> None:
    patches, per_image = cut_patches(photographs, patch, stride)
    starts = range(0, 33 - patch, stride)
    by_hand = [
        image[top : top + patch, left : left + patch].reshape(-1)
        for image in photographs
        for top in starts
        for left in starts
    ]
    assert per_image == len(starts) ** 2
    assert np.array_equal(np.rint(patches * 255), by_hand)
    assert patches.dtype == np.float32


@pytest.mark.parametrize(("patch", "stride"), [(0, 1), (33, 1), (16, 0), (16, 5)])
def test_patches_that_miss_the_border_are_refused(photographs: np.ndarray, patch: int, stride: int) -> None:
    with pytest.raises(DataError, match=f"patch={patch}, stride={stride}"):
        cut_patches(photographs, patch, stride)


def test_without_the_raw_file_the_error_says_where_it_belongs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIPL_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"no file cifar10h/cifar10h\.npz in the folder MIPL_DATA .*docs/datasets\.md"):
        mipl.load("cifar10h")


# ---------------------------------------------------------------- with the raw data


@pytest.fixture(scope="module")
def raw(raw_data: Path) -> dict[str, np.ndarray]:
    if not (raw_data / "cifar10h").is_dir():
        pytest.skip("MIPL_DATA has no folder cifar10h")
    with np.load(raw_data / "cifar10h" / "cifar10h.npz") as arrays:
        return dict(arrays)


def test_a_bag_has_the_patches_votes_and_label_of_its_photograph(raw: dict) -> None:
    ds = mipl.load("cifar10h", n_bags=300, seed=3)
    rows = ds.bag_ids
    assert ds.bags.instance_shape == (16, 16, 3)
    assert set(ds.bags.sizes) == {9}
    for bag, row in list(zip(ds.bags, rows, strict=True))[::50]:
        assert np.array_equal(np.rint(bag[4].reshape(16, 16, 3) * 255), raw["images"][row, 8:24, 8:24])
    assert (ds.bags.instances.min(), ds.bags.instances.max()) == (0, 1)
    assert np.array_equal(ds.candidate_weights, raw["votes"][rows])
    assert np.array_equal(ds.candidates, raw["votes"][rows] > 0)
    assert np.array_equal(ds.labels, raw["labels"][rows])
    assert ds.classes.tolist() == raw["classes"].tolist()


def test_more_votes_leave_fewer_candidates_and_keep_their_numbers(raw: dict) -> None:
    one, three = (mipl.load("cifar10h", n_bags=500, min_votes=k, patch=32, stride=1) for k in (1, 3))
    assert one.bags == three.bags
    assert (three.candidates <= one.candidates).all()
    assert three.candidates.sum() < one.candidates.sum()
    assert three.candidate_weights[three.candidates].min() == 3
    assert np.array_equal(three.candidate_weights[three.candidates], one.candidate_weights[three.candidates])


def test_fewer_photographs_are_a_part_of_more_and_a_seed_chooses_them(raw: dict) -> None:
    few, more, other = (
        set(mipl.load("cifar10h", n_bags=n, seed=seed, patch=32, stride=1).bag_ids.tolist())
        for n, seed in ((100, 0), (400, 0), (100, 1))
    )
    assert few < more
    assert few != other
    assert mipl.load("cifar10h", n_bags=100, patch=32, stride=1).equals(
        mipl.load("cifar10h", n_bags=100, patch=32, stride=1)
    )


def test_the_whole_set_has_the_published_figures_and_says_how_often_the_truth_is_missing(raw: dict) -> None:
    ds = mipl.load("cifar10h", patch=32, stride=1)
    assert len(ds) == 10_000
    assert ds.candidates.sum(axis=1).mean() == pytest.approx(1.94, abs=0.005)
    assert (ds.candidates.sum(axis=1) > 1).mean() == pytest.approx(0.56, abs=0.005)
    majority = ds.candidate_weights.argmax(axis=1) == ds.labels
    assert majority.mean() == pytest.approx(0.9921, abs=5e-5)
    assert len(ds.labels_outside()) == 4
    assert "not among the candidates of 4 bags" in ds.description


def test_the_same_seed_gives_the_same_bits_everywhere(raw: dict) -> None:
    ds = mipl.load("cifar10h", n_bags=200)
    digest = hashlib.sha256()
    for array in (ds.bags.instances, ds.bags.offsets, ds.candidate_weights, ds.labels, ds.bag_ids):
        digest.update(np.ascontiguousarray(array))
    assert digest.hexdigest() == "27549214a415f2a6fe5e0c287967bbd320177673e5ec14b43124b3b3f87ab709"


@pytest.mark.parametrize("options", [{"n_bags": 0}, {"n_bags": 10_001}, {"min_votes": 0}, {"min_votes": 14}])
def test_options_out_of_range_are_named(raw: dict, options: dict) -> None:
    ((name, value),) = options.items()
    with pytest.raises(DataError, match=f"{name}={value}"):
        mipl.load("cifar10h", **options)
