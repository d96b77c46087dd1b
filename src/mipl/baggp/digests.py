"""Digests of bags, by which a model knows the bags that it was fitted on."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from mipl.bags import Bags

__all__ = ["bag_digests"]


def bag_digests(bags: Bags, candidates: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """A digest (m,) of the instances and the candidate set (m, q) of each bag."""
    packed = np.packbits(candidates, axis=1)
    digests = (
        hashlib.blake2b(bag.tobytes() + row.tobytes(), digest_size=8).digest()
        for bag, row in zip(bags, packed, strict=True)
    )
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
