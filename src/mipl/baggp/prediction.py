"""What BagGP predicts with, and the logits of many instances in blocks."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mipl.baggp.constants import PREDICTION_LEAST, PREDICTION_ROWS, PREDICTION_TILE, SHARED_PRODUCTS
from mipl.baggp.model import BagModel
from mipl.compute import use_one_thread
from mipl.errors import DataError
from mipl.gp.nystrom import KernelMap, LandmarkKernel

__all__ = ["PREDICTS_FROM", "Halves", "Ready", "bounded_tensor", "instance_logits"]

#: The fitted attributes, and the parameter, that predictions are made from.
PREDICTS_FROM = (
    "landmarks_",
    "lengthscale_",
    "feature_map_",
    "coef_",
    "intercept_",
    "class_offset_",
    "coef_variance_",
    "background_",
    "stacking_weights_",
    "outlier_rate_",
    "device",
)
#: Features of a front end are cut off at this size: no kernel reaches as far, and their squares are still numbers.
_FAR = 1e15


class Halves(NamedTuple):
    """The map to features as a sum of two, each of one half of the landmarks, which two threads can share.

    Attributes
    ----------
    maps : one or two KernelMap; features are the sum of both, whoever computes them
    """

    maps: tuple[KernelMap, ...]

    @classmethod
    def of(cls, landmarks: Tensor, lengthscale: float, T: Tensor) -> Halves:
        """The map T (M, R) of landmarks (M, d)."""
        half = (len(landmarks) + 1) // 2
        pieces = zip(landmarks.split(half), T.split(half), strict=True)
        # Products of few rows take less time with the columns of T one after the other in memory.
        return cls(tuple(KernelMap(LandmarkKernel(Z, lengthscale), part.T.contiguous().T) for Z, part in pieces))

    def __call__(self, X: Tensor, shared: bool = False) -> Tensor:
        """Features (n, R) of rows (n, d), for a thread kept to one thread; `shared`, another one computes a half."""
        first, *others = self.maps
        size = first.T.numel() * len(X)
        if not shared or not others or size < SHARED_PRODUCTS:
            features = first(X)
            return features.add_(others[0](X)) if others else features
        waiting: Future[Tensor] = _helper(os.getpid()).submit(others[0].__call__, X)
        features = first(X)
        # Where the helper is busy with the bag of another caller, nobody waits for it.
        return features.add_(others[0](X) if waiting.cancel() else waiting.result())


@cache
def _helper(_process: int) -> ThreadPoolExecutor:
    """The thread that helps others in a process; one that was forked has none of its parent's."""
    return ThreadPoolExecutor(1, thread_name_prefix="mipl-prediction", initializer=use_one_thread)


class Ready(NamedTuple):
    """What predictions are made with, on the device.

    Attributes
    ----------
    source : tuple, the values of `PREDICTS_FROM` that it was built from
    model : BagModel
    features : Halves
    """

    source: tuple[Any, ...]
    model: BagModel
    features: Halves

    def is_of(self, source: tuple[Any, ...]) -> bool:
        """Whether it was built from these very objects."""
        return all(a is b for a, b in zip(self.source, source, strict=True))


def bounded_tensor(X: Any, device: torch.device, origin: Any) -> Tensor:
    """Features (n, d) as a tensor, cut off where squares would overflow; `origin` is the front end, for an error."""
    with np.errstate(over="ignore"):
        rows = torch.tensor(np.asarray(X, dtype=np.float32), device=device).clamp_(-_FAR, _FAR)
    if bool(rows.isnan().any()):
        raise DataError(f"the front end {origin!r} gives values that are not numbers; choose another one")
    return rows


def instance_logits(model: BagModel, features: Halves, X: Tensor, n_threads: int) -> Tensor:
    """Instance logits (n, 2, q) of both experts from the front end's features (n, d), for a thread kept to one thread.

    Blocks of instances are padded to a multiple of `PREDICTION_TILE` and worked on by one thread each: matrix products
    then give a row the same digits whatever rows are beside it, and whatever the number of threads. A single block is
    shared by two threads, each of which has half of the landmarks.
    """
    blocks = X.split(PREDICTION_ROWS)
    shared = len(blocks) == 1 and n_threads > 1

    def logits(rows: Tensor) -> Tensor:
        missing = max(-len(rows) % PREDICTION_TILE, PREDICTION_LEAST - len(rows))
        if missing:
            rows = torch.cat([rows, rows.new_zeros(missing, rows.shape[1])])
        return model.logits(features(rows, shared))

    if len(blocks) == 1:
        return logits(X)[: len(X)]
    if n_threads == 1:
        return torch.cat(list(map(logits, blocks)))[: len(X)]
    with ThreadPoolExecutor(min(n_threads, len(blocks)), initializer=use_one_thread) as pool:
        return torch.cat(list(pool.map(logits, blocks)))[: len(X)]
