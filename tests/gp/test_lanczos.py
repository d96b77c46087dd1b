"""Lanczos steps of several matrices at once, against dense matrices."""

from __future__ import annotations

import torch
from torch import Tensor

from mipl.gp.lanczos import by_class, lanczos


def matrices(C: int, n: int, rank: int) -> Tensor:
    factors = torch.randn(C, n, rank, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return factors @ factors.mT


def start(C: int, n: int) -> Tensor:
    return torch.randn(C, n, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_a_full_basis_gives_the_matrices_back() -> None:
    S = matrices(3, 20, 20)
    basis, tridiagonal = lanczos(lambda V: by_class(S, V), start(3, 20), 20)
    torch.testing.assert_close(basis @ basis.mT, torch.eye(20, dtype=torch.float64).expand(3, 20, 20))
    torch.testing.assert_close(basis.mT @ tridiagonal @ basis, S)


def test_few_steps_give_the_matrices_on_the_krylov_space() -> None:
    S, first = matrices(2, 50, 50), start(2, 50)
    basis, tridiagonal = lanczos(lambda V: by_class(S, V), first, 4)
    torch.testing.assert_close(basis @ S @ basis.mT, tridiagonal)
    powers = torch.stack([torch.linalg.matrix_power(S, k) @ first[:, :, None] for k in range(4)], 2)[..., 0]
    torch.testing.assert_close(basis.mT @ (basis @ powers), powers)


def test_an_exhausted_space_goes_on_with_zeros() -> None:
    S = torch.stack([matrices(1, 30, 3)[0], matrices(1, 30, 30)[0]])
    basis, tridiagonal = lanczos(lambda V: by_class(S, V), start(2, 30), 10)
    assert (basis[0, 4:] == 0).all()
    assert (tridiagonal[0, 4:] == 0).all()
    assert (basis[1].norm(dim=1) > 0.99).all()
