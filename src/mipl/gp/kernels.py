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

from mipl.gp.distances import CHUNK, LARGEST, centre_of, distances_from, left_rows, right_rows, squared_distances
from mipl.gp.matern import NUS, decay_rate, matern, matern_and_derivative
from mipl.gp.parameters import joined

__all__ = [
    "CrossKernel",
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
# Rows and columns of a tile of the kernel between two sets.
_CROSS_ROWS = 1024


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
    """Values of a scaled Matérn kernel and their derivatives by the logarithm of the lengthscale.

    Values alone are taken from here too, so that a tile computed again equals the one that was not kept, bit for bit.
    """
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


def cross_kernel(kernel: Kernel, A: Tensor, B: Tensor) -> Tensor:
    """Kernel values (a, b) between two sets of instances."""
    return CrossKernel(kernel, B)(A)


class CrossKernel:
    """Kernel values between any instances and those of one set, at the present parameters of the kernel.

    Those of a scaled Matérn kernel take the fewest passes: from squared distances in units of its decay.

    Parameters
    ----------
    kernel : gpytorch.kernels.Kernel
        Its lengthscale is read here, once.
    B : (b, d) tensor
        The set.
    """

    @torch.no_grad()
    def __init__(self, kernel: Kernel, B: Tensor) -> None:
        self.kernel, self.B, self.closed_form = kernel, B, is_scaled_matern(kernel)
        if self.closed_form:
            self.rate = decay_rate(kernel.base_kernel.nu, kernel.base_kernel.lengthscale.item())
            self.centre = centre_of(B)
            self.scaled = (B - self.centre) * self.rate
            self.squares = self.scaled.square().sum(1)
            self.right = right_rows(self.scaled, self.squares)

    @torch.no_grad()
    def __call__(self, A: Tensor) -> Tensor:
        """Kernel values (a, b) of instances A (a, d) with the set."""
        if not self.closed_form:
            dense: Tensor = self.kernel(A, self.B).to_dense()
            return dense
        scaled, squares, left = self._scaled(A)
        if self._too_long(squares):
            return CrossKernel(self.kernel, self.B.double())(A.double()).to(A.dtype)
        values = scaled.new_empty(len(A), len(self.B))
        scratch = scaled.new_empty(max(1, CHUNK // len(self.B)), len(self.B))
        self._fill(scaled, squares, left, slice(None), values, scratch)
        return values

    @torch.no_grad()
    def multiply(self, A: Tensor, V: Tensor) -> Tensor:
        """The kernel of A (a, d) and the set times V (b, s): (a, s). Only tiles of the kernel are ever formed.

        A tile stays in the cache from its distances to its product, and products of matrices of its shape are faster
        than those of few rows with all of the set.
        """
        if not self.closed_form:
            return self(A) @ V
        scaled, squares, left = self._scaled(A)
        if self._too_long(squares):
            return CrossKernel(self.kernel, self.B.double()).multiply(A.double(), V.double()).to(A.dtype)
        out = V.new_zeros(len(A), V.shape[1])
        memory = scaled.new_empty(2, min(_CROSS_ROWS, len(A)) * min(_CROSS_ROWS, len(self.B)))
        for i in range(0, len(A), _CROSS_ROWS):
            rows = slice(i, min(i + _CROSS_ROWS, len(A)))
            for j in range(0, len(self.B), _CROSS_ROWS):
                columns = slice(j, min(j + _CROSS_ROWS, len(self.B)))
                shape = _length(rows), _length(columns)
                tile, scratch = (piece[: shape[0] * shape[1]].view(shape) for piece in memory)
                self._fill(scaled[rows], squares[rows], left[rows], columns, tile, scratch)
                out[rows].addmm_(tile, V[columns])
        return out

    def _scaled(self, A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Instances (a, d) in units of the decay, their squared lengths (a,), and both as `left_rows` has them."""
        scaled = (A - self.centre) * self.rate
        squares = scaled.square().sum(1)
        return scaled, squares, left_rows(scaled, squares)

    def _too_long(self, squares: Tensor) -> bool:
        """Whether squared lengths are beyond single precision."""
        return squares.dtype != torch.float64 and not all(s.max() <= LARGEST for s in (squares, self.squares))

    def _fill(
        self, A: Tensor, A_squares: Tensor, left: Tensor, columns: slice, values: Tensor, scratch: Tensor
    ) -> None:
        """Kernel `values` (a, b) of scaled instances (a, d) with some of the set."""
        nu, outputscale = self.kernel.base_kernel.nu, self.kernel.outputscale.item()
        for part in squared_distances(A, A_squares, left, self.scaled[columns], self.right[columns], values):
            if part.dtype == torch.float64:  # farther apart the kernel is zero, and products with it stay numbers
                part.clamp_(max=LARGEST)
            torch.mul(matern(part, nu, out=scratch[: len(part)]), outputscale, out=part)


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

    def release(self) -> None:
        """Give back the memory of K; `update` takes it again."""
        self.tiles = {}

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
        self.squares = self.centred.square().sum(1)
        if not self.squares.max() <= LARGEST:
            self.centred = X.double() - centre_of(X.double())
            self.squares = self.centred.square().sum(1)
        self.keeps_all = keep_derivatives and 3 * self.half_bytes <= memory_budget
        self.distances: dict[tuple[int, int], Tensor] = {}
        self.derivatives: dict[tuple[int, int], Tensor] = {}

    def _distances(self, rows: slice, columns: slice) -> Tensor:
        block = distances_from(self.centred[rows], self.squares[rows], self.centred[columns], self.squares[columns])
        # An instance is at distance 0 of itself, whatever cancellation left.
        block.diagonal(rows.start - columns.start).zero_()
        return block.to(self.X.dtype)

    @torch.no_grad()
    def _compute(self, rows: slice, columns: slice) -> Tensor:
        return _evaluate(self.kernel, self._distances(rows, columns))[0]

    @torch.no_grad()
    def update(self, *, derivatives: bool = True) -> None:
        """Take over the kernel's present parameters; `derivatives` says whether gradients will be asked for."""
        if not self.distances and not (self.keeps_all and derivatives):
            self._update_values()
            return
        if not self.distances:
            self.distances, self.derivatives = self._memory(), self._memory()
            for (a, b), distance in self.distances.items():
                distance.copy_(self._distances(self.slices[a], self.slices[b]))
        self.tiles = self.tiles or self._memory()
        scratch = self.X.new_empty(self.tile_rows**2)
        for tile, distance in self.distances.items():
            power = scratch[: distance.numel()].view_as(distance)
            _evaluate(self.kernel, distance, (self.tiles[tile], self.derivatives[tile], power))

    def _update_values(self) -> None:
        """K alone, each tile written where it is kept."""
        if not self.cached:
            return
        self.tiles = self.tiles or self._memory()
        scratch = self.X.new_empty(2, self.tile_rows**2)
        for (a, b), tile in self.tiles.items():
            derivative, power = (piece[: tile.numel()].view_as(tile) for piece in scratch)
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
