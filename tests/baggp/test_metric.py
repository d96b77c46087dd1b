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

TOLD, NOISE = 4, 16


def model() -> mipl.BagGP:
    return mipl.BagGP(n_landmarks=300, rank=200)


def bags_in_noise() -> mipl.MIPLDataset:
    """Classes that differ in four of twenty features, all of which vary alike."""
    ds = make_bags(n_bags=300, n_classes=5, n_features=TOLD, separation=5.0, sizes=(4, 8), r=1)
    X = ds.bags.instances
    noise = np.random.default_rng(0).standard_normal((len(X), NOISE)) * X.std()
    wide = mipl.Bags(np.hstack([X, noise.astype(np.float32)]), ds.bags.offsets)
    return mipl.MIPLDataset(wide, ds.candidates, ds.labels)


@pytest.fixture(scope="module")
def noisy() -> tuple[mipl.BagGP, mipl.MIPLDataset, mipl.MIPLDataset]:
    train, test = bags_in_noise().split(0.5, seed=0)
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
    assert length[:TOLD].min() > 2 * length[TOLD:].max()
    monkeypatch.setattr("mipl.baggp.estimator.learn_metric", lambda *args: None)
    without = model().fit(train)
    assert found.score(test) > without.score(test) + 0.03
    assert found.label_free_score_ > without.label_free_score_


def test_there_is_no_metric_where_all_directions_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    train = make_bags(n_bags=150, n_classes=8, n_features=5, sizes=(4, 8), seed=1)
    asked = []
    monkeypatch.setattr("mipl.baggp.estimator.LinearMap", asked.append)
    model().fit(train)
    assert not asked


def test_a_model_with_a_metric_answers_the_same_from_a_file_and_bag_by_bag(noisy, tmp_path: Path) -> None:
    found, train, test = noisy
    found.save(tmp_path / "model.mipl")
    expected = found.predict_proba(test.bags)
    np.testing.assert_array_equal(mipl.load_model(tmp_path / "model.mipl").predict_proba(test.bags), expected)
    alone = np.concatenate([found.predict_proba(test.bags[i : i + 1]) for i in range(10)])
    np.testing.assert_allclose(alone, expected[:10], rtol=0, atol=1e-6)


def test_weights_groups_votes_and_noise_reach_the_fits_to_halves(noisy, monkeypatch: pytest.MonkeyPatch) -> None:
    _, train, _ = noisy
    m = len(train)
    votes = np.where(train.candidates, 1.0, 0.0)
    votes[np.arange(m), train.labels] = 3.0
    given = mipl.MIPLDataset(train.bags, votes, train.labels, groups=np.arange(m) // 2)
    found = mipl.BagGP(n_landmarks=300, rank=200, candidate_noise="auto").fit(given, sample_weight=np.full(m, 2.0))
    assert isinstance(found.features_[-1], LinearMap)
