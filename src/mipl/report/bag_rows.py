"""The list of bags as the page's script reads it: doubtful ones first, as many as there is room for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mipl.report.budget import embedded_json

if TYPE_CHECKING:
    from mipl.resolution import Resolution

__all__ = ["BagRows", "bag_rows", "page_names"]

_FEWEST_BARS, _MOST_BARS = 4, 8  # candidates that are drawn with their probability; beyond the fewest, likely ones only
_LIKELY = 0.005
_ONE = 10_000  # probabilities are whole numbers of this


@dataclass(frozen=True)
class BagRows:
    """The rows of the list, the bags (k,) that they are, and their size in bytes.

    A row is ``[id, instances, true class or -1, classes by falling probability, their probabilities]``; classes are
    positions in `page_names`, probabilities whole numbers out of 10,000 for the first four to eight. Classes beyond
    these are left out where all are candidates.
    """

    bags: NDArray[np.int64]
    rows: list[list[Any]]
    size: int


def page_names(resolution: Resolution) -> list[str]:
    """The names of the classes as text, and after them true labels that the model does not know."""
    names = resolution.classes.tolist()
    known = set(names)
    truth = [] if resolution.truth is None else resolution.truth.tolist()
    extra = dict.fromkeys(label for label in truth if label is not None and label not in known)
    return [str(name) for name in [*names, *extra]]


def bag_rows(resolution: Resolution, budget: int) -> BagRows:
    """The bags by margin, smallest first, until their rows fill the budget.

    Parameters
    ----------
    resolution : Resolution
        The answers about m bags.
    budget : int
        Bytes that the rows may take.
    """
    order = np.argsort(resolution.margin, kind="stable")
    position = {name: c for c, name in enumerate(page_names(resolution))}
    q = len(resolution.classes)
    ids = [str(name) for name in resolution.bag_ids.tolist()]
    sizes = resolution.bags.sizes.tolist()
    # Both are candidates, unless the model holds it possible that the truth is missing from a set.
    best_two = (resolution.posterior > 0) & (resolution.posterior >= resolution.second_probability[:, None])
    rows: list[list[Any]] = []
    size = 0
    for i in order.tolist():
        mask = None if resolution.candidates is None else resolution.candidates[i] | best_two[i]
        among = resolution.posterior[i] if mask is None else np.where(mask, resolution.posterior[i], -1)
        n_candidates = q if mask is None else int(mask.sum())
        n_likely = min(int(np.sum(among >= _LIKELY)), _MOST_BARS)
        n_bars = min(max(n_likely, _FEWEST_BARS), n_candidates)
        ranked = np.argsort(-among, kind="stable")[: n_bars if mask is None else n_candidates]
        true = None if resolution.truth is None else resolution.truth[i]
        row = [
            ids[i],
            sizes[i],
            -1 if true is None else position[str(true)],
            ranked.tolist(),
            np.rint(_ONE * resolution.posterior[i, ranked[:n_bars]]).astype(int).tolist(),
        ]
        size += len(embedded_json(row)) + 1
        if size > budget and rows:
            size -= len(embedded_json(row)) + 1
            break
        rows.append(row)
    return BagRows(order[: len(rows)], rows, size)
