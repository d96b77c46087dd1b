"""Features of new bags that are far outside of what a model was fitted on."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.bags import Bags

__all__ = ["far_features_untold", "feature_ranges", "warn_of_far_features"]

#: A value is far outside if it is further from the training range than so many times its width.
_WIDTHS = 100.0
#: Whether the calling thread wants to be warned.
_TELLS: ContextVar[bool] = ContextVar("tells", default=True)


def feature_ranges(bags: Bags) -> NDArray[np.float32]:
    """Smallest and largest value (2, d) of each feature."""
    return np.stack([bags.instances.min(axis=0), bags.instances.max(axis=0)])


@contextmanager
def far_features_untold() -> Iterator[None]:
    """No warnings of far features in the calling thread, for questions that nobody asked.

    A filter of warnings would belong to the whole process: threads that set one at the same time leave it set.
    """
    before = _TELLS.set(False)
    try:
        yield
    finally:
        _TELLS.reset(before)


def warn_of_far_features(bags: Bags, ranges: NDArray[np.float32], stacklevel: int = 2) -> None:
    """Warn once of all bags with features far outside of the training range, and name the feature furthest outside.

    A value is far outside where it is 100 times the width of the training range away from it: most often the unit is
    another one. A feature that was constant in training has the width of its size, or of one if that is more.

    Parameters
    ----------
    bags : Bags
        New bags.
    ranges : (2, d) array
        What `feature_ranges` said of the training bags.
    stacklevel : int, default=2
        Of the warning: who is told.
    """
    if not _TELLS.get():
        return
    low, high = ranges.astype(np.float64)
    width = np.where(high > low, high - low, np.maximum(np.abs(high), 1.0))
    bottom, top = low - _WIDTHS * width, high + _WIDTHS * width
    smallest, largest = bags.instances.min(axis=0), bags.instances.max(axis=0)
    far = np.flatnonzero((smallest < bottom) | (largest > top))
    if not len(far):
        return
    values = bags.instances[:, far]
    outside = bags.max(((values < bottom[far]) | (values > top[far])).any(axis=1))
    beyond = np.maximum(low[far] - smallest[far], largest[far] - high[far]) / width[far]
    worst = far[np.argmax(beyond)]
    value = smallest[worst] if low[worst] - smallest[worst] > largest[worst] - high[worst] else largest[worst]
    more = f" (and {len(far) - 1} more)" if len(far) > 1 else ""
    warnings.warn(
        f"{int(outside.sum())} of {len(bags)} bags have features far outside of the training range: "
        f"{_name(worst, bags.feature_names)} is {value:.3g}, in training it was {low[worst]:.3g} to "
        f"{high[worst]:.3g}{more}; the model knows nothing of such instances. Is the unit the same?",
        stacklevel=stacklevel + 1,
    )


def _name(feature: Any, names: Sequence[str] | None) -> str:
    return f"feature {feature}" if names is None else f"feature {names[feature]!r}"
