"""The low-rank engine against dense float64 formulas, explicit refits and finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.optimize import check_grad
from sklearn.gaussian_process.kernels import Matern
from sklearn.linear_model import LogisticRegression

from mipl.baggp.class_offsets import class_offsets
from mipl.baggp.leave_out import BagLeaveOut
from mipl.baggp.likelihood import STAGES, LabelPrior, fit_bag_likelihood, likelihood_statistics
from mipl.baggp.low_rank import low_rank
from mipl.baggp.platt import fit_logistic
from mipl.baggp.regression import fit_bag_regression
from mipl.baggp.shards import Shard, cut, thin_product
from mipl.datasets.synthetic import make_bags
from mipl.gp.landmarks import kmeans_landmarks, median_distance
from mipl.gp.nystrom import LandmarkKernel, principal_map


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def make_shard(sizes: list[int], rank: int = 6, q: int = 3, seed: int = 0) -> Shard:
    g = generator(seed)
    offsets = torch.tensor([0, *np.cumsum(sizes)])
    candidates = torch.rand(len(sizes), q, generator=g) < 0.6
    candidates[:, 0] |= ~candidates.any(dim=1)
    return Shard(torch.randn(sum(sizes), rank, generator=g, dtype=torch.float64), offsets, candidates)


def test_the_kernel_is_scikit_learns_matern_five_halves() -> None:
    X, Z = torch.randn(30, 4, generator=generator()), torch.randn(20, 4, generator=generator(1))
    expected = Matern(length_scale=1.7, nu=2.5)(X.numpy(), Z.numpy())
    np.testing.assert_allclose(LandmarkKernel(Z, 1.7)(X), expected, atol=2e-6)


def test_features_of_full_rank_reproduce_the_kernel_at_the_landmarks() -> None:
    Z = torch.randn(40, 3, generator=generator(), dtype=torch.float64)
    phi = principal_map(Z, torch.ones(40), 1.5, rank=40)(Z)
    torch.testing.assert_close(phi @ phi.T, LandmarkKernel(Z, 1.5)(Z), atol=2e-4, rtol=0)


def test_features_have_a_diagonal_gram_matrix_and_do_not_depend_on_the_shards() -> None:
    X = torch.randn(500, 3, generator=generator(), dtype=torch.float64)
    offsets, candidates = np.arange(0, 501, 10), np.ones((50, 2), dtype=bool)
    kernel_map = principal_map(*kmeans_landmarks(X, 30, generator()), 1.0, rank=20)
    whole = low_rank(X, offsets, candidates, kernel_map)
    parts = low_rank(X, offsets, candidates, kernel_map, shard_rows=64)
    assert len(parts.shards) > 5
    phi, before = torch.cat([shard.features for shard in parts.shards]), kernel_map(X)
    torch.testing.assert_close(phi.T @ phi, torch.diag(whole.eigenvalues), atol=1e-6, rtol=0)
    torch.testing.assert_close(phi @ phi.T, before @ before.T, atol=1e-6, rtol=0)
    torch.testing.assert_close(whole.kernel_map(X), whole.shards[0].features)


def test_a_lower_rank_keeps_nearly_what_the_best_subspace_keeps() -> None:
    X = torch.randn(3000, 3, generator=generator(), dtype=torch.float64)
    landmarks = kmeans_landmarks(X, 100, generator())
    spectrum = torch.linalg.svdvals(principal_map(*landmarks, 1.0, rank=100)(X)).square()
    kept = low_rank(X, np.arange(3001), np.ones((3000, 2), dtype=bool), principal_map(*landmarks, 1.0, rank=50))
    assert spectrum[50:].sum() < 0.05 * spectrum.sum()
    assert kept.eigenvalues.sum() > spectrum[:50].sum() - 0.01 * spectrum.sum()


def test_shards_are_whole_bags_in_order() -> None:
    offsets = np.array([0, 5, 8, 30, 31, 40])
    for rows in (1, 7, 10, 100):
        slices = cut(offsets, rows)
        assert [i for s in slices for i in range(s.start, s.stop)] == list(range(5))


@pytest.mark.parametrize("sizes", [[3, 1, 5, 5, 2, 4], [9, 2, 8, 1]])
def test_leaving_a_bag_out_equals_a_refit_without_it(sizes: list[int]) -> None:
    # The second list has bags longer than the 6 features, which are inverted in feature space.
    shard, noise = make_shard(sizes), 0.3
    phi = shard.features
    eigenvalues, Q = torch.linalg.eigh(phi.T @ phi)
    phi = phi @ Q
    y = torch.randn(len(phi), 2, generator=generator(1), dtype=torch.float64)
    fitted = phi @ ((phi.T @ y) / (eigenvalues + noise)[:, None])
    left_out = BagLeaveOut(phi, (eigenvalues + noise).rsqrt(), shard.offsets).predict(y, fitted)
    eye = torch.eye(phi.shape[1], dtype=phi.dtype)
    for low, high in zip(shard.offsets[:-1], shard.offsets[1:], strict=True):
        rest = torch.ones(len(phi), dtype=torch.bool)
        rest[low:high] = False
        coef = torch.linalg.solve(phi[rest].T @ phi[rest] + noise * eye, phi[rest].T @ y[rest])
        torch.testing.assert_close(left_out[low:high], phi[low:high] @ coef, atol=1e-10, rtol=0)


@pytest.mark.parametrize("hold_prior", [True, False])
def test_the_gradient_of_the_bag_likelihood_equals_finite_differences(hold_prior: bool) -> None:
    shard = make_shard([1, 4, 3, 6, 2])
    prior = torch.where(shard.candidates, torch.rand(5, 3, generator=generator(2), dtype=torch.float64), 0.0)
    labels = LabelPrior.of(prior / prior.sum(dim=1, keepdim=True), shard.candidates)
    bias = torch.tensor([-3.0, -2.0, -3.0, -0.1], dtype=torch.float64)

    def statistics(w: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        return likelihood_statistics(shard, labels, torch.from_numpy(w.reshape(6, 4)), bias, math.log(2.0), hold_prior)

    for seed in range(3):
        w = np.random.default_rng(seed).normal(size=24)
        error = check_grad(lambda w: float(statistics(w)[0]), lambda w: statistics(w)[1].numpy().ravel(), w)
        assert error < 1e-4 * np.linalg.norm(statistics(w)[1])


def test_the_bag_likelihood_is_the_sum_over_labellings() -> None:
    shard = make_shard([2, 3], q=2)
    bias = torch.tensor([-1.0, -2.0, -0.5], dtype=torch.float64)
    W = torch.randn(6, 3, generator=generator(3), dtype=torch.float64)
    prior = torch.tensor([[0.3, 0.7], [1.0, 0.0]], dtype=torch.float64)
    p = torch.softmax(shard.features @ W + bias, dim=1)
    kappa, expected = 1.5, 0.0
    for b, (low, high) in enumerate([(0, 2), (2, 5)]):
        Z = (kappa * p[low:high, :2] + p[low:high, 2:]).prod(dim=0) - p[low:high, 2].prod()
        expected -= torch.log((prior[b] * Z).sum()).item()
    labels = LabelPrior.of(prior, prior > 0)
    value, _ = likelihood_statistics(shard, labels, W, bias, math.log(kappa), False)
    assert value.item() == pytest.approx(expected, rel=1e-12)


def test_the_bag_likelihood_finds_what_distinguishes_the_classes() -> None:
    g = generator()
    sizes, q = torch.full((60,), 4), 2
    label = torch.arange(60) % q
    features = torch.randn(240, 5, generator=g) * 0.3
    features[torch.arange(0, 240, 4), label] += 2.0
    offsets = torch.arange(0, 241, 4)
    candidates = torch.nn.functional.one_hot(label, q).bool()
    candidates[torch.rand(60, generator=g) < 0.5] = True
    eigenvalues, Q = torch.linalg.eigh((features.T @ features).double())
    shard = Shard(features @ Q.float(), offsets, candidates)
    prior = candidates.double() / candidates.sum(dim=1, keepdim=True)
    model = fit_bag_likelihood([shard], eigenvalues, prior)
    assert sizes.sum() == 240
    best = model.logits(shard.features).reshape(60, 4, q)
    assert (best.amax(dim=1).argmax(dim=1) == label).all()
    assert (best.gather(2, label[:, None, None].expand(60, 4, 1)).argmax(dim=1).flatten() == 0).all()


def test_logits_are_moderated_by_the_posterior_variance_of_the_weights() -> None:
    features = torch.randn(40, 3, generator=generator())
    eigenvalues, Q = torch.linalg.eigh((features.T @ features).double())
    features = features @ Q.float()
    prior = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).double()
    shard = Shard(features, torch.tensor([0, 20, 40]), prior.bool())
    model = fit_bag_likelihood([shard], eigenvalues, prior, stages=STAGES[:1])
    phi = torch.cat([features[:2], 5 * features[:1]]).double()
    f = phi @ model.weights + model.bias
    mode = f[:, :-1] - f[:, -1:] + model.log_kappa
    gram = features.double().T @ features.double()
    seen = features.double() @ model.weights + model.bias
    seen[:, :-1] += model.log_kappa
    share = 1 - torch.softmax(seen, dim=1)[:, -1].mean()
    covariance = torch.linalg.inv(share**2 / 2 * gram + torch.eye(3).double() / STAGES[0].variance)
    v = (phi @ covariance @ phi.T).diagonal()
    expected = mode / torch.sqrt(1 + math.pi / 8 * v)[:, None]
    torch.testing.assert_close(model.logits(phi.float()), expected, rtol=1e-4, atol=1e-5)


def test_a_thin_product_is_the_product() -> None:
    features, weights = torch.randn(5000, 7, generator=generator()), torch.randn(7, 3, generator=generator(1))
    result = thin_product(features, weights)
    assert result.is_contiguous()
    torch.testing.assert_close(result, features @ weights)


def test_the_stages_do_not_depend_on_how_bags_are_cut_into_shards() -> None:
    ds = make_bags(n_bags=60, n_classes=3, n_features=4, separation=5.0)
    X = torch.tensor(ds.bags.instances)
    kernel_map = principal_map(*kmeans_landmarks(X, 60, generator()), median_distance(X, generator()), rank=40)
    answers = []
    for rows in (10_000, 100):
        shards, eigenvalues, _ = low_rank(X, ds.bags.offsets, ds.candidates, kernel_map, shard_rows=rows)
        regression = fit_bag_regression(shards, eigenvalues)
        likelihood = fit_bag_likelihood(shards, eigenvalues, regression.posterior, stages=STAGES[:2])
        answers.append((regression.posterior, likelihood.logits(torch.cat([s.features for s in shards]))))
    assert len(shards) > 4
    torch.testing.assert_close(answers[0][0], answers[1][0], atol=1e-4, rtol=0)
    torch.testing.assert_close(answers[0][1], answers[1][1], atol=0.05, rtol=0)


def test_class_offsets_are_the_fixed_point_of_their_equation_and_pull_shares_together() -> None:
    candidates = torch.rand(200, 4, generator=generator()) < 0.6
    candidates[:, 0] = True
    log_prior = torch.where(candidates, 0.0, -math.inf).double()
    evidence = torch.randn(200, 4, generator=generator(1), dtype=torch.float64)
    evidence[:, 1] += 2.0
    offset = class_offsets(evidence, log_prior)
    share = torch.softmax(evidence + log_prior + offset, dim=1).mean(dim=0)
    torch.testing.assert_close(offset, -0.9 * torch.log(4 * share), atol=1e-5, rtol=0)
    before = torch.softmax(evidence + log_prior, dim=1).mean(dim=0)
    assert share.max() - share.min() < before.max() - before.min()


def test_class_offsets_leave_clear_bags_alone() -> None:
    label = torch.tensor([0] * 60 + [1] * 10)
    evidence = 20.0 * torch.nn.functional.one_hot(label, 2).double()
    log_prior = torch.zeros(70, 2, dtype=torch.float64)
    posterior = torch.softmax(evidence + class_offsets(evidence, log_prior), dim=1)
    assert (posterior[torch.arange(70), label] > 0.999).all()


def test_bag_regression_resolves_candidates_that_the_bag_itself_does_not_decide() -> None:
    ds = make_bags(n_bags=150, n_classes=5, n_features=10, separation=5.0, r=1)
    X = torch.tensor(ds.bags.instances)
    kernel_map = principal_map(*kmeans_landmarks(X, 200, generator()), median_distance(X, generator()), rank=200)
    shards, eigenvalues, _ = low_rank(X, ds.bags.offsets, ds.candidates, kernel_map)
    posterior = fit_bag_regression(shards, eigenvalues).posterior
    assert (posterior[~torch.tensor(ds.candidates)] == 0).all()
    assert np.mean(posterior.argmax(dim=1).numpy() == ds.labels) > 0.95


def test_logistic_calibration_equals_scikit_learns() -> None:
    class Instances:
        scores = torch.randn(400, 2, generator=generator(), dtype=torch.float64) * 3 + 1
        responsibility = torch.bernoulli(torch.sigmoid(scores - 2), generator=generator(1))

    data = Instances()
    _, slope = fit_logistic([data])
    for c in range(2):
        # The ridge is 1e-3 a sample on the standardised slope; scikit-learn's penalty is 1/C on the sum.
        x = (data.scores[:, c] - data.scores[:, c].mean()) / data.scores[:, c].std(correction=0)
        reference = LogisticRegression(C=1 / (1e-3 * 400), tol=1e-10).fit(x[:, None], data.responsibility[:, c])
        assert (slope[c] * data.scores[:, c].std(correction=0)).item() == pytest.approx(reference.coef_[0, 0], rel=1e-3)


def test_landmarks_are_the_distinct_rows_where_these_are_few() -> None:
    X = torch.tensor([[0.0, 1.0], [2.0, 3.0], [0.0, 1.0], [4.0, 5.0]]).repeat(50, 1)
    Z, counts = kmeans_landmarks(X, 10, generator())
    rows = dict(zip(map(tuple, Z.tolist()), counts.tolist(), strict=True))
    assert rows == {(0.0, 1.0): 100, (2.0, 3.0): 50, (4.0, 5.0): 50}


def test_landmarks_lower_the_quantisation_error_of_random_rows() -> None:
    X = torch.randn(2000, 2, generator=generator())
    Z, _ = kmeans_landmarks(X, 20, generator(1))
    chosen = X[torch.randperm(2000, generator=generator(1))[:20]]
    assert torch.cdist(X, Z).amin(dim=1).square().mean() < 0.8 * torch.cdist(X, chosen).amin(dim=1).square().mean()


def test_the_length_scale_ignores_duplicates() -> None:
    X = torch.tensor([[0.0], [3.0]]).repeat(100, 1)
    assert median_distance(X, generator()) == 3.0
    assert median_distance(torch.zeros(10, 2), generator()) == 1.0
