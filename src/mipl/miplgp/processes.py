"""The Gaussian processes that MIPLGP asks for: their kernel at its start values, and the engine for its parameters."""

from __future__ import annotations

import copy
import sys
from typing import Literal, Protocol

import numpy as np
import torch
from gpytorch.kernels import Kernel
from numpy.typing import NDArray
from torch import Tensor

from mipl.bags import Bags
from mipl.candidates import augment_candidates
from mipl.compute import torch_device
from mipl.errors import DataError, ParameterError
from mipl.gp.conjugate_gradients import ConjugateGradientEngine
from mipl.gp.engine import Engine, choose_engine, exact_engine
from mipl.gp.exact import ExactEngine
from mipl.gp.foretold_steps import ForetoldSteps
from mipl.gp.kernels import scaled_matern
from mipl.gp.landmarks import median_distance
from mipl.gp.subset import SubsetEngine
from mipl.miplgp.disambiguation import DISAMBIGUATIONS
from mipl.miplgp.learning_rows import learning_rows

__all__ = ["Settings", "augmented", "build_engine", "engine_for", "start_kernel"]

#: Median distances from 1 / this to this are taken; GPyTorch's lengthscales are single-precision logarithms of e^x - 1.
_FAR_APART = 1e20
#: How many times the tolerance of a solve an extrapolated gradient may err. The gradient by the lengthscale is what two
#: large parts leave that nearly cancel: a solve moves it by more than that tolerance, and Adam averages it out.
_PATH_TOLERANCE = 10


class Settings(Protocol):
    """The parameters of `mipl.MIPLGP` that describe processes and engine."""

    name: str
    disambiguation: str
    augment: bool
    alpha_eps: float
    engine: str
    n_landmarks: int
    subset_size: int
    kernel: Kernel | None
    nu: float
    lengthscale: float | str
    outputscale: float
    extra_noise: float
    variance_rank: int | None
    cholesky_size: int
    preconditioner_size: int | Literal["auto"]
    n_probes: int
    max_cg_iter: int
    cg_tol: float
    memory_budget: float
    device: str
    verbose: bool


def start_kernel(settings: Settings, X: Tensor, seed: int, weights: Tensor | None = None) -> Kernel:
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
    return scaled_matern(settings.nu, _start_lengthscale(settings, X, seed, weights), settings.outputscale)


def engine_for(settings: Settings, X: NDArray[np.floating], *, on_cluster: bool = False) -> str:
    """The engine, "exact", "subset" or "low-rank", for instances (n, d): what "auto" means, or the one asked for."""
    if settings.engine != "auto":
        return settings.engine
    # Only the kernel's form matters here.
    kernel = settings.kernel if settings.kernel is not None else scaled_matern(settings.nu, 1.0, 1.0)
    subset = not DISAMBIGUATIONS[settings.disambiguation].reads_posterior
    name = "low-rank" if on_cluster else choose_engine(X, settings.n_landmarks, kernel, subset=subset)
    if settings.verbose:
        print(f"{settings.name}: the {name} engine for {len(X):,} instances", file=sys.stderr)
    return name


def augmented(settings: Settings, candidates: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The candidates (m, C), after a look at whether the parameters go together."""
    if settings.disambiguation == "bag" and not settings.augment:
        raise ParameterError('disambiguation="bag" needs the negative class; pass augment=True')
    if settings.engine == "subset" and DISAMBIGUATIONS[settings.disambiguation].reads_posterior:
        raise ParameterError(f'engine="subset" has no posterior for {settings.disambiguation!r}; use engine="exact"')
    return augment_candidates(candidates) if settings.augment else candidates


def build_engine(
    settings: Settings, name: str, bags: Bags, n_classes: int, seed: int, weights: NDArray[np.float64] | None = None
) -> Engine:
    """The exact or the subset engine.

    Parameters
    ----------
    settings : MIPLGP
        The parameters.
    name : {"exact", "subset"}
        The engine.
    bags : Bags
        The training bags with n instances.
    n_classes : int
        C, the number of processes.
    seed : int
        Seed of probes, landmarks, of the instances to learn from and of the rows whose median distance is taken.
    weights : (n,) array, default=None
        How often each instance counts; None for once.
    """
    X = bags.instances
    # A copy: the instances of bags are read-only, which torch tensors cannot be.
    kernel = start_kernel(settings, torch.tensor(X), seed, None if weights is None else torch.tensor(weights))

    def exact(rows: NDArray[np.floating], kernel: Kernel, weights: NDArray[np.float64] | None) -> ExactEngine:
        return exact_engine(
            rows,
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

    engine: ExactEngine | SubsetEngine
    if name == "subset":
        rows = learning_rows(X, seed, settings.subset_size)
        n_landmarks = settings.n_landmarks if len(X) > max(settings.n_landmarks, settings.cholesky_size) else None
        engine = SubsetEngine(exact, X, kernel, rows, weights, n_landmarks, seed)
        learner = engine.learner
    else:
        engine = learner = exact(X, kernel, weights)
    # Factors are for those who want all digits, and weights that come from posterior means are not foretold.
    if isinstance(learner, ConjugateGradientEngine) and not DISAMBIGUATIONS[settings.disambiguation].reads_posterior:
        return ForetoldSteps(engine, _PATH_TOLERANCE * settings.cg_tol)
    return engine


def _start_lengthscale(settings: Settings, X: Tensor, seed: int, weights: Tensor | None) -> float:
    if settings.lengthscale == "median":
        median = median_distance(X, torch.Generator().manual_seed(seed), weights=weights)
        if not 1 / _FAR_APART < median < _FAR_APART:
            raise DataError(
                f"the instances are {median:.1e} apart, a distance with which {settings.name} cannot compute; bring "
                "the features to a scale near one first, for example by mipl.BagTransformer(StandardScaler())"
            )
        return median
    return float(settings.lengthscale)
