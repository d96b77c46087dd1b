"""The low-rank engine: Gaussian processes on Nyström features, whose cost grows with n instead of its square."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from gpytorch.kernels import Kernel
from numpy.typing import NDArray
from torch import Tensor

from mipl.errors import ParameterError
from mipl.gp.exact import Conditioned, Evidence
from mipl.gp.kernels import distances, is_scaled_matern
from mipl.gp.landmarks import kmeans_landmarks
from mipl.gp.matern import matern_and_derivative
from mipl.gp.parameters import ProcessParameters
from mipl.gp.posterior import Posterior, PosteriorState
from mipl.gp.shared_noise import SharedNoise, shared_noise

__all__ = ["LowRankEngine"]

# Added to the diagonal of k(Z, Z), relative to the outputscale: it bounds by 100 what the features amplify, so that
# they can be computed in single precision.
JITTER = 1e-4
# Relative to the outputscale, on the diagonal of a semidefinite matrix before its Cholesky factor is taken.
ROOT_JITTER = 1e-9
# Rows whose products are summed in single precision; longer sums are added up in double precision.
CHUNK_ROWS = 4096


class _Features(NamedTuple):
    """Features, and what their derivative by the logarithm of the lengthscale needs."""

    values: Tensor  # Phi (n, M)
    cross_derivative: Tensor  # (n, M), of k(X, Z)
    factor: Tensor  # L (M, M), in double precision
    landmark_derivative: Tensor  # (M, M), of k(Z, Z), in double precision


class _Grams(NamedTuple):
    """Sums of phi phi', in double precision: over all rows, over the rows of each level, and of varying classes."""

    total: Tensor  # (M, M)
    levels: Tensor  # (levels, M, M)
    varying: dict[int, Tensor]  # class -> (M, M), weighted by the difference to the usual weight


class _Systems(NamedTuple):
    """All that evidence and posterior need of the present parameters; vectors of classes are columns."""

    features: _Features
    shared: SharedNoise
    grams: _Grams
    residual: Tensor  # r (n, C)
    noise: Tensor  # the diagonals of D_c (n, C)
    usual: Tensor  # (C,), 1 / the most frequent noise of each class
    levels: list[tuple[int, float]]  # class and weight of each level
    inverses: Tensor  # M_c^-1 (C, M, M)
    logdet: float  # the sum of log |M_c|
    coefficients: Tensor  # (M, C), posterior means of the features' weights
    solution: Tensor  # a_c (n, C)


class LowRankEngine(ProcessParameters):
    r"""Gaussian processes whose kernel is :math:`s\, \phi(x)^\top \phi(x')`: features from M landmarks Z.

    With the Matérn kernel k of unit outputscale, :math:`k(Z, Z) + 10^{-4} I = L L^\top` and
    :math:`\Phi = k(X, Z) L^{-\top}`, class c has :math:`A_c = s \Phi \Phi^\top + D_c` where the exact engines have
    :math:`K + D_c`; the objective is theirs (`mipl.gp.exact`), and everything is exact for this kernel. With
    :math:`W_c = D_c^{-1}` and :math:`M_c = I / s + \Phi^\top W_c \Phi`,

    .. math:: |A_c| = s^M |M_c| |D_c|, \qquad A_c^{-1} = W_c - W_c \Phi M_c^{-1} \Phi^\top W_c .

    All rows whose candidates lack c share one noise, so C Gram matrices cost little more than one
    (`mipl.gp.shared_noise`): :math:`\Phi^\top W_c \Phi` is the usual weight times the Gram matrix of all rows, plus a
    correction from rows with another noise, and rows with one candidate set form their Gram matrix once for all
    classes. The gradient goes the same way back: with :math:`a_c = A_c^{-1} r_c`,

    .. math:: H = \sum_c (A_c^{-1} - a_c a_c^\top) \Phi
                = \sum_c W_c \Phi M_c^{-1} / s - a_c (\Phi^\top a_c)^\top

    takes one product of each row with a matrix that its candidate set shares, and the derivative by the lengthscale is
    :math:`s\, (2 \langle H L^{-1}, \partial k(X, Z) \rangle - \langle L^{-\top} \Phi^\top H L^{-1},
    \partial k(Z, Z) \rangle)`.

    The lengthscale changes the features, which are computed in every evaluation from distances that are kept; that is
    a fifth of the time of an evaluation. One costs about 6 n M^2 operations, beside C M^3 for the classes.

    Posterior variances have the prior variance that the features lack added, so far instances keep theirs.

    An instance of weight :math:`w_i` counts as that many. Its row of :math:`\Phi` and its residual are multiplied by
    :math:`\sqrt{w_i}`, which is the same as dividing its noise by :math:`w_i` (`mipl.gp.exact`) but leaves noises
    that are shared as they are, and takes the terms :math:`\log w_i` out of the evidence.

    Parameters
    ----------
    X : (n, d) array
        The training instances.
    kernel : gpytorch.kernels.Kernel
        A scaled isotropic Matérn kernel (`mipl.gp.kernels.is_scaled_matern`). Becomes part of the engine.
    n_classes : int
        C.
    n_landmarks : int
        M, at most; k-means finds the landmarks.
    extra_noise : float
        Start value of the learned noise of each class.
    seed : int
        Seed of the landmarks.
    device : torch.device
        Where the engine computes.
    dtype : torch.dtype, default=torch.float32
        Precision of features and of products with them; (M, M) matrices are in double precision.
    weights : (n,) array, default=None
        How often each instance counts; None for once.
    """

    def __init__(
        self,
        X: NDArray[np.floating],
        kernel: Kernel,
        n_classes: int,
        *,
        n_landmarks: int,
        extra_noise: float,
        seed: int,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        if not is_scaled_matern(kernel):
            raise ParameterError('engine="low-rank" needs the default kernel; use engine="exact" with your own')
        super().__init__(
            kernel, n_classes, extra_noise=extra_noise, device=device, dtype=torch.float64, weights=weights
        )
        self._root = None if self.weights is None else self.weights.sqrt()[:, None]  # (n, 1)
        self.device, self.dtype = device, dtype
        rows = torch.tensor(X, dtype=dtype, device=device)
        generator = torch.Generator().manual_seed(seed)
        self.landmarks, _ = kmeans_landmarks(rows, n_landmarks, generator, weights=self.weights)
        centre = self.landmarks.mean(0)
        near = self.landmarks - centre
        self._distances = torch.cat([distances(part - centre, near).to(dtype) for part in rows.split(CHUNK_ROWS)])
        self._landmark_distances = distances(near, near).fill_diagonal_(0)
        self._noise: NDArray[np.float64] | None = None
        self._shared: SharedNoise | None = None

    # ---------------------------------------------------------------- what estimators ask, see mipl.gp.engine

    def evidence(self, targets: NDArray[np.float64], noise: NDArray[np.float64], *, warm: bool = False) -> Evidence:
        """Evaluate the objective at targets and noise variances (n, C), and set `grad` of every parameter."""
        self.zero_grad()
        factor = 1 / (2 * self.n_values(targets))
        with torch.no_grad():
            system = self._systems(targets, noise)
            by_logs, by_noise = self._gradient(system)
            value = (system.residual * system.solution).sum() + system.noise.log().sum() + system.logdet
            value += len(self.landmarks) * len(self.mean) * self.kernel.outputscale.log()
            explained, by_mean = system.noise * system.solution, system.solution
            if self._root is not None:
                explained, by_mean = explained / self._root, by_mean * self._root
                copies, copies_by_noise = self.copies(noise)
                value, by_noise = value + copies, by_noise + copies_by_noise
            posterior_mean = targets - explained.cpu().numpy()
        logs = torch.stack([self.kernel.base_kernel.lengthscale.log().sum(), self.kernel.outputscale.log().sum()])
        (factor * (by_logs @ logs + by_noise @ self.extra_noise)).backward()
        self.mean.grad = -2 * factor * by_mean.sum(0)
        return Evidence(factor * value.item() + math.log(2 * math.pi) / 2, posterior_mean, 0, 0.0)

    @torch.no_grad()
    def condition(self, targets: NDArray[np.float64], noise: NDArray[np.float64]) -> Conditioned:
        """The posterior given targets and noise variances (n, C), at the present parameters.

        Its state is that of an exact posterior with the landmarks as instances.
        """
        system = self._systems(targets, noise)
        s = self.kernel.outputscale.item()
        upper = system.features.factor.T
        identity = torch.eye(len(upper), dtype=torch.float64, device=self.device)
        explained = torch.linalg.cholesky((1 + ROOT_JITTER) * s * identity - system.inverses)

        def array(values: Tensor) -> NDArray[np.floating]:
            return values.to(self.dtype).cpu().numpy()

        state = PosteriorState(
            instances=array(self.landmarks),
            mean=self.mean.cpu().numpy().copy(),
            solution=array(torch.linalg.solve_triangular(upper, system.coefficients / s, upper=True)),
            noise=self.conditioned_noise(noise),
            inverse_root=array(torch.linalg.solve_triangular(upper, explained / s, upper=True)),
            prior_root=array(torch.linalg.solve_triangular(upper, identity / math.sqrt(s), upper=True)),
            kernel_state={name: value.cpu().numpy().copy() for name, value in self.kernel.state_dict().items()},
        )
        return Conditioned(Posterior(self.kernel, state, device=self.device), 0, 0.0)

    # ---------------------------------------------------------------- systems and gradient

    def _features(self) -> _Features:
        base = self.kernel.base_kernel
        nu, lengthscale = base.nu, base.lengthscale.item()
        values, derivative = matern_and_derivative(self._distances, nu, lengthscale, 1.0)
        K, landmark_derivative = matern_and_derivative(self._landmark_distances, nu, lengthscale, 1.0)
        K.diagonal().add_(JITTER)
        factor = torch.linalg.cholesky(K)
        phi = torch.linalg.solve_triangular(factor.T.to(self.dtype), values, upper=True, left=False)
        if self._root is not None:
            root = self._root.to(self.dtype)
            phi, derivative = phi * root, derivative * root
        return _Features(phi, derivative, factor, landmark_derivative)

    def _systems(self, targets: NDArray[np.float64], noise: NDArray[np.float64]) -> _Systems:
        if self._shared is None or self._noise is None or not np.array_equal(noise, self._noise):
            self._noise, self._shared = noise, shared_noise(noise)
        shared, extra = self._shared, self.extra_noise
        residual = torch.tensor(targets, device=self.device) - self.mean
        if self._root is not None:
            residual = self._root * residual
        total_noise = torch.tensor(noise, device=self.device) + extra
        usual = 1 / (torch.tensor(shared.usual, device=self.device) + extra)
        levels = [(c, 1 / (value + extra[c].item())) for c, value in shared.levels]

        features = self._features()
        phi, s = features.values, self.kernel.outputscale
        grams = self._grams(phi, shared, 1 / total_noise - usual)
        moments = usual[:, None, None] * grams.total
        for (c, weight), gram in zip(levels, grams.levels, strict=True):
            moments[c].add_(gram, alpha=weight - usual[c].item())
        for c, gram in grams.varying.items():
            moments[c].add_(gram)
        moments.diagonal(dim1=1, dim2=2).add_(1 / s)
        factors = torch.linalg.cholesky(moments)
        right = (phi.T @ (residual / total_noise).to(self.dtype)).double()
        coefficients = torch.cholesky_solve(right.T[:, :, None], factors)[:, :, 0].T
        solution = (residual - (phi @ coefficients.to(self.dtype)).double()) / total_noise
        return _Systems(
            features, shared, grams, residual, total_noise, usual, levels, torch.cholesky_inverse(factors),
            2 * factors.diagonal(dim1=1, dim2=2).log().sum().item(), coefficients, solution,
        )  # fmt: skip

    def _grams(self, phi: Tensor, shared: SharedNoise, difference: Tensor) -> _Grams:
        """Gram matrices of features (n, M), given the weights' differences (n, C) to the usual ones."""
        M = phi.shape[1]
        varying = {c for group in shared.groups for c in group.varying}
        grams = _Grams(
            torch.zeros(M, M, dtype=torch.float64, device=self.device),
            torch.zeros(len(shared.levels), M, M, dtype=torch.float64, device=self.device),
            {c: torch.zeros(M, M, dtype=torch.float64, device=self.device) for c in varying},
        )
        for group in shared.groups:
            for rows in torch.tensor(group.rows, device=self.device).split(CHUNK_ROWS):
                part = phi[rows]
                gram = part.T @ part
                grams.total.add_(gram)
                for level in group.levels:
                    grams.levels[level].add_(gram)
                for c in group.varying:
                    grams.varying[c].add_((part * difference[rows, c, None].to(self.dtype)).T @ part)
        return grams

    def _gradient(self, system: _Systems) -> tuple[Tensor, Tensor]:
        """Derivatives of the objective without its factor.

        They are by the logarithms of lengthscale and outputscale (2,), and by the noises of the classes (C,).
        """
        s, features, inverses = self.kernel.outputscale.item(), system.features, system.inverses
        H, explained = self._weighted_features(system)
        alpha = system.coefficients
        H.addmm_(system.solution.to(self.dtype), alpha.T.to(self.dtype), alpha=-1).div_(s)
        # Phi' H, by M_c - I / s = Phi' W_c Phi and Phi' a_c = alpha_c / s.
        inner = -inverses.sum(0) / s**2 - alpha @ alpha.T / s**2
        inner.diagonal().add_(len(inverses) / s)

        L = features.factor
        outer = torch.linalg.solve_triangular(L.to(self.dtype), H, upper=False, left=False)
        outer.mul_(features.cross_derivative)
        by_cross = torch.stack([part.sum() for part in outer.split(CHUNK_ROWS)]).double().sum()
        whitened = torch.linalg.solve_triangular(L.T, inner, upper=True)
        whitened = torch.linalg.solve_triangular(L, whitened, upper=False, left=False)
        by_lengthscale = s * (2 * by_cross - (whitened * features.landmark_derivative).sum())
        by_noise = (1 / system.noise - system.solution.square()).sum(0) - explained
        return torch.stack([by_lengthscale, s * inner.trace()]), by_noise

    def _weighted_features(self, system: _Systems) -> tuple[Tensor, Tensor]:
        """The sum (n, M) of W_c Phi M_c^-1 over classes, and the traces (C,) of W_c Phi M_c^-1 Phi' W_c."""
        phi, grams, usual = system.features.values, system.grams, system.usual
        explained = usual.square() * (system.inverses * grams.total).sum((1, 2))
        for (c, weight), gram in zip(system.levels, grams.levels, strict=True):
            explained[c] += (weight**2 - usual[c] ** 2) * (system.inverses[c] * gram).sum()
        common = (usual @ system.inverses.flatten(1)).view_as(grams.total).to(self.dtype)
        inverses = system.inverses.to(self.dtype)
        out = torch.empty_like(phi)
        for group in system.shared.groups:
            matrix = common.clone() if group.levels else common
            for level in group.levels:
                c, weight = system.levels[level]
                matrix.add_(inverses[c], alpha=weight - usual[c].item())
            for rows in torch.tensor(group.rows, device=self.device).split(CHUNK_ROWS):
                part = phi[rows]
                weighted = part @ matrix
                for c in group.varying:
                    product, weights = part @ inverses[c], 1 / system.noise[rows, c]
                    explained[c] += ((weights**2 - usual[c] ** 2) * (product * part).sum(1)).sum()
                    weighted.addcmul_(product, (weights - usual[c]).to(self.dtype)[:, None])
                out[rows] = weighted
        return out, explained
