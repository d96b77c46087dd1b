"""MIPLGP: the loop, its variants, its warnings, and that both solvers lead to one model."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import gpytorch
import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

import mipl
from mipl.checks import small_problem
from mipl.errors import ParameterError, UnavailableError
from mipl.gp.dirichlet import dirichlet_targets
from mipl.miplgp.estimator import MIPLGP


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any]:
    return mipl.load("digits", r=1, seed=0).split(seed=0)


def test_the_variants_are_presets_of_one_class() -> None:
    base = MIPLGP().get_params()
    assert mipl.make("MIPLGP-uniform").get_params() == base | {"disambiguation": "uniform"}
    assert mipl.make("MIPLGP-naive").get_params() == base | {"augment": False}
    assert mipl.make("MIPLGP-naive", nu=0.5).get_params() == base | {"augment": False, "nu": 0.5}


def test_bags_of_digits_are_classified_far_above_chance(digits: Any) -> None:
    train, test = digits
    model = MIPLGP(max_iter=30).fit(train.bags, train.candidates)
    assert model.score(test.bags, test.labels) > 0.5
    assert model.loss_curve_[-1] < model.loss_curve_[0]
    assert (model.resolve(train.bags, train.candidates).argmax(axis=1) == train.labels).mean() > 0.8
    assert model.predict_instances(test.bags).shape == (test.bags.n_instances, 6)


def test_conjugate_gradients_and_cholesky_learn_the_same_model(digits: Any) -> None:
    train, test = digits
    params = {"max_iter": 15, "variance_rank": None}
    direct = MIPLGP(cholesky_size=1000, **params).fit(train.bags, train.candidates)
    iterative = MIPLGP(cholesky_size=0, cg_tol=1e-3, n_probes=30, **params).fit(train.bags, train.candidates)
    assert (iterative.cg_residuals_[:-1] < 1e-3).all()
    assert (direct.cg_iterations_ == 0).all()
    assert iterative.lengthscale_ == pytest.approx(direct.lengthscale_, rel=0.02)
    np.testing.assert_allclose(iterative.predict_proba(test.bags), direct.predict_proba(test.bags), atol=0.01)


def test_uniform_and_released_predict_from_the_uniform_weights(digits: Any) -> None:
    train, _ = digits
    released = MIPLGP(max_iter=3).fit(train.bags, train.candidates)
    uniform = MIPLGP(disambiguation="uniform", max_iter=3).fit(train.bags, train.candidates)
    np.testing.assert_allclose(
        uniform.weights_, np.repeat(uniform.weights_.max(1, keepdims=True), 6, 1) * (uniform.weights_ > 0)
    )
    assert not np.allclose(released.weights_, uniform.weights_)
    learned = released.noise_ - dirichlet_targets(uniform.weights_, 1e-4)[1]
    np.testing.assert_allclose(learned, np.tile(learned[:1], (len(learned), 1)))


def test_printed_softmax_predicts_from_its_last_weights_and_drifts_to_the_negative_class(digits: Any) -> None:
    train, _ = digits
    model = MIPLGP(disambiguation="softmax", max_iter=20).fit(train.bags, train.candidates)
    learned = model.noise_ - dirichlet_targets(model.weights_, 1e-4)[1]
    np.testing.assert_allclose(learned, np.tile(learned[:1], (len(learned), 1)), atol=1e-9)
    assert model.weights_[:, -1].mean() > 0.99


def test_the_bag_posterior_keeps_positive_instances_where_softmax_loses_them(digits: Any) -> None:
    train, test = digits
    model = MIPLGP(disambiguation="bag", max_iter=20).fit(train.bags, train.candidates)
    assert train.bags.sum(model.weights_[:, :-1]).sum(axis=1).min() > 0.99
    assert model.score(test.bags, test.labels) > 0.8


def test_prediction_does_not_depend_on_the_batch_size(digits: Any) -> None:
    train, test = digits
    model = MIPLGP(max_iter=3).fit(train.bags, train.candidates)
    whole = model.predict_proba(test.bags)
    model.set_params(batch_size=17)
    np.testing.assert_allclose(model.predict_proba(test.bags), whole, atol=1e-5)  # single precision


@pytest.mark.parametrize("normalize_over", ["classes", "augmented"])
def test_the_prediction_is_the_argmax_of_the_probabilities(digits: Any, normalize_over: str) -> None:
    train, test = digits
    model = MIPLGP(max_iter=3, normalize_over=normalize_over).fit(train.bags, train.candidates)
    np.testing.assert_array_equal(model.predict(test.bags), model.predict_proba(test.bags).argmax(axis=1))


def test_normalisation_over_all_classes_takes_the_instance_probabilities(digits: Any) -> None:
    """Eqs. 11 and 12 as printed: the largest probability of each class among the instances."""
    train, test = digits
    model = MIPLGP(max_iter=10, normalize_over="augmented").fit(train.bags, train.candidates)
    augmented = model.predict_proba(test.bags)
    largest = test.bags.max(model.predict_instances(test.bags)[:, :-1])
    np.testing.assert_allclose(augmented, largest / largest.sum(axis=1, keepdims=True))
    model.set_params(normalize_over="classes")
    assert not np.allclose(model.predict_proba(test.bags), augmented)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"cholesky_size": 0},
        {"cholesky_size": 0, "variance_rank": None},
        {"sampling": "joint"},
        {"engine": "low-rank", "n_landmarks": 50},
        {"engine": "low-rank", "n_landmarks": 50, "sampling": "joint"},
    ],
)
def test_a_saved_model_predicts_the_same_to_the_last_digit(digits: Any, tmp_path: Path, params: Any) -> None:
    train, test = digits
    model = MIPLGP(max_iter=3, **params).fit(train.bags, train.candidates)
    loaded = mipl.load_model(model.save(tmp_path / "m.mipl"))
    np.testing.assert_array_equal(loaded.predict_proba(test.bags), model.predict_proba(test.bags))
    np.testing.assert_array_equal(loaded.predict_instances(test.bags), model.predict_instances(test.bags))


@pytest.mark.parametrize("cholesky_size", [0, 1000])
def test_prediction_keeps_to_the_engine_of_the_fit(digits: Any, cholesky_size: int) -> None:
    train, test = digits
    model = MIPLGP(max_iter=3, cholesky_size=cholesky_size).fit(train.bags, train.candidates)
    before = model.predict_proba(test.bags)
    model.set_params(cholesky_size=1000 - cholesky_size)
    np.testing.assert_array_equal(model.predict_proba(test.bags), before)


def test_the_random_state_is_none_an_int_or_a_random_state() -> None:
    bags, candidates, _ = small_problem()

    def proba(random_state: Any) -> Any:
        params: dict[str, Any] = {"max_iter": 3, "n_samples": 8, "cholesky_size": 0}
        model = MIPLGP(random_state=random_state, **params).fit(bags, candidates)
        first = model.predict_proba(bags)
        np.testing.assert_array_equal(model.predict_proba(bags), first)
        return first

    np.testing.assert_array_equal(proba(3), proba(3))
    np.testing.assert_array_equal(proba(np.random.RandomState(3)), proba(np.random.RandomState(3)))
    assert not np.array_equal(proba(None), proba(None))


def test_a_kernel_of_the_user_is_copied_and_learned(digits: Any) -> None:
    train, test = digits
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
    model = MIPLGP(kernel=kernel, max_iter=3).fit(train.bags, train.candidates)
    assert kernel.raw_outputscale.item() == 0
    assert model.kernel_state_["raw_outputscale"] != 0
    assert np.isfinite(model.predict_proba(test.bags)).all()


def test_the_loss_standing_still_stops_early() -> None:
    bags, candidates, _ = small_problem()
    model = MIPLGP(max_iter=400, tol=1e-3).fit(bags, candidates)
    assert model.n_iter_ < 400
    assert len(model.loss_curve_) == model.n_iter_ == len(model.cg_iterations_) - 1


def test_an_unreached_tolerance_is_reported_with_its_remedy(digits: Any) -> None:
    train, _ = digits
    message = r"residual of .* above cg_tol=1e-09.*max_cg_iter \(now 5\)"
    with pytest.warns(ConvergenceWarning, match=message):
        MIPLGP(max_iter=1, cholesky_size=0, cg_tol=1e-9, max_cg_iter=5).fit(train.bags, train.candidates)


@pytest.mark.parametrize("cholesky_size", [0, 1000])
def test_read_only_instances_reach_torch_without_a_warning(cholesky_size: int) -> None:
    bags, candidates, _ = small_problem()
    assert not bags.instances.flags.writeable
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # torch says it once per process otherwise
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = MIPLGP(max_iter=2, cholesky_size=cholesky_size).fit(bags, candidates)
            model.predict_proba(bags)
    finally:
        torch.set_warn_always(before)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"nu": 2.0}, "'nu'.*0.5"),
        ({"disambiguation": "hard"}, "'disambiguation'.*'released'.*'hard'"),
        ({"normalize_over": "all"}, "'normalize_over'.*'augmented'"),
        ({"sampling": "all"}, "'sampling'.*'joint'"),
        ({"engine": "nystrom"}, "'engine'.*'low-rank'"),
        ({"n_landmarks": 0}, "'n_landmarks'"),
        ({"engine": "low-rank", "kernel": gpytorch.kernels.RBFKernel()}, 'engine="exact"'),
        ({"max_iter": 0}, "'max_iter'"),
        ({"alpha_eps": 0.0}, "'alpha_eps'"),
        ({"lengthscale": "mean"}, "'lengthscale'.*'median'"),
        ({"kernel": "rbf"}, "'kernel'"),
        ({"n_probes": 0}, "'n_probes'"),
        ({"variance_rank": 1}, "'variance_rank'"),
        ({"random_state": "a"}, "'random_state'"),
        ({"disambiguation": "bag", "augment": False}, "needs the negative class"),
        ({"device": "abacus"}, "device='abacus'"),
    ],
)
def test_wrong_parameters_are_named(params: Any, message: str) -> None:
    bags, candidates, _ = small_problem()
    with pytest.raises(ParameterError, match=message):
        MIPLGP(**params).fit(bags, candidates)


def test_a_device_that_is_not_there_is_named() -> None:
    bags, candidates, _ = small_problem()
    with pytest.raises(UnavailableError, match="device='cuda:99'"):
        MIPLGP(device="cuda:99").fit(bags, candidates)


def test_every_parameter_has_a_constraint_and_words_with_its_default() -> None:
    assert MIPLGP._parameter_constraints.keys() == MIPLGP().get_params().keys()
    for name, value in MIPLGP().get_params().items():
        (line,) = re.findall(rf"^    {name} : .*$", str(MIPLGP.__doc__), flags=re.MULTILINE)
        default = line.rpartition("default=")[2]
        assert eval(default, {}) == value, line


@pytest.mark.parametrize("params", [{"preconditioner_size": 0}, {"variance_rank": 2}, {"memory_budget": 0}])
def test_the_smallest_settings_of_conjugate_gradients_work(params: Any) -> None:
    bags, candidates, _ = small_problem()
    model = MIPLGP(max_iter=2, cholesky_size=0, **params).fit(bags, candidates)
    assert np.isfinite(model.predict_proba(bags)).all()


@pytest.mark.parametrize("data", ["duplicates", "constant", "far"])
@pytest.mark.parametrize("cholesky_size", [0, 1000])
def test_degenerate_instances_give_finite_probabilities(data: str, cholesky_size: int) -> None:
    bags, candidates, _ = small_problem()
    X = bags.instances
    degenerate = {
        "duplicates": np.tile(X[:5], (len(X), 1))[: len(X)],
        "constant": np.ones_like(X),
        "far": np.round(X) * 1e6,
    }[data]
    changed = mipl.Bags(degenerate, bags.offsets)
    model = MIPLGP(max_iter=5, cholesky_size=cholesky_size, variance_rank=10).fit(changed, candidates)
    assert np.isfinite(model.predict_proba(changed)).all()


@pytest.mark.parametrize("disambiguation", ["uniform", "released", "softmax", "bag"])
def test_a_bag_of_weight_two_is_the_bag_given_twice(disambiguation):
    bags, candidates, _ = small_problem()
    weight = 1 + np.arange(len(bags)) % 3
    copies = np.repeat(np.arange(len(bags)), weight)
    weighted = MIPLGP(disambiguation=disambiguation).fit(bags, candidates, sample_weight=weight)
    copied = MIPLGP(disambiguation=disambiguation).fit(bags[copies], candidates[copies])
    np.testing.assert_allclose(weighted.loss_curve_, copied.loss_curve_, atol=1e-9)
    assert weighted.lengthscale_ == pytest.approx(copied.lengthscale_)
    new, *_ = small_problem(seed=8)
    np.testing.assert_allclose(weighted.predict_proba(new), copied.predict_proba(new), atol=1e-9)
    np.testing.assert_allclose(weighted.predict_instances(new), copied.predict_instances(new), atol=1e-9)
