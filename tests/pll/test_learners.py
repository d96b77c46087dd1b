"""What all six learners owe their users on plain arrays, also where the data are awkward."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

import mipl
from mipl.errors import DataError, ParameterError
from mipl.pll import CLPL, GMPLL, LSBCMM, PLAGGD, SURE, PLkNN, PLLClassifier
from mipl.pll.neighbours import nearest_neighbours

LEARNERS = [PLkNN, CLPL, LSBCMM, SURE, GMPLL, PLAGGD]
rng = np.random.default_rng(0)
SAMPLES = {
    "one sample": rng.normal(size=(1, 4)),
    "two samples": rng.normal(size=(2, 4)),
    "fewer samples than neighbours": rng.normal(size=(6, 4)),
    "constant features": np.ones((12, 4)),
    "all zero": np.zeros((12, 4)),
    "duplicate rows": np.repeat(rng.normal(size=(3, 4)), 10, axis=0),
    "more features than samples": rng.normal(size=(12, 60)),
    "large numbers": 1e6 * rng.normal(size=(30, 4)),
    "small numbers": 1e-8 * rng.normal(size=(30, 4)),
}


def candidate_sets(kind, n):
    mask = np.zeros((n, 3), dtype=bool)
    mask[np.arange(n), np.arange(n) % 3] = True
    if kind == "some":
        mask[np.arange(n), (np.arange(n) + 1 + np.arange(n) % 2) % 3] = True
    return mask | (kind == "all")


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("kind", ["one", "some", "all"])
@pytest.mark.parametrize("samples", SAMPLES.values(), ids=SAMPLES.keys())
def test_awkward_data_give_probabilities(learner, kind, samples):
    candidates = candidate_sets(kind, len(samples))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "no feature varies")  # which some take for nothing, and say so
        model = learner().fit(samples, candidates)
        proba, resolved = model.predict_proba(samples), model.resolve(samples, candidates)
    for matrix in (proba, resolved):
        assert (matrix >= 0).all()
        np.testing.assert_allclose(matrix.sum(axis=1), 1)
    assert (resolved[~candidates] == 0).all()
    np.testing.assert_array_equal(model.predict(samples), proba.argmax(axis=1))


@pytest.fixture(scope="module")
def digits():
    """Train and test halves of 800 digits, with true labels only."""
    X, y = load_digits(return_X_y=True)
    return X[:400] / 16, y[:400], X[400:800] / 16, y[400:800]


def vote_weights(distance):
    total = distance.sum(axis=1, keepdims=True)
    return 1 - distance / np.where(total > 0, total, 1)


def gaussian_regression(X, y):
    """Kernel ridge regression on centred one-hot targets, by scikit-learn."""
    width = pairwise_distances(X).sum() / (len(X) * (len(X) - 1))
    model = KernelRidge(alpha=0.05, kernel="rbf", gamma=0.5 / width**2).fit(X, np.eye(10)[y] - 0.1)
    return lambda Z: model.predict(Z).argmax(axis=1)


SUPERVISED = {
    PLkNN: lambda X, y: KNeighborsClassifier(10, weights=vote_weights, algorithm="brute").fit(X, y).predict,
    CLPL: lambda X, y: LinearSVC(C=1.0, max_iter=20_000).fit(X, y).predict,
    LSBCMM: lambda X, y: LogisticRegression(max_iter=1000).fit(X, y).predict,
    SURE: gaussian_regression,
    PLAGGD: gaussian_regression,
    GMPLL: lambda X, y: KNeighborsClassifier(10).fit(X, y).predict,
}


@pytest.mark.parametrize("learner", LEARNERS)
def test_with_one_candidate_it_is_as_accurate_as_the_matching_supervised_method(learner, digits):
    X, y, X_test, y_test = digits
    ours = np.mean(learner().fit(X, y).predict(X_test) == y_test)
    theirs = np.mean(SUPERVISED[learner](X, y)(X_test) == y_test)
    # The standard error of an accuracy of 0.93 on 400 samples is 0.013.
    assert ours >= theirs - 0.03


def test_pl_knn_votes_like_scikit_learn(digits):
    X, y, X_test, _ = digits
    # Digits have ties, of which scikit-learn takes any.
    X = X + 1e-4 * np.random.default_rng(0).normal(size=X.shape)
    theirs = SUPERVISED[PLkNN](X, y).__self__.predict_proba(X_test)
    np.testing.assert_allclose(PLkNN().fit(X, y).predict_proba(X_test), theirs, atol=1e-7)


def test_of_neighbours_at_the_same_distance_the_first_are_taken():
    ring = np.tile([[1.0, 0], [0, 1], [-1, 0], [0, -1]], (5, 1))
    assert nearest_neighbours(ring, 3, np.zeros((1, 2))).tolist() == [[0, 1, 2]]


def test_pl_knn_breaks_ties_by_its_seed_alone():
    samples, candidates = np.zeros((4, 1)), np.ones((4, 5), dtype=bool)
    chosen = {PLkNN(random_state=s).fit(samples, candidates).predict(samples)[0] for s in range(30)}
    assert chosen == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("learner", LEARNERS)
def test_ambiguous_candidates_are_resolved(learner, digits):
    X, y, X_test, y_test = digits
    candidates = np.eye(10, dtype=bool)[y]
    candidates[np.arange(400), np.random.default_rng(1).integers(0, 10, 400)] = True
    model = learner().fit(X, candidates)
    assert np.mean(model.predict(X_test) == y_test) > 0.75
    assert np.mean(model.resolve(X, candidates).argmax(axis=1) == y) > 0.9


@pytest.mark.parametrize("learner", LEARNERS)
def test_labels_by_name_and_by_mask_agree(learner, digits):
    X, y = digits[0][:60], digits[1][:60]
    names = np.array(list("abcdefghij"))
    by_name = learner().fit(X, [[names[label]] for label in y], classes=names).predict(X)
    np.testing.assert_array_equal(by_name, names[learner().fit(X, np.eye(10, dtype=bool)[y]).predict(X)])


@pytest.mark.parametrize("learner", LEARNERS)
def test_many_samples_are_predicted_as_one_by_one(learner, digits):
    X, y, X_test, _ = digits
    model = learner().fit(X[:100], y[:100], classes=range(10))
    many = model.predict_proba(np.tile(X_test, (6, 1)))  # more than one block
    one_by_one = [model.predict_proba(sample[None])[0] for sample in X_test[-3:]]
    np.testing.assert_allclose(many[-3:], one_by_one, atol=1e-6)


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_model_keeps_nothing_of_the_callers_array(learner):
    samples = np.random.default_rng(2).normal(size=(20, 3))
    model = learner().fit(samples, candidate_sets("some", 20))
    query = samples.copy()
    before = model.predict_proba(query)
    samples[:] = 0
    np.testing.assert_array_equal(model.predict_proba(query), before)


def test_bad_input_is_named():
    samples, candidates = np.eye(3), candidate_sets("some", 3)
    with pytest.raises(DataError, match="2 candidate sets for 3 samples"):
        SURE().fit(samples, candidates[:2])
    with pytest.raises(DataError, match="sample 1, feature 2 is not finite"):
        SURE().fit(np.where(np.arange(9).reshape(3, 3) == 5, np.nan, samples), candidates)
    with pytest.raises(DataError, match="2-D numeric array"):
        SURE().fit(samples[0], candidates)
    with pytest.raises(DataError, match=r"n, d > 0, got float64 \(0, 3\)"):
        SURE().fit(samples, candidates).predict(np.zeros((0, 3)))
    with pytest.raises(DataError, match="2 features, fitted were 3"):
        SURE().fit(samples, candidates).predict(samples[:, :2])
    with pytest.raises(DataError, match="1 candidate sets for 3 samples"):
        SURE().fit(samples, candidates).resolve(samples, candidates[:1])


@pytest.mark.parametrize("learner", LEARNERS)
def test_an_unfitted_learner_says_so(learner):
    samples, candidates = np.eye(3), candidate_sets("some", 3)
    for call in (
        lambda model: model.predict(samples),
        lambda model: model.predict_proba(samples),
        lambda model: model.resolve(samples, candidates),
        lambda model: model.score(samples, [0, 1, 2]),
    ):
        with pytest.raises(NotFittedError):
            call(learner())


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_fit_that_fails_leaves_the_learner_unfitted(learner):
    model = learner(**{next(iter(learner._parameter_constraints)): "abc"})
    with pytest.raises(ParameterError):
        model.fit(np.eye(3), candidate_sets("some", 3))
    with pytest.raises(NotFittedError):
        model.predict(np.eye(3))


def test_score_takes_labels_names_and_candidates(digits):
    X, y, X_test, y_test = digits
    names = np.array(list("abcdefghij"))
    model = PLkNN().fit(X, np.eye(10, dtype=bool)[y], classes=names)
    accuracy = np.mean(model.predict(X_test) == names[y_test])
    assert 0.8 < accuracy < 1
    for truth in (y_test, names[y_test], y_test.tolist(), names[y_test].tolist(), pd.Series(names[y_test])):
        assert model.score(X_test, truth) == accuracy
    candidates = np.eye(10, dtype=bool)[y_test] | np.eye(10, dtype=bool)[(y_test + 1) % 10]
    expected = np.mean(candidates[np.arange(400), model.predict_proba(X_test).argmax(axis=1)])
    assert expected > accuracy
    sets = [names[row].tolist() for row in candidates]
    for truth in (candidates, sets, pd.Series(["|".join(s) for s in sets])):
        assert model.score(X_test, truth) == expected
    half = np.arange(400) < 200
    assert model.score(X_test, y_test, sample_weight=half) == model.score(X_test[:200], y_test[:200])
    for wrong in ([None, *names[y_test[1:]]], y_test[1:], candidates[1:], ["z"] * 400):
        with pytest.raises(DataError, match=r"sample 0 has no true label|399 .* for 400 samples|not among the classes"):
            model.score(X_test, wrong)


def test_a_grid_search_by_candidate_sets_alone_finds_a_sensible_parameter(digits):
    X, y, X_test, y_test = digits
    candidates = np.eye(10, dtype=bool)[y]
    candidates[np.arange(400), np.random.default_rng(1).integers(0, 10, 400)] = True
    search = GridSearchCV(PLkNN(), {"n_neighbors": [5, 300]}, cv=3, error_score="raise").fit(X, candidates)
    assert search.best_params_ == {"n_neighbors": 5}
    assert search.score(X_test, y_test) > 0.8


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_saved_learner_answers_as_before(learner, digits, tmp_path):
    X, y, X_test, _ = digits
    model = learner().fit(X[:60], y[:60], classes=range(10))
    loaded = mipl.load_model(model.save(tmp_path / "learner.mipl"))
    np.testing.assert_array_equal(loaded.predict_proba(X_test), model.predict_proba(X_test))
    assert repr(loaded) == repr(model)


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(0)])
def test_any_kind_of_random_state_is_taken(random_state):
    model = PLkNN(random_state=random_state)
    samples, candidates = np.zeros((4, 1)), np.ones((4, 5), dtype=bool)
    assert len({model.fit(samples, candidates).predict(samples)[0] for _ in range(30)}) > 1
    again = PLkNN(random_state=np.random.RandomState(7)).fit(samples, candidates)
    same = PLkNN(random_state=np.random.RandomState(7)).fit(samples, candidates)
    np.testing.assert_array_equal(again.tie_rank_, same.tie_rank_)


def test_a_learner_without_its_two_methods_cannot_be_built():
    class Half(PLLClassifier):
        def _fit(self, Z, candidates):
            pass

    with pytest.raises(TypeError, match="_predict_proba"):
        Half()


def test_a_learner_says_that_it_uses_the_sets_behind_votes():
    Z, mask = SAMPLES["large numbers"], candidate_sets("some", 30)
    with pytest.warns(UserWarning, match="PL-kNN uses candidate sets only") as caught:
        by_votes = PLkNN().fit(Z, mask * 3)
    assert [warning.filename for warning in caught] == [__file__]
    np.testing.assert_array_equal(by_votes.predict_proba(Z), PLkNN().fit(Z, mask).predict_proba(Z))


# ---------------------------------------------------------------- sample weights


@pytest.mark.parametrize("learner", [PLkNN, CLPL, LSBCMM, SURE])
def test_a_sample_of_weight_two_is_the_sample_given_twice(learner, separated_classes):
    samples, candidates, _ = separated_classes
    weight = np.arange(40) % 4  # zero leaves a sample out
    copies = np.repeat(np.arange(40), weight)
    weighted = learner().fit(samples, candidates, sample_weight=weight)
    copied = learner().fit(samples[copies], candidates[copies])
    new = np.random.default_rng(1).normal(size=(50, 4))
    np.testing.assert_allclose(weighted.predict_proba(new), copied.predict_proba(new), atol=1e-7)
    plain = learner().fit(samples, candidates)
    assert np.abs(weighted.predict_proba(new) - plain.predict_proba(new)).max() > 1e-3
    ones = learner().fit(samples, candidates, sample_weight=np.ones(40, dtype=int))
    np.testing.assert_array_equal(ones.predict_proba(new), plain.predict_proba(new))


@pytest.mark.parametrize(("learner", "name"), [(PLAGGD, "PL-AGGD"), (GMPLL, "GM-PLL")])
def test_methods_on_a_graph_say_why_they_cannot_weight_samples(learner, name, separated_classes):
    samples, candidates, _ = separated_classes
    with pytest.raises(ParameterError, match=f"{name} cannot weight samples: its graph of neighbours has no weights; "):
        learner().fit(samples, candidates, sample_weight=np.ones(40))
    assert not learner.supports_sample_weight
    bags = mipl.Bags.from_list([row[None] for row in samples])
    with pytest.raises(ParameterError, match=f"{name} cannot weight bags: its graph of neighbours has no weights; "):
        mipl.make(name).fit(bags, candidates, sample_weight=np.ones(40))


def test_a_bad_sample_weight_is_named(separated_classes):
    samples, candidates, labels = separated_classes
    model = SURE().fit(samples, candidates)
    bad = np.where(np.arange(40) == 7, -2.0, 1.0)
    for call in (
        lambda weight: SURE().fit(samples, candidates, sample_weight=weight),
        lambda weight: model.score(samples, labels, sample_weight=weight),
    ):
        with pytest.raises(DataError, match="sample 7 has the sample weight -2; it must be a finite number from 0 up"):
            call(bad)
        with pytest.raises(
            DataError, match=r"sample_weight has shape \(3,\) .* for 40 samples; pass one number per sample"
        ):
            call([1, 1, 1])
