"""check_mipl_estimator: what every method owes its users, checked on small synthetic bags.

``check_mipl_estimator(MyMethod())`` raises an `AssertionError` that says which promise is broken. Every method in the
registry passes it; run it on your own.
"""

from __future__ import annotations

import inspect
import pickle
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from mipl.bags import Bags
from mipl.base import MIPLClassifier
from mipl.check_assertions import TOLERANCE, assert_probabilities, assert_refused, random_states, seeded
from mipl.errors import DataError, ParameterError
from mipl.persistence import load_model
from mipl.small_problems import small_dataset, small_problem
from mipl.weight_checks import sample_weight_checks

__all__ = ["check_mipl_estimator", "mipl_checks", "small_dataset", "small_problem"]


def check_mipl_estimator(estimator: MIPLClassifier) -> None:
    """Run every check on clones of an estimator.

    Parameters
    ----------
    estimator : MIPLClassifier
        With the parameters that it shall be checked with; it is not fitted itself.

    Raises
    ------
    AssertionError
        With the first promise that is broken.

    Examples
    --------
    >>> import mipl
    >>> check_mipl_estimator(mipl.make("PL-kNN"))
    """
    for check in mipl_checks():
        check(clone(estimator))


def mipl_checks() -> Iterator[Callable[[MIPLClassifier], None]]:
    """The checks one by one, for test runners that report each under its own name."""
    yield check_constructor_only_assigns
    yield check_params_round_trip
    yield check_nonsense_parameters_are_refused
    yield check_any_random_state_is_accepted
    yield check_fit_returns_self_and_leaves_inputs_alone
    yield check_unfitted_models_say_so
    yield check_outputs_have_the_promised_form
    yield check_same_seed_gives_same_answers
    yield check_second_fit_forgets_the_first
    yield check_order_of_bags_and_instances_does_not_matter
    yield check_data_set_equals_its_parts
    yield check_labels_by_name
    yield check_features_by_name
    yield check_equal_odds_are_a_candidate_set
    yield check_nothing_known_means_all_classes
    yield check_a_background_class_is_accepted
    yield from sample_weight_checks()
    yield check_saving_and_pickling_change_nothing
    yield check_a_class_that_no_bag_makes_possible_has_probability_zero
    yield check_bad_input_is_refused


# -------------------------------------------------------------------- parameters


def check_constructor_only_assigns(estimator: MIPLClassifier) -> None:
    """Parameters are keyword-only and stored as given; a wrapper may take its `learner` by position, as the first."""
    cls = type(estimator)
    parameters = inspect.signature(cls).parameters
    learner = {name: getattr(estimator, name) for name in list(parameters)[:1] if _is_learner(estimator, name)}
    for name, parameter in parameters.items():
        if name not in learner:
            keyword_only = parameter.kind is inspect.Parameter.KEYWORD_ONLY
            assert keyword_only, f"{cls.__name__}: parameter {name} is not keyword-only"
        marker = object()
        built = cls(**{**learner, name: marker})
        assert getattr(built, name) is marker, f"{cls.__name__}: __init__ changes or drops the parameter {name}"
        extra = vars(built).keys() - parameters.keys()
        assert not extra, f"{cls.__name__}: __init__ sets {sorted(extra)}, which are no parameters"


def _is_learner(estimator: MIPLClassifier, name: str) -> bool:
    return name == "learner" and isinstance(getattr(estimator, name, None), BaseEstimator)


def check_params_round_trip(estimator: MIPLClassifier) -> None:
    """get_params and set_params agree, and clone copies them."""
    params = estimator.get_params(deep=False)
    assert clone(estimator).get_params(deep=False).keys() == params.keys()
    assert estimator.set_params(**params) is estimator
    for name, value in estimator.get_params(deep=False).items():
        assert value is params[name], f"set_params changes {name}"


def check_nonsense_parameters_are_refused(estimator: MIPLClassifier) -> None:
    """Every parameter, a learner's too, is constrained; nonsense ends in a ParameterError that names it."""
    bags, candidates, _ = small_problem()
    owners: dict[str, BaseEstimator] = {"": estimator}
    if _is_learner(estimator, "learner"):
        owners["learner__"] = estimator.learner
    for prefix, owner in owners.items():
        for name in owner.get_params(deep=False):
            who = f"{type(owner).__name__}: the parameter {name}"
            assert name in getattr(owner, "_parameter_constraints", {}), f"{who} has no entry in _parameter_constraints"
            nonsense = clone(estimator).set_params(**{prefix + name: object()})
            assert_refused(who, "any object", ParameterError, lambda: nonsense.fit(bags, candidates), name)  # noqa: B023
    unknown = set(estimator._parameter_constraints) - set(estimator.get_params(deep=False))
    assert not unknown, f"_parameter_constraints names {sorted(unknown)}, which are no parameters"


def check_any_random_state_is_accepted(estimator: MIPLClassifier) -> None:
    """A random_state may be None or a RandomState; a fitted model answers the same each time, whatever it was."""
    bags, candidates, _ = small_problem()
    for name in random_states(estimator):
        models = []
        for state in (None, np.random.RandomState(5), np.random.RandomState(5)):
            try:
                models.append(clone(estimator).set_params(**{name: state}).fit(bags, candidates))
            except Exception as error:
                raise AssertionError(f"{name}={state} ends in {type(error).__name__}: {error}") from error
        for model in models[:2]:
            same = np.array_equal(model.predict_proba(bags), model.predict_proba(bags))
            assert same, f"two predictions of one fit differ where {name} is {model.get_params()[name]}"
        same = np.array_equal(models[1].predict_proba(bags), models[2].predict_proba(bags))
        assert same, f"two fits with {name}=RandomState(5) differ"


# -------------------------------------------------------------------- fit and answers


def check_fit_returns_self_and_leaves_inputs_alone(estimator: MIPLClassifier) -> None:
    """Fit gives the estimator back and changes neither its inputs nor its parameters."""
    bags, candidates, _ = small_problem()
    instances, mask = bags.instances.copy(), candidates.copy()
    before = estimator.get_params()
    assert estimator.fit(bags, candidates) is estimator, "fit does not return self"
    assert np.array_equal(bags.instances, instances), "fit changes the instances"
    assert np.array_equal(candidates, mask), "fit changes the candidates"
    for name, value in estimator.get_params().items():
        assert value is before[name], f"fit changes the parameter {name}"
    if _is_learner(estimator, "learner"):
        assert not hasattr(estimator.learner, "classes_"), "fit fits its parameter learner; fit a clone of it"


def check_unfitted_models_say_so(estimator: MIPLClassifier) -> None:
    """Before fit every question ends in scikit-learn's NotFittedError."""
    bags, candidates, labels = small_problem()
    with tempfile.TemporaryDirectory() as folder:
        questions: dict[str, Callable[[], Any]] = {
            "predict": lambda: estimator.predict(bags),
            "predict_proba": lambda: estimator.predict_proba(bags),
            "predict_instances": lambda: estimator.predict_instances(bags),
            "resolve": lambda: estimator.resolve(bags, candidates),
            "score": lambda: estimator.score(bags, labels),
            "save": lambda: estimator.save(Path(folder) / "model.mipl"),
        }
        for name, ask in questions.items():
            assert_refused(name, "a model that is not fitted", NotFittedError, ask)


def check_outputs_have_the_promised_form(estimator: MIPLClassifier) -> None:
    """Probabilities sum to one, resolve is zero off the candidates, predict is the most probable class."""
    bags, candidates, _ = small_problem()
    m, q = candidates.shape
    estimator.fit(bags, candidates)
    proba = estimator.predict_proba(bags)
    for name, matrix, shape in (
        ("predict_proba", proba, (m, q)),
        ("predict_instances", estimator.predict_instances(bags), (bags.n_instances, q + 1)),
        ("resolve", estimator.resolve(bags, candidates), (m, q)),
    ):
        assert isinstance(matrix, np.ndarray), f"{name} gives a {type(matrix).__name__}, not an array"
        assert matrix.shape == shape, f"{name} has shape {matrix.shape}, expected {shape}"
        assert np.isfinite(matrix).all(), f"{name} is not finite"
        assert (matrix >= 0).all(), f"{name} has negative entries"
        assert np.abs(matrix.sum(axis=1) - 1).max() < TOLERANCE, f"rows of {name} do not sum to one"
    assert (estimator.resolve(bags, candidates)[~candidates] == 0).all(), "resolve gives mass to non-candidates"
    predicted = estimator.predict(bags)
    assert np.shape(predicted) == (m,), f"predict has shape {np.shape(predicted)}"
    best = estimator.classes_[proba.argmax(axis=1)]
    assert np.array_equal(predicted, best), "predict is not the argmax of predict_proba"
    assert estimator.score(bags, best) == 1, "score is not the share of bags whose label is predicted"
    assert 0 <= estimator.score(bags, candidates) <= 1


def check_same_seed_gives_same_answers(estimator: MIPLClassifier) -> None:
    """Two fits with the same random_state agree bit for bit, and so do two predictions of one fit."""
    bags, candidates, _ = small_problem()
    first = seeded(estimator).fit(bags, candidates)
    second = seeded(estimator).fit(bags, candidates)
    assert np.array_equal(first.predict_proba(bags), second.predict_proba(bags)), "fit is not deterministic"
    assert np.array_equal(first.predict_proba(bags), first.predict_proba(bags)), "predict_proba is not deterministic"


def check_second_fit_forgets_the_first(estimator: MIPLClassifier) -> None:
    """A model that was fitted on other bags, classes and features before is the model of a first fit."""
    again, fresh = seeded(estimator), seeded(estimator)
    again.fit(small_dataset())
    bags, candidates, _ = small_problem(q=4, m=18, d=5, seed=8)
    again.fit(bags, candidates)
    fresh.fit(bags, candidates)
    kept = vars(again).keys() - vars(fresh).keys()
    assert not kept, f"a second fit keeps {sorted(kept)} of the first"
    assert np.array_equal(again.classes_, fresh.classes_), "a second fit keeps the classes of the first"
    for name in ("predict_proba", "predict_instances"):
        same = np.array_equal(getattr(again, name)(bags), getattr(fresh, name)(bags))
        assert same, f"{name} after a second fit depends on the first"


def check_order_of_bags_and_instances_does_not_matter(estimator: MIPLClassifier) -> None:
    """A bag's answer depends neither on the other bags of the call nor on the order of its instances."""
    bags, candidates, _ = small_problem()
    estimator.fit(bags, candidates)
    proba = estimator.predict_proba(bags)
    order = np.random.default_rng(0).permutation(len(bags))
    assert np.allclose(estimator.predict_proba(bags[order]), proba[order], atol=TOLERANCE), "the order of bags matters"
    assert np.allclose(estimator.predict_proba(bags[:5]), proba[:5], atol=TOLERANCE), "other bags of a call matter"
    turned = Bags.from_list([bag[::-1] for bag in bags])
    assert np.allclose(estimator.predict_proba(turned), proba, atol=TOLERANCE), "the order inside a bag matters"


# -------------------------------------------------------------------- data sets and names


def check_data_set_equals_its_parts(estimator: MIPLClassifier) -> None:
    """A data set may stand for its bags, candidates, labels and classes in every question."""
    ds = small_dataset()
    whole = seeded(estimator).fit(ds)
    parts = seeded(estimator).fit(ds.bags, ds.candidates, ds.classes)
    assert np.array_equal(whole.classes_, ds.classes), "fit on a data set drops its class names"
    pairs: dict[str, tuple[Any, Any]] = {
        "predict": (whole.predict(ds), parts.predict(ds.bags)),
        "predict_proba": (whole.predict_proba(ds), parts.predict_proba(ds.bags)),
        "predict_instances": (whole.predict_instances(ds), parts.predict_instances(ds.bags)),
        "resolve": (whole.resolve(ds), parts.resolve(ds.bags, ds.candidates)),
        "score": (whole.score(ds), parts.score(ds.bags, ds.labels)),
    }
    for name, (of_whole, of_parts) in pairs.items():
        assert np.array_equal(of_whole, of_parts), f"{name} of a data set differs from that of its parts"


def check_labels_by_name(estimator: MIPLClassifier) -> None:
    """Fitted with names, predict gives names, equal to the answers of a fit with the mask."""
    bags, candidates, _ = small_problem()
    names = np.array(["ant", "bee", "cat"])
    sets = [names[row].tolist() for row in candidates]
    by_name = seeded(estimator).fit(bags, sets).predict(bags)
    by_index = seeded(estimator).fit(bags, candidates).predict(bags)
    assert np.array_equal(by_name, names[by_index]), "names and indices give different answers"


def check_features_by_name(estimator: MIPLClassifier) -> None:
    """Columns are matched by name; a missing and an unknown feature are errors that name it."""
    ds = small_dataset()
    estimator.fit(ds)
    names = list(ds.bags.feature_names or ())
    fitted = getattr(estimator, "feature_names_in_", np.array([]))
    assert fitted.tolist() == names, "feature_names_in_ is not what the bags' features are called"
    turned = ds.bags.select_features(names[::-1])
    same = np.array_equal(estimator.predict_proba(turned), estimator.predict_proba(ds.bags))
    assert same, "columns are matched by position although they have names"
    renamed = Bags(ds.bags.instances, ds.bags.offsets, feature_names=[*names[:-1], "height in feet"])
    wider = Bags(
        np.concatenate([ds.bags.instances, ds.bags.instances[:, :1]], axis=1),
        ds.bags.offsets,
        feature_names=[*names, "shoe size"],
    )
    for bags, feature, what in (
        (ds.bags.select_features(names[:-1]), names[-1], "a missing feature"),
        (renamed, names[-1], "a renamed feature"),
        (wider, "shoe size", "an unknown feature"),
    ):
        who = f"predict_proba of {type(estimator).__name__}"
        assert_refused(who, what, DataError, lambda: estimator.predict_proba(bags), repr(feature))  # noqa: B023


# -------------------------------------------------------------------- votes, unknown labels, background


def check_equal_odds_are_a_candidate_set(estimator: MIPLClassifier) -> None:
    """Votes are accepted, by methods that only use sets with a warning; equal odds are a plain candidate set."""
    bags, candidates, _ = small_problem()
    by_mask = seeded(estimator).fit(bags, candidates).predict_proba(bags)
    votes = np.where(candidates, np.random.default_rng(0).integers(1, 9, candidates.shape), 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        equal = seeded(estimator).fit(bags, 0.5 * candidates).predict_proba(bags)
        assert_probabilities("predict_proba after a fit with votes", seeded(estimator).fit(bags, votes), bags)
    assert np.allclose(equal, by_mask, atol=TOLERANCE), "equal odds on the candidates differ from the candidate set"


def check_nothing_known_means_all_classes(estimator: MIPLClassifier) -> None:
    """None in the place of a candidate set is the set of all classes."""
    bags, candidates, _ = small_problem()
    unknown = np.arange(len(bags)) % 5 == 0
    sets = [None if nothing else np.flatnonzero(row).tolist() for row, nothing in zip(candidates, unknown, strict=True)]
    by_none = seeded(estimator).fit(bags, sets)
    by_mask = seeded(estimator).fit(bags, candidates | unknown[:, None])
    same = np.array_equal(by_none.predict_proba(bags), by_mask.predict_proba(bags))
    assert same, "None in the place of a candidate set differs from the set of all classes"


def check_a_background_class_is_accepted(estimator: MIPLClassifier) -> None:
    """A class may be declared the background; one that is no class is refused."""
    bags, candidates, _ = small_problem()
    fitted = clone(estimator).fit(bags, candidates, background=1)
    assert_probabilities("predict_proba after a fit with a background class", fitted, bags)
    assert_refused(
        type(estimator).__name__,
        "a background that is no class",
        DataError,
        lambda: clone(estimator).fit(bags, candidates, background=7),
        "7",
    )


# -------------------------------------------------------------------- files and bad input


def check_saving_and_pickling_change_nothing(estimator: MIPLClassifier) -> None:
    """A model that was saved and loaded, or pickled, answers bit for bit as before."""
    ds = small_dataset()
    estimator.fit(ds)
    with tempfile.TemporaryDirectory() as folder:
        loaded = load_model(estimator.save(Path(folder) / "model.mipl"))
    for copy, how in ((loaded, "saving"), (pickle.loads(pickle.dumps(estimator)), "pickling")):
        assert type(copy) is type(estimator), f"{how} changes the class"
        assert repr(copy) == repr(estimator), f"{how} changes the parameters"
        for method in ("predict", "predict_proba", "predict_instances", "resolve"):
            same = np.array_equal(getattr(copy, method)(ds), getattr(estimator, method)(ds))
            assert same, f"{how} changes the result of {method}"


def check_a_class_that_no_bag_makes_possible_has_probability_zero(estimator: MIPLClassifier) -> None:
    """So has one that is a candidate only where nothing is known; a warning names it once. Files keep it."""
    bags, candidates, _ = small_problem()
    mask = np.insert(candidates, 1, False, axis=1)
    mask[::5] = True
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fitted = seeded(estimator).fit(bags, mask, ["ant", "dodo", "bee", "cat"])
    said = [str(each.message) for each in told if "'dodo'" in str(each.message)]
    assert len(said) == 1, f"{len(said)} warnings name a class that is a candidate of no training bag"
    with tempfile.TemporaryDirectory() as folder:
        loaded = load_model(fitted.save(Path(folder) / "model.mipl"))
    for model in (fitted, loaded):
        assert_probabilities("predict_proba with a class that no bag makes possible", model, bags)
        for name, answer in (
            ("predict_proba", model.predict_proba(bags)),
            ("predict_instances", model.predict_instances(bags)),
            ("resolve", model.resolve(bags, mask)),
        ):
            assert not answer[:, 1].any(), f"{name} gives mass to a class that is a candidate of no training bag"
            assert np.abs(answer.sum(axis=1) - 1).max() < TOLERANCE, f"rows of {name} do not sum to one without it"


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
        ("bags without candidate sets", lambda: clone(estimator).fit(bags)),
    ]
    estimator.fit(bags, candidates)
    refused += [
        ("other features than fitted", lambda: estimator.predict([np.zeros((2, 9))])),
        ("labels that are no classes", lambda: estimator.score(bags, labels + 100)),
        ("candidates of other width", lambda: estimator.resolve(bags, candidates[:, :-1])),
    ]
    for what, call in refused:
        assert_refused(type(estimator).__name__, what, DataError, call)
