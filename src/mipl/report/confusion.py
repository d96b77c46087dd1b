"""Which classes are hard to tell apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mipl.report.certainty import SURE

if TYPE_CHECKING:
    from mipl.resolution import Resolution

__all__ = ["Pair", "confused_pairs"]

_LEAST = 0.2  # expected mix-ups below which a pair is not worth a line


@dataclass(frozen=True)
class Pair:
    """Two classes (columns of the posterior): bags that are unsure between them, expected and known mix-ups."""

    first: int
    second: int
    unsure: int
    expected: float
    known: int


def confused_pairs(resolution: Resolution, most: int = 8) -> list[Pair]:
    """The pairs of classes with the most expected mix-ups, and those with known ones.

    A bag adds the probability of its second label to the pair of its two best labels; it counts as unsure where its
    answer is not sure. A known mix-up is a bag whose true label is the other class of the pair.

    Parameters
    ----------
    resolution : Resolution
        The answers.
    most : int, default=8
        How many pairs at most.
    """
    column = {name: c for c, name in enumerate(resolution.classes.tolist())}
    labels = [column[name] for name in resolution.labels.tolist()]
    seconds = [column.get(name, -1) for name in resolution.second_label.tolist()]
    truth = [-1] * len(labels) if resolution.truth is None else [column.get(t, -1) for t in resolution.truth.tolist()]
    unsure, share = resolution.probability < SURE, resolution.second_probability
    found: dict[tuple[int, int], list[float]] = {}
    for i, (label, second, true) in enumerate(zip(labels, seconds, truth, strict=True)):
        if second >= 0:
            tally = found.setdefault((min(label, second), max(label, second)), [0, 0.0, 0])
            tally[0] += bool(unsure[i])
            tally[1] += float(share[i])
        if true not in (-1, label):
            found.setdefault((min(label, true), max(label, true)), [0, 0.0, 0])[2] += 1
    pairs = [Pair(a, b, int(n), float(p), int(k)) for (a, b), (n, p, k) in found.items() if p >= _LEAST or k]
    return sorted(pairs, key=lambda pair: (-pair.known, -pair.expected))[:most]
