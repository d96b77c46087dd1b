"""Kernel matrices that are formed once per hyper-parameter setting and serve every class and probe vector.

A kernel is any GPyTorch kernel. `kernel_matrix` binds it to the training instances: a scaled isotropic Matérn kernel,
the paper's, is evaluated from distances that never change, with its derivative in closed form; every other kernel is
evaluated by GPyTorch and differentiated by autograd. Of a symmetric matrix only the square tiles on and above the
diagonal are ever computed, kept or read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from gpytorch.kernels import Kernel, MaternKernel, ScaleKernel
from torch import Tensor

from mipl.gp.distances import CHUNK, LARGEST, centre_of, distances, squared_distances
from mipl.gp.matern import NUS, decay_rate, matern, matern_and_derivative
from mipl.gp.parameters import joined

__all__ = [
    "KernelMatrix",
    "MaternMatrix",
    "cross_kernel",
    "is_scaled_matern",
    "kernel_matrix",
    "prior_variances",
    "scaled_matern",
]

# Rows of a tile. On a CPU the passes of an elementwise formula over a tile should find it in the cache; a GPU wants
# long launches instead. Measured: 512 to 1024 are equally fast, 256 takes half as long again.
TILE_ROWS = {"cpu": 768, "cuda": 8192}


def scaled_matern(nu: float, lengthscale: float, outputscale: float) -> ScaleKernel:
    """Build GPyTorch's Matérn kernel with an outputscale, at the given start values."""
    kernel = ScaleKernel(MaternKernel(nu=nu))
    kernel.base_kernel.lengthscale = lengthscale
    kernel.outputscale = outputscale
    return kernel


def is_scaled_matern(kernel: Kernel) -> bool:
    """Whether the closed form below holds: one lengthscale, all features, no batch of kernels."""
    if type(kernel) is not ScaleKernel or type(kernel.base_kernel) is not MaternKernel:
        return False
    base = kernel.base_kernel
    return (
        base.ard_num_dims is None
        and base.active_dims is None
        and kernel.active_dims is None
        and base.nu in NUS
        and not kernel.batch_shape
        and not base.batch_shape
    )


def _evaluate(kernel: ScaleKernel, distance: Tensor, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """Values of a scaled Matérn kernel and their derivatives by the logarithm of the lengthscale."""
    base = kernel.base_kernel
    return matern_and_derivative(distance, base.nu, base.lengthscale.item(), kernel.outputscale.item(), out)


@torch.no_grad()
def prior_variances(kernel: Kernel, X: Tensor) -> Tensor:
    """The prior variances (n,) of instances X (n, d); a stationary kernel need not look at these."""
    if is_scaled_matern(kernel):
        constant: Tensor = kernel.outputscale.to(X.dtype).expand(len(X))
        return constant
    variances: Tensor = kernel(X, diag=True)
    return variances


@torch.no_grad()
def cross_kernel(kernel: Kernel, A: Tensor, B: Tensor) -> Tensor:
    """Kernel values (a, b) between two sets of instances, at the present parameters of the kernel."""
    if not is_scaled_matern(kernel):
        dense: Tensor = kernel(A, B).to_dense()
        return dense
    base, centre = kernel.base_kernel, centre_of(B)
    rate = decay_rate(base.nu, base.lengthscale.item())
    squares = squared_distances((A - centre) * rate, (B - centre) * rate)
    if squares.dtype == torch.float64:  # farther apart the kernel is zero, and products with it stay numbers
        squares.clamp_(max=LARGEST)
    scratch = squares.new_empty(max(1, CHUNK // len(B)), len(B))
    for part in squares.split(len(scratch)):
        torch.mul(matern(part, base.nu, out=scratch[: len(part)]), kernel.outputscale, out=part)
    return squares.to(A.dtype)


def kernel_matrix(kernel: Kernel, X: Tensor, memory_budget: float, *, derivatives: bool = True) -> KernelMatrix:
    """Bind `kernel` to instances X (n, d), keeping what fits into `memory_budget` bytes.

    Without `derivatives` only kernel values are kept, for a matrix that is only ever multiplied.
    """
    if is_scaled_matern(kernel):
        return MaternMatrix(kernel, X, memory_budget, keep_derivatives=derivatives)
    return KernelMatrix(kernel, X, memory_budget)


def _length(rows: slice) -> int:
    length: int = rows.stop - rows.start
    return length


class KernelMatrix:
    """The (n, n) matrix K of a GPyTorch kernel on the training instances.

    Parameters
    ----------
    kernel : gpytorch.kernels.Kernel
        Its parameters may change between calls of `update`.
    X : (n, d) tensor
        The training instances.
    memory_budget : float
        Bytes for tiles. Those of K are kept if they fit, and computed again for each product if not.
    """

    def __init__(self, kernel: Kernel, X: Tensor, memory_budget: float) -> None:
        self.kernel, self.X, self.n = kernel, X, len(X)
        self.parameters = [p for p in kernel.parameters() if p.requires_grad]
        self.tile_rows = TILE_ROWS.get(X.device.type, TILE_ROWS["cuda"])
        self.slices = [slice(i, min(i + self.tile_rows, self.n)) for i in range(0, self.n, self.tile_rows)]
        n_tiles = len(self.slices) * (len(self.slices) + 1) // 2
        self.half_bytes = n_tiles * min(self.n, self.tile_rows) ** 2 * X.element_size()
        self.cached = self.half_bytes <= memory_budget
        self.tiles: dict[tuple[int, int], Tensor] = {}

    # ---------------------------------------------------------------- what a kind of kernel implements

    @torch.no_grad()
    def _compute(self, rows: slice, columns: slice) -> Tensor:
        """K[rows, columns]."""
        dense: Tensor = self.kernel(self.X[rows], self.X[columns]).to_dense()
        return dense

    @torch.no_grad()
    def diagonal(self) -> Tensor:
        """The prior variances (n,)."""
        return prior_variances(self.kernel, self.X)

    def gradient(self, W: Tensor) -> Tensor:
        """Gradient (p,) of sum_ij W_ij K_ij by the kernel's `parameters`, for a symmetric W (n, n)."""
        return self._by_autograd(lambda rows, columns: [W[rows, columns]])[0]

    def form_gradients(self, X: Tensor, KX: Tensor, Y: Tensor, groups: Sequence[int]) -> Tensor:
        """Gradients (g, p) of sum_k x_k' K y_k over g groups of the rows of X and Y (s, n); KX is X K."""
        pairs = list(zip(X.split(groups), Y.split(groups), strict=True))
        return self._by_autograd(
            lambda rows, columns: [(x[:, rows].T @ y[:, columns] + y[:, rows].T @ x[:, columns]) / 2 for x, y in pairs]
        )

    def _by_autograd(self, weights: Callable[[slice, slice], Sequence[Tensor]]) -> Tensor:
        """Gradients (g, p) of sum_ij W_ij K_ij for g symmetric matrices W, given by their blocks."""
        sums: list[Tensor] = []
        for a, b in self._upper():
            rows, columns = self.slices[a], self.slices[b]
            with torch.enable_grad():
                K = self.kernel(self.X[rows], self.X[columns]).to_dense()
                forms = [(1 if a == b else 2) * (K * W).sum() for W in weights(rows, columns)]
            parts = [
                torch.autograd.grad(form, self.parameters, retain_graph=True, allow_unused=True, materialize_grads=True)
                for form in forms
            ]
            sums.append(torch.stack([joined(part) for part in parts]))
        return torch.stack(sums).sum(0)

    # ---------------------------------------------------------------- shared

    def update(self, *, derivatives: bool = True) -> None:
        """Take over the kernel's present parameters; `derivatives` says whether gradients will be asked for."""
        if self.cached:
            self.tiles = self.tiles or self._memory()
            for (a, b), tile in self.tiles.items():
                tile.copy_(self._compute(self.slices[a], self.slices[b]))

    def row(self, i: int) -> Tensor:
        """Row i of K (n,)."""
        if not self.tiles:
            return self._compute(slice(i, i + 1), slice(0, self.n))[0]
        a, k = divmod(i, self.tile_rows)
        above = [self.tiles[b, a][:, k] for b in range(a)]
        return torch.cat(above + [self.tiles[a, b][k] for b in range(a, len(self.slices))])

    def dense(self) -> Tensor:
        """All of K (n, n)."""
        K = self.X.new_empty(self.n, self.n)
        for a, b in self._upper():
            tile = self._tile(a, b)
            K[self.slices[a], self.slices[b]] = tile
            K[self.slices[b], self.slices[a]] = tile.T
        return K

    def multiply(self, V: Tensor) -> Tensor:
        """V K for V (s, n), all right-hand sides of all classes in one pass over the tiles.

        Vectors are rows, because a product of few long rows with a tile is faster than one with few long columns.
        """
        return self._multiply(V, self._tile)

    def _multiply(self, V: Tensor, tile: Callable[[int, int], Tensor]) -> Tensor:
        out = torch.zeros_like(V)
        for a, b in self._upper():
            rows, columns, block = self.slices[a], self.slices[b], tile(a, b)
            out[:, columns].addmm_(V[:, rows], block)
            if a != b:
                out[:, rows].addmm_(V[:, columns], block.T)
        return out

    def _memory(self) -> dict[tuple[int, int], Tensor]:
        """Memory for the upper tiles in one piece: such a piece goes back to the system as soon as it is freed."""
        shapes = {(a, b): (_length(self.slices[a]), _length(self.slices[b])) for a, b in self._upper()}
        pieces = self.X.new_empty(sum(r * c for r, c in shapes.values())).split([r * c for r, c in shapes.values()])
        return {tile: piece.view(shape) for (tile, shape), piece in zip(shapes.items(), pieces, strict=True)}

    def _upper(self) -> Iterator[tuple[int, int]]:
        """The tiles on and above the diagonal."""
        return ((a, b) for a in range(len(self.slices)) for b in range(a, len(self.slices)))

    def _tile(self, a: int, b: int) -> Tensor:
        return self.tiles[a, b] if self.tiles else self._compute(self.slices[a], self.slices[b])


class MaternMatrix(KernelMatrix):
    """K of a scaled isotropic Matérn kernel.

    Beside K, the distances are kept, computed once, and the derivatives by the lengthscale, if all three fit, from the
    first `update` on that asks for derivatives.

    Parameters
    ----------
    kernel, X, memory_budget
        See `KernelMatrix`; the kernel is one that `is_scaled_matern` accepts.
    keep_derivatives : bool, default=True
        Whether distances and derivatives may be kept.
    """

    def __init__(self, kernel: ScaleKernel, X: Tensor, memory_budget: float, *, keep_derivatives: bool = True) -> None:
        super().__init__(kernel, X, memory_budget)
        self.parameters = [kernel.base_kernel.raw_lengthscale, kernel.raw_outputscale]
        self.centred = X - centre_of(X)
        if not self.centred.square().sum(1).max() <= LARGEST:
            self.centred = X.double() - centre_of(X.double())
        self.keeps_all = keep_derivatives and 3 * self.half_bytes <= memory_budget
        self.distances: dict[tuple[int, int], Tensor] = {}
        self.derivatives: dict[tuple[int, int], Tensor] = {}

    def _distances(self, rows: slice, columns: slice) -> Tensor:
        block = distances(self.centred[rows], self.centred[columns])
        # An instance is at distance 0 of itself, whatever cancellation left.
        block.diagonal(rows.start - columns.start).zero_()
        return block.to(self.X.dtype)

    @torch.no_grad()
    def _compute(self, rows: slice, columns: slice) -> Tensor:
        return _evaluate(self.kernel, self._distances(rows, columns))[0]

    @torch.no_grad()
    def update(self, *, derivatives: bool = True) -> None:
        """Take over the kernel's present parameters; `derivatives` says whether gradients will be asked for."""
        if not self.cached:
            return
        self.tiles = self.tiles or self._memory()
        if derivatives and self.keeps_all and not self.distances:
            self.distances, self.derivatives = self._memory(), self._memory()
            for (a, b), distance in self.distances.items():
                distance.copy_(self._distances(self.slices[a], self.slices[b]))
        scratch = self.X.new_empty(2, self.tile_rows**2)
        for (a, b), tile in self.tiles.items():
            derivative, power = (piece[: tile.numel()].view_as(tile) for piece in scratch)
            if self.distances:
                _evaluate(self.kernel, self.distances[a, b], (tile, self.derivatives[a, b], power))
            else:
                _evaluate(self.kernel, self._distances(self.slices[a], self.slices[b]), (tile, derivative, power))

    @torch.no_grad()
    def gradient(self, W: Tensor) -> Tensor:
        """Gradient (2,) of sum_ij W_ij K_ij by the raw lengthscale and outputscale, for a symmetric W (n, n)."""
        by_logs = W.new_zeros(2, dtype=torch.float64)
        for a, b in self._upper():
            block = (1 if a == b else 2) * W[self.slices[a], self.slices[b]]
            by_logs[0] += (block * self._derivative(a, b)).sum()
            by_logs[1] += (block * self._tile(a, b)).sum()
        return by_logs * self._by_raw()

    @torch.no_grad()
    def form_gradients(self, X: Tensor, KX: Tensor, Y: Tensor, groups: Sequence[int]) -> Tensor:
        """Gradients (g, 2) of sum_k x_k' K y_k over groups of rows, by the raw lengthscale and outputscale."""
        by_logs = torch.stack([(P * Y).sum(1).double() for P in (self._multiply(X, self._derivative), KX)], 1)
        return torch.stack([group.sum(0) for group in by_logs.split(groups)]) * self._by_raw()

    def _derivative(self, a: int, b: int) -> Tensor:
        """A tile of the derivative of K by the logarithm of the lengthscale."""
        if self.derivatives:
            return self.derivatives[a, b]
        return _evaluate(self.kernel, self._distances(self.slices[a], self.slices[b]))[1]

    def _by_raw(self) -> Tensor:
        """Derivatives (2,) of the logarithms of lengthscale and outputscale by the raw parameters."""
        with torch.enable_grad():
            logs = self.kernel.base_kernel.lengthscale.log().sum() + self.kernel.outputscale.log().sum()
            return joined(torch.autograd.grad(logs, self.parameters))
