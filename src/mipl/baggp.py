"""BagGP: exact bag-level inference on a low-rank Gaussian process."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from torch import Tensor

from mipl.bag_posterior import bag_evidence, instance_posterior
from mipl.bags import Bags
from mipl.base import MIPLClassifier
from mipl.errors import DataError
from mipl.features.auto import choose_features
from mipl.gp.bag_likelihood import fit_bag_likelihood
from mipl.gp.bag_regression import fit_bag_regression
from mipl.gp.landmarks import kmeans_landmarks, median_distance
from mipl.gp.low_rank import low_rank
from mipl.gp.nystrom import cholesky_map, matern52

__all__ = ["BagGP"]

_CLAMP = 30.0
_BLOCK_ROWS = 1024


class BagGP(MIPLClassifier):
    name = "BagGP"
    citation = "this library"

    def __init__(
        self,
        *,
        features: str | BaseEstimator = "auto",
        n_landmarks: int = 1000,
        lengthscale: float = 1.0,
        kappa: float | None = None,
        random_state: int = 0,
        device: str = "cpu",
    ) -> None:
        self.features = features
        self.n_landmarks = n_landmarks
        self.lengthscale = lengthscale
        self.kappa = kappa
        self.random_state = random_state
        self.device = device

    def _fit(self, bags: Bags, candidates: NDArray[np.bool_]) -> None:
        device = torch.device(self.device)
        if isinstance(self.features, str):
            if self.features != "auto":
                raise DataError(f"features={self.features!r} is not known; use 'auto' or pass a transformer")
            front_end = choose_features(bags, self.random_state, self.device)
        else:
            front_end = clone(self.features)
        self.features_ = front_end.fit(bags.instances)
        X = self._transform(bags, device)
        generator = torch.Generator().manual_seed(self.random_state)
        lengthscale = self.lengthscale * median_distance(X, generator)
        landmarks = kmeans_landmarks(X, self.n_landmarks, generator)
        shards, eigenvalues, kernel_map = low_rank(X, bags.offsets, candidates, cholesky_map(landmarks, lengthscale))
        regression = fit_bag_regression(shards, eigenvalues)
        likelihood = fit_bag_likelihood(shards, eigenvalues, regression.posterior, self.kappa)
        self.landmarks_ = landmarks.cpu().numpy()
        self.lengthscale_ = lengthscale
        self.regression_coef_ = _numpy(kernel_map.T.double() @ (regression.coef * regression.slope))
        self.regression_intercept_ = _numpy(regression.intercept)
        self.class_offset_ = _numpy(regression.offset)
        W = kernel_map.T.double() @ likelihood.weights
        self.likelihood_coef_ = _numpy(W[:, :-1] - W[:, -1:])
        self.likelihood_intercept_ = _numpy(likelihood.bias[:-1] - likelihood.bias[-1] + likelihood.log_kappa)
        self.temperature_ = 2.0
        self._dev = dict(regression=regression, likelihood=likelihood)

    def _transform(self, bags: Bags, device: torch.device) -> Tensor:
        return torch.tensor(np.asarray(self.features_.transform(bags.instances), dtype=np.float32), device=device)

    def _instance_logits(self, bags: Bags) -> tuple[Tensor, Tensor, Tensor]:
        device = torch.device(self.device)
        X = self._transform(bags, device)
        coef = np.concatenate([self.regression_coef_, self.likelihood_coef_], axis=1).astype(np.float32)
        intercept = np.concatenate([self.regression_intercept_, self.likelihood_intercept_])
        T, Z = torch.tensor(coef, device=device), torch.tensor(self.landmarks_, device=device)
        scores = torch.cat([matern52(block, Z, self.lengthscale_) @ T for block in X.split(_BLOCK_ROWS)])
        logits = scores.double() + torch.tensor(intercept, device=device)
        a, b = logits.chunk(2, dim=1)
        return a, b, torch.tensor(bags.offsets, device=device)

    def _log_odds(self, bags: Bags) -> Tensor:
        a, b, offsets = self._instance_logits(bags)
        zA = bag_evidence(a, offsets).log_evidence + torch.tensor(self.class_offset_, device=a.device)
        zB = bag_evidence(b, offsets).log_evidence
        zA = (zA - zA.amax(dim=1, keepdim=True)).clamp(min=-_CLAMP)
        zB = (zB - zB.amax(dim=1, keepdim=True)).clamp(min=-_CLAMP)
        self._z = zA, zB
        return zA + zB

    def _predict_proba(self, bags: Bags) -> NDArray[np.floating[Any]]:
        return _numpy(torch.softmax(self._log_odds(bags) / self.temperature_, dim=1))


def _numpy(tensor: Tensor) -> NDArray[np.float64]:
    return tensor.double().cpu().numpy()
