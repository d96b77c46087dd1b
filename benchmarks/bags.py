"""Bags against plain NumPy on 1,000,000 instances x 64: construction, indexing, segment maximum.

Run: python benchmarks/bags.py
"""

from __future__ import annotations

import numpy as np
from measure import compare, print_table

from mipl import Bags

N, D, M = 1_000_000, 64, 20_000


def main() -> None:
    rng = np.random.default_rng(0)
    flat = rng.random((N, D), dtype=np.float32)
    ids = np.repeat(np.arange(M), N // M)
    chosen = rng.permutation(M)[: M // 2]
    built, copy = compare(lambda: Bags.from_flat(flat, ids), flat.copy)
    bags = built.result
    rows = np.concatenate([np.arange(bags.offsets[i], bags.offsets[i + 1]) for i in chosen])
    ours, numpys = compare(lambda: bags[chosen], lambda: flat[rows])
    scores = rng.random((N, 10), dtype=np.float32)
    top, top_numpy, lse = compare(
        lambda: bags.max(scores),
        lambda: np.maximum.reduceat(scores, bags.offsets[:-1]),
        lambda: bags.logsumexp(scores),
    )
    print_table(
        f"{N:,} instances x {D} in {M:,} bags",
        ("what", "mipl s", "mipl MiB", "NumPy s", "NumPy MiB", "ratio", "goal"),
        [
            ("from a flat array (NumPy: copy it)", *built[:2], *copy[:2], built.seconds / copy.seconds, "no copy"),
            ("index 10,000 bags", *ours[:2], *numpys[:2], ours.seconds / numpys.seconds, "<= 1.5"),
            ("segment max of 10 columns", *top[:2], *top_numpy[:2], top.seconds / top_numpy.seconds, "<= 3"),
            ("segment logsumexp (NumPy: max)", *lse[:2], *top_numpy[:2], lse.seconds / top_numpy.seconds, ""),
        ],
    )
    print("shares memory with the flat array:", np.shares_memory(bags.instances, flat))


if __name__ == "__main__":
    main()
