"""Digests of bags: by these a model knows the bags that it was fitted on, and a fit takes bags in an order of its own.

Landmarks, folds and sums depend on the order in which bags and their instances come, and where much is in doubt, so do
labels. The order here depends on what the bags are: however they were sorted before, the answers are the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.bags import Bags
from mipl.supervision import Supervision

__all__ = ["bag_digests", "canonical_order", "digests_of_instances", "instances_in_order", "with_candidates"]

#: Bags that are sorted at a time, so that no copy of all instances is made.
_BAGS = 256


def bag_digests(bags: Bags, candidates: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """A digest (m,) of the instances, in whatever order, and the candidate set (m, q) of each bag."""
    return with_candidates(digests_of_instances(bags), candidates)


def digests_of_instances(bags: Bags) -> NDArray[np.uint64]:
    """A digest (m,) of the instances of each bag, in whatever order these are."""
    parts = (bags[start : start + _BAGS] for start in range(0, len(bags), _BAGS))
    return _digests(bag for part in parts for bag in instances_in_order(part))


def with_candidates(digests: NDArray[np.uint64], candidates: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Digests (m,) of what has these digests (m,) and of candidate sets (m, q)."""
    return _digests(np.hstack([digests[:, None].view(np.uint8), np.packbits(candidates, axis=1)]))


def instances_in_order(bags: Bags) -> Bags:
    """The same bags, the instances of each in an order that depends on what they are."""
    words = bags.instances.view(np.uint32)
    factors = np.random.default_rng(0).integers(2**64, size=words.shape[1], dtype=np.uint64)
    keys = np.einsum("ij,j->i", words, factors, dtype=np.uint64, casting="unsafe")  # sums that wrap around are exact
    order = np.lexsort((keys, bags.bag_of_instance))
    return Bags(bags.instances[order], bags.offsets, bags.instance_shape, bags.feature_names)


def canonical_order(
    digests: NDArray[np.uint64], supervision: Supervision, seed: int
) -> tuple[NDArray[np.int64], Supervision]:
    """The order (m,) of bags by their digests (m,), and what is known of them in that order, groups numbered in it.

    Another seed gives another order. Bags with the same digest follow each other by their weights, votes and groups.
    """
    odd = np.random.default_rng(seed).integers(2**63, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    digests = digests * odd  # different ones stay different
    keys = [digests]
    if supervision.groups is not None:
        groups = np.unique(supervision.groups, return_inverse=True)[1]
        of_groups = np.zeros(groups.max() + 1, dtype=np.uint64)
        np.add.at(of_groups, groups, digests)  # whatever the order of the sum
        keys.insert(0, of_groups[groups])
    if len(np.unique(digests)) < len(digests):
        for more in (supervision.weights, supervision.sample_weight):
            keys[-1:-1] = [] if more is None else list(np.atleast_2d(more.T))
    order = np.lexsort(keys)
    known = supervision[order]
    if known.groups is not None:
        _, first, index = np.unique(known.groups, return_index=True, return_inverse=True)
        known = replace(known, groups=np.argsort(np.argsort(first))[index])
    return order, known


def _digests(values: Iterable[NDArray[Any]]) -> NDArray[np.uint64]:
    found = b"".join(hashlib.blake2b(value.tobytes(), digest_size=8).digest() for value in values)
    return np.frombuffer(found, dtype="<u8").astype(np.uint64)
