"""MIPLGP: the loop, its variants, its warnings, and that both solvers lead to one model."""

from __future__ import annotations

from typing import Any

import gpytorch
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import mipl
from mipl.checks import check_mipl_estimator, small_problem
from mipl.errors import DataError
from mipl.gp.dirichlet import dirichlet_targets
from mipl.miplgp.estimator import MIPLGP, MIPLGPNaive, MIPLGPUniform


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any]:
    return mipl.load("digits", r=1, seed=0).split(seed=0)


@pytest.mark.parametrize("name", ["MIPLGP", "MIPLGP-uniform", "MIPLGP-naive"])
def test_the_variants_keep_the_contract(name: str) -> None:
    check_mipl_estimator(mipl.make(name, n_iter=10))


def test_the_variants_differ_in_one_default() -> None:
    base = MIPLGP().get_params()
    assert MIPLGPUniform().get_params() == base | {"disambiguation": "uniform"}
    assert MIPLGPNaive().get_params() == base | {"augment": False}
    assert clone(MIPLGPNaive(nu=0.5)).nu == 0.5
    assert repr(MIPLGPNaive(nu=0.5)) == "MIPLGPNaive(nu=0.5)"


def test_the_paper_settings() -> None:
    for dataset in ("mnist", "fmnist", "newsgroups", "birdsong", "sival"):
        model = MIPLGP.paper(dataset)
        assert model.n_iter == (500 if "mnist" in dataset else 50)
        assert model.nu == (0.5 if dataset == "newsgroups" else 2.5)
        assert (model.length_scale, model.alpha_eps, model.n_samples, model.lr) == (1.0, 1e-4, 512, 0.1)
    assert MIPLGPUniform.paper("sival", nu=1.5).get_params()["disambiguation"] == "uniform"
    with pytest.raises(DataError, match="cifar"):
        MIPLGP.paper("cifar")


def test_bags_of_digits_are_classified_far_above_chance(digits: Any) -> None:
    train, test = digits
    model = MIPLGP(n_iter=30).fit(train.bags, train.candidates)
    assert model.score(test.bags, test.labels) > 0.5
    assert model.loss_curve_[-1] < model.loss_curve_[0]
    assert (model.resolve(train.bags, train.candidates).argmax(axis=1) == train.labels).mean() > 0.8
    assert model.predict_instances(test.bags).shape == (test.bags.n_instances, 6)


def test_conjugate_gradients_and_cholesky_learn_the_same_model(digits: Any) -> None:
    train, test = digits
    params = {"n_iter": 15, "variance_rank": None}
    direct = MIPLGP(cholesky_size=1000, **params).fit(train.bags, train.candidates)
    iterative = MIPLGP(cholesky_size=0, cg_tol=1e-3, n_probes=30, **params).fit(train.bags, train.candidates)
    assert (iterative.cg_residuals_[:-1] < 1e-3).all()
    assert (direct.cg_iterations_ == 0).all()
    assert iterative.length_scale_ == pytest.approx(direct.length_scale_, rel=0.02)
    np.testing.assert_allclose(iterative.predict_proba(test.bags), direct.predict_proba(test.bags), atol=0.01)


def test_uniform_and_released_predict_from_the_uniform_weights(digits: Any) -> None:
    train, _ = digits
    released = MIPLGP(n_iter=3).fit(train.bags, train.candidates)
    uniform = MIPLGPUniform(n_iter=3).fit(train.bags, train.candidates)
    np.testing.assert_allclose(
        uniform.weights_, np.repeat(uniform.weights_.max(1, keepdims=True), 6, 1) * (uniform.weights_ > 0)
    )
    assert not np.allclose(released.weights_, uniform.weights_)
    learned = released.noise_ - dirichlet_targets(uniform.weights_, 1e-4)[1]
    np.testing.assert_allclose(learned, np.tile(learned[:1], (len(learned), 1)))


def test_printed_softmax_predicts_from_its_last_weights_and_drifts_to_the_negative_class(digits: Any) -> None:
    train, _ = digits
    model = MIPLGP(disambiguation="softmax", n_iter=20).fit(train.bags, train.candidates)
    learned = model.noise_ - dirichlet_targets(model.weights_, 1e-4)[1]
    np.testing.assert_allclose(learned, np.tile(learned[:1], (len(learned), 1)), atol=1e-9)
    assert model.weights_[:, -1].mean() > 0.99


def test_the_bag_posterior_keeps_positive_instances_where_softmax_loses_them(digits: Any) -> None:
    train, test = digits
    model = MIPLGP(disambiguation="bag", n_iter=20).fit(train.bags, train.candidates)
    assert train.bags.sum(model.weights_[:, :-1]).sum(axis=1).min() > 0.99
    assert model.score(test.bags, test.labels) > 0.8


def test_prediction_does_not_depend_on_the_batch_size(digits: Any) -> None:
    train, test = digits
    model = MIPLGP(n_iter=3).fit(train.bags, train.candidates)
    np.testing.assert_array_equal(model.predict(test.bags, batch_size=17), model.predict(test.bags))


def test_normalisation_over_all_classes_lowers_the_scores_of_negative_instances(digits: Any) -> None:
    train, test = digits
    model = MIPLGP(n_iter=10).fit(train.bags, train.candidates)
    before = model._bag_scores(test.bags, 100)
    model.normalize_over = "augmented"
    after = model._bag_scores(test.bags, 100)
    assert (after < before).all()
    np.testing.assert_allclose(after, test.bags.max(model.predict_instances(test.bags)[:, :-1]))


def test_a_kernel_of_the_user_is_copied_and_learned(digits: Any) -> None:
    train, test = digits
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
    model = MIPLGP(kernel=kernel, n_iter=3).fit(train.bags, train.candidates)
    assert kernel.raw_outputscale.item() == 0
    assert model.kernel_state_["raw_outputscale"] != 0
    assert np.isfinite(model.predict_proba(test.bags)).all()


def test_the_loss_standing_still_stops_early() -> None:
    bags, candidates, _ = small_problem()
    model = MIPLGP(n_iter=400, tol=1e-3).fit(bags, candidates)
    assert model.n_iter_ < 400
    assert len(model.loss_curve_) == model.n_iter_ == len(model.cg_iterations_) - 1


def test_an_unreached_tolerance_is_reported_with_its_remedy(digits: Any) -> None:
    train, _ = digits
    with pytest.warns(ConvergenceWarning, match=r"residual of .* above cg_tol=1e-09.*max_cg_iter \(now 12\)"):
        MIPLGP(n_iter=1, cholesky_size=0, cg_tol=1e-9, max_cg_iter=12).fit(train.bags, train.candidates)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"nu": 2.0}, "nu is 2.0"),
        ({"disambiguation": "hard"}, "unknown disambiguation 'hard'"),
        ({"normalize_over": "all"}, "normalize_over is 'all'"),
        ({"n_iter": 0}, "n_iter=0"),
        ({"disambiguation": "bag", "augment": False}, "needs the negative class"),
    ],
)
def test_wrong_parameters_are_named(params: Any, message: str) -> None:
    bags, candidates, _ = small_problem()
    with pytest.raises(DataError, match=message):
        MIPLGP(**params).fit(bags, candidates)


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
    model = MIPLGP(n_iter=5, cholesky_size=cholesky_size, variance_rank=10).fit(changed, candidates)
    assert np.isfinite(model.predict_proba(changed)).all()
