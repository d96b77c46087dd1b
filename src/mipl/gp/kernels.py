"""Kernel matrices that are formed once a hyper-parameter setting and serve every class and probe vector.

A kernel is any GPyTorch kernel. `kernel_matrix` binds it to the training instances: a scaled isotropic Matérn kernel,
the paper's, is evaluated from distances that never change, with its derivative in closed form; every other kernel is
evaluated by GPyTorch, in blocks of rows, and differentiated by autograd.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from gpytorch.kernels import Kernel, MaternKernel, ScaleKernel
from torch import Tensor

__all__ = ["KernelMatrix", "MaternMatrix", "cross_kernel", "distances", "kernel_matrix", "scaled_matern"]

# A block of rows stays in a core's share of the cache, so that the passes of an elementwise formula are cheap; a GPU
# wants long launches instead.
BLOCK_BYTES = {"cpu": 2 << 20, "cuda": 256 << 20}
# Rows or columns that one matrix product takes: measured best for about 70 right-hand sides.
PRODUCT_ROWS = 1024
# exp(-SATURATED) is zero in float32 and float64, and no power of SATURATED in the formulas overflows.
SATURATED = 1e4

#: ``weight(rows, first)`` gives the block (G + G')[rows, first:] of a matrix of weights.
Weight = Callable[[slice, int], Tensor]


def scaled_matern(nu: float, length_scale: float, output_scale: float) -> ScaleKernel:
    """Build GPyTorch's Matérn kernel with an output scale, at the given start values."""
    kernel = ScaleKernel(MaternKernel(nu=nu))
    kernel.base_kernel.lengthscale = length_scale
    kernel.outputscale = output_scale
    return kernel


def distances(A: Tensor, B: Tensor) -> Tensor:
    """Euclidean distances (a, b) between rows; float64 keeps near duplicates apart after the cancellation."""
    A, B = A.double(), B.double()
    return _distances(A, A.square().sum(1), B, B.square().sum(1))


def _distances(A: Tensor, A_squares: Tensor, B: Tensor, B_squares: Tensor) -> Tensor:
    squares = torch.addmm(B_squares, A, B.T, alpha=-2)
    return squares.add_(A_squares[:, None]).clamp_(min=0).sqrt_()


def is_scaled_matern(kernel: Kernel) -> bool:
    """Whether the closed form below holds: one length scale, all features, no batch of kernels."""
    if type(kernel) is not ScaleKernel or type(kernel.base_kernel) is not MaternKernel:
        return False
    base = kernel.base_kernel
    return (
        base.ard_num_dims is None
        and base.active_dims is None
        and kernel.active_dims is None
        and base.nu in (0.5, 1.5, 2.5)
        and not kernel.batch_shape
        and not base.batch_shape
    )


def _matern(kernel: ScaleKernel, distance: Tensor) -> Tensor:
    r"""Kernel values; with :math:`s = \sqrt{2\nu}\, d / \ell`: e^-s, (1 + s) e^-s or (1 + s + s^2/3) e^-s."""
    s, decay = _scaled_distance(kernel, distance)
    if kernel.base_kernel.nu == 1.5:
        decay.mul_(s.add_(1))
    elif kernel.base_kernel.nu == 2.5:
        decay.mul_((s / 3).add_(1).mul_(s).add_(1))
    return decay.mul_(kernel.outputscale.item())


def _matern_by_log_length(kernel: ScaleKernel, distance: Tensor) -> Tensor:
    """Derivative of `_matern` by the logarithm of the length scale: s e^-s, s^2 e^-s or s^2 (1 + s) e^-s / 3."""
    s, decay = _scaled_distance(kernel, distance)
    decay.mul_(s)
    if kernel.base_kernel.nu == 1.5:
        decay.mul_(s)
    elif kernel.base_kernel.nu == 2.5:
        decay.mul_((s + 1).mul_(s).div_(3))
    return decay.mul_(kernel.outputscale.item())


def _scaled_distance(kernel: ScaleKernel, distance: Tensor) -> tuple[Tensor, Tensor]:
    base = kernel.base_kernel
    s = (distance * (math.sqrt(2 * base.nu) / base.lengthscale.item())).clamp_(max=SATURATED)
    return s, s.neg().exp_()


@torch.no_grad()
def cross_kernel(kernel: Kernel, A: Tensor, B: Tensor) -> Tensor:
    """Kernel values (a, b) between two sets of instances."""
    if is_scaled_matern(kernel):
        centre = B.mean(0)
        return _matern(kernel, distances(A - centre, B - centre).to(A.dtype))
    return kernel(A, B).to_dense()


def kernel_matrix(kernel: Kernel, X: Tensor, memory_budget: float) -> KernelMatrix:
    """Bind `kernel` to the training instances X (n, d), keeping what fits into `memory_budget` bytes."""
    return (MaternMatrix if is_scaled_matern(kernel) else KernelMatrix)(kernel, X, memory_budget)


class KernelMatrix:
    """The (n, n) matrix K of a GPyTorch kernel on the training instances.

    Parameters
    ----------
    kernel : gpytorch.kernels.Kernel
        Its parameters may change between calls of `update`.
    X : (n, d) tensor
    memory_budget : float
        Bytes for (n, n) matrices. K is kept if it fits, and computed again by blocks of rows for each product if not.
    """

    def __init__(self, kernel: Kernel, X: Tensor, memory_budget: float) -> None:
        self.kernel, self.X, self.n = kernel, X, len(X)
        self.matrix_bytes = self.n * self.n * X.element_size()
        self.cached = self.matrix_bytes <= memory_budget
        block_bytes = BLOCK_BYTES.get(X.device.type, BLOCK_BYTES["cuda"])
        self.block_rows = max(1, block_bytes // (self.n * X.element_size()))
        self.K: Tensor | None = None

    # ---------------------------------------------------------------- what a kind of kernel implements

    @torch.no_grad()
    def _compute(self, rows: slice, first: int = 0) -> Tensor:
        """K[rows, first:]."""
        return self.kernel(self.X[rows], self.X[first:]).to_dense()

    @torch.no_grad()
    def diagonal(self) -> Tensor:
        """The prior variances (n,)."""
        return self.kernel(self.X, diag=True)

    def backward(self, weight: Weight) -> None:
        """Add the gradient of sum_ij G_ij K_ij to the kernel's parameters."""
        for rows, block in self._upper_half(weight):
            with torch.enable_grad():
                (self.kernel(self.X[rows], self.X[rows.start :]).to_dense() * block).sum().backward()

    # ---------------------------------------------------------------- shared

    def update(self) -> None:
        """Take over the kernel's present parameters."""
        if not self.cached:
            return
        if self.K is None:
            self.K = self.X.new_empty(self.n, self.n)
        fill_symmetric(self.K, self._compute, self.block_rows)

    def rows(self, rows: slice) -> Tensor:
        """Rows of K (b, n)."""
        return self._compute(rows) if self.K is None else self.K[rows]

    def multiply(self, V: Tensor) -> Tensor:
        """V K for V (s, n), all right-hand sides of all classes in one product.

        Vectors are rows: with about 70 of them this runs at four fifths of the rate of a large square product, and a
        fifth faster than K V'.
        """
        out = torch.empty_like(V)
        step = self.block_rows if self.K is None else PRODUCT_ROWS if V.device.type == "cpu" else self.n
        for rows in _slices(self.n, step):
            out[:, rows] = V @ (self._compute(rows).T if self.K is None else self.K[:, rows])
        return out

    def _upper_half(self, weight: Weight) -> Iterator[tuple[slice, Tensor]]:
        """Blocks of rows from the diagonal on, with the weights that make their sum that of the whole matrix."""
        for rows in _slices(self.n, self.block_rows):
            block = weight(rows, rows.start)
            block[:, : len(block)] *= 0.5  # the square on the diagonal holds both of its halves
            yield rows, block


class MaternMatrix(KernelMatrix):
    """K of a scaled isotropic Matérn kernel, from distances that are computed once if K and they both fit."""

    def __init__(self, kernel: ScaleKernel, X: Tensor, memory_budget: float) -> None:
        super().__init__(kernel, X, memory_budget)
        self.centred = X.double() - X.double().mean(0)
        self.squares = self.centred.square().sum(1)
        self.distance: Tensor | None = None
        if 2 * self.matrix_bytes <= memory_budget:
            distance = X.new_empty(self.n, self.n)
            fill_symmetric(distance, self._distances, PRODUCT_ROWS)
            self.distance = distance

    def _distances(self, rows: slice, first: int) -> Tensor:
        if self.distance is not None:
            return self.distance[rows, first:]
        block = _distances(self.centred[rows], self.squares[rows], self.centred[first:], self.squares[first:])
        block.diagonal(rows.start - first).zero_()
        return block.to(self.X.dtype)

    @torch.no_grad()
    def _compute(self, rows: slice, first: int = 0) -> Tensor:
        return _matern(self.kernel, self._distances(rows, first))

    @torch.no_grad()
    def diagonal(self) -> Tensor:
        """The prior variances (n,)."""
        return self.kernel.outputscale.detach().to(self.X.dtype).expand(self.n)

    def backward(self, weight: Weight) -> None:
        """Add the gradient of sum_ij G_ij K_ij to the raw length and output scales."""
        by_log_length = by_log_output = 0.0
        with torch.no_grad():
            for rows, block in self._upper_half(weight):
                derivative = _matern_by_log_length(self.kernel, self._distances(rows, rows.start))
                by_log_length += torch.dot(block.view(-1), derivative.view(-1)).item()
                K = self._compute(rows, rows.start) if self.K is None else self.K[rows, rows.start :]
                by_log_output += block.mul_(K).sum().item()
        with torch.enable_grad():
            length, output = self.kernel.base_kernel.lengthscale.sum(), self.kernel.outputscale
            (by_log_length * length.log() + by_log_output * output.log()).backward()


def fill_symmetric(matrix: Tensor, compute: Callable[[slice, int], Tensor], block_rows: int) -> None:
    """Fill a symmetric matrix from blocks ``compute(rows, first)`` of its upper half."""
    for rows in _slices(len(matrix), block_rows):
        block = compute(rows, rows.start)
        matrix[rows, rows.start :] = block
        matrix[rows.stop :, rows] = block[:, len(block) :].T


def _slices(n: int, step: int) -> Iterator[slice]:
    return (slice(start, min(start + step, n)) for start in range(0, n, step))
