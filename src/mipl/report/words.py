"""Text: an instance as its heaviest words, marked where they speak for one label rather than the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.bags import Bags

__all__ = ["Words"]

_WORDS = 8  # words of an instance
# A word speaks for a label if it is heavier there than _FACTOR times with the other label plus _FLOOR times its usual
# weight: a common word that differs by chance speaks for nobody.
_FACTOR, _FLOOR = 2.0, 0.75


class Words:
    """Instances (n, d) as lists of ``[word, weight, side]``, heaviest first.

    A word is a position in the vocabulary, its weight a whole number up to 100, and its side 1 where it is typical of
    the label of the bag, 2 where of the second label, else 0.

    Parameters
    ----------
    bags : Bags
        With words as feature names.
    typical : (q, d)
        The typical instance of each class.
    """

    kind = "words"

    def __init__(self, bags: Bags, typical: NDArray[Any]) -> None:
        self._bags, self._typical = bags, typical
        self._usual = bags.instances.mean(axis=0)
        self._names = bags.feature_names or ()
        self._most = max(float(bags.instances.max()), 1e-12)
        self._vocabulary: dict[int, int] = {}

    def sheet(self, rows: NDArray[np.int64], label: NDArray[np.int64], second: NDArray[np.int64]) -> list[Any]:
        """The words of the instances `rows` (k,)."""
        values = self._bags.instances[rows]
        heaviest = np.argsort(-values, axis=1, kind="stable")[:, :_WORDS]
        return [
            [
                [self._word(j), max(1, round(100 * float(weights[j]) / self._most)), self._side(j, own, other)]
                for j in words
                if weights[j] > 0
            ]
            for weights, words, own, other in zip(
                values, heaviest.tolist(), label.tolist(), second.tolist(), strict=True
            )
        ]

    def legend(self) -> dict[str, Any]:
        """The words that occur in the sheets."""
        return {"vocabulary": [self._names[j] for j in self._vocabulary]}

    def _word(self, j: int) -> int:
        return self._vocabulary.setdefault(j, len(self._vocabulary))

    def _side(self, j: int, label: int, second: int) -> int:
        floor = _FLOOR * self._usual[j]
        of_label = self._typical[label, j]
        of_second = self._usual[j] if second < 0 else self._typical[second, j]
        if of_label > _FACTOR * of_second + floor:
            return 1
        return 2 if of_second > _FACTOR * of_label + floor else 0
