"""What BagGP predicts with, and the logits of many instances in blocks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mipl.baggp.constants import PREDICTION_LEAST, PREDICTION_ROWS, PREDICTION_TILE
from mipl.baggp.model import BagModel
from mipl.compute import use_one_thread
from mipl.errors import DataError
from mipl.gp.nystrom import KernelMap

__all__ = ["PREDICTS_FROM", "Ready", "bounded_tensor", "instance_logits"]

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


class Ready(NamedTuple):
    """What predictions are made with, on the device.

    Attributes
    ----------
    source : tuple, the values of `PREDICTS_FROM` that it was built from
    model : BagModel
    kernel_map : KernelMap
    """

    source: tuple[Any, ...]
    model: BagModel
    kernel_map: KernelMap

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


def instance_logits(model: BagModel, kernel_map: KernelMap, X: Tensor, n_threads: int) -> Tensor:
    """Instance logits (n, 2, q) of both experts from the front end's features (n, d), for a thread kept to one thread.

    Blocks of instances are padded to a multiple of `PREDICTION_TILE` and worked on by one thread each: matrix products
    then give a row the same digits whatever rows are beside it, and whatever the number of threads.
    """
    blocks = X.split(PREDICTION_ROWS)

    def logits(rows: Tensor) -> Tensor:
        missing = max(-len(rows) % PREDICTION_TILE, PREDICTION_LEAST - len(rows))
        if missing:
            rows = torch.cat([rows, rows.new_zeros(missing, rows.shape[1])])
        return model.logits(kernel_map(rows))

    if len(blocks) == 1:
        return logits(X)[: len(X)]
    if n_threads == 1:
        return torch.cat(list(map(logits, blocks)))[: len(X)]
    with ThreadPoolExecutor(min(n_threads, len(blocks)), initializer=use_one_thread) as pool:
        return torch.cat(list(pool.map(logits, blocks)))[: len(X)]
