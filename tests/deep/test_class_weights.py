"""FastMIPL's posterior against torch.distributions, autograd and sample moments."""

from __future__ import annotations

import torch
from torch.distributions import MultivariateNormal, kl_divergence

from mipl.deep.class_weights import JITTER, class_scores, divergence, log_determinant, sample_weights, weight_scale

Q, K = 3, 6


def parameters() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    mean, scale = torch.randn(2, Q, K, dtype=torch.float64, generator=generator)
    factor = torch.randn(Q, K, K, dtype=torch.float64, generator=generator)
    return mean, factor, scale / 3


def covariance(factor: torch.Tensor) -> torch.Tensor:
    return factor @ factor.mT + JITTER * torch.eye(K, dtype=factor.dtype)


def test_divergence_and_its_gradient_equal_those_of_torch_distributions():
    tensors = [t.requires_grad_() for t in parameters()]
    mean, factor, log_scale = tensors
    ours = divergence(mean, factor, log_determinant(factor).at(factor), log_scale)
    prior = MultivariateNormal(torch.zeros_like(mean), torch.diag_embed(torch.exp(2 * log_scale)))
    theirs = kl_divergence(MultivariateNormal(mean, covariance(factor)), prior)
    torch.testing.assert_close(ours, theirs)
    for own, other in zip(
        torch.autograd.grad(ours.sum(), tensors), torch.autograd.grad(theirs.sum(), tensors), strict=True
    ):
        torch.testing.assert_close(own, other)


def test_the_linear_continuation_of_the_log_determinant_errs_by_the_square_of_the_step():
    factor = parameters()[1] + 3 * torch.eye(K, dtype=torch.float64)
    step = torch.randn(factor.shape, dtype=factor.dtype, generator=torch.Generator().manual_seed(1))
    expansion = log_determinant(factor)
    errors = [
        (expansion.at(factor + size * step) - torch.logdet(covariance(factor + size * step))).abs().max()
        for size in (1e-3, 1e-4)
    ]
    assert errors[0] < 1e-3
    assert 50 < errors[0] / errors[1] < 200


def test_samples_have_the_mean_and_the_covariance_of_the_posterior():
    mean, factor, _ = parameters()
    draws = sample_weights(mean, factor, 200_000, torch.Generator().manual_seed(2))
    torch.testing.assert_close(draws.mean(dim=2), mean, atol=0.05, rtol=0)
    for c in range(Q):
        torch.testing.assert_close(torch.cov(draws[c]), covariance(factor)[c], atol=0.2, rtol=0.05)


def test_without_noise_every_draw_is_the_mean():
    mean, factor, _ = parameters()
    assert torch.equal(sample_weights(mean, factor, 2, None), torch.stack([mean, mean], dim=2))


def test_scores_equal_a_loop_over_bags_classes_and_draws(batch):
    generator = torch.Generator().manual_seed(3)
    h = torch.randn(10, 3, dtype=torch.float64, generator=generator)
    beta = torch.randn(Q, 6, 2, dtype=torch.float64, generator=generator)
    scored = class_scores(h, beta, batch.segments)
    bags, attention = scored.bags.unflatten(1, (Q, 2)), scored.attention.unflatten(1, (Q, 2))
    for i in range(4):
        rows = batch.segments.bag == i
        for c in range(Q):
            for s in range(2):
                u, z = beta[c, :3, s], beta[c, 3:, s]
                scale = z.square().mean().sqrt()
                a = torch.softmax(h[rows] @ u, dim=0)
                torch.testing.assert_close(attention[rows, c, s], a)
                torch.testing.assert_close(bags[i, c, s], a @ (h[rows] @ (z / scale)))
                torch.testing.assert_close(weight_scale(beta)[c, s], scale)
