r"""Posterior variances from landmarks, for a posterior whose means come from all instances.

With M landmarks Z of the training instances X, :math:`k(Z, Z) = L L^\top` and the features
:math:`\Phi = k(X, Z) L^{-\top}`, the kernel is nearly :math:`\Phi \Phi^\top`, and the covariance that the instances
explain in class c, :math:`k(x)^\top A_c^{-1} k(x')`, is nearly

.. math:: \phi(x)^\top (I - M_c^{-1})\, \phi(x') = k(x, Z)\, R_c R_c^\top k(Z, x'), \qquad
          M_c = I + \Phi^\top D_c^{-1} \Phi .

What landmarks do not see they do not explain: for the kernel of the features this is exact. All classes share
:math:`\Phi^\top \Phi`, times the most frequent noise of the class; only rows with another noise are summed again.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from mipl.gp.kernels import cross_kernel
from mipl.gp.landmarks import kmeans_landmarks
from mipl.gp.posterior import Posterior

__all__ = ["with_landmark_variances"]

# Added to the diagonal of k(Z, Z), relative to the prior variance, so that features can be in single precision.
JITTER = 1e-4
# On the diagonal of a semidefinite matrix before its Cholesky factor is taken.
ROOT_JITTER = 1e-9
# Rows whose products are summed in single precision; longer sums are added up in double precision.
BLOCK_ROWS = 4096


@torch.no_grad()
def with_landmark_variances(posterior: Posterior, n_landmarks: int, seed: int) -> Posterior:
    """The same posterior means, with variances from landmarks.

    Parameters
    ----------
    posterior : Posterior
        An exact one; its roots are not used, and may be missing.
    n_landmarks : int
        M, at most; k-means finds the landmarks.
    seed : int
        Seed of the landmarks.
    """
    state, kernel, device = posterior.state, posterior.kernel, posterior.device
    X = torch.tensor(state.instances, dtype=torch.float32, device=device)
    Z, _ = kmeans_landmarks(X, n_landmarks, torch.Generator().manual_seed(seed))
    K = cross_kernel(kernel, Z, Z).double()
    K.diagonal().add_(JITTER * K.diagonal().max())
    upper = torch.linalg.cholesky(K).T  # L'
    features = torch.cat([_features(kernel, rows, Z, upper) for rows in X.split(BLOCK_ROWS)])
    identity = torch.eye(len(Z), dtype=torch.float64, device=device)
    shared = _gram(features)
    roots = []
    assert state.noise is not None  # an exact posterior has it
    for noise in state.noise.T:
        values, counts = np.unique(noise, return_counts=True)
        usual = float(values[counts.argmax()])
        rows = torch.tensor(np.flatnonzero(noise != usual), device=device)
        weights = torch.tensor(1 / noise, device=device)[rows] - 1 / usual
        system = identity + shared / usual + _gram(features[rows], weights)
        explained = (1 + ROOT_JITTER) * identity - torch.cholesky_inverse(torch.linalg.cholesky(system))
        roots.append(torch.linalg.solve_triangular(upper, torch.linalg.cholesky(explained), upper=True))
    prior_root = torch.linalg.solve_triangular(upper, identity, upper=True)
    found = state._replace(
        inverse_root=torch.stack(roots).to(posterior.dtype).cpu().numpy(),
        prior_root=prior_root.to(posterior.dtype).cpu().numpy(),
        landmarks=Z.cpu().numpy(),
    )
    return Posterior(kernel, found, device=device)


def _features(kernel: torch.nn.Module, rows: Tensor, Z: Tensor, upper: Tensor) -> Tensor:
    cross = cross_kernel(kernel, rows, Z)
    features: Tensor = torch.linalg.solve_triangular(upper.to(cross.dtype), cross, upper=True, left=False)
    return features


def _gram(features: Tensor, weights: Tensor | None = None) -> Tensor:
    """The sum of w phi phi' over features (n, M) and weights (n,), in double precision."""
    out = torch.zeros(features.shape[1], features.shape[1], dtype=torch.float64, device=features.device)
    for start in range(0, len(features), BLOCK_ROWS):
        block = features[start : start + BLOCK_ROWS]
        left = block if weights is None else block * weights[start : start + BLOCK_ROWS, None].to(block.dtype)
        out += left.T @ block
    return out
