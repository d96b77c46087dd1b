"""Sets of plausible labels: what they hold, and how often the true label is among them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mipl
from mipl.certainty import level_for, levels_of_coverage, plausible_labels
from mipl.errors import ParameterError


def test_levels_reach_the_coverage_of_labels_that_are_drawn_from_the_posterior() -> None:
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(6) * 0.3, 4000)
    sure = truth**2 / (truth**2).sum(axis=1, keepdims=True)  # too sure by a factor of two
    labels = np.array([rng.choice(6, p=row) for row in truth])
    levels = levels_of_coverage(sure[:2000], truth[:2000])
    for coverage in (0.8, 0.9, 0.95):
        mask = plausible_labels(sure[2000:], level_for(levels, coverage))
        assert mask[np.arange(2000), labels[2000:]].mean() == pytest.approx(coverage, abs=0.03)
        taken_at_its_word = plausible_labels(sure[2000:], coverage)
        assert mask.sum() > taken_at_its_word.sum()


def test_the_most_probable_label_is_always_plausible_and_an_impossible_one_never() -> None:
    posterior = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.4, 0.35, 0.25]])
    assert plausible_labels(posterior, 1e-9).sum(axis=1).tolist() == [1, 1, 1]
    assert plausible_labels(posterior, 2.0).tolist() == (posterior > 0).tolist()


def test_sets_of_a_model_cover_the_labels_of_new_bags_and_are_kept_in_its_file(tmp_path: Path) -> None:
    train, test = mipl.load("digits", r=2, seed=0).split(0.5, seed=0)
    model = mipl.BagGP(n_landmarks=200).fit(train)
    sets = model.predict_set(test, coverage=0.9)
    assert sets[np.arange(len(test)), test.labels].mean() > 0.87
    assert (sets >= (model.predict_proba(test) == model.predict_proba(test).max(axis=1, keepdims=True))).all()
    assert (model.predict_set(test, 0.99) >= sets).all()
    np.testing.assert_array_equal(mipl.load_model(model.save(tmp_path / "m.mipl")).predict_set(test), sets)
    plain = mipl.make("PL-kNN").fit(train)
    np.testing.assert_array_equal(plain.predict_set(test), plausible_labels(plain.predict_proba(test), 0.9))
    with pytest.raises(ParameterError, match=r"coverage=1\.5"):
        model.predict_set(test, 1.5)


def test_answers_have_the_plausible_labels_of_each_bag() -> None:
    ds = mipl.load("digits", r=2, seed=0)[:60]
    res = mipl.resolve(ds, mipl.BagGP(n_landmarks=60))
    rows = res.rows()
    assert [row["plausible"] for row in rows] == [res.classes[mask].tolist() for mask in res.plausible]
    assert all(row["label"] in row["plausible"] and set(row["plausible"]) <= set(row["candidates"]) for row in rows)
