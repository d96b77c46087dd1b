"""LSB-CMM's variational EM against the mixture written out with all its indices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import digamma, expit, gammaln
from scipy.stats import dirichlet

from mipl.pll import LSBCMM
from mipl.pll.lsbcmm import _log_regions, _stick_loss


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 80)
    samples = rng.normal(size=(80, 2)) + 3 * np.eye(3)[labels][:, :2]
    candidates = rng.random((80, 3)) < 0.3
    candidates[np.arange(80), labels] = True
    return samples, candidates, labels


def test_bound_never_decreases(problem):
    samples, candidates, _ = problem
    model = LSBCMM(tol=0, max_iter=60, max_stick_iter=3).fit(samples, candidates)
    assert len(model.bounds_) == 60
    assert (np.diff(model.bounds_) >= -1e-8 * abs(model.bounds_[-1])).all()
    assert model.bounds_[-1] > model.bounds_[0] + 1


def test_region_probabilities_break_a_stick():
    scores = np.random.default_rng(1).normal(size=(5, 3))
    expected, left = [], np.ones(5)
    for k in range(3):
        expected.append(left * expit(scores[:, k]))
        left = left * (1 - expit(scores[:, k]))
    np.testing.assert_allclose(np.exp(_log_regions(scores)), np.column_stack([*expected, left]))


def test_gradient_of_the_sticks_is_the_derivative_of_the_expected_log_regions():
    rng = np.random.default_rng(2)
    design = np.column_stack([rng.normal(size=(12, 2)), np.ones(12)])
    responsibilities = rng.dirichlet(np.ones(4), 12)
    penalty = np.array([0.5, 0.5, 0.0])
    weights = rng.normal(size=(3, 3))

    def loss(flat):
        w = flat.reshape(3, 3)
        return -np.sum(responsibilities * _log_regions(design @ w)) + 0.5 * np.sum(penalty[:, None] * w**2)

    taken = responsibilities[:, :-1]
    reached = np.stack([responsibilities[:, k:].sum(axis=1) for k in range(3)], axis=1)
    value, gradient = _stick_loss(weights, design, taken, reached, penalty)
    assert value == pytest.approx(loss(weights.ravel()))
    np.testing.assert_allclose(gradient.ravel(), approx_fprime(weights.ravel(), loss, 1e-7), atol=1e-4)


def test_expectation_step_agrees_with_the_full_array_of_responsibilities(problem):
    _, candidates, _ = problem
    rng = np.random.default_rng(3)
    n, q, K, alpha = len(candidates), 3, 6, 0.05
    count = rng.uniform(0.2, 3, n)
    log_regions, concentrations = np.log(rng.dirichlet(np.ones(K), n)), rng.gamma(2.0, size=(K, q))
    found = LSBCMM(alpha=alpha)._expect(log_regions, concentrations, candidates.astype(float), count[:, None])

    def expected_log(a):
        return digamma(a) - digamma(a.sum(axis=1, keepdims=True))

    r = np.exp(log_regions[:, :, None] + expected_log(concentrations)) * candidates[:, None, :]
    r /= r.sum(axis=(1, 2), keepdims=True)
    updated = alpha + np.tensordot(count, r, axes=1)
    np.testing.assert_allclose(found.responsibilities, count[:, None] * r.sum(axis=2))
    np.testing.assert_allclose(found.concentrations, updated)
    inside = r > 0
    logs = log_regions[:, :, None] + expected_log(updated)
    counted = (count[:, None, None] * r)[inside]
    bound = np.sum(counted * (np.broadcast_to(logs, r.shape)[inside] - np.log(r[inside])))
    # -KL(q(theta) || p(theta)) = E_q[log p(theta)] + entropy of q(theta)
    prior = gammaln(q * alpha) - q * gammaln(alpha) + (alpha - 1) * expected_log(updated).sum(axis=1)
    bound += np.sum(prior) + sum(dirichlet(a).entropy() for a in updated)
    assert found.bound == pytest.approx(bound)


def test_tiny_concentrations_do_not_underflow(problem):
    samples, candidates, labels = problem
    model = LSBCMM(alpha=1e-4).fit(samples, candidates)
    assert np.isfinite(model.bounds_).all()
    assert (model.predict(samples) == labels).mean() > 0.6
