"""The Gaussian processes that MIPLGP asks for: their kernel at its start values, and the engine for its parameters."""

from __future__ import annotations

import copy
import sys
from typing import TYPE_CHECKING

import numpy as np
import torch
from gpytorch.kernels import Kernel
from numpy.typing import NDArray
from torch import Tensor

from mipl.candidates import augment_candidates
from mipl.compute import torch_device
from mipl.errors import DataError, ParameterError
from mipl.gp.exact import ExactEngine, exact_engine
from mipl.gp.kernels import is_scaled_matern, scaled_matern
from mipl.gp.landmarks import median_distance
from mipl.gp.repeats import find_repeats

if TYPE_CHECKING:
    from mipl.miplgp.estimator import MIPLGP

__all__ = ["augmented", "build_engine", "choose_engine", "start_kernel"]

#: Median distances from 1 / this to this are taken; GPyTorch's lengthscales are single-precision logarithms of e^x - 1.
_FAR_APART = 1e20
#: Up to so many distinct instances the exact engine takes minutes for the paper's 50 steps. It keeps an accuracy that
#: landmarks do not (docs/miplgp.md).
AUTO_EXACT = 25_000


def start_kernel(settings: MIPLGP, X: Tensor, seed: int, weights: Tensor | None = None) -> Kernel:
    """A copy of the kernel at its start values.

    Parameters
    ----------
    settings : MIPLGP
        The parameters.
    X : (n, d) tensor
        The training instances, or a sample of them.
    seed : int
        Seed of the rows whose median distance is taken.
    weights : (n,) tensor, default=None
        How often each instance counts; None for once.
    """
    if settings.kernel is not None:
        return copy.deepcopy(settings.kernel)
    lengthscale = settings.lengthscale
    if lengthscale == "median":
        lengthscale = median_distance(X, torch.Generator().manual_seed(seed), weights=weights)
        if not 1 / _FAR_APART < lengthscale < _FAR_APART:
            raise DataError(
                f"the instances are {lengthscale:.1e} apart, a distance with which {settings.name} cannot compute; "
                "bring the features to a scale near one first, for example by mipl.BagTransformer(StandardScaler())"
            )
    return scaled_matern(settings.nu, float(lengthscale), settings.outputscale)


def choose_engine(settings: MIPLGP, X: NDArray[np.floating], *, on_cluster: bool = False) -> str:
    """The engine, "exact" or "low-rank", for instances (n, d): what "auto" means, or the one asked for."""
    if settings.engine != "auto":
        return settings.engine
    own_kernel = settings.kernel is not None and not is_scaled_matern(settings.kernel)
    repeats = find_repeats(X)
    n_distinct = len(X) if repeats is None else len(repeats.first)
    name = "exact" if (own_kernel or n_distinct <= AUTO_EXACT) and not on_cluster else "low-rank"
    if settings.verbose:
        print(f"{settings.name}: the {name} engine for {len(X):,} instances", file=sys.stderr)
    return name


def augmented(settings: MIPLGP, candidates: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The candidates (m, C), with the negative class if it is asked for."""
    if settings.disambiguation == "bag" and not settings.augment:
        raise ParameterError('disambiguation="bag" needs the negative class; pass augment=True')
    return augment_candidates(candidates) if settings.augment else candidates


def build_engine(
    settings: MIPLGP, X: NDArray[np.float32], n_classes: int, seed: int, weights: NDArray[np.float64] | None = None
) -> ExactEngine:
    """The exact engine.

    Parameters
    ----------
    settings : MIPLGP
        The parameters.
    X : (n, d) array
        The training instances.
    n_classes : int
        C, the number of processes.
    seed : int
        Seed of probes and of the rows whose median distance is taken.
    weights : (n,) array, default=None
        How often each instance counts; None for once.
    """
    # A copy: the instances of bags are read-only, which torch tensors cannot be.
    kernel = start_kernel(settings, torch.tensor(X), seed, None if weights is None else torch.tensor(weights))
    return exact_engine(
        X,
        kernel,
        n_classes,
        extra_noise=settings.extra_noise,
        cholesky_size=settings.cholesky_size,
        preconditioner_size=settings.preconditioner_size,
        n_probes=settings.n_probes,
        cg_tol=settings.cg_tol,
        max_cg_iter=settings.max_cg_iter,
        variance_rank=settings.variance_rank,
        memory_budget=settings.memory_budget,
        seed=seed,
        device=torch_device(settings.device),
        weights=weights,
    )
