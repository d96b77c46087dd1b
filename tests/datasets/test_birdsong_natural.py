"""Birdsong as it was recorded."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

import mipl
from mipl import DataError
from mipl.datasets import birdsong


@pytest.fixture
def raw(raw_data: Path) -> dict[str, np.ndarray]:
    with np.load(raw_data / "birdsong" / "birdsong.npz") as arrays:
        return dict(arrays)


def test_a_bag_is_a_recording_with_its_species(raw: dict) -> None:
    ds = mipl.load("birdsong-natural")
    assert (len(ds), ds.bags.n_instances, ds.n_classes) == (548, 10_232, 13)
    assert np.array_equal(ds.bags.instances, raw["X"])
    assert np.array_equal(ds.bags.bag_of_instance, raw["bag_id"])
    assert np.array_equal(ds.candidates, raw["bag_labels"] == 1)
    assert np.array_equal(ds.instance_labels, raw["instance_label"])
    assert [f"- {name}" in long for name, long in zip(ds.classes, raw["class_names"], strict=True)] == [True] * 13
    assert ds.candidate_weights is None


def test_every_labelled_syllable_is_of_a_noted_species(raw: dict) -> None:
    ds = mipl.load("birdsong-natural")
    labelled = np.flatnonzero(ds.instance_labels >= 0)
    assert len(labelled) == 4998
    assert ds.candidates[ds.bags.bag_of_instance[labelled], ds.instance_labels[labelled]].all()
    heard = np.zeros_like(ds.candidates)
    heard[ds.bags.bag_of_instance[labelled], ds.instance_labels[labelled]] = True
    assert (ds.candidates & ~heard).sum() == 67


def test_a_recording_has_a_true_label_where_one_species_is_noted_and_none_elsewhere(raw: dict) -> None:
    ds = mipl.load("birdsong-natural")
    alone = ds.candidates.sum(axis=1) == 1
    assert np.array_equal(ds.labels >= 0, alone)
    assert len(ds.labels_outside()) == 0
    assert mipl.load("birdsong-natural", min_species=2).labels is None


@pytest.mark.parametrize(("low", "high", "count"), [(1, 1, 186), (2, None, 362), (2, 3, 306), (5, 5, 1)])
def test_recordings_are_chosen_by_their_number_of_species(raw: dict, low: int, high: int | None, count: int) -> None:
    ds = mipl.load("birdsong-natural", min_species=low, max_species=high)
    sizes = ds.candidates.sum(axis=1)
    assert len(ds) == count
    assert sizes.min() >= low
    assert high is None or sizes.max() <= high
    whole = mipl.load("birdsong-natural")
    assert ds.equals(whole[ds.bag_ids])


@pytest.mark.parametrize(("low", "high"), [(0, None), (6, None), (3, 2)])
def test_a_choice_that_leaves_no_recording_is_refused(raw: dict, low: int, high: int | None) -> None:
    with pytest.raises(DataError, match=f"min_species={low}, max_species={high}: no recording is left"):
        mipl.load("birdsong-natural", min_species=low, max_species=high)


def test_the_recordings_are_the_same_bits_everywhere(raw: dict) -> None:
    ds = mipl.load("birdsong-natural")
    digest = hashlib.sha256()
    for array in (ds.bags.instances, ds.bags.offsets, ds.candidates, ds.instance_labels):
        digest.update(np.ascontiguousarray(array))
    assert digest.hexdigest() == "f4f394fb398712869b52c80fa6ba9838c7135d0ba88c1e0cbc55fea23cde3ab5"


def test_the_synthesised_data_set_has_the_same_syllables(raw: dict) -> None:
    X, recording, species = birdsong._load()
    ds = mipl.load("birdsong-natural")
    assert np.array_equal(ds.bags.instances, X)
    assert np.array_equal(ds.bags.bag_of_instance, recording)
    assert np.array_equal(ds.instance_labels, species)


def test_without_the_raw_file_the_error_says_where_it_belongs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MIPL_DATA", raising=False)
    with pytest.raises(DataError, match=r"no file birdsong/birdsong\.npz in the folder MIPL_DATA \(not set\)"):
        mipl.load("birdsong-natural")
