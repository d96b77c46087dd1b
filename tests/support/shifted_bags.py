"""Binary bags whose positive ones hold a few shifted instances."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mipl.bags import Bags


def shifted_bags(shift: float, seed: int, n: int = 200, d: int = 10) -> tuple[Bags, NDArray[np.int64]]:
    """n positive and n negative bags of 5 to 14 normal instances; one or two of each positive bag are shifted."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 15, 2 * n)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    instances = rng.standard_normal((offsets[-1], d))
    instances[offsets[:n]] += shift
    instances[offsets[:n][rng.random(n) < 0.5] + 1] += shift
    return Bags(instances, offsets), np.repeat([1, 0], n)
