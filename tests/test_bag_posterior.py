"""The bag posterior against enumeration of all instance labels, and at the edges of floating point."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from mipl.bag_posterior import bag_evidence, instance_posterior, label_posterior


def enumerate_bag(p: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior (q,) of the label and (k, q) of the instances by summing over all labellings of one bag."""
    k, q = p.shape[0], p.shape[1] - 1
    label, carries = np.zeros(q), np.zeros((k, q))
    for c in range(q):
        for labelling in itertools.product((c, q), repeat=k):
            if c not in labelling:
                continue
            mass = prior[c] * np.prod(p[np.arange(k), labelling])
            label[c] += mass
            carries[np.array(labelling) == c, c] += mass
    return label / label.sum(), carries / label.sum()


def posterior(logits: torch.Tensor, offsets: torch.Tensor, prior: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    evidence = bag_evidence(logits, offsets)
    label = label_posterior(evidence.log_evidence, torch.log(prior))
    return label, instance_posterior(logits, evidence, label, offsets)


@pytest.mark.parametrize("seed", range(5))
def test_it_equals_the_enumeration_of_all_instance_labels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes, q = [1, 4, 2, 7, 3], 3
    p = rng.dirichlet(np.full(q + 1, 0.3), size=sum(sizes)).clip(1e-9)
    p /= p.sum(axis=1, keepdims=True)
    prior = np.where(rng.random((len(sizes), q)) < 0.7, rng.random((len(sizes), q)), 0)
    prior[:, 0] += 0.1
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    logits = np.log(p[:, :q]) - np.log(p[:, q:])
    label, carries = posterior(*map(torch.from_numpy, (logits, offsets, prior)))
    for b, (low, high) in enumerate(itertools.pairwise(offsets)):
        true_label, true_carries = enumerate_bag(p[low:high], prior[b])
        np.testing.assert_allclose(label[b], true_label, rtol=0, atol=1e-12)
        np.testing.assert_allclose(carries[low:high], true_carries, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_a_background_class_is_a_bag_of_negatives_in_the_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes, q, background = [1, 4, 2, 5], 3, 1
    p = rng.dirichlet(np.full(q + 1, 0.5), size=sum(sizes)).clip(1e-9)
    prior = rng.random((len(sizes), q))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    logits = torch.from_numpy(np.log(p[:, :q]) - np.log(p[:, q:]))
    evidence = bag_evidence(logits, torch.from_numpy(offsets), torch.arange(q) == background)
    label = label_posterior(evidence.log_evidence, torch.log(torch.from_numpy(prior)))
    carries = instance_posterior(logits, evidence, label, torch.from_numpy(offsets))
    for b, (low, high) in enumerate(itertools.pairwise(offsets)):
        only = np.where(np.arange(q) == background, 0, prior[b])
        mass = np.zeros(q)
        for c in np.flatnonzero(only):
            mass[c] = only[c] * (np.prod(p[low:high, c] + p[low:high, q]) - np.prod(p[low:high, q]))
        mass[background] = prior[b, background] * np.prod(p[low:high, q])
        np.testing.assert_allclose(label[b], mass / mass.sum(), rtol=0, atol=1e-12)
    assert (carries[:, background] == 0).all()


def test_the_gradient_of_the_log_evidence_is_the_share_of_each_instance() -> None:
    logits = torch.randn(12, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    offsets = torch.tensor([0, 1, 5, 12])
    evidence = bag_evidence(logits, offsets)
    evidence.log_evidence.sum().backward()
    share = instance_posterior(logits, evidence, torch.ones(3, 3, dtype=torch.float64), offsets)
    torch.testing.assert_close(logits.grad, share.detach())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("size", [1, 10_000])
def test_extreme_logits_and_bag_sizes_stay_probabilities(dtype: torch.dtype, scale: float, size: int) -> None:
    generator = torch.Generator().manual_seed(0)
    for sign in (1.0, -1.0):
        logits = sign * scale * torch.rand(2 * size, 4, generator=generator, dtype=torch.float64).to(dtype)
        offsets = torch.tensor([0, size, 2 * size])
        label, carries = posterior(logits, offsets, torch.ones(2, 4, dtype=dtype))
        assert torch.isfinite(bag_evidence(logits, offsets).log_evidence).all()
        torch.testing.assert_close(label.sum(dim=1), torch.ones(2, dtype=dtype))
        assert ((carries >= 0) & (carries <= 1)).all()
        at_least_one = torch.segment_reduce(carries, "sum", offsets=offsets, axis=0)
        assert (at_least_one >= label * (1 - 1e-4)).all()


def test_the_two_branches_meet_where_logits_become_tiny() -> None:
    for shift in (-59.999, -60.001):
        logits = torch.full((3, 1), shift, dtype=torch.float64)
        evidence = bag_evidence(logits, torch.tensor([0, 3]))
        assert abs(evidence.log_evidence.item() - (shift + np.log(3))) < 1e-13 * 60


def test_one_certain_instance_decides_its_bag() -> None:
    logits = torch.full((5, 2), -1e4, dtype=torch.float64)
    logits[3, 1] = 1e4
    label, carries = posterior(logits, torch.tensor([0, 5]), torch.ones(1, 2, dtype=torch.float64))
    assert label[0, 1] == 1
    assert carries[3, 1] == 1
    assert carries.sum() == 1
