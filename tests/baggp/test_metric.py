"""The learned metric: gradients, products, and what it does to bags with and without directions that matter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import mipl
from mipl.baggp.metric import gradients, metric_of
from mipl.datasets.synthetic import make_bags
from mipl.features import LinearMap
from mipl.gp.nystrom import LandmarkKernel

NOISE = 10


def model() -> mipl.BagGP:
    return mipl.BagGP(n_landmarks=300, rank=200)


def rings_in_noise() -> mipl.MIPLDataset:
    """Classes are the quarters of a ring in two of twelve features, the negatives fill its middle."""
    ds = make_bags(n_bags=600, n_classes=4, n_features=1, sizes=(4, 8), r=1)
    rng, kind = np.random.default_rng(0), ds.instance_labels
    X = rng.uniform(-1, 1, (len(kind), 2 + NOISE))
    negative = kind == 4
    turn = (np.where(negative, rng.integers(0, 4, len(X)), kind) + rng.uniform(0.15, 0.85, len(X))) / 4
    radius = np.where(negative, rng.uniform(0, 0.5, len(X)), rng.uniform(0.7, 1, len(X)))
    X[:, 0], X[:, 1] = radius * np.cos(2 * np.pi * turn), radius * np.sin(2 * np.pi * turn)
    return mipl.MIPLDataset(mipl.Bags(X.astype(np.float32), ds.bags.offsets), ds.candidates, ds.labels)


@pytest.fixture(scope="module")
def noisy() -> tuple[mipl.BagGP, mipl.MIPLDataset, mipl.MIPLDataset]:
    train, test = rings_in_noise().split(0.5, seed=0)
    return model().fit(train), train, test


def test_gradients_are_those_of_the_kernel() -> None:
    rng = torch.Generator().manual_seed(0)
    X, Z = (torch.randn(n, 3, generator=rng, dtype=torch.float64) for n in (5, 7))
    coef = torch.randn(7, 2, generator=rng, dtype=torch.float64)
    kernel, step = LandmarkKernel(Z, 1.3), 1e-5
    for axis, move in enumerate(step * torch.eye(3, dtype=torch.float64)):
        expected = (kernel(X + move) - kernel(X - move)) @ coef / (2 * step)
        torch.testing.assert_close(gradients(X, Z, 1.3, coef)[:, :, axis], expected, rtol=1e-5, atol=1e-7)


def test_the_metric_keeps_the_variance_and_drops_what_is_negative() -> None:
    covariance = torch.diag(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))
    S = metric_of(torch.diag(torch.tensor([4.0, 0.0, -5.0], dtype=torch.float64)), covariance)
    assert S is not None
    variance = (S @ covariance @ S).diagonal()
    assert float(variance.sum()) == pytest.approx(6)
    torch.testing.assert_close(variance[1:], 0.1 * covariance.diagonal()[1:])
    assert metric_of(-covariance, covariance) is None
    assert metric_of(covariance * torch.nan, covariance) is None


def test_directions_that_matter_are_found_among_noise_and_help(noisy, monkeypatch: pytest.MonkeyPatch) -> None:
    found, train, test = noisy
    length = np.linalg.norm(found.features_[-1].matrix, axis=1)
    assert length[:2].min() > 2 * length[2:].max()
    monkeypatch.setattr("mipl.baggp.estimator.learn_metric", lambda *args: None)
    without = model().fit(train)
    assert found.score(test) > without.score(test) + 0.03
    assert found.label_free_score_ > without.label_free_score_


def test_there_is_no_metric_where_all_directions_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    train = make_bags(n_bags=240, n_classes=8, n_features=5, sizes=(4, 8), seed=1)
    asked = []
    monkeypatch.setattr("mipl.baggp.estimator.LinearMap", asked.append)
    model().fit(train)
    assert not asked


def test_a_model_with_a_metric_answers_the_same_from_a_file_and_bag_by_bag(noisy, tmp_path: Path) -> None:
    found, _, test = noisy
    found.save(tmp_path / "model.mipl")
    expected = found.predict_proba(test.bags)
    np.testing.assert_array_equal(mipl.load_model(tmp_path / "model.mipl").predict_proba(test.bags), expected)
    alone = np.concatenate([found.predict_proba(test.bags[i : i + 1]) for i in range(10)])
    np.testing.assert_allclose(alone, expected[:10], rtol=0, atol=1e-6)


def test_a_fit_to_files_learns_the_metric_of_the_sample(noisy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, train, _ = noisy
    monkeypatch.setattr("mipl.baggp.estimator.SAMPLE_INSTANCES", train.bags.n_instances - 100)
    train.save(tmp_path / "bags.parquet")
    inside, outside = model().fit(train), model().fit(mipl.scan(tmp_path))
    np.testing.assert_array_equal(outside.features_[-1].matrix, inside.features_[-1].matrix)
    np.testing.assert_allclose(outside.predict_proba(train.bags), inside.predict_proba(train.bags), atol=1e-3)


def test_what_is_known_of_the_bags_reaches_the_fits_to_halves(noisy) -> None:
    _, train, _ = noisy
    m = len(train)
    votes = np.where(train.candidates, 1.0, 0.0)
    votes[np.arange(m), train.labels] = 3.0
    given = mipl.MIPLDataset(train.bags, votes, train.labels, groups=np.arange(m) // 2)
    found = mipl.BagGP(n_landmarks=300, rank=200, candidate_noise="auto").fit(given, sample_weight=np.full(m, 2.0))
    assert isinstance(found.features_[-1], LinearMap)


@pytest.mark.parametrize("rows", [1, 5, 40])
def test_a_linear_map_gives_a_row_the_same_digits_in_any_company_and_stays_finite(rows: int) -> None:
    rng = np.random.default_rng(0)
    X, matrix = rng.standard_normal((200, 30)).astype(np.float32), rng.standard_normal((30, 20)).astype(np.float32)
    found = LinearMap(matrix).fit(X).transform(X)
    np.testing.assert_allclose(found, X @ matrix, rtol=0, atol=1e-4)
    np.testing.assert_array_equal(LinearMap(matrix).transform(X[:rows]), found[:rows])
    assert np.isfinite(LinearMap(matrix).transform(np.full((rows, 30), 3e38))).all()
