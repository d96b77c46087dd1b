import math

import numpy as np
import pytest
from sklearn.metrics import log_loss as sklearn_log_loss
from sklearn.model_selection import GridSearchCV

import mipl
from mipl import label_free_score
from mipl.errors import DataError, ParameterError
from mipl.pll import PLkNN
from mipl.scoring import (
    accuracy,
    calibration_error,
    chance_calibration_error,
    instance_average_precision,
    log_loss,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def random_problem(rng, m=200, q=4):
    proba = rng.dirichlet(np.ones(q), size=m)
    return rng.integers(0, q, size=m), proba


# -------------------------------------------------------------------- against true labels


def test_log_loss_equals_scikit_learns(rng):
    labels, proba = random_problem(rng)
    assert log_loss(labels, proba) == pytest.approx(sklearn_log_loss(labels, proba, labels=range(4)), rel=1e-12)


def test_log_loss_of_a_certain_error_is_finite_and_of_equal_probabilities_log_q():
    for dtype in (np.float16, np.float32, np.float64):
        assert log_loss([1], np.array([[1.0, 0.0]], dtype=dtype)) == pytest.approx(-math.log(1e-12))
    assert log_loss([0, 3], np.full((2, 5), 0.2)) == pytest.approx(math.log(5))


def test_calibration_error_equals_its_definition_bag_by_bag(rng):
    labels, proba = random_problem(rng)
    bins = {}
    for label, p in zip(labels, proba, strict=True):
        bins.setdefault(min(int(p.max() * 10), 9), []).append((p.argmax() == label, p.max()))
    gaps = [abs(sum(r for r, _ in b) / len(b) - sum(c for _, c in b) / len(b)) * len(b) for b in bins.values()]
    assert calibration_error(labels, proba) == pytest.approx(sum(gaps) / len(labels))


def test_calibration_error_with_one_bin_is_the_gap_of_the_means(rng):
    labels, proba = random_problem(rng)
    gap = abs(np.mean(proba.argmax(axis=1) == labels) - proba.max(axis=1).mean())
    assert calibration_error(labels, proba, n_bins=1) == pytest.approx(gap)


def test_the_calibration_error_by_chance_is_that_of_labels_drawn_from_the_probabilities(rng):
    proba = rng.dirichlet(np.ones(3), size=150)
    drawn = [
        calibration_error(np.array([rng.choice(3, p=p) for p in proba]), proba) for _ in range(200)
    ]  # independent draws, one bag at a time
    error = np.std(drawn) * math.sqrt(1 / 50 + 1 / 200)
    assert abs(chance_calibration_error(proba) - np.mean(drawn)) < 5 * error
    assert chance_calibration_error(proba) == chance_calibration_error(proba)


def test_the_calibration_error_by_chance_vanishes_with_many_bags_and_with_certainty(rng):
    few, many = (chance_calibration_error(rng.dirichlet(np.ones(3), size=m)) for m in (50, 20_000))
    assert many < 0.02 < few
    assert chance_calibration_error(np.eye(4)) == 0.0


def test_average_precision_equals_the_mean_precision_at_each_positive_instance(rng):
    labels, proba = rng.integers(0, 4, size=60), rng.dirichlet(np.ones(4), size=60)  # 3 classes and the negative one
    order = np.argsort(proba[:, -1])
    hits = (labels < 3)[order]
    precisions = [hits[: i + 1].mean() for i in np.flatnonzero(hits)]
    assert instance_average_precision(labels, proba) == pytest.approx(np.mean(precisions))


def test_average_precision_leaves_unknown_instances_out_and_is_nan_without_positives(rng):
    labels, proba = rng.integers(-1, 4, size=60), rng.dirichlet(np.ones(4), size=60)
    known = labels >= 0
    assert not known.all()
    assert instance_average_precision(labels, proba) == instance_average_precision(labels[known], proba[known])
    assert math.isnan(instance_average_precision([3, -1], [[0.1, 0.2, 0.3, 0.4]] * 2))
    assert math.isnan(instance_average_precision([-1, -1], [[0.1, 0.2, 0.3, 0.4]] * 2))


@pytest.mark.parametrize(
    "call",
    [
        lambda: accuracy([0, 1], [0]),
        lambda: accuracy([], []),
        lambda: log_loss([0, 1], [[0.5, 0.5]]),
        lambda: log_loss([2], [[0.5, 0.5]]),
        lambda: log_loss([-1], [[0.5, 0.5]]),
        lambda: calibration_error([0], [0.5, 0.5]),
        lambda: instance_average_precision([0, 1], [[0.5, 0.5]]),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(call):
    with pytest.raises(DataError):
        call()


def test_impossible_numbers_of_bins_and_draws_are_refused():
    with pytest.raises(ParameterError, match="n_bins"):
        calibration_error([0], [[0.5, 0.5]], n_bins=0)
    with pytest.raises(ParameterError, match="n_draws"):
        chance_calibration_error([[0.5, 0.5]], n_draws=0)


# -------------------------------------------------------------------- without labels


class Fixed:
    """Answers with given probabilities, whatever the bags."""

    def __init__(self, proba, classes):
        self.proba, self.classes_ = np.asarray(proba), np.asarray(classes)

    def predict_proba(self, bags):
        return self.proba


def test_the_label_free_score_equals_its_formula(rng):
    proba = rng.dirichlet(np.ones(4), size=30)
    mask = rng.random((30, 4)) < 0.5
    mask[:, 0] = True
    expected = np.mean([math.log(p[s].sum()) - math.log(s.sum() / 4) for p, s in zip(proba, mask, strict=True)])
    assert label_free_score(Fixed(proba, range(4)), None, mask) == pytest.approx(expected)


def test_a_data_set_brings_its_candidates_whatever_the_order_of_its_classes(rng):
    bags = [rng.normal(size=(2, 3)) for _ in range(4)]
    ds = mipl.MIPLDataset(bags, [{"cat", "owl"}, {"bee"}, {"owl"}, {"bee", "cat"}], classes=["owl", "cat", "bee"])
    proba = rng.dirichlet(np.ones(3), size=4)
    model = Fixed(proba, ["bee", "cat", "owl"])
    in_set = [proba[0, 1] + proba[0, 2], proba[1, 0], proba[2, 2], proba[3, 0] + proba[3, 1]]
    expected = np.mean(np.log(in_set) - np.log(np.array([2, 1, 1, 2]) / 3))
    assert label_free_score(model, ds) == pytest.approx(expected)
    with pytest.raises(DataError, match="no candidates"):
        label_free_score(model, ds.bags)


def test_the_label_free_score_counts_bags_by_their_weights(rng):
    proba, mask = rng.dirichlet(np.ones(4), size=6), rng.random((6, 4)) < 0.5
    mask[:, 0] = True
    weight = np.array([1, 0, 3, 2, 0, 1])
    copies = np.repeat(np.arange(6), weight)
    found = label_free_score(Fixed(proba, range(4)), None, mask, sample_weight=weight)
    assert found == pytest.approx(label_free_score(Fixed(proba[copies], range(4)), None, mask[copies]))
    with pytest.raises(DataError, match="bag 1 has the sample weight nan"):
        label_free_score(Fixed(proba, range(4)), None, mask, sample_weight=[1, np.nan, 1, 1, 1, 1])


def test_partial_label_learners_on_plain_arrays_have_a_label_free_score(rng):
    labels = rng.integers(0, 3, size=120)
    Z = rng.normal(size=(120, 2)) + 6 * np.eye(3)[labels][:, :2]
    mask = np.eye(3, dtype=bool)[labels] | np.eye(3, dtype=bool)[rng.integers(0, 3, size=120)]
    model = PLkNN().fit(Z[:80], mask[:80])
    found = label_free_score(model, Z[80:], mask[80:])
    in_set = (model.predict_proba(Z[80:]) * mask[80:]).sum(axis=1)
    assert found == pytest.approx(np.mean(np.log(np.maximum(in_set, 1e-12)) - np.log(mask[80:].mean(axis=1))))
    name = next(name for name in ("n_neighbors", "k") if name in model.get_params())
    search = GridSearchCV(PLkNN(), {name: [3, 30]}, scoring=label_free_score, cv=3, error_score="raise").fit(Z, mask)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
