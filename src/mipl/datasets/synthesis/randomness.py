"""The randomness of the data sets: the same seed gives the same bags on every machine and with every NumPy.

NumPy keeps the bit streams of its bit generators and of `SeedSequence` fixed for good, but not what
`Generator.permutation`, `choice` or `integers` make of them. So every draw here starts from PCG64's raw 64-bit words:

- a uniform number is the upper 53 bits of a word, times 2^-53;
- a random order is a stable sort of uniform numbers;
- a sample without replacement is a prefix of a random order.

Each decision (bag sizes, the images of one class, false positive labels, ...) reads a stream of its own, named by
its purpose. That is why asking for more false positives, or adding a decision later, leaves all others untouched.
"""

from __future__ import annotations

from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from mipl.errors import DataError

__all__ = ["deal", "shuffled", "uniforms"]


def uniforms(seed: int, purpose: str, shape: int | tuple[int, ...]) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1) from the stream of `seed` that is named by `purpose`."""
    if seed < 0:
        raise DataError(f"seed={seed}; a seed is a non-negative integer")
    size = int(np.prod(shape))
    words = np.random.PCG64(np.random.SeedSequence([seed, crc32(purpose.encode())])).random_raw(size)
    return ((words >> np.uint64(11)).astype(np.float64) * 2.0**-53).reshape(shape)


def shuffled(seed: int, purpose: str, values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The `values` (k,) in a random order."""
    return values[np.argsort(uniforms(seed, purpose, len(values)), kind="stable")]


def deal(seed: int, purpose: str, pool: NDArray[np.int64], n: int, hand: int) -> NDArray[np.int64]:
    """Deal `n` cards from the deck `pool`, one after the other; a used-up deck is shuffled and dealt anew.

    No card comes back before all have been dealt once. The last `hand` cards of a deck (at most half of it) go to the
    end of the next one, so that no run of up to `hand` cards holds one twice, even where it spans two decks.
    """
    decks = -(-n // len(pool))
    keys = uniforms(seed, purpose, (decks, len(pool)))
    held = min(hand, len(pool) // 2)
    dealt = np.empty((decks, len(pool)), dtype=np.int64)
    for i in range(decks):
        if i and held:
            keys[i, dealt[i - 1, -held:]] += 1
        dealt[i] = np.argsort(keys[i], kind="stable")
    return pool[dealt.ravel()[:n]]
