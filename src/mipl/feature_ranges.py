"""Features far outside: of what most training bags have, and of new bags beside what a model was fitted on."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.bags import Bags
from mipl.candidates import bag_name

__all__ = ["far_features_untold", "feature_ranges", "warn_of_far_features", "warn_of_wild_bags"]

#: A value is far outside if it is further from the training range than so many times its width.
_WIDTHS = 100.0
#: A training bag is wild where a feature is so many times further from the middle than in all but a hundredth of bags.
_WILD, _WILD_SHARE = 1e6, 0.01
#: Whether the calling thread wants to be warned.
_TELLS: ContextVar[bool] = ContextVar("tells", default=True)


def feature_ranges(bags: Bags) -> NDArray[np.float32]:
    """Smallest and largest value (2, d) of each feature."""
    return np.stack([bags.instances.min(axis=0), bags.instances.max(axis=0)])


def warn_of_wild_bags(bags: Bags, bag_ids: NDArray[Any] | None = None, stacklevel: int = 2) -> None:
    """Warn of a few training bags whose features are a million times further away than those of all others.

    Scaled together with such a value, most often a code for a missing one, all others of its feature look alike. Told
    of are the feature with the furthest value, and all bags that are wild: one, or one in a hundred at most.

    Parameters
    ----------
    bags : Bags
        Training bags.
    bag_ids : (m,) array, default=None
        Their names; None for none, then they are told by their positions.
    stacklevel : int, default=2
        Of the warning: who is told.
    """
    m, few = len(bags), max(int(_WILD_SHARE * len(bags)), 1)
    if m <= 2 * few:
        return
    low, high = bags.min(bags.instances).astype(np.float64), bags.max(bags.instances).astype(np.float64)
    middle = np.median((low + high) / 2, axis=0)
    distance = np.maximum(high - middle, middle - low)
    usual = np.partition(distance, m - few - 1, axis=0)[m - few - 1]
    wild = np.flatnonzero((usual > 0) & (distance.max(axis=0) > _WILD * usual))
    if not len(wild):
        return
    outside = (distance[:, wild] > _WILD * usual[wild]).any(axis=1)
    ratios = distance[:, wild] / usual[wild]
    bag, column = np.unravel_index(int(ratios.argmax()), ratios.shape)
    worst = wild[column]
    value = max(low[bag, worst], high[bag, worst], key=lambda each: abs(each - middle[worst]))
    more = f" (and {len(wild) - 1} more)" if len(wild) > 1 else ""
    warnings.warn(
        f"{int(outside.sum())} of {m} training bags are far from all others: {_name(worst, bags.feature_names)} is "
        f"{value:.3g} in {bag_name(int(bag), bag_ids)}, in most within {usual[worst]:.3g} of "
        f"{middle[worst]:.3g}{more}; "
        "beside it all others look alike. Is it a code for a missing value? Leave such bags out, or replace the value",
        stacklevel=stacklevel + 1,
    )


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
    low, high = ranges.astype(np.float64)
    width = np.where(high > low, high - low, np.maximum(np.abs(high), 1.0))
    bottom, top = low - _WIDTHS * width, high + _WIDTHS * width
    smallest, largest = bags.instances.min(axis=0), bags.instances.max(axis=0)
    far = np.flatnonzero((smallest < bottom) | (largest > top))
    if not len(far) or not _TELLS.get():
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
