"""`mipl.resolve` and `mipl.explain`: from a model and bags to a `Resolution`.

`resolve` chooses among the candidates of each bag, `explain` among all classes. Columns are the model's classes; what a
data set says is translated by name.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mipl.bags import Bags, as_bags
from mipl.base import MIPLClassifier
from mipl.dataset import MIPLDataset
from mipl.errors import DataError, ParameterError
from mipl.pipeline import before_last, last_step
from mipl.resolution import Resolution
from mipl.streams import BagStream

__all__ = ["explain", "resolve"]


def resolve(dataset: MIPLDataset, model: MIPLClassifier | Pipeline | None = None) -> Resolution:
    """Find the true label of each bag of a data set among its candidates.

    Parameters
    ----------
    dataset : MIPLDataset or Scan
        m bags with candidate sets. Its classes may be some of the model's, in any order: they are matched by name. A
        scan is read chunk by chunk, but the Resolution holds all of its bags in the end: take that of a chunk or a
        sample where they do not fit into memory.
    model : MIPLClassifier or Pipeline that ends in one, default=BagGP(random_state=0)
        A fitted model answers as it is; one that is not fitted yet is fitted on the data set first, and stays fitted.

    Returns
    -------
    Resolution

    Raises
    ------
    DataError
        A candidate is not among the model's classes.
    """
    if not isinstance(dataset, MIPLDataset | BagStream):
        raise DataError(
            f"resolve needs a MIPLDataset with candidates, not a {type(dataset).__name__}; "
            "for bags without candidates use explain(model, bags)"
        )
    start = time.perf_counter()
    if model is None:
        from mipl.baggp import BagGP

        model = BagGP(random_state=0)
    _check_estimator(model)
    votes = None  # a fit knows them
    if hasattr(model, "classes_"):
        votes = getattr(dataset, "candidate_weights", None)
    else:
        model.fit(dataset)
    if isinstance(dataset, BagStream):
        fitted = model
        return replace(_joined(dataset.each(partial(resolve, model=fitted))), seconds=_since(start))
    candidates = _by_name(dataset, dataset.candidates, model.classes_)
    method, seen = last_step(model), before_last(model, dataset.bags)
    posterior = method.resolve(seen, candidates if votes is None else _by_name(dataset, votes, model.classes_))
    order_of = getattr(method, "label_order", None)
    return Resolution(
        classes=model.classes_,
        bags=dataset.bags,
        bag_ids=dataset.bag_ids,
        posterior=posterior,
        instance_probabilities=method.predict_instances(seen),
        candidates=candidates,
        truth=_truth(dataset, model.classes_),
        method=method.name or type(method).__name__,
        label_free=_label_free(method),
        label_order=None if order_of is None else order_of(seen, posterior),
        background=_background(method, dataset),
        seconds=time.perf_counter() - start,
    )


def explain(model: MIPLClassifier | Pipeline, data: Any, *, instances: bool = True) -> Resolution:
    """Label bags among all classes of a fitted model, and say which instances it is by.

    Parameters
    ----------
    model : MIPLClassifier or Pipeline that ends in one
        A fitted model.
    data : MIPLDataset, Scan, Bags, list of (n_i, d) arrays, or 3-D array
        m bags. A data set brings its bag ids, and its true labels to compare with; its candidates are not used. For a
        scan see `resolve`.
    instances : bool, default=True
        Whether to judge the instances too. Without them it is faster, and there is no `Resolution.instance`.

    Returns
    -------
    Resolution
    """
    _check_estimator(model)
    check_is_fitted(model, "classes_")
    start = time.perf_counter()
    if isinstance(data, BagStream):
        parts = data.each(partial(explain, model, instances=instances))
        return replace(_joined(parts), seconds=_since(start))
    dataset = data if isinstance(data, MIPLDataset) else None
    bags = as_bags(data) if dataset is None else dataset.bags
    truth = None if dataset is None else _truth(dataset, model.classes_)
    method, seen = last_step(model), before_last(model, bags)
    posterior = method.predict_proba(seen)
    return Resolution(
        classes=model.classes_,
        bags=bags,
        bag_ids=np.arange(len(bags)) if dataset is None else dataset.bag_ids,
        posterior=posterior,
        instance_probabilities=method.predict_instances(seen) if instances else None,
        truth=truth,
        method=method.name or type(method).__name__,
        label_free=_label_free(method),
        background=_background(method, dataset),
        seconds=time.perf_counter() - start,
    )


def _since(start: float) -> float:
    return time.perf_counter() - start


def _joined(parts: list[Resolution]) -> Resolution:
    """The answers for the chunks of a scan as one."""
    if not parts:
        raise DataError("there are no bags to answer for: none is on this side of the filters and splits")

    def stacked(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        if name == "truth" and any(array is not None for array in arrays):  # no label is known in some chunk
            arrays = [
                np.full(len(part), None, dtype=object) if array is None else array
                for part, array in zip(parts, arrays, strict=True)
            ]
        return None if any(array is None for array in arrays) else np.concatenate(arrays)

    names = ("bag_ids", "posterior", "instance_probabilities", "candidates", "truth")
    bags = Bags.concatenate([part.bags for part in parts])
    return replace(parts[0], bags=bags, **{name: stacked(name) for name in names})


def _label_free(model: MIPLClassifier) -> tuple[float, float] | None:
    """What a model that cross-fits itself found out about held-out candidate sets, with the standard error."""
    score, error = (getattr(model, name, None) for name in ("label_free_score_", "label_free_error_"))
    return None if score is None or error is None else (score, error)


def _background(model: MIPLClassifier, dataset: MIPLDataset | None) -> Any:
    """The background class of the model, else that of the data where the model has such a class; or None."""
    column = getattr(model, "background_", None)
    if column is not None:
        return model.classes_[column].item()
    label = None if dataset is None else dataset.background
    return label if label in model.classes_.tolist() else None


def _check_estimator(model: Any) -> None:
    if not isinstance(last_step(model), MIPLClassifier):
        what = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        raise ParameterError(f"model must be an estimator such as BagGP(), not {what}")


def _by_name(dataset: MIPLDataset, known: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """The candidates of a data set, or the votes on them, as a matrix (m, q) over the model's classes (q,)."""
    _check_same_kind(dataset, classes)
    position = {name: c for c, name in enumerate(classes.tolist())}
    column = np.array([position.get(name, -1) for name in dataset.classes.tolist()])
    unknown = np.argwhere(dataset.candidates & (column < 0))
    if len(unknown):
        bag, c = unknown[0]
        raise DataError(
            f"bag {dataset.bag_ids[bag].item()!r} has the candidate {dataset.classes[c].item()!r}, which the model "
            f"does not know; its classes are {_shown(classes)}; leave that candidate out of the bag, or fit a model on "
            "data with this class"
        )
    matrix = np.zeros((len(dataset), len(classes)), dtype=known.dtype)
    matrix[:, column[column >= 0]] = known[:, column >= 0]
    return matrix


def _truth(dataset: MIPLDataset, classes: NDArray[Any]) -> NDArray[Any] | None:
    names = dataset.label_names()
    if names is None:
        return None
    _check_same_kind(dataset, classes)
    truth = np.empty(len(names), dtype=object)
    truth[:] = names
    return truth


def _check_same_kind(dataset: MIPLDataset, classes: NDArray[Any]) -> None:
    """6 and "6" are not the same name."""
    kinds = ["text" if names.dtype.kind == "U" else "integers" for names in (dataset.classes, classes)]
    if kinds[0] != kinds[1]:
        raise DataError(
            f"the classes of the data set are {kinds[0]} ({_shown(dataset.classes)}), those of the model {kinds[1]} "
            f"({_shown(classes)}); give both the same names: a model fitted on a data set has its names"
        )


def _shown(classes: NDArray[Any], most: int = 10) -> str:
    names = classes.tolist()
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")
