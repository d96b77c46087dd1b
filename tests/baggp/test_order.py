"""The order of bags, and of the instances in a bag, has no say in what BagGP answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipl
from mipl import BagGP, Bags
from mipl.baggp.cross_fit import choose_folds
from mipl.baggp.digests import bag_digests, canonical_order
from mipl.supervision import Supervision

M, Q = 60, 4


def problem(kind: str) -> tuple[Bags, np.ndarray]:
    """Bags with one instance near the centre of their class, and their candidates."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 401 if kind == "very uneven" else 9, M)
    labels, centres = rng.integers(0, Q, M), 3 * rng.standard_normal((Q, 6))
    draw = rng.standard_normal if kind != "heavy-tailed" else lambda size: rng.standard_t(1.5, size)
    bags = [draw((size, 6)) for size in sizes]
    for bag, label in zip(bags, labels, strict=True):
        bag[0] += centres[label]
    candidates = np.eye(Q, dtype=bool)[labels]
    for _ in range(2):
        candidates[np.arange(M), (labels + rng.integers(1, Q, M)) % Q] = True
    return Bags.from_list(bags), candidates


def turned(bags: Bags, seed: int = 1) -> Bags:
    """The instances of every bag in another order."""
    rng = np.random.default_rng(seed)
    return Bags.from_list([rng.permutation(bag) for bag in bags])


def fit(bags: Any, candidates: Any, **options: Any) -> BagGP:
    return BagGP(n_landmarks=60).fit(bags, candidates, **options)


def assert_same(found: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    np.testing.assert_array_equal(found.argmax(axis=1), wanted.argmax(axis=1))


@pytest.mark.parametrize(
    ("kind", "sample"),
    [("plain", 200_000), ("plain", 100), ("heavy-tailed", 200_000), ("very uneven", 200_000)],
    ids=["plain", "sampled", "heavy-tailed", "very uneven"],
)
def test_a_permutation_of_the_training_bags_changes_nothing(
    kind: str, sample: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mipl.baggp.estimator.SAMPLE_INSTANCES", sample)
    bags, candidates = problem(kind)
    order = np.random.default_rng(2).permutation(M)
    model, other = fit(bags, candidates), fit(turned(bags)[order], candidates[order])
    assert_same(other.posterior_, model.posterior_[order])
    assert_same(other.predict_proba(bags), model.predict_proba(bags))
    np.testing.assert_allclose(other.predict_instances(bags), model.predict_instances(bags), atol=1e-6)
    assert other.label_free_score_ == pytest.approx(model.label_free_score_)
    assert_same(model.resolve(turned(bags, 3), candidates), model.posterior_)  # they are known as the training bags


def test_another_seed_draws_other_folds_also_of_groups() -> None:
    bags, candidates = problem("plain")
    digests, known = bag_digests(bags, candidates), Supervision(candidates, groups=np.arange(M) // 3)
    folds = []
    for seed in (0, 1):
        order, arranged = canonical_order(digests, known, seed)
        folds.append(choose_folds(1000, arranged, 4, np.random.default_rng(seed))[np.argsort(order)])
    together = [fold[:, None] == fold for fold in folds]
    assert (together[0] != together[1]).any()


def test_what_else_is_known_of_bags_goes_with_them_also_where_bags_are_repeated() -> None:
    bags, candidates = problem("plain")
    twice = np.concatenate([np.arange(M), np.arange(20)])  # a group has bags that other groups have too
    votes = candidates[twice] * np.random.default_rng(3).integers(1, 9, (len(twice), Q))
    known = {
        "groups": np.concatenate([np.arange(M) // 2, M + np.arange(20) // 2]),
        "sample_weight": 1.0 + np.arange(len(twice)) % 3,
    }
    order = np.random.default_rng(4).permutation(len(twice))
    model = fit(bags[twice], votes, **known)
    other = fit(
        bags[twice[order]],
        votes[order],
        groups=-known["groups"][order],
        sample_weight=known["sample_weight"][order],
    )
    assert_same(other.posterior_, model.posterior_[order])
    assert_same(other.predict_proba(bags), model.predict_proba(bags))
    assert_same(other.resolve(bags, candidates), model.resolve(bags, candidates))


def test_groups_are_numbered_by_their_bags() -> None:
    bags, candidates = problem("plain")
    groups = np.arange(M) // 5
    order = np.random.default_rng(5).permutation(M)
    digests = bag_digests(bags, candidates)
    by_name = canonical_order(digests, Supervision(candidates, groups=groups), 0)
    by_other = canonical_order(digests[order], Supervision(candidates[order], groups=99 - groups[order]), 0)
    np.testing.assert_array_equal(order[by_other[0]], by_name[0])
    np.testing.assert_array_equal(by_other[1].groups, by_name[1].groups)
    np.testing.assert_array_equal(
        groups[by_name[0]][:, None] == groups[by_name[0]], by_name[1].groups[:, None] == by_name[1].groups
    )


def test_files_in_another_order_draw_the_same_folds_and_landmarks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mipl.baggp.estimator.SAMPLE_INSTANCES", 100)
    ds = mipl.MIPLDataset(*problem("plain"))
    order = np.random.default_rng(6).permutation(M)
    ds[order].save(tmp_path / "d.parquet")
    model, other = (BagGP(n_landmarks=60).fit(bags) for bags in (ds, mipl.scan(tmp_path)))
    np.testing.assert_array_equal(other.landmarks_, model.landmarks_)
    # Sums are taken in the order of the files: the search for the likelihood's mode makes more of it than rounding.
    np.testing.assert_allclose(other.posterior_, model.posterior_[order], atol=1e-2)
    assert other.predict(ds).tolist() == model.predict(ds).tolist()
