"""Preconditioner and conjugate gradients against dense float64 algebra."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from mipl.gp import solvers
from mipl.gp.kernels import kernel_matrix, scaled_matern
from mipl.gp.solvers import (
    Preconditioner,
    by_class,
    lanczos,
    pivoted_cholesky,
    solve,
    system_product,
    tridiagonal_logdet,
    weighted_grams,
)

N, C, S = 60, 3, 4


@pytest.fixture(name="K")
def bound_kernel() -> Any:
    X = torch.tensor(np.random.default_rng(0).normal(size=(N, 3)))
    K = kernel_matrix(scaled_matern(2.5, 1.5, 2.0).double(), X, 1e9)
    K.update()
    return K


@pytest.fixture
def noise() -> Any:
    """Diagonals (C, n) that differ between classes and instances."""
    return torch.tensor(np.random.default_rng(1).uniform(0.05, 2, size=(C, N)))


@pytest.fixture
def rhs() -> Any:
    return torch.tensor(np.random.default_rng(2).normal(size=(C, N, S)))


def systems(K: Any, noise: Any) -> Any:
    """K + D_c (C, n, n)."""
    return K.dense() + torch.diag_embed(noise)


# -------------------------------------------------------------------- pivoted Cholesky


def test_a_pivoted_factor_of_full_rank_gives_the_matrix_back(K: Any) -> None:
    L = pivoted_cholesky(K, 2 * N)
    # It ends where the remaining variance is a millionth of the largest.
    assert L.shape[1] <= N
    torch.testing.assert_close(L @ L.T, K.dense(), atol=3e-6, rtol=0)


def test_a_pivoted_factor_is_exact_on_its_pivots_and_leaves_a_positive_remainder(K: Any) -> None:
    rank = 10
    dense, L = K.dense(), pivoted_cholesky(K, rank)
    assert L.shape == (N, rank)
    # A textbook version, on the dense matrix: eliminate the row of the largest remaining diagonal, in turn.
    remainder, pivots = dense.clone(), []
    for _ in range(rank):
        pivots.append(int(remainder.diagonal().argmax()))
        column = remainder[:, pivots[-1]].clone()
        remainder -= torch.outer(column, column) / column[pivots[-1]]
    torch.testing.assert_close(dense - L @ L.T, remainder, atol=1e-12, rtol=0)
    torch.testing.assert_close((L @ L.T)[pivots], dense[pivots], atol=1e-12, rtol=0)
    assert torch.linalg.eigvalsh(dense - L @ L.T).min() > -1e-12


def test_duplicates_end_the_pivoted_factor_early() -> None:
    X = torch.tensor([[0.0], [1.0], [2.0]], dtype=torch.float64).repeat(10, 1)
    K = kernel_matrix(scaled_matern(0.5, 1.0, 1.0).double(), X, 1e9)
    K.update()
    L = pivoted_cholesky(K, 20)
    assert L.shape == (30, 3)
    torch.testing.assert_close(L @ L.T, K.dense(), atol=1e-12, rtol=0)


# -------------------------------------------------------------------- preconditioner


@pytest.mark.parametrize("rank", [0, 7, 30])
def test_the_preconditioner_inverts_its_matrix_and_knows_its_log_determinant(
    K: Any, noise: Any, rhs: Any, rank: int
) -> None:
    L = pivoted_cholesky(K, rank)
    P = L @ L.T + torch.diag_embed(noise)
    preconditioner = Preconditioner(L, noise)
    torch.testing.assert_close(preconditioner.solve(rhs), torch.linalg.solve(P, rhs), atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(preconditioner.logdet, torch.linalg.slogdet(P).logabsdet, atol=1e-9, rtol=0)


def test_probes_have_the_covariance_of_the_preconditioner_and_its_norm(K: Any, noise: Any) -> None:
    L, draws = pivoted_cholesky(K, 7), 20_000
    P = L @ L.T + torch.diag_embed(noise)
    generator = torch.Generator().manual_seed(0)
    inner = torch.randn(C, 9, draws, generator=generator, dtype=torch.float64)
    outer = torch.randn(C, N, draws, generator=generator, dtype=torch.float64)
    preconditioner = Preconditioner(L, noise)
    z = preconditioner.sample(inner, outer)
    norms = torch.einsum("cns,cns->cs", z[:, :, :50], torch.linalg.solve(P, z[:, :, :50]))
    torch.testing.assert_close(norms, torch.full_like(norms, N), atol=1e-8, rtol=0)
    # The standard error of an entry is below sqrt(2) / sqrt(draws) of the largest variance.
    covariance = z @ z.mT / draws
    assert (covariance - P).abs().max() < 6 * (2 / draws) ** 0.5 * P.diagonal(dim1=1, dim2=2).max()


# -------------------------------------------------------------------- conjugate gradients


def test_one_product_serves_all_systems(K: Any, noise: Any, rhs: Any) -> None:
    torch.testing.assert_close(system_product(K, noise, rhs), systems(K, noise) @ rhs, atol=1e-12, rtol=0)


def test_solve_finds_the_dense_solution_and_reports_its_residual(K: Any, noise: Any, rhs: Any) -> None:
    preconditioner = Preconditioner(pivoted_cholesky(K, 10), noise)
    out = solve(K, noise, rhs, preconditioner, n_probes=0, tol=1e-10, max_iter=200)
    A = systems(K, noise)
    torch.testing.assert_close(out.x, torch.linalg.solve(A, rhs), atol=1e-8, rtol=0)
    torch.testing.assert_close(out.product, A @ out.x, atol=1e-12, rtol=0)
    assert out.residual < 1e-10
    assert 0 < out.iterations < N


def test_the_reported_residual_of_an_early_end_is_the_true_one(K: Any, noise: Any, rhs: Any) -> None:
    preconditioner = Preconditioner(pivoted_cholesky(K, 3), noise)
    out = solve(K, noise, rhs, preconditioner, n_probes=0, tol=1e-12, max_iter=11)
    true = ((rhs - systems(K, noise) @ out.x).norm(dim=1) / rhs.norm(dim=1)).mean().item()
    assert out.iterations == 11
    assert true > 1e-12
    assert out.residual == pytest.approx(true, rel=1e-6)


def test_a_better_preconditioner_needs_fewer_iterations(K: Any, noise: Any, rhs: Any) -> None:
    iterations = [
        solve(
            K, noise, rhs, Preconditioner(pivoted_cholesky(K, rank), noise), n_probes=0, tol=1e-10, max_iter=200
        ).iterations
        for rank in (0, 10, N)
    ]
    assert iterations[0] > iterations[1] > iterations[2]


def test_no_iteration_is_made_from_the_solution_and_few_from_near_it(K: Any, noise: Any, rhs: Any) -> None:
    preconditioner = Preconditioner(pivoted_cholesky(K, 10), noise)
    exact = torch.linalg.solve(systems(K, noise), rhs)
    done = solve(K, noise, rhs, preconditioner, start=exact, tol=1e-8, max_iter=200)
    assert done.iterations == 0
    assert torch.equal(done.x, exact)
    cold = solve(K, noise, rhs, preconditioner, tol=1e-8, max_iter=200)
    near = solve(K, noise, rhs, preconditioner, start=exact * (1 + 1e-4), tol=1e-8, max_iter=200)
    assert 0 < near.iterations < cold.iterations


def test_a_right_hand_side_of_zeros_has_the_solution_zero(K: Any, noise: Any, rhs: Any) -> None:
    preconditioner = Preconditioner(pivoted_cholesky(K, 10), noise)
    rhs[:, :, 0] = 0
    for out in (
        solve(K, noise, rhs, preconditioner, n_probes=0, tol=1e-9, max_iter=200),
        solve(K, noise, rhs, preconditioner, tol=1e-9, max_iter=200),
    ):
        assert (out.x[:, :, 0] == 0).all()
        assert torch.isfinite(out.x).all()


def test_probes_estimate_the_log_determinant(K: Any, noise: Any) -> None:
    t = 200
    L = pivoted_cholesky(K, 15)
    preconditioner = Preconditioner(L, noise)
    generator = torch.Generator().manual_seed(0)
    inner, outer = (torch.randn(C, k, t, generator=generator, dtype=torch.float64) for k in (15, N))
    probes = preconditioner.sample(inner, outer)
    out = solve(K, noise, probes, preconditioner, n_probes=t, tol=1e-10, max_iter=200)
    found = tridiagonal_logdet(out.tridiagonal, N)
    # The same quadratic forms z' P^-1/2 log(P^-1/2 A P^-1/2) P^-1/2 z, by eigenvectors.
    values, vectors = torch.linalg.eigh(L @ L.T + torch.diag_embed(noise))
    whiten = vectors / values.sqrt()[:, None] @ vectors.mT
    values, vectors = torch.linalg.eigh(whiten @ systems(K, noise) @ whiten)
    forms = ((vectors.mT @ whiten @ probes).square() * values.log()[:, :, None]).sum(1)
    torch.testing.assert_close(found, forms.mean(1), atol=1e-4, rtol=0)
    # And their mean is the log determinant that the preconditioner lacks.
    expected = torch.linalg.slogdet(systems(K, noise)).logabsdet - preconditioner.logdet
    assert ((found - expected).abs() < 4 * forms.std(1) / t**0.5).all()
    assert (found > 10 * forms.std(1) / t**0.5).all()


@pytest.mark.parametrize("rows", [1, 7, 4096])
def test_weighted_grams_are_the_sums_over_all_rows(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solvers, "BLOCK_ROWS", rows)
    generator = torch.Generator().manual_seed(0)
    L = torch.randn(50, 3, generator=generator, dtype=torch.float64)
    weights = torch.tensor([0.5, 2.0, 3.0])[torch.randint(3, (C, 50), generator=generator)].double()
    weights[0] = 0.25
    torch.testing.assert_close(weighted_grams(L, weights), torch.einsum("cn,ni,nj->cij", weights, L, L))


# -------------------------------------------------------------------- Lanczos steps


def low_rank_matrices(C: int, n: int, rank: int) -> torch.Tensor:
    factors = torch.randn(C, n, rank, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return factors @ factors.mT


def start(C: int, n: int) -> torch.Tensor:
    return torch.randn(C, n, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_a_full_basis_gives_the_matrices_back() -> None:
    S = low_rank_matrices(3, 20, 20)
    basis, tridiagonal = lanczos(lambda V: by_class(S, V), start(3, 20), 20)
    torch.testing.assert_close(basis @ basis.mT, torch.eye(20, dtype=torch.float64).expand(3, 20, 20))
    torch.testing.assert_close(basis.mT @ tridiagonal @ basis, S)


def test_few_steps_give_the_matrices_on_the_krylov_space() -> None:
    S, first = low_rank_matrices(2, 50, 50), start(2, 50)
    basis, tridiagonal = lanczos(lambda V: by_class(S, V), first, 4)
    torch.testing.assert_close(basis @ S @ basis.mT, tridiagonal)
    powers = torch.stack([torch.linalg.matrix_power(S, k) @ first[:, :, None] for k in range(4)], 2)[..., 0]
    torch.testing.assert_close(basis.mT @ (basis @ powers), powers)


def test_an_exhausted_space_goes_on_with_zeros() -> None:
    S = torch.stack([low_rank_matrices(1, 30, 3)[0], low_rank_matrices(1, 30, 30)[0]])
    basis, tridiagonal = lanczos(lambda V: by_class(S, V), start(2, 30), 10)
    assert (basis[0, 4:] == 0).all()
    assert (tridiagonal[0, 4:] == 0).all()
    assert (basis[1].norm(dim=1) > 0.99).all()
