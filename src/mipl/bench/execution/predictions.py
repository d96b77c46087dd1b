"""What a method answers, checked before it is scored: a wrong answer is an error and not a low accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["checked_classes", "checked_numbers", "checked_probabilities"]

#: How far a row of probabilities may be from a sum of one: float32 over many classes.
_SUM_TOLERANCE = 1e-3


def checked_classes(predicted: Any, n_bags: int, n_classes: int) -> NDArray[np.int64]:
    """Predicted classes (m,) as integers.

    Parameters
    ----------
    predicted : array-like
        What `predict` gave.
    n_bags, n_classes : int
        How many there must be, and of how many classes.

    Raises
    ------
    ValueError
        For another shape, for NaN and None, and for anything that is no class index.
    """
    given = np.asarray(predicted)
    if given.shape != (n_bags,):
        raise ValueError(f"predict gave an array of shape {given.shape} for {n_bags} bags")
    if given.dtype.kind in "US":
        given = given.astype(object)  # a name is told as one
    _check_kind(predicted, given, "predict")
    if given.dtype.kind == "O":
        known = (int, float, np.integer, np.floating)
        numbers = np.array([value if isinstance(value, known) else np.nan for value in given], dtype=float)
    else:
        numbers = given.astype(np.float64)
    unknown = ~((numbers >= 0) & (numbers < n_classes) & (numbers == np.floor(numbers)))
    if unknown.any():
        i = int(unknown.argmax())
        raise ValueError(
            f"predict gave {given[i : i + 1].tolist()[0]!r} for test bag {i}{_others(unknown)}; "
            f"the classes are the numbers 0 to {n_classes - 1}"
        )
    return numbers.astype(np.int64)


def checked_probabilities(proba: Any, shape: tuple[int, int], source: str) -> NDArray[np.floating[Any]]:
    """Probabilities, one row for each bag: `checked_numbers` in [0, 1] whose rows sum to one."""
    given = checked_numbers(proba, shape, source)
    for wrong, words in (
        (((given < -_SUM_TOLERANCE) | (given > 1 + _SUM_TOLERANCE)).any(axis=1), "numbers outside [0, 1]"),
        (np.abs(given.sum(axis=1, dtype=np.float64) - 1) > _SUM_TOLERANCE, "probabilities that do not sum to one"),
    ):
        if wrong.any():
            raise ValueError(f"{source} gave {words} in row {int(wrong.argmax())}{_others(wrong)}")
    return given


def checked_numbers(numbers: Any, shape: tuple[int, int], source: str) -> NDArray[np.floating[Any]]:
    """A matrix of numbers.

    Parameters
    ----------
    numbers : array-like
        What the method gave.
    shape : (int, int)
        The rows and columns that it must have.
    source : str
        The name of the function that gave it, for the error.

    Raises
    ------
    ValueError
        For another shape, for what is no number, and for NaN.
    """
    given = np.asarray(numbers)
    if given.shape != shape:
        raise ValueError(f"{source} gave an array of shape {given.shape} where {shape} is due")
    _check_kind(numbers, given, source)
    if not np.issubdtype(given.dtype, np.floating):
        given = given.astype(np.float64)
    unknown = np.isnan(given).any(axis=1)
    if unknown.any():
        raise ValueError(f"{source} gave NaN in row {int(unknown.argmax())}{_others(unknown)}")
    return given


def _check_kind(answer: Any, given: NDArray[Any], source: str) -> None:
    """Refuse what NumPy turns into numbers though it is none: complex ones, dates, records, text, masked entries."""
    if np.ma.is_masked(answer):
        raise ValueError(f"{source} gave masked entries")
    if given.dtype.kind not in "biufO":
        raise ValueError(f"{source} gave values of type {given.dtype}, which are no numbers")


def _others(wrong: Any) -> str:
    more = int(np.sum(wrong)) - 1
    return f" and {more} more" if more else ""
