"""The rules by which latent values become class probabilities of instances: the text's, the release's, and none."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax

from mipl.gp.montecarlo import class_probabilities, joint_class_probabilities, standard_normal_points
from mipl.gp.posterior import Posterior
from mipl.gp.repeats import find_repeats

__all__ = ["sampled_probabilities"]


def sampled_probabilities(
    posterior: Posterior,
    instances: NDArray[np.float32],
    rule: str,
    *,
    n_classes: int,
    n_samples: int,
    batch_size: int,
    memory_budget: float,
    seed: int,
) -> NDArray[np.float64]:
    """Class probabilities (n, n_classes) of instances (n, d), normalised over the first `n_classes`.

    Parameters
    ----------
    posterior : Posterior
        Of C processes.
    instances : (n, d) array
    rule : {"marginal", "joint", "mean"}
        See `mipl.MIPLGP`.
    n_classes : int
        How many of the C classes count.
    n_samples : int
        Monte Carlo points.
    batch_size : int
        Instances that are handled at once.
    memory_budget : float
        Bytes for the kernel matrix of instances that are drawn jointly.
    seed : int
        Seed of the draws.
    """
    first, C = slice(n_classes), len(posterior.state.mean)
    if rule == "mean":
        return softmax(posterior.means(instances, batch_size)[:, first], axis=1)
    if rule == "joint":
        # Generators of their own: neither rule's draws depend on the other's.
        start, draws = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
        generator = torch.Generator().manual_seed(int(start.integers(2**31)))
        repeats = find_repeats(instances)
        counts = None if repeats is None else np.bincount(repeats.distinct)
        rows = instances if repeats is None else instances[repeats.first]
        mean, roots = posterior.sampling_roots(rows, batch_size, generator, memory_budget, counts, n_classes)
        normal = draws.standard_normal((C, roots.shape[2], n_samples), dtype=np.float32)
        found = joint_class_probabilities(mean[:, first], roots, normal[first])
        return found if repeats is None else found[repeats.distinct]
    mean, variance = posterior.moments(instances, batch_size)
    points = standard_normal_points(n_samples, C, seed)
    return class_probabilities(mean[:, first], variance[:, first], points[:, first])
