"""The table of methods: names, parameters that find their place, and errors that name what is wrong."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
from sklearn.base import clone

import mipl
from mipl.checks import small_problem
from mipl.errors import ParameterError
from mipl.mil import OneVsRest
from mipl.pll import EmbeddedPLL, PLkNN
from mipl.registry import class_path, code_paths, describe

COMPOSED = [name for name, method in mipl.methods().items() if method.wrapper]
#: Every parameter of every method inside a wrapper, with values that no parameter can take.
ABSURD = [
    (name, parameter, value)
    for name in COMPOSED
    for parameter in mipl.methods()[name].parameters()
    for value in (object(), "abc", -1, float("nan"))
    if (parameter, value) != ("n_jobs", -1)  # all cores, in joblib
]


def load(path):
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


def test_names_can_be_listed_without_importing_a_method():
    code = (
        "import sys, mipl; list(mipl.methods()); print([m for m in ('torch', 'sklearn', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_learners_that_need_no_network_need_no_torch():
    code = "import sys, mipl.pll, mipl.mil; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("name", mipl.methods())
def test_every_entry_says_what_it_is(name):
    method = mipl.methods()[name]
    assert method.name == name
    assert method.citation
    assert method.summary.endswith(".")
    assert class_path(name) == code_paths(name)[0]
    classes = [load(path) for path in code_paths(name)]
    model = method()
    assert type(model) is classes[-1]
    assert type(mipl.make(name.lower())) is type(model)
    assert repr(model) == repr(clone(model))


@pytest.mark.parametrize("name", COMPOSED)
def test_a_learner_in_a_wrapper_has_the_name_of_its_method(name):
    model = mipl.make(name)
    assert model.name == model.learner.name == name
    assert type(model) is (EmbeddedPLL if "embed" in mipl.methods()[name].parameters() else OneVsRest)


@pytest.mark.parametrize("name", COMPOSED)
def test_flat_parameters_are_those_of_the_wrapper_and_of_the_learner_and_none_is_in_both(name):
    model = mipl.make(name)
    own, learner = (inspect.signature(type(m)).parameters for m in (model, model.learner))
    expected = {n: p.default for n, p in (own | learner).items() if n != "learner"}
    assert mipl.methods()[name].parameters() == expected
    assert not own.keys() & learner.keys()


def test_parameters_find_their_place():
    model = mipl.make("PL-kNN", embed="maxmin", n_neighbors=5)
    assert repr(model) == "EmbeddedPLL(embed='maxmin', learner=PLkNN(n_neighbors=5))"
    assert repr(mipl.make("PL-kNN", embed="maxmin", learner__n_neighbors=5)) == repr(model)
    assert repr(mipl.methods()["PL-kNN"](embed="maxmin", n_neighbors=5)) == repr(model)


def test_presets_are_other_defaults():
    plain, uniform, naive = (mipl.make(name) for name in ("MIPLGP", "MIPLGP-uniform", "MIPLGP-naive"))
    assert type(plain) is type(uniform) is type(naive)
    assert uniform.get_params() == plain.get_params() | {"disambiguation": "uniform"}
    assert naive.get_params() == plain.get_params() | {"augment": False}
    assert mipl.methods()["MIPLGP-naive"].parameters()["augment"] is False
    assert mipl.make("MIPLGP-naive", augment=True).augment is True


@pytest.mark.parametrize("name", COMPOSED)
def test_an_estimator_is_described_by_what_makes_it_again(name):
    own = "embed" if "embed" in mipl.methods()[name].parameters() else "n_jobs"
    params = {own: {"embed": "maxmin", "n_jobs": 2}[own], list(mipl.methods()[name].parameters())[-1]: 3}
    assert describe(mipl.make(name, **params)) == (name, params)


def test_only_estimators_of_the_table_are_described():
    class Mine(PLkNN):
        pass

    assert describe(EmbeddedPLL(Mine())) is None
    assert describe(mipl.make("MIPLGP-uniform")) == ("MIPLGP", {"disambiguation": "uniform"})


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("PL-SVM", {}, r"unknown method 'PL-SVM'; the methods are BagGP, MIPLGP"),
        ("pl-kn", {}, r"unknown method 'pl-kn'; did you mean 'PL-kNN'\? The methods are BagGP"),
        ("SURE", {"x": 1}, r"SURE has no parameter 'x'; it has embed, lam, beta, lengthscale, max_iter, tol$"),
        ("SURE", {"lambda_": 1}, r"SURE has no parameter 'lambda_'; did you mean 'lam'\? It has embed, lam"),
        ("SURE", {"learner__tols": 1}, r"SURE has no parameter 'learner__tols'; did you mean 'tol'\?"),
        ("SURE", {"learner": PLkNN()}, r"SURE has no parameter 'learner'; it has embed"),
        ("SURE", {"learner__embed": "mean"}, r"SURE has no parameter 'learner__embed'; did you mean 'embed'\?"),
        ("BagGP", {"learner__rank": 3}, r"BagGP has no parameter 'learner__rank'; it has features"),
    ],
)
def test_unknown_names_are_refused_with_the_closest_known_one(name, params, message):
    with pytest.raises(ParameterError, match=message):
        mipl.make(name, **params)


@pytest.mark.parametrize("name", COMPOSED)
def test_every_parameter_has_a_constraint_and_every_constraint_a_parameter(name):
    model = mipl.make(name)
    for part in (model, model.learner):
        assert part._parameter_constraints.keys() == part.get_params(deep=False).keys()


@pytest.mark.parametrize(
    ("name", "parameter", "value"), ABSURD, ids=[f"{n}-{p}-{type(v).__name__}" for n, p, v in ABSURD]
)
def test_an_absurd_value_is_refused_by_the_name_of_its_parameter(name, parameter, value):
    bags, candidates, _ = small_problem(m=6)
    with pytest.raises(ParameterError, match=rf"The '{parameter}' parameter of|{parameter}='abc' is not"):
        mipl.make(name, **{parameter: value}).fit(bags, candidates)


@pytest.mark.parametrize("name", [name for name in COMPOSED if "random_state" in mipl.methods()[name].parameters()])
def test_any_kind_of_random_state_fits(name):
    bags, candidates, _ = small_problem()
    params = {"max_epochs": 1} if name == "MIVAE" else {}
    for random_state in (None, 7, np.random.RandomState(7)):
        model = mipl.make(name, random_state=random_state, **params).fit(bags, candidates)
        assert np.isfinite(model.predict_proba(bags)).all()
