"""The rules by which latent values become class probabilities of instances: the text's, the release's, and none."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri, softmax
from scipy.stats import qmc

from mipl.gp.posterior import Posterior
from mipl.gp.repeats import find_repeats

__all__ = ["class_probabilities", "joint_class_probabilities", "sampled_probabilities", "standard_normal_points"]

# Elements of the (samples, instances, classes) array that are handled at once: 128 MiB of float64.
CHUNK = 1 << 24
# The same for joint draws, which are in single precision as a rule: they stay in the cache.
JOINT_CHUNK = 1 << 19


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
        proba = joint_class_probabilities(mean[:, first], roots, normal[first])
        return proba if repeats is None else proba[repeats.distinct]
    mean, variance = posterior.moments(instances, batch_size)
    points = standard_normal_points(n_samples, C, seed)
    return class_probabilities(mean[:, first], variance[:, first], points[:, first])


def standard_normal_points(n_samples: int, n_classes: int, seed: int) -> NDArray[np.float64]:
    """Scrambled Sobol points mapped to standard normals.

    They estimate the same expectation as independent draws, with a fraction of the error.

    Parameters
    ----------
    n_samples : int
        Number of points; a power of two is best.
    n_classes : int
        C, their dimension.
    seed : int
        Seed of the scrambling.

    Returns
    -------
    (n_samples, C) array
    """
    points = qmc.Sobol(n_classes, scramble=True, rng=seed).random(n_samples)
    return ndtri(np.clip(points, 1e-12, 1 - 1e-12))


def class_probabilities(
    mean: NDArray[np.float64], variance: NDArray[np.float64], normal_points: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Expected softmax of independent Gaussian latent values (Eq. 11 of the MIPLGP paper).

    Parameters
    ----------
    mean, variance : (n, C) arrays
        Moments of the latent values.
    normal_points : (s, C) array
        Standard normal points. All instances see the same ones, so the result does not depend on how instances are
        batched.

    Returns
    -------
    (n, C) array
        Class probabilities; rows sum to one.
    """
    deviation = np.sqrt(np.maximum(variance, 0))
    out = np.empty_like(mean)
    step = max(1, CHUNK // normal_points.size)
    for start in range(0, len(mean), step):
        rows = slice(start, start + step)
        out[rows] = _mean_softmax(mean[rows] + deviation[rows] * normal_points[:, None, :])
    return out


def joint_class_probabilities(
    mean: NDArray[np.float64], roots: NDArray[np.floating], draws: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Expected softmax of Gaussian latent values that are drawn for all instances together.

    Parameters
    ----------
    mean : (n, C) array
        Means of the latent values.
    roots : (C, n, k) array
        Roots of the covariance of the instances' latent values in each class; their precision is that of the samples.
    draws : (C, k, s) array
        Standard normal draws.

    Returns
    -------
    (n, C) array
        Class probabilities; rows sum to one.
    """
    out = np.empty_like(mean)
    C, _, n_samples = draws.shape
    step = max(1, JOINT_CHUNK // (C * n_samples))
    centres = mean.T.astype(roots.dtype)[:, :, None]
    for start in range(0, len(mean), step):
        rows = slice(start, start + step)
        # Classes come first: all passes go along samples, and the softmax is taken over rows of memory.
        latent = roots[:, rows] @ draws
        latent += centres[:, rows]
        latent -= latent.max(axis=0)
        np.exp(latent, out=latent)
        out[rows] = np.einsum("cns,ns->nc", latent, 1 / latent.sum(axis=0)) / n_samples
    return out


def _mean_softmax(latent: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean (n, C) over samples of the softmax of latent values (s, n, C), which are overwritten."""
    latent -= latent.max(axis=-1, keepdims=True)
    np.exp(latent, out=latent)
    latent /= latent.sum(axis=-1, keepdims=True)
    mean: NDArray[np.float64] = latent.mean(axis=0)
    return mean
