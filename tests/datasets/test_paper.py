"""The five data sets of the paper, built from raw files: their figures, their rules, and that they never change."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import mipl
from mipl import DataError, MIPLDataset
from mipl.datasets import birdsong, fmnist, mnist, newsgroups, paper_characteristics, sival
from mipl.datasets.sources.images import load_images

#: Of instances, offsets, candidates and labels at r=1, seed=0.
CHECKSUMS = {
    "digits": "02b0beab14cd2cf5cf7690c633cd9014cee99c1d60770321f2f31520795985a3",
    "mnist": "69ca6a50c299d3def55061e32c5bcf3eb8718408569005294a392a2ead28acca",
    "fmnist": "50920e4ed1cc980bc4556e00f63205e9ac6fd2d41b4c47961ff9c46a6368bc0a",
    "newsgroups": "b656cd1aea8eb87ca89120eaac8200503b51df879a0b6206238659bdc37be7df",
    "birdsong": "0b8ceca205ffabd48d1b057e666e5707b3267a0e04c8675d05b23c93589dc702",
    "sival": "9c8714bc3ad595f0230f9531ea4179edc25e20c5f6b062a219c986131c590f99",
}
FIVE = tuple(paper_characteristics())


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep derived features out of the user's cache, and compute them anew in every run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIPL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@cache
def built(name: str) -> MIPLDataset:
    if name != "digits" and not Path(os.environ.get("MIPL_DATA", ""), name).is_dir():
        pytest.skip("raw data not found; set MIPL_DATA to their folder")
    return mipl.load(name, r=1, seed=0)


# ---------------------------------------------------------------- figures


@pytest.mark.parametrize("name", CHECKSUMS)
def test_the_same_seed_gives_the_same_bits_everywhere(name: str) -> None:
    ds = built(name)
    digest = hashlib.sha256()
    for array in (ds.bags.instances, ds.bags.offsets, ds.candidates, ds.labels):
        digest.update(np.ascontiguousarray(array))
    assert digest.hexdigest() == CHECKSUMS[name]


@pytest.mark.parametrize("name", FIVE)
def test_the_characteristics_are_those_of_the_papers_table(name: str) -> None:
    ours, paper = built(name).summary(), paper_characteristics()[name]
    assert ours["bags"] == (1498 if name == "sival" else paper["bags"])
    assert ours["instances"] == pytest.approx(paper["instances"], rel=0.02)
    for column in ("max", "min", "dims", "classes"):
        assert ours[column] == paper[column]
    if name == "sival":
        assert ours["positive"] is None  # the copy at hand has no instance labels
    else:
        assert ours["positive"] == pytest.approx(paper["positive"], abs=0.05)


@pytest.mark.parametrize("name", FIVE)
def test_every_class_has_equally_many_bags(name: str) -> None:
    ds = built(name)
    counts = dict(zip(ds.classes.tolist(), np.bincount(ds.labels).tolist(), strict=True))
    if name == "sival":
        assert {c: n for c, n in counts.items() if n != 60} == {"AjaxOrange": 59, "StripedNotebook": 59}
    else:
        assert set(counts.values()) == {len(ds) // ds.n_classes}


@pytest.mark.parametrize("name", FIVE)
def test_r_changes_the_candidates_only_and_more_contain_fewer(name: str) -> None:
    one, q = built(name), built(name).n_classes
    for r in (0, 2, q - 1):
        other = mipl.load(name, r=r, seed=0)
        assert other.bags == one.bags
        assert np.array_equal(other.labels, one.labels)
        assert (other.candidates.sum(axis=1) == r + 1).all()
        small, large = sorted((one.candidates, other.candidates), key=np.sum)
        assert (small <= large).all()


# ---------------------------------------------------------------- where instances come from


@pytest.mark.parametrize(("module", "names"), [(mnist, np.arange(10).astype(str)), (fmnist, fmnist.NAMES)])
def test_images_are_of_the_right_class_and_used_once(module: object, names: np.ndarray, raw_data: Path) -> None:
    ds = built(module.SOURCE.name)
    X, y = load_images(module.SOURCE)
    label_of = {image.tobytes(): names[label] for image, label in zip(X, y, strict=True)}
    pixels = np.rint(ds.bags.instances * 255).astype(np.uint8)
    assert np.array_equal(np.divide(pixels, 255, dtype=np.float32), ds.bags.instances)
    found = np.array([label_of[image.tobytes()] for image in pixels])
    positive = ds.instance_labels < ds.n_classes
    own = ds.classes[ds.labels][ds.bags.bag_of_instance]
    assert (found[positive] == own[positive]).all()
    assert set(found[~positive]) == set(names) - set(ds.classes)
    copies = len(X) - len(label_of)  # of identical images in the source
    assert ds.bags.n_instances - len({image.tobytes() for image in pixels}) <= copies


def test_newsgroups_positives_are_used_once_and_negatives_evenly(raw_data: Path) -> None:
    ds = built("newsgroups")
    X, y = newsgroups._features("message", "unit")
    source = {}
    for row, label in zip(X, y, strict=True):
        source.setdefault(row.tobytes(), set()).add(label)
    own = np.append(ds.classes, "")[np.where(ds.instance_labels < 10, ds.labels[ds.bags.bag_of_instance], 10)]
    for row, name in zip(ds.bags.instances, own, strict=True):
        assert source[row.tobytes()] & ({name} if name else set(newsgroups.RESERVED))
    positives = ds.bags.instances[ds.instance_labels < 10]
    distinct = len(np.unique(positives, axis=0))
    assert len(positives) - distinct <= len(X) - len(np.unique(X, axis=0))  # posts with equal features aside
    assert not set(newsgroups.TARGETS) & set(newsgroups.RESERVED)
    assert set(newsgroups.TARGETS) | set(newsgroups.RESERVED) == set(y)


def test_birdsong_negatives_are_unlabelled_syllables(raw_data: Path) -> None:
    ds = built("birdsong")
    X, _, species = birdsong._load()
    species_of = {row.tobytes(): label for row, label in zip(X, species, strict=True)}
    found = np.array([species_of[row.tobytes()] for row in ds.bags.instances])
    assert np.array_equal(np.where(found < 0, 13, found), ds.instance_labels)
    assert all(len(np.unique(bag, axis=0)) == len(bag) for bag in ds.bags)


def test_birdsong_groups_share_no_recording_between_training_and_test(raw_data: Path) -> None:
    X, recording, _ = birdsong._load()
    recording_of = {row.tobytes(): r for row, r in zip(X, recording, strict=True)}

    def recordings(ds: MIPLDataset) -> set[int]:
        return {recording_of[row.tobytes()] for row in ds.bags.instances}

    train, test = built("birdsong").split(0.5, seed=0)
    assert len(recordings(train) & recordings(test)) > 400  # the paper's way: nearly all recordings on both sides
    for groups, share, n_train in ((2, 0.5, 650), (10, 0.7, 910)):
        ds = mipl.load("birdsong", groups=groups)
        assert ds.summary() == built("birdsong").summary()
        for seed in range(3):
            train, test = ds.split(share, seed=seed)
            assert len(train) == n_train
            assert not recordings(train) & recordings(test)
            assert len(set(np.bincount(train.labels))) == 1


def test_sival_drops_the_one_damaged_bag(raw_data: Path) -> None:
    ds = built("sival")
    assert 0 not in ds.bag_ids
    assert set(ds.bags.sizes) == {31, 32}
    X, bag, _ = sival._load()
    assert np.array_equal(ds.bags.instances, X[bag != 0])


# ---------------------------------------------------------------- text


def test_no_newsgroup_is_named_in_the_text_that_is_read(raw_data: Path) -> None:
    messages, y = newsgroups._read(raw_data / "newsgroups" / "newsgroups.jsonl.gz")
    named = sum(any(name in message.lower() for name in set(y)) for message in messages[::40])
    assert named > 10  # the raw messages do name newsgroups
    for text in ("post", "body", "message"):
        read = [newsgroups.post_text(message, text) for message in messages[::40]]
        assert not any(name in text for text in read for name in set(y))


def test_a_post_is_subject_and_body_without_other_headers() -> None:
    message = "From: a@b.c\nSubject: Re: Brakes\n and wheels\nOrganization: Acme\n\nThey squeak, see REC.AUTOS.tech"
    assert newsgroups.post_text(message, "post").split() == ["re:", "brakes", "and", "wheels", "they", "squeak,", "see"]
    assert newsgroups.post_text(message, "body").split() == ["they", "squeak,", "see"]
    assert "acme" in newsgroups.post_text(message, "message")


def test_the_features_agree_with_the_definition_of_tfidf() -> None:
    texts = ["wheel wheel brake", "brake engine", "engine engine orbit", "orbit"]
    words = ["brake", "engine", "orbit", "wheel"]
    counts = np.array([[text.split().count(word) for word in words] for text in texts])
    weights = counts * (np.log(5 / (1 + (counts > 0).sum(axis=0))) + 1)
    expected = weights / np.linalg.norm(weights, axis=1, keepdims=True)
    assert np.allclose(newsgroups.tfidf(texts), expected, atol=1e-6)


def test_rows_of_the_vocabulary_keep_the_share_that_the_kept_words_have() -> None:
    words = [f"a{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(250)]
    texts = [" ".join(words[i : i + 50]) for i in range(0, 200, 2)] + [" ".join(words[190:])]
    unit, share = newsgroups.tfidf(texts), newsgroups.tfidf(texts, "vocabulary")
    length = np.linalg.norm(share, axis=1, keepdims=True)
    assert np.allclose(share, unit * length, atol=1e-5)
    assert np.allclose(length[50], 1, atol=1e-4)  # its words are among the most frequent
    assert length[0] < 0.9  # its first words are in no other text, and not kept


@pytest.mark.parametrize("train_size", [0.3, 0.5, 0.7])
def test_no_post_of_grouped_newsgroups_is_on_both_sides_of_any_of_ten_splits(train_size: float, raw_data: Path) -> None:
    ds = mipl.load("newsgroups", groups=10)
    _, row = np.unique(ds.bags.instances, axis=0, return_inverse=True)
    train_bags = set()
    for seed in range(10):
        train, _ = ds.split(train_size, seed=seed)
        inside = np.isin(ds.bag_ids, train.bag_ids)[ds.bags.bag_of_instance]
        assert len(train) == pytest.approx(1000 * train_size)
        assert not set(row.ravel()[inside]) & set(row.ravel()[~inside])
        train_bags.add(tuple(train.bag_ids))
    assert len(train_bags) > 7
    # The figures of the data set are those of the ungrouped one: only the posts differ.
    assert ds.summary() | {"name": ""} == built("newsgroups").summary() | {"name": ""}


def test_the_vectoriser_runs_once_and_a_damaged_cache_is_replaced(
    raw_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = built("newsgroups")
    (cached,) = Path(os.environ["MIPL_CACHE"], "newsgroups").glob("*.npz")
    with monkeypatch.context() as patch:
        patch.setattr(newsgroups, "tfidf", None)
        assert mipl.load("newsgroups").equals(before)
    calls = []
    monkeypatch.setattr(
        newsgroups, "tfidf", lambda texts, rows: calls.append(1) or np.eye(len(texts), 2, dtype=np.float32)
    )
    content = cached.read_bytes()
    cached.write_bytes(content[:1000])
    newsgroups._features("message", "unit")
    assert calls
    cached.write_bytes(content)


@pytest.mark.parametrize(("name", "options", "message"), [
    ("newsgroups", {"text": "header"}, "message, post, body"),
    ("newsgroups", {"rows": "long"}, "unit, vocabulary"),
    ("newsgroups", {"groups": 1}, "2 to 50"),
    ("birdsong", {"groups": 1}, "2 to 14"),
    ("birdsong", {"groups": 15}, "2 to 14"),
])  # fmt: skip
def test_unknown_options_are_clear_errors(name: str, options: dict, message: str, raw_data: Path) -> None:
    with pytest.raises(DataError, match=message):
        mipl.load(name, **options)


# ---------------------------------------------------------------- published splits


@pytest.mark.parametrize(("name", "n_train"), [("mnist_5050", 250), ("mnist_7030", 350)])
def test_the_ten_published_splits_part_the_bags_of_mnist(name: str, n_train: int, raw_data: Path) -> None:
    from scipy.io import loadmat

    ds = mipl.datasets.from_bags(np.zeros((500, 1, 1)), np.arange(500) % 5)
    pairs = list(ds.splits(name))
    assert len(pairs) == 10
    for k, (train, test) in enumerate(pairs, start=1):
        raw = loadmat(raw_data / "splits" / name / f"index{k}.mat")
        assert train.bag_ids.tolist() == (raw["trainIndex"].ravel().astype(int) - 1).tolist()
        assert len(train) == n_train
        assert sorted([*train.bag_ids, *test.bag_ids]) == list(range(500))
    folder = list(ds.splits(raw_data / "splits" / name))
    assert all(a[0].equals(b[0]) for a, b in zip(pairs, folder, strict=True))


def test_a_split_of_another_data_set_is_refused(raw_data: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="splits 500 bags, the data set has 150"):
        mipl.load("digits").splits("mnist_5050")
    with pytest.raises(DataError, match="neither a published split"):
        mipl.load("digits").splits(tmp_path)


def test_the_words_of_the_largest_summed_weight_are_kept() -> None:
    common = " ".join(f"a{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(200))
    texts = [common] * 40 + ["rare"]
    features = newsgroups.tfidf(texts)
    assert features.shape == (41, 200)
    assert not features[40].any()  # its only word is not among the 200
    assert np.allclose(np.linalg.norm(features[:40], axis=1), 1, atol=1e-4)
