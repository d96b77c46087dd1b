"""The binary multi-instance learners and the one-vs-rest adapter."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

import mipl
from mipl.bags import Bags
from mipl.checks import small_problem
from mipl.errors import DataError
from mipl.mil import LMVGPMIL, MIVAE, VGPMIL, VWSGP
from mipl.mil.bag_labels import InstanceLabels, positive_bag_labels
from mipl.mil.inducing import InducingPoints, Posterior, jaakkola, residual_variance

GAUSSIAN = [VWSGP, VGPMIL, LMVGPMIL]
ADAPTED = ["VWSGP", "VGPMIL", "LM-VGPMIL"]


def shifted_bags(shift: float, seed: int, n: int = 200, d: int = 10) -> tuple[Bags, NDArray[np.int64]]:
    """n positive and n negative bags of 5 to 14 normal instances; one or two of each positive bag are shifted."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 15, 2 * n)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    instances = rng.standard_normal((offsets[-1], d))
    instances[offsets[:n]] += shift
    instances[offsets[:n][rng.random(n) < 0.5] + 1] += shift
    return Bags(instances, offsets), np.repeat([1, 0], n)


# -------------------------------------------------------------------- the shared machinery


def test_inducing_features_reproduce_the_nystrom_kernel() -> None:
    bags, y = shifted_bags(1.0, seed=0, n=20)
    points = InducingPoints(n_inducing=30, lengthscale=2.0).fit(bags, np.eye(2, dtype=bool)[y])
    features = points.transform(bags)
    x = (bags.instances - bags.instances.mean(axis=0)) / bags.instances.std(axis=0)

    def kernel(a: NDArray[np.floating], b: NDArray[np.floating]) -> NDArray[np.floating]:
        return np.exp(-((a[:, None] - b[None]) ** 2).sum(axis=-1) / (2 * 2.0**2))

    z = points.points_.astype(np.float64)
    dense = kernel(x, z) @ np.linalg.solve(kernel(z, z) + 1e-6 * np.eye(30), kernel(z, x))
    assert np.abs(features @ features.T - dense).max() < 1e-5


def test_the_posterior_and_its_divergence_agree_with_dense_formulas() -> None:
    rng = np.random.default_rng(0)
    features, precision, target = rng.normal(size=(40, 6)), rng.random(40), rng.normal(size=40)
    posterior = Posterior.given(features, precision, target)
    covariance = np.linalg.inv(np.eye(6) + features.T @ np.diag(precision) @ features)
    mean = covariance @ features.T @ target
    first, second = posterior.moments(features, np.full(40, 0.1))
    assert np.allclose(posterior.mean, mean)
    assert np.allclose(first, features @ mean)
    assert np.allclose(second, (features @ mean) ** 2 + np.diag(features @ covariance @ features.T) + 0.1)
    divergence = 0.5 * (np.trace(covariance) + mean @ mean - 6 - np.linalg.slogdet(covariance)[1])
    assert posterior.divergence() == pytest.approx(divergence)


def test_the_logistic_bound_holds_everywhere_and_touches_at_xi() -> None:
    f, xi = np.meshgrid(np.linspace(-8, 8, 161), np.linspace(0, 8, 81))
    bound = -f / 2 + np.log(expit(xi)) - xi / 2 - jaakkola(xi) * (f**2 - xi**2)
    gap = np.log(expit(-f)) - bound
    assert gap.min() > -1e-12
    assert np.abs(gap[np.isclose(np.abs(f), xi)]).max() < 1e-12
    assert jaakkola(np.zeros(1)) == pytest.approx(1 / 8)


def _label_bound(c: NDArray[np.float64], p: NDArray[np.float64]) -> float:
    """Sum over all labellings of a bag of q(y) (y'c + log p(bag positive | y) - log q(y))."""
    total = 0.0
    for labelling in product((0, 1), repeat=len(c)):
        y = np.array(labelling)
        log_q = np.log(np.where(y == 1, p, 1 - p)).sum()
        total += np.exp(log_q) * (y @ c - (0 if y.any() else np.log(1e12)) - log_q)
    return total


def test_updating_labels_in_turn_raises_the_bound_of_every_bag_to_a_value_that_enumeration_confirms() -> None:
    rng = np.random.default_rng(1)
    bags = Bags(np.zeros((25, 1)), [0, 1, 4, 10, 16, 25])
    c, p = rng.normal(-3, 2, 25), rng.uniform(0.05, 0.6, 25)
    labels = positive_bag_labels(bags, c, InstanceLabels(logit(p), np.zeros(5)))
    for b, (low, high) in enumerate(zip(bags.offsets[:-1], bags.offsets[1:], strict=True)):
        q = np.clip(labels.probability[low:high], 1e-15, 1 - 1e-15)
        assert _label_bound(c[low:high], q) >= _label_bound(c[low:high], p[low:high])
        assert labels.bound[b] + labels.probability[low:high] @ c[low:high] == pytest.approx(
            _label_bound(c[low:high], q), abs=1e-6
        )


def test_a_bag_that_looks_negative_makes_its_likeliest_instance_the_witness() -> None:
    bags = Bags(np.zeros((5, 1)), [0, 4, 5])
    evidence = np.array([-6.0, -4.0, -5.0, -7.0, -9.0])
    labels = positive_bag_labels(bags, evidence, InstanceLabels(np.full(5, -8.0), np.zeros(2)))
    assert np.array_equal(labels.probability > 0.5, [False, True, False, False, True])


# -------------------------------------------------------------------- the binary learners


@pytest.mark.parametrize(
    ("learner", "shift", "least"),
    [
        (VGPMIL, 1.0, 0.93), (VGPMIL, 1.5, 0.98),
        (LMVGPMIL, 1.0, 0.92), (LMVGPMIL, 1.5, 0.98),
        (VWSGP, 1.0, 0.86), (VWSGP, 1.5, 0.94),
    ],
)  # fmt: skip
def test_shifted_instances_are_found(learner: type, shift: float, least: float) -> None:
    train, test = shifted_bags(shift, seed=0), shifted_bags(shift, seed=1)
    model = learner(n_inducing=50).fit(*train)
    assert roc_auc_score(test[1], model.decision_function(test[0])) >= least
    shifted = np.isin(np.arange(test[0].n_instances), test[0].offsets[:200])
    certain = shifted | test[0].spread(test[1] == 0)
    assert roc_auc_score(shifted[certain], model.predict_instances(test[0])[certain, 1]) > 0.95


@pytest.mark.parametrize("learner", GAUSSIAN)
def test_no_round_lowers_the_bound(learner: type) -> None:
    for shift in (0.0, 1.0):
        model = learner(n_inducing=30, tol=0.0).fit(*shifted_bags(shift, seed=2, n=40))
        assert len(model.bounds_) > 5
        assert np.diff(model.bounds_).min() > -1e-8 * np.abs(model.bounds_).max()


def test_the_bound_of_vwsgp_lies_below_the_evidence_of_its_model() -> None:
    bags, y = shifted_bags(1.0, seed=3, n=4)
    model = VWSGP(n_inducing=20).fit(bags, y)
    features = model.front_end_.transform(bags)
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((20000, len(bags))) * np.sqrt(bags.sum(residual_variance(features)))
    draws = rng.standard_normal((20000, features.shape[1])) @ bags.sum(features).T + noise
    evidence = np.log(np.mean(np.prod(expit((2 * y - 1) * draws), axis=1)))
    assert model.bounds_[-1] < evidence < model.bounds_[-1] + 3


@pytest.mark.parametrize("learner", GAUSSIAN)
def test_bags_of_one_instance_give_plain_gaussian_process_classification(learner: type) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (1200, 2))
    y = (np.sin(2 * x[:, 0]) + 0.5 * rng.standard_normal(1200) > x[:, 1]).astype(np.int64)
    bags = Bags(x, np.arange(1201))
    model = learner(n_inducing=80, lengthscale=0.7).fit(bags[:300], y[:300])
    z = (x - x[:300].mean(axis=0)) / x[:300].std(axis=0)
    reference = GaussianProcessClassifier(RBF(0.7), optimizer=None).fit(z[:300], y[:300])
    assert model.score(bags[300:], y[300:]) == pytest.approx(reference.score(z[300:], y[300:]), abs=0.02)


@pytest.mark.parametrize("learner", GAUSSIAN)
def test_bags_with_a_chosen_digit_are_told_from_the_others(learner: type) -> None:
    data = mipl.load("digits", r=0, seed=0)
    for digit in (0, 1, 2, 3):  # the images of 0, 2, 4 and 6
        y = (data.labels == digit).astype(np.int64)
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        odds = cross_val_predict(learner(n_inducing=100), data.bags, y, cv=folds, method="decision_function")
        assert roc_auc_score(y, odds) > 0.95


@pytest.mark.parametrize("learner", GAUSSIAN)
def test_copies_of_a_bag_count_as_bags_of_their_own(learner: type) -> None:
    bags, y = shifted_bags(1.0, seed=4, n=15)
    copies = np.stack([1 - y, y], axis=1)
    copies[3], copies[20] = (2, 1), (0, 3)
    literal = Bags.concatenate([bags[[i] * count] for i, row in enumerate(copies) for count in row if count])
    labels = np.concatenate([np.repeat([0, 1], row) for row in copies])
    front_end = InducingPoints(n_inducing=20).fit(bags, copies > 0)
    counted, repeated = learner(max_iter=6, tol=0.0), learner(max_iter=6, tol=0.0)
    counted._fit(front_end.transform(bags), bags, copies)
    repeated._fit(front_end.transform(literal), literal, np.eye(2, dtype=np.int64)[labels])
    assert np.allclose(counted.bounds_, repeated.bounds_)
    assert np.allclose(counted.mean_, repeated.mean_, atol=1e-6)


def test_labels_that_are_not_binary_are_refused() -> None:
    bags, y = shifted_bags(1.0, seed=0, n=5)
    for wrong, message in ((y + 1, "bag 0 has the label"), (np.ones(10), "all bags"), (y[:-1], "one label a bag")):
        with pytest.raises(DataError, match=message):
            VGPMIL().fit(bags, wrong)
    with pytest.raises(DataError, match="lengthscale"):
        VGPMIL(lengthscale=-1.0).fit(bags, y)
    for learner, param in ((VGPMIL, "max_iter"), (VWSGP, "max_iter"), (LMVGPMIL, "margin"), (MIVAE, "max_epochs")):
        with pytest.raises(DataError, match=param):
            learner(**{param: 0}).fit(bags, y)
    with pytest.raises(DataError, match="n_inducing"):
        VGPMIL(n_inducing=1).fit(bags, y)


# -------------------------------------------------------------------- MIVAE


def test_mivae_learns_shifted_instances_from_the_flat_layout() -> None:
    train, test = shifted_bags(2.0, seed=0, n=40), shifted_bags(2.0, seed=1, n=40)
    model = MIVAE(hidden=64, latent=8, max_epochs=40).fit(*train)
    assert roc_auc_score(test[1], model.decision_function(test[0])) > 0.9
    assert np.array_equal(model.decision_function(test[0]) > 0, model.predict(test[0]))


def test_mivae_keeps_the_best_epoch_and_stops_after_its_patience() -> None:
    bags, y = shifted_bags(0.0, seed=5, n=30)
    model = MIVAE(hidden=64, latent=8, patience=3, max_epochs=100).fit(bags, y)
    assert len(model.losses_) < 100
    assert len(model.losses_) - 1 - np.argmin(model.losses_) == 3


def test_mivae_reads_images_by_convolution_and_leaves_the_global_seed_alone() -> None:
    import torch

    rng = np.random.default_rng(0)
    images = rng.random((40, 28 * 28)) * 0.1
    images[::4, :392] += 1.0
    bags = Bags(images, np.arange(0, 41, 2), instance_shape=(28, 28))
    y = np.tile([1, 0], 10)
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    model = MIVAE(hidden=32, latent=4, max_epochs=15, patience=15, learning_rate=2e-3).fit(bags, y)
    assert any(value.ndim == 4 for value in model.weights_.values())
    assert roc_auc_score(y, model.decision_function(bags)) == 1.0
    assert torch.rand(1) == expected


def test_mivae_weights_the_loss_of_copies_as_repeated_bags_would() -> None:
    bags, y = shifted_bags(1.0, seed=6, n=4)
    copies = np.stack([1 - y, y], axis=1)
    copies[0] = (2, 1)
    literal = Bags.concatenate([bags, bags[[0, 0]]])
    labels = np.concatenate([y, [0, 0]])
    model = MIVAE(hidden=16, latent=4, max_epochs=1).fit(bags, y)
    network = model._network()
    counted = model._held_out_loss(network, bags, copies)
    repeated = model._held_out_loss(network, literal, np.eye(2, dtype=np.int64)[labels])
    assert counted == pytest.approx(repeated, rel=1e-5)


# -------------------------------------------------------------------- one-vs-rest


def _rule(p: NDArray[np.float64]) -> int:
    """The paper's decision, case by case, from the q probabilities of being positive."""
    positive = np.flatnonzero(p > 0.5)
    if len(positive) == 1:
        return int(positive[0])
    if len(positive) > 1:
        return int(positive[np.argmax(p[positive])])
    return int(np.argmin(np.maximum(p, 1 - p)))


@pytest.mark.parametrize("name", ADAPTED)
def test_predictions_follow_the_papers_decision_rule(name: str) -> None:
    train, test = mipl.load("digits", r=1, seed=0).split(train_size=0.5, seed=0)
    model = mipl.make(name).fit(train.bags, train.candidates)
    p = expit(model._log_odds(test.bags)[0])
    assert model.predict(test.bags).tolist() == [_rule(row) for row in p]
    assert len({int((row > 0.5).sum()) for row in p}) > 1  # more than one case of the rule was seen


@pytest.mark.parametrize("name", ADAPTED)
def test_with_one_candidate_both_policies_coincide(name: str) -> None:
    bags, _, labels = small_problem()
    any_, duplicate = (mipl.make(name, candidate_policy=policy).fit(bags, labels) for policy in ("any", "duplicate"))
    assert np.array_equal(any_.predict_proba(bags), duplicate.predict_proba(bags))


def test_with_several_candidates_the_policies_differ_and_others_are_refused() -> None:
    bags, candidates, _ = small_problem()
    any_, duplicate = (
        mipl.make("VGPMIL", candidate_policy=policy).fit(bags, candidates) for policy in ("any", "duplicate")
    )
    assert not np.allclose(any_.predict_proba(bags), duplicate.predict_proba(bags))
    with pytest.raises(DataError, match="candidate_policy"):
        mipl.make("VGPMIL", candidate_policy="all").fit(bags, candidates)


@pytest.mark.parametrize("name", [*ADAPTED, pytest.param("MIVAE", marks=pytest.mark.slow)])
def test_parallel_fits_give_the_same_answers(name: str) -> None:
    bags, candidates, _ = small_problem()
    params = {"max_epochs": 3, "hidden": 16, "latent": 4} if name == "MIVAE" else {}
    one, two = (mipl.make(name, n_jobs=n_jobs, **params).fit(bags, candidates) for n_jobs in (1, 2))
    assert np.array_equal(one.predict_proba(bags), two.predict_proba(bags))


def test_a_class_that_no_bag_has_and_one_that_all_have_do_no_harm() -> None:
    bags, candidates, _ = small_problem()
    candidates = np.concatenate([candidates, np.zeros((24, 1), bool), np.ones((24, 1), bool)], axis=1)
    model = mipl.make("VGPMIL").fit(bags, candidates)
    assert np.isfinite(model.predict_proba(bags)).all()
    assert not (model.predict(bags) == 3).any()


def test_the_adapter_has_the_parameters_of_its_learner() -> None:
    model = mipl.make("VGPMIL", n_inducing=100, candidate_policy="duplicate")
    assert model.get_params()["n_inducing"] == 100
    with pytest.raises(DataError, match="no parameter"):
        mipl.make("VGPMIL", margin=2.0)
