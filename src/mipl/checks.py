"""check_mipl_estimator: what every method owes its users, checked on small synthetic bags.

``check_mipl_estimator(MyMethod())`` raises an `AssertionError` that says which promise is broken. Every method in the
registry passes it; run it on your own.
"""

from __future__ import annotations

import inspect
import pickle
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mipl.bags import Bags
from mipl.base import MIPLClassifier
from mipl.errors import DataError
from mipl.persistence import load_model

__all__ = ["check_mipl_estimator", "mipl_checks"]

_TOLERANCE = 1e-5


def check_mipl_estimator(estimator: MIPLClassifier) -> None:
    """Run every check on clones of `estimator`; the first broken promise raises an AssertionError.

    Examples
    --------
    >>> import mipl
    >>> check_mipl_estimator(mipl.make("PL-kNN", k=3))
    """
    for check in mipl_checks():
        check(clone(estimator))


def mipl_checks() -> Iterator[Callable[[MIPLClassifier], None]]:
    """The checks one by one, for test runners that report each under its own name."""
    yield check_constructor_only_assigns
    yield check_params_round_trip
    yield check_fit_returns_self_and_leaves_inputs_alone
    yield check_outputs_have_the_promised_form
    yield check_same_seed_gives_same_answers
    yield check_order_of_bags_and_instances_does_not_matter
    yield check_labels_by_name
    yield check_saving_and_pickling_change_nothing
    yield check_bad_input_is_refused


def small_problem(q: int = 3, m: int = 24, d: int = 4) -> tuple[Bags, NDArray[np.bool_], NDArray[np.int64]]:
    """Make m bags of 1 to 5 instances, some near the class centre, the rest around the origin; two candidates each."""
    rng = np.random.default_rng(7)
    labels = np.arange(m) % q
    candidates = np.zeros((m, q), dtype=bool)
    candidates[np.arange(m), labels] = True
    candidates[np.arange(m), (labels + rng.integers(1, q, m)) % q] = True
    bags = []
    for label in labels:
        size = rng.integers(1, 6)
        bag = 0.3 * rng.standard_normal((size, d))
        bag[: rng.integers(1, size + 1), label] += 2.0
        bags.append(bag.astype(np.float32))
    return Bags.from_list(bags), candidates, labels


def check_constructor_only_assigns(estimator: MIPLClassifier) -> None:
    """Parameters are keyword-only and stored as given."""
    cls = type(estimator)
    for name, parameter in inspect.signature(cls).parameters.items():
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY, f"{cls.__name__}: parameter {name} is not keyword-only"
        marker = object()
        built = cls(**{name: marker})
        assert getattr(built, name) is marker, f"{cls.__name__}: __init__ changes or drops the parameter {name}"


def check_params_round_trip(estimator: MIPLClassifier) -> None:
    """get_params and set_params agree, and clone copies them."""
    params = estimator.get_params(deep=False)
    assert clone(estimator).get_params(deep=False).keys() == params.keys()
    assert estimator.set_params(**params) is estimator
    for name, value in estimator.get_params(deep=False).items():
        assert value is params[name], f"set_params changes {name}"


def check_fit_returns_self_and_leaves_inputs_alone(estimator: MIPLClassifier) -> None:
    """Fit gives the estimator back and changes neither its inputs nor its parameters."""
    bags, candidates, _ = small_problem()
    instances, mask = bags.instances.copy(), candidates.copy()
    before = estimator.get_params(deep=False)
    assert estimator.fit(bags, candidates) is estimator, "fit does not return self"
    assert np.array_equal(bags.instances, instances), "fit changes the instances"
    assert np.array_equal(candidates, mask), "fit changes the candidates"
    for name, value in estimator.get_params(deep=False).items():
        assert value is before[name], f"fit changes the parameter {name}"


def check_outputs_have_the_promised_form(estimator: MIPLClassifier) -> None:
    """Probabilities sum to one, resolve is zero off the candidates, predict is a class."""
    bags, candidates, _ = small_problem()
    m, q = candidates.shape
    estimator.fit(bags, candidates)
    for name, matrix, shape in (
        ("predict_proba", estimator.predict_proba(bags), (m, q)),
        ("predict_instances", estimator.predict_instances(bags), (bags.n_instances, q + 1)),
        ("resolve", estimator.resolve(bags, candidates), (m, q)),
    ):
        assert isinstance(matrix, np.ndarray), f"{name} gives a {type(matrix).__name__}, not an array"
        assert matrix.shape == shape, f"{name} has shape {matrix.shape}, expected {shape}"
        assert np.isfinite(matrix).all(), f"{name} is not finite"
        assert (matrix >= 0).all(), f"{name} has negative entries"
        assert np.abs(matrix.sum(axis=1) - 1).max() < _TOLERANCE, f"rows of {name} do not sum to one"
    assert (estimator.resolve(bags, candidates)[~candidates] == 0).all(), "resolve gives mass to non-candidates"
    predicted = estimator.predict(bags)
    assert predicted.shape == (m,), f"predict has shape {predicted.shape}"
    assert np.isin(predicted, estimator.classes_).all(), "predict gives something that is not a class"
    assert 0 <= estimator.score(bags, candidates) <= 1


def check_same_seed_gives_same_answers(estimator: MIPLClassifier) -> None:
    """Two fits with the same random_state agree bit for bit, and so do two predictions of one fit."""
    bags, candidates, _ = small_problem()
    if "random_state" in estimator.get_params(deep=False):
        estimator.set_params(random_state=3)
    first = clone(estimator).fit(bags, candidates)
    second = clone(estimator).fit(bags, candidates)
    assert np.array_equal(first.predict_proba(bags), second.predict_proba(bags)), "fit is not deterministic"
    assert np.array_equal(first.predict_proba(bags), first.predict_proba(bags)), "predict_proba is not deterministic"


def check_order_of_bags_and_instances_does_not_matter(estimator: MIPLClassifier) -> None:
    """A bag's answer depends neither on the other bags of the call nor on the order of its instances."""
    bags, candidates, _ = small_problem()
    estimator.fit(bags, candidates)
    proba = estimator.predict_proba(bags)
    order = np.random.default_rng(0).permutation(len(bags))
    assert np.allclose(estimator.predict_proba(bags[order]), proba[order], atol=_TOLERANCE), "the order of bags matters"
    assert np.allclose(estimator.predict_proba(bags[:5]), proba[:5], atol=_TOLERANCE), "other bags of a call matter"
    turned = Bags.from_list([bag[::-1] for bag in bags])
    assert np.allclose(estimator.predict_proba(turned), proba, atol=_TOLERANCE), "the order inside a bag matters"


def check_labels_by_name(estimator: MIPLClassifier) -> None:
    """Fitted with names, predict gives names, equal to the answers of a fit with the mask."""
    bags, candidates, _ = small_problem()
    names = np.array(["ant", "bee", "cat"])
    sets = [names[row].tolist() for row in candidates]
    by_name = clone(estimator).fit(bags, sets).predict(bags)
    by_index = clone(estimator).fit(bags, candidates).predict(bags)
    assert np.array_equal(by_name, names[by_index]), "names and indices give different answers"


def check_saving_and_pickling_change_nothing(estimator: MIPLClassifier) -> None:
    """A model that was saved and loaded, or pickled, answers bit for bit as before."""
    bags, candidates, _ = small_problem()
    estimator.fit(bags, candidates)
    with tempfile.TemporaryDirectory() as folder:
        loaded = load_model(estimator.save(Path(folder) / "model.mipl"))
    for copy, how in ((loaded, "saving"), (pickle.loads(pickle.dumps(estimator)), "pickling")):
        assert type(copy) is type(estimator), f"{how} changes the class"
        assert repr(copy) == repr(estimator), f"{how} changes the parameters"
        for method in ("predict_proba", "predict_instances"):
            same = np.array_equal(getattr(copy, method)(bags), getattr(estimator, method)(bags))
            assert same, f"{how} changes the result of {method}"


def check_bad_input_is_refused(estimator: MIPLClassifier) -> None:
    """Input that cannot be right ends in a DataError, before and after fit."""
    bags, candidates, labels = small_problem()
    refused: list[tuple[str, Callable[[], Any]]] = [
        ("fewer candidate sets than bags", lambda: clone(estimator).fit(bags, candidates[:-1])),
        (
            "a bag without candidates",
            lambda: clone(estimator).fit(bags, candidates & (np.arange(len(bags)) > 0)[:, None]),
        ),
        ("a NaN", lambda: clone(estimator).fit([np.full((2, 4), np.nan)] * 3, candidates[:3])),
        ("an empty list", lambda: clone(estimator).fit([], candidates)),
    ]
    estimator.fit(bags, candidates)
    refused += [
        ("other features than fitted", lambda: estimator.predict([np.zeros((2, 9))])),
        ("labels that are no classes", lambda: estimator.score(bags, labels + 100)),
        ("candidates of other width", lambda: estimator.resolve(bags, candidates[:, :-1])),
    ]
    for what, call in refused:
        try:
            call()
        except DataError:
            continue
        raise AssertionError(f"{type(estimator).__name__} accepts {what}")
