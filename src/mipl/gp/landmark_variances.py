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

from typing import NamedTuple

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from mipl.gp.kernels import cross_kernel
from mipl.gp.landmarks import kmeans_landmarks
from mipl.gp.posterior import Posterior
from mipl.gp.solvers import BLOCK_ROWS

__all__ = ["LandmarkFeatures", "landmark_features", "with_landmark_variances"]

# Added to the diagonal of k(Z, Z), relative to the prior variance, so that features can be in single precision.
JITTER = 1e-4
# On the diagonal of a semidefinite matrix before its Cholesky factor is taken.
ROOT_JITTER = 1e-9


class LandmarkFeatures(NamedTuple):
    """Landmarks, and the features of the training instances that they give."""

    landmarks: Tensor  # Z (M, d)
    upper: Tensor  # L' (M, M), in double precision
    features: Tensor  # Phi (n, M)


@torch.no_grad()
def landmark_features(kernel: Kernel, X: Tensor, n_landmarks: int, seed: int) -> LandmarkFeatures:
    """Features of instances X (n, d) from at most `n_landmarks` landmarks, which k-means finds."""
    Z, _ = kmeans_landmarks(X, n_landmarks, torch.Generator().manual_seed(seed))
    K = cross_kernel(kernel, Z, Z).double()
    K.diagonal().add_(JITTER * K.diagonal().max())
    upper = torch.linalg.cholesky(K).T
    features = [
        torch.linalg.solve_triangular(upper.to(X.dtype), cross_kernel(kernel, rows, Z), upper=True, left=False)
        for rows in X.split(BLOCK_ROWS)
    ]
    return LandmarkFeatures(Z, upper, torch.cat(features))


@torch.no_grad()
def with_landmark_variances(posterior: Posterior, found: LandmarkFeatures, grams: Tensor) -> Posterior:
    """The same posterior means, with variances from landmarks.

    Parameters
    ----------
    posterior : Posterior
        An exact one; its roots are not used, and may be missing.
    found : LandmarkFeatures
        Of the instances of the posterior.
    grams : (C, M, M) tensor
        The sums of the features' products over the noises of each class (`mipl.gp.solvers.weighted_grams`).
    """
    state, upper = posterior.state, found.upper
    identity = torch.eye(len(upper), dtype=torch.float64, device=upper.device)
    roots = []
    for gram in grams:
        explained = (1 + ROOT_JITTER) * identity - torch.cholesky_inverse(torch.linalg.cholesky(identity + gram))
        roots.append(torch.linalg.solve_triangular(upper, torch.linalg.cholesky(explained), upper=True))
    prior_root = torch.linalg.solve_triangular(upper, identity, upper=True)
    state = state._replace(
        inverse_root=torch.stack(roots).to(posterior.dtype).cpu().numpy(),
        prior_root=prior_root.to(posterior.dtype).cpu().numpy(),
        landmarks=found.landmarks.cpu().numpy(),
    )
    return Posterior(posterior.kernel, state, device=posterior.device)
