"""Nearest neighbours and the convex weights with which they reconstruct a sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.metrics import euclidean_distances
from sklearn.utils import gen_batches

__all__ = ["nearest_neighbours", "neighbour_graph", "reconstruction_grams", "reconstruction_weights"]

Array = NDArray[np.float64]

#: Samples whose distances to all others, or differences to their neighbours (block, k, d), are in memory at once.
_BLOCK = 256
#: Relative to the mean eigenvalue of a Gram matrix.
_RIDGE = 1e-9


def nearest_neighbours(train: Array, k: int, query: Array | None = None) -> NDArray[np.int64]:
    """Indices (n, k) of the neighbours of `query` in `train`, nearest first, by Euclidean distance.

    Without a query these are the neighbours of the training samples, each without itself. Where there are fewer than
    k, all are given, which can be none. Of two at the same distance the first comes first.

    scikit-learn's `NearestNeighbors` sets the number of BLAS threads of the whole process while it searches; threads
    that search at the same time leave it at one.
    """
    k = min(k, len(train) - (query is None))
    if k == 0:
        return np.zeros((len(train), 0), dtype=np.int64)
    samples = train if query is None else query
    nearest = np.empty((len(samples), k), dtype=np.int64)
    for rows in gen_batches(len(samples), _BLOCK):
        distance = euclidean_distances(samples[rows], train, squared=True)
        if query is None:
            distance[np.arange(len(distance)), np.arange(rows.start, rows.start + len(distance))] = np.inf
        farthest = np.partition(distance, k - 1, axis=1)[:, k - 1 : k]
        closer, level = distance < farthest, distance == farthest
        taken = closer | (level & (level.cumsum(axis=1) <= k - closer.sum(axis=1, keepdims=True)))
        found = np.nonzero(taken)[1].reshape(-1, k)
        order = np.lexsort((found, np.take_along_axis(distance, found, axis=1)))
        nearest[rows] = np.take_along_axis(found, order, axis=1)
    return nearest


def neighbour_graph(index: NDArray[np.int64], weights: Array) -> csr_array:
    """Sparse (n, n) matrix with the weights (n, k) at the columns `index` (n, k)."""
    n, k = index.shape
    return csr_array((weights.ravel(), index.ravel(), np.arange(n + 1) * k), shape=(n, n))


def reconstruction_grams(samples: Array, others: Array, index: NDArray[np.int64]) -> Array:
    """Inner products (n, k, k) of the differences ``samples[i] - others[index[i, j]]`` over j."""
    grams = np.empty((*index.shape, index.shape[1]))
    for rows in gen_batches(len(index), _BLOCK):
        difference = samples[rows, None, :] - others[index[rows]]
        grams[rows] = difference @ difference.transpose(0, 2, 1)
    return grams


def reconstruction_weights(grams: Array) -> Array:
    """Weights (n, k) on the simplex that minimise ``w' G w`` for each of the (n, k, k) Gram matrices.

    They are the convex combination of the neighbours that is nearest to the sample. Up to its scale, w solves the
    complementarity problem u >= 0, G u >= 1, u'(G u - 1) = 0, which block principal pivoting (Kim and Park, 2011)
    finishes in a few linear systems: guess which entries are positive, solve for them, exchange the entries with a
    wrong sign, and fall back to one exchange at a time (Murty's rule, which cannot cycle) when that does not help.
    """
    n, k = grams.shape[:2]
    scale = np.trace(grams, axis1=1, axis2=2)[:, None, None] / max(k, 1)
    # The small ridge makes the solution unique: neighbours that coincide share their weight.
    systems = grams / np.where(scale > 0, scale, 1) + _RIDGE * np.eye(k)
    solution = np.zeros((n, k))
    positive = np.ones((n, k), dtype=bool)
    fewest_wrong = np.full(n, k + 1)
    todo = np.arange(n)
    for _ in range(10 * k):
        system, free = systems[todo], positive[todo]
        reduced = np.where(free[:, :, None] & free[:, None, :], system, np.eye(k))
        u = np.linalg.solve(reduced, free[:, :, None].astype(np.float64))
        slack = np.matmul(system, u)[:, :, 0] - 1
        solution[todo] = u = u[:, :, 0]
        wrong = np.where(free, u, slack) < -_RIDGE
        n_wrong = wrong.sum(axis=1)
        better = n_wrong < fewest_wrong[todo]
        fewest_wrong[todo] = np.where(better, n_wrong, fewest_wrong[todo])
        last_wrong = np.arange(k) == k - 1 - wrong[:, ::-1].argmax(axis=1)[:, None]
        positive[todo] ^= np.where(better[:, None], wrong, wrong & last_wrong)
        todo = todo[n_wrong > 0]
        if len(todo) == 0:
            break
    solution = np.maximum(solution, 0)
    weights: Array = solution / solution.sum(axis=1, keepdims=True)
    return weights
