"""What a model must be before `mipl.load_model` hands it out: whole, of fitting shapes, and able to answer.

The checksum of a model file says that it is as somebody wrote it, not that a fit did. So what has been read is asked
about a few bags: a model whose arrays do not fit together, are of another type or hold NaN fails there, and not in the
middle of somebody's work.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from mipl.bags import Bags
from mipl.errors import DataError, MIPLError
from mipl.feature_ranges import far_features_untold
from mipl.io.options import check_reading
from mipl.parameters import check_parameters

__all__ = ["answers", "check_array", "check_model", "describe_array"]

#: Instances of the bags that a model is asked about, in two questions: an array of a wrong length may fit one of them.
_SIZES = ((2, 1), (2, 3, 2, 1, 3))
_MOST_FEATURES = 2**26
_SUM_TOLERANCE = 1e-3


def describe_array(array: NDArray[Any]) -> dict[str, Any]:
    """What a header says of an array: shape, type, and whether its numbers are finite."""
    return {"shape": list(array.shape), "dtype": array.dtype.str, "finite": _is_finite(array)}


def check_array(array: NDArray[Any], node: dict[str, Any]) -> None:
    """Refuse an array that is not as the header describes it; headers of older versions do not."""
    if "shape" not in node:
        return
    found = describe_array(array)
    for what in ("shape", "dtype"):
        if node.get(what) != found[what]:
            raise DataError(
                f"the array {node['name']!r} has the {what} {found[what]}, the header says {node.get(what)}"
            )
    if node.get("finite") is True and not found["finite"]:
        raise DataError(f"the array {node['name']!r} has values that are not finite")


def answers(model: BaseEstimator) -> bool:
    """Whether a model of mipl and scikit-learn answers for the bags that `check_model` asks about.

    A transformer may refuse these bags, as they are not of its kind. Classes of users are not asked.
    """
    if not _is_known(model, ("mipl", "sklearn")):
        return False
    try:
        _ask(model)
    except Exception:  # whatever it is, the file says so, and reading it asks no more
        return False
    return True


def check_model(model: Any, promised: bool) -> None:
    """Refuse a model that cannot answer.

    Parameters
    ----------
    model : estimator
        What was read.
    promised : bool
        Whether it answered when it was saved, see `answers`. Without the promise, methods of mipl are asked all the
        same, and may refuse the bags in their own words.
    """
    for part in _parts(model):
        if _room(part) == "mipl":
            missing = [name for name in part._get_param_names() if name not in vars(part)]
            if missing:
                raise DataError(f"the {type(part).__name__} lacks its parameter {missing[0]!r}")
            if getattr(part, "_parameter_constraints", None):
                check_parameters(part)
            _check_finite(part)
            check_reading(getattr(part, "reading_", {}))  # models of earlier files have none
        _check_training_bags(part)
    if not (promised or _is_known(model, ("mipl",))):
        return
    try:
        _ask(model)
    except MIPLError as error:
        if promised:
            raise DataError(f"the model does not answer: {error}") from error
    except Exception as error:
        told = str(error).splitlines()[0][:200] if str(error) else ""
        raise DataError(f"the model does not answer ({type(error).__name__}: {told}); save it again") from error


def _check_finite(part: BaseEstimator) -> None:
    """No array that a fit learns has NaN or infinity; the few bags that a model is asked about may not meet them."""
    for name, value in vars(part).items():
        if not all(map(_is_finite, _arrays(value))):
            raise DataError(f"{name} of the {type(part).__name__} has values that are not finite")


def _arrays(value: Any) -> Iterator[NDArray[Any]]:
    """All arrays in a value but single numbers: bounds of parameters may be infinite."""
    if isinstance(value, np.ndarray) and value.ndim:
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from _arrays(each)


def _check_training_bags(part: Any) -> None:
    """What a model remembers of its training bags has one row for each; other bags do not show it."""
    posterior = getattr(part, "posterior_", None)
    if posterior is None:
        return
    q = len(part.classes_)
    if not isinstance(posterior, np.ndarray) or posterior.dtype.kind != "f" or posterior.shape[1:] != (q,):
        raise DataError(f"posterior_ of the {type(part).__name__} is no array of numbers for {q} classes")
    if _room(part) == "mipl" and not _are_probabilities(posterior):
        raise DataError(f"posterior_ of the {type(part).__name__} has rows that are no probabilities")
    for name in ("bag_digests_", "outside_"):
        remembered = getattr(part, name, None)
        if remembered is None:
            continue
        if not isinstance(remembered, np.ndarray) or remembered.shape != posterior.shape[:1]:
            raise DataError(f"{name} and posterior_ of the {type(part).__name__} are not of as many bags")


def _ask(model: Any) -> None:
    """Ask a model about a few bags; a wrong answer is an error."""
    q, d = _classes(model), _features(model)
    for sizes in _SIZES:
        _ask_about(model, q, d, sizes)


def _ask_about(model: Any, q: int, d: int, sizes: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).uniform(0.1, 0.9, (sum(sizes), d)).astype(np.float32)
    bags = Bags(values, np.cumsum([0, *sizes]), getattr(model, "instance_shape_", None))
    takes_bags = hasattr(type(model), "predict_instances")
    X: Any = bags if takes_bags else values
    with far_features_untold(), np.errstate(all="ignore"):
        _check_probabilities("predict_proba", model.predict_proba(X), (len(X), q))
        if len(model.predict(X)) != len(X):
            raise ValueError("predict gives another number of labels")
        if hasattr(type(model), "resolve"):
            mask = np.ones((len(X), q), dtype=bool)
            _check_probabilities("resolve", model.resolve(X, mask), (len(X), q))
        if takes_bags:
            found = np.asarray(model.predict_instances(bags))
            if len(found) != len(values) or not np.isfinite(found).all():
                raise ValueError(f"predict_instances gives an array {found.shape} that is not finite or too short")


def _check_probabilities(question: str, found: Any, shape: tuple[int, int]) -> None:
    array = np.asarray(found)
    if array.shape != shape or array.dtype.kind != "f":
        raise ValueError(f"{question} gives {array.dtype} {array.shape}, not {shape}")
    if not _are_probabilities(array):
        raise ValueError(f"{question} gives no probabilities")


def _are_probabilities(rows: NDArray[Any]) -> bool:
    """Whether rows (m, q) are finite, not negative and sum to one."""
    sums = rows.sum(axis=1)
    return bool(np.isfinite(rows).all() and (rows >= 0).all() and (np.abs(sums - 1) <= _SUM_TOLERANCE).all())


def _classes(model: Any) -> int:
    classes = model.classes_
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or classes.dtype.kind not in "iuUb":
        raise ValueError("classes_ is no list of labels")
    if len(classes) < 2 or len(np.unique(classes)) < len(classes):
        raise ValueError(f"classes_ has {len(classes)} labels, which must be at least two and differ")
    return len(classes)


def _features(model: Any) -> int:
    d = model.n_features_in_
    if isinstance(d, bool) or not isinstance(d, int | np.integer) or not 1 <= d <= _MOST_FEATURES:
        raise ValueError(f"n_features_in_ is {d!r}")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and (not isinstance(names, np.ndarray) or names.shape != (d,) or names.dtype.kind not in "UO"):
        raise ValueError(f"feature_names_in_ are not the names of {d} features")
    ranges = getattr(model, "feature_ranges_", None)
    if ranges is not None and (
        not isinstance(ranges, np.ndarray) or ranges.shape != (2, d) or ranges.dtype.kind != "f"
    ):
        raise ValueError(f"feature_ranges_ are not the ranges of {d} features")
    return int(d)


def _parts(value: Any) -> Iterator[BaseEstimator]:
    """All estimators in a model, itself included."""
    if isinstance(value, BaseEstimator):
        yield value
        value = vars(value)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from _parts(each)


def _is_known(model: Any, rooms: tuple[str, ...]) -> bool:
    return all(_room(part) in rooms for part in _parts(model))


def _room(part: BaseEstimator) -> str:
    return type(part).__module__.partition(".")[0]


def _is_finite(array: NDArray[Any]) -> bool:
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())
