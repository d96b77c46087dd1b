"""The start of FastMIPL against scikit-learn."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from mipl.deep.softmax_start import softmax_regression, softmax_start


def problem() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(3, (300,), generator=generator)
    X = torch.randn(300, 4, generator=generator)
    X[torch.arange(300), labels] += 1.0
    return X, labels


def test_softmax_regression_agrees_with_scikit_learn():
    X, labels = problem()
    ours = softmax_regression(X, torch.eye(3)[labels], torch.Generator().manual_seed(1))
    theirs = LogisticRegression(C=np.inf, tol=1e-8).fit(X, labels).coef_.T
    ours = ours.numpy() - ours.numpy().mean(axis=1, keepdims=True)
    np.testing.assert_allclose(ours, theirs - theirs.mean(axis=1, keepdims=True), atol=1e-2)


def test_softmax_regression_stays_finite_on_features_with_one_strong_direction():
    X, labels = problem()
    gamma = softmax_regression(X + 30, torch.eye(3)[labels], torch.Generator().manual_seed(1))
    assert torch.isfinite(gamma).all()


def test_the_start_has_the_stated_moments():
    X, labels = problem()
    X = X * torch.tensor([1.0, 10.0, 0.1, 1.0])
    start = softmax_start(X, torch.eye(3)[labels].bool(), torch.Generator().manual_seed(2), same_encoder=True)
    attending, scoring = start.mean.chunk(2, dim=1)
    assert (attending == 0).all()
    variance = start.factor.diagonal(dim1=1, dim2=2).square()
    torch.testing.assert_close(variance[:, :4], torch.full((3, 4), 0.1), atol=1e-3, rtol=0)
    torch.testing.assert_close(variance[:, 4:].mean(), 0.1 * scoring.square().mean(), atol=0, rtol=1e-2)
    prior = torch.exp(2 * start.log_prior_scale)
    torch.testing.assert_close(prior[:, 0], torch.full((3,), 0.5))
    expected = scoring.square().mean(dim=1) + 0.1 * scoring.square().mean()
    torch.testing.assert_close(prior[:, 1], expected)
    # On the raw features the scoring weights rank bags by label, whatever the features' scales.
    assert ((X @ scoring.T).argmax(dim=1) == labels).float().mean() > 0.5


def test_the_released_regression_swings_and_its_coefficients_grow():
    X, labels = problem()
    X = X / 2  # standardised features over the root of their number, as in the start
    calm, swinging = (
        softmax_regression(X, torch.eye(3)[labels], torch.Generator().manual_seed(1), swinging=s) for s in (False, True)
    )
    assert torch.isfinite(swinging).all()
    assert (X @ swinging).std(dim=0).mean() > 1.5 * (X @ calm).std(dim=0).mean()


def test_only_the_start_of_a_foreign_encoder_swings():
    X, labels = problem()
    lengths = [
        softmax_start(X, torch.eye(3)[labels].bool(), torch.Generator().manual_seed(2), same_encoder=own).mean.norm()
        for own in (True, False)
    ]
    assert lengths[1] > 1.5 * lengths[0]
