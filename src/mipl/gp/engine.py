"""What an estimator asks of Gaussian processes on its instances, and the engine that fits their number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Protocol

import numpy as np
import torch
from gpytorch.kernels import Kernel
from numpy.typing import NDArray

from mipl.gp.cholesky import CholeskyEngine
from mipl.gp.conjugate_gradients import ConjugateGradientEngine
from mipl.gp.exact import Conditioned, Evidence, ExactEngine
from mipl.gp.kernels import is_scaled_matern
from mipl.gp.repeats import find_repeats

__all__ = ["Engine", "choose_engine", "exact_engine"]

# Steps of the exact and the low-rank engine cost about as much as each other at n = M^2 / 50 instances (n^2 against
# n M^2), extrapolated from three data sets with 500 and 1,000 landmarks (benchmarks/miplgp_low_rank.py). A landmark
# should also stand for many instances.
AUTO_ROWS_PER_LANDMARK = 10
AUTO_BREAK_EVEN = 1 / 50
# Up to so many distinct instances products with all of them, a dozen per solve, take minutes at most. Learning from a
# subset keeps the accuracy of the exact engine, which landmarks do not (benchmarks/paper_rules.py).
AUTO_SUBSET_ROWS = 50_000
# Distinct instances per rank of a preconditioner, and the bounds of its rank: a product with K grows with n^2, what it
# takes to have and to use a factor with n, so that many instances are worth a factor that saves more products.
AUTO_ROWS_PER_RANK = 80
AUTO_RANKS = 100, 300


class Engine(Protocol):
    """C Gaussian processes with one kernel on n instances, given targets and noise variances (n, C).

    An estimator gives the parameters to an optimizer, asks for the evidence at each step, and for the posterior at the
    end. It never asks how the engine computes.
    """

    #: The kernel at its present parameters.
    kernel: Kernel
    #: The constant means (C,), learned.
    mean: torch.nn.Parameter

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """Everything that is learned; `evidence` sets the gradients."""
        ...

    def evidence(self, targets: NDArray[np.float64], noise: NDArray[np.float64], *, warm: bool = False) -> Evidence:
        """Evaluate the mean negative log evidence, and set `grad` of every parameter.

        With `warm` the engine may start from the evaluation before, which pays where parameters, targets and noises
        have moved little since.
        """
        ...

    def condition(self, targets: NDArray[np.float64], noise: NDArray[np.float64]) -> Conditioned:
        """The posterior at the present parameters; it stays what it is when these change."""
        ...


def choose_engine(
    X: NDArray[np.floating], n_landmarks: int, kernel: Kernel, *, subset: bool
) -> Literal["exact", "subset", "low-rank"]:
    """What `engine="auto"` means: exact for few instances X, a subset to learn from for more, landmarks for many.

    Few are n <= max(10 M, M^2 / 50) distinct instances, M = `n_landmarks`, and many are n > 50,000. `subset` says
    whether the subset engine can be taken, which has no posterior of every instance while it learns; where it cannot,
    landmarks take its place. A kernel other than the scaled isotropic Matérn has the exact engine alone.

    >>> from mipl.gp.kernels import scaled_matern
    >>> X = np.arange(60_000.0)[:, None]
    >>> [choose_engine(X[:n], 500, scaled_matern(2.5, 1.0, 1.0), subset=True) for n in (1000, 9000, 60_000)]
    ['exact', 'subset', 'low-rank']
    """
    repeats = find_repeats(X)
    n = len(X) if repeats is None else len(repeats.first)
    if n <= max(AUTO_ROWS_PER_LANDMARK * n_landmarks, AUTO_BREAK_EVEN * n_landmarks**2) or not is_scaled_matern(kernel):
        return "exact"
    return "subset" if subset and n <= AUTO_SUBSET_ROWS else "low-rank"


def exact_engine(
    X: NDArray[np.floating],
    kernel: Kernel,
    n_classes: int,
    *,
    extra_noise: float,
    cholesky_size: int,
    preconditioner_size: int | Literal["auto"],
    n_probes: int,
    cg_tol: float,
    max_cg_iter: int,
    variance_rank: int | None,
    memory_budget: float,
    seed: int,
    device: torch.device,
    weights: NDArray[np.float64] | None = None,
) -> ExactEngine:
    """Build the exact engine: Cholesky factors up to `cholesky_size` distinct instances, conjugate gradients above.

    Parameters
    ----------
    X : (n, d) array
        The training instances. Where a tenth of them or more are repeats, equal ones are merged (`mipl.gp.repeats`).
    kernel : gpytorch.kernels.Kernel
        Becomes part of the engine, which learns its parameters.
    n_classes : int
        C.
    extra_noise, memory_budget, device, weights
        See `mipl.gp.exact.ExactEngine`.
    cholesky_size : int
        Up to this many distinct instances a `mipl.gp.cholesky.CholeskyEngine` is built; the other parameters then do
        nothing.
    preconditioner_size : int or "auto"
        Rank of the preconditioner of conjugate gradients; "auto" takes an 80th of the distinct instances, from 100 to
        300.
    n_probes, cg_tol, max_cg_iter, variance_rank, seed
        See `mipl.gp.conjugate_gradients.ConjugateGradientEngine`.
    """
    repeats = find_repeats(X)
    rows = X if repeats is None else X[repeats.first]
    if len(rows) <= max(cholesky_size, 1):  # Lanczos steps need two rows
        return CholeskyEngine(
            rows,
            kernel,
            n_classes,
            extra_noise=extra_noise,
            memory_budget=memory_budget,
            device=device,
            weights=weights,
            repeats=repeats,
        )
    least, most = AUTO_RANKS
    auto = min(max(len(rows) // AUTO_ROWS_PER_RANK, least), most)
    return ConjugateGradientEngine(
        rows,
        kernel,
        n_classes,
        extra_noise=extra_noise,
        memory_budget=memory_budget,
        device=device,
        preconditioner_size=auto if preconditioner_size == "auto" else preconditioner_size,
        n_probes=n_probes,
        cg_tol=cg_tol,
        max_cg_iter=max_cg_iter,
        variance_rank=variance_rank,
        seed=seed,
        weights=weights,
        repeats=repeats,
    )
