"""How sure the answers are, and whether they are as often right as they say where the truth is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mipl.certainty import DOUBTFUL, SURE

if TYPE_CHECKING:
    from mipl.resolution import Resolution

__all__ = ["DOUBTFUL", "SURE", "Bin", "Levels", "calibration_error", "histogram", "known_right", "levels"]

#: Finer towards 1, where most answers lie; SURE and DOUBTFUL are among them.
_EDGES = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1)


@dataclass(frozen=True)
class Levels:
    """How many answers are sure, likely and doubtful."""

    sure: int
    likely: int
    doubtful: int


@dataclass(frozen=True)
class Bin:
    """Answers with a probability from `low` to `high`: how many, how sure, and how many are known to be right or wrong.

    `probability` is the mean over the answers whose truth is known, over all where it is known for none.
    """

    low: float
    high: float
    count: int
    probability: float
    right: int
    wrong: int

    @property
    def share_right(self) -> float | None:
        """The share of right answers among those whose truth is known; None where none is."""
        known = self.right + self.wrong
        return self.right / known if known else None

    @property
    def error(self) -> float:
        """Half the width of an interval that holds the true share in about 95 of 100 cases (Agresti and Coull)."""
        n = self.right + self.wrong + 4
        share = (self.right + 2) / n
        return float(1.96 * np.sqrt(share * (1 - share) / n))


def levels(probability: NDArray[Any]) -> Levels:
    """Count the answers (m,) by how sure they are."""
    sure, doubtful = int(np.sum(probability >= SURE)), int(np.sum(probability < DOUBTFUL))
    return Levels(sure, len(probability) - sure - doubtful, doubtful)


def known_right(resolution: Resolution) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Where (m,) the truth is known, and where (m,) the label is then right."""
    if resolution.truth is None:
        nowhere = np.zeros(len(resolution), dtype=bool)
        return nowhere, nowhere
    known = np.array([label is not None for label in resolution.truth])
    return known, known & (resolution.labels.astype(object) == resolution.truth)


def histogram(resolution: Resolution) -> list[Bin]:
    """The answers by their probability, from the first bin that has one, or from where doubt ends."""
    probability = resolution.probability
    known, right = known_right(resolution)
    place = np.clip(np.searchsorted(_EDGES, probability, side="right") - 1, 0, len(_EDGES) - 2)
    bins = []
    for j in range(min(int(place.min()), _EDGES.index(DOUBTFUL)), len(_EDGES) - 1):
        here = place == j
        compared = here & known if (here & known).any() else here
        n_right = int(right[here].sum())
        bins.append(
            Bin(
                low=_EDGES[j],
                high=_EDGES[j + 1],
                count=int(here.sum()),
                probability=float(probability[compared].mean()) if here.any() else (_EDGES[j] + _EDGES[j + 1]) / 2,
                right=n_right,
                wrong=int(known[here].sum()) - n_right,
            )
        )
    return bins


def calibration_error(bins: list[Bin]) -> float | None:
    """The mean distance between how sure answers are and how often they are right, weighted by known answers.

    None where no truth is known.
    """
    pairs = [(b.right + b.wrong, abs(b.share_right - b.probability)) for b in bins if b.share_right is not None]
    known = sum(weight for weight, _ in pairs)
    return sum(weight * distance for weight, distance in pairs) / known if known else None
