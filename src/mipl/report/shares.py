"""How often each class occurs: by the candidates alone, and by what was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mipl.candidates import uniform_weights

if TYPE_CHECKING:
    from mipl.resolution import Resolution

__all__ = ["Share", "class_shares"]


@dataclass(frozen=True)
class Share:
    """The share of one class: `before` by candidates, `after` by the posterior, `true` among known labels."""

    name: str
    before: float | None
    after: float
    true: float | None


def class_shares(resolution: Resolution) -> list[Share]:
    """The classes, largest share of the posterior first.

    Before anything is learned, a bag counts for each of its k candidates with 1 / k; afterwards with the posterior.
    """
    before = None if resolution.candidates is None else uniform_weights(resolution.candidates).mean(axis=0)
    after = resolution.posterior.mean(axis=0)
    truth = [] if resolution.truth is None else [label for label in resolution.truth.tolist() if label is not None]
    names = resolution.classes.tolist()
    return [
        Share(
            name=str(names[c]),
            before=None if before is None else float(before[c]),
            after=float(after[c]),
            true=truth.count(names[c]) / len(truth) if truth else None,
        )
        for c in np.argsort(-after, kind="stable").tolist()
    ]
