"""Class probabilities of instances from independent Gaussian latent functions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import qmc

__all__ = ["class_probabilities", "joint_class_probabilities", "standard_normal_points"]

# Elements of the (samples, instances, classes) array that are handled at once: 128 MiB of float64.
CHUNK = 1 << 24
# The same for joint draws, which are in single precision as a rule: they stay in the cache.
JOINT_CHUNK = 1 << 19


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
