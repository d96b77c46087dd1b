"""Which bags are drawn, with which instances, and what these say for the label and for the second one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mipl.report.budget import embedded_json
from mipl.report.drawings import drawing_of

if TYPE_CHECKING:
    from mipl.resolution import Resolution

__all__ = ["Evidence", "evidence_of"]

_INSTANCES = 12  # of a bag that are drawn at most
_TILES = 256  # instances of a sheet
_EVERY = 5  # one bag of so many is drawn whatever its margin
_ONE = 1_000  # probabilities are whole numbers of this


@dataclass
class Evidence:
    """The instances that are drawn.

    `details` has, by the row of the list, ``[sheet, first tile, instances, for the label, for the second label]``: the
    ids of instances, or their numbers in the bag where they have none, and their probabilities out of 1,000, or None
    where instances were not judged, and for the background class, which none shows.
    """

    kind: str
    legend: dict[str, Any] = field(default_factory=dict)
    sheets: list[Any] = field(default_factory=list)
    details: dict[int, list[Any]] = field(default_factory=dict)


def evidence_of(resolution: Resolution, bags: NDArray[np.int64], budget: int) -> Evidence:
    """Draw as many bags as there is room for: doubtful ones, and every fifth from all others evenly.

    Parameters
    ----------
    resolution : Resolution
        The answers.
    bags : (k,) int
        The bags of the list, doubtful ones first.
    budget : int
        Bytes for sheets and details.
    """
    column = {name: c for c, name in enumerate(resolution.classes.tolist())}
    label = np.array([column[name] for name in resolution.labels.tolist()])
    second = np.array([column.get(name, -1) for name in resolution.second_label.tolist()])
    background = column.get(resolution.background, -1)
    shows, also = (np.where(classes == background, -1, classes) for classes in (label, second))
    n_wanted = int(np.minimum(resolution.bags.sizes[bags], _INSTANCES).sum())
    drawing = drawing_of(resolution, n_wanted, budget)
    found = Evidence(drawing.kind)
    left = budget - len(embedded_json(drawing.legend()))
    for group in _groups(_priority(len(bags)), np.minimum(resolution.bags.sizes[bags], _INSTANCES)):
        numbers = [_shown(resolution, int(bags[row]), shows, also) for row in group]
        drawn = bags[group]
        sizes = [len(each) for each in numbers]
        rows = np.repeat(resolution.offsets[drawn], sizes) + np.concatenate(numbers)
        sheet = drawing.sheet(rows, np.repeat(label[drawn], sizes), np.repeat(second[drawn], sizes))
        details = {}
        for row, first, shown in zip(group.tolist(), np.cumsum([0, *sizes]).tolist(), numbers, strict=False):
            told = _evidence(resolution, int(bags[row]), shown, int(shows[bags[row]]), int(also[bags[row]]))
            details[row] = [len(found.sheets), first, _names(resolution, int(bags[row]), shown), *told]
        left -= len(embedded_json(sheet)) + len(embedded_json(details))
        if left < 0:
            break
        found.sheets.append(sheet)
        found.details.update(details)
    found.legend = drawing.legend()
    return found


def _priority(n: int) -> NDArray[np.int64]:
    """The rows 0 to n - 1 in the order in which they are drawn: from the top, every fifth at random from all."""
    spread = np.random.default_rng(0).permutation(n)
    mixed = np.empty(n + n // (_EVERY - 1) + 1, dtype=np.int64)
    chance = np.arange(len(mixed)) % _EVERY == _EVERY - 1
    mixed[~chance] = np.resize(np.arange(n), int((~chance).sum()))
    mixed[chance] = spread[: int(chance.sum())]
    first = np.unique(mixed, return_index=True)[1]
    return mixed[np.sort(first)]


def _groups(priority: NDArray[np.int64], sizes: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Rows in groups of at most `_TILES` instances, or one bag."""
    ends = np.cumsum(sizes[priority])
    groups, start, taken = [], 0, 0
    while start < len(priority):
        stop = max(start + 1, int(np.searchsorted(ends, taken + _TILES, side="right")))
        groups.append(priority[start:stop])
        start, taken = stop, int(ends[stop - 1])
    return groups


def _shown(resolution: Resolution, bag: int, label: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """The instances of a bag that are drawn: the strongest for the label first, and the second label's strongest.

    A label of -1 is the background, which no instance shows; the strongest for the second label come first then.
    """
    size = int(resolution.bags.sizes[bag])
    if resolution.instance_probabilities is None:
        return np.arange(min(size, _INSTANCES))
    start = resolution.offsets[bag]
    probabilities = resolution.instance_probabilities[start : start + size]
    first = label[bag] if label[bag] >= 0 else second[bag]
    if first < 0:
        return np.arange(min(size, _INSTANCES))
    shown = np.argsort(-probabilities[:, first], kind="stable")[:_INSTANCES]
    if second[bag] >= 0:
        strongest = int(np.argmax(probabilities[:, second[bag]]))
        if strongest not in shown:
            shown[-1] = strongest
    return shown


def _names(resolution: Resolution, bag: int, shown: NDArray[np.int64]) -> list[Any]:
    """What the drawn instances of a bag are called: the user's ids as text, else numbers."""
    if resolution.instance_ids is None:
        numbers: list[int] = shown.tolist()
        return numbers
    return [str(name) for name in resolution.instance_ids[resolution.offsets[bag] + shown].tolist()]


def _evidence(resolution: Resolution, bag: int, shown: NDArray[np.int64], label: int, second: int) -> list[Any]:
    if resolution.instance_probabilities is None:
        return [None, None]
    rows = resolution.instance_probabilities[resolution.offsets[bag] + shown]
    return [None if c < 0 else np.rint(_ONE * rows[:, c]).astype(int).tolist() for c in (label, second)]
