"""MIPLClassifier: what the base class does for every method."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

from mipl.bags import Bags
from mipl.base import MIPLClassifier, restrict_to_candidates
from mipl.checks import small_dataset, small_problem
from mipl.dataset import MIPLDataset
from mipl.errors import DataError, ParameterError


class Nearest(MIPLClassifier):
    """Classes by the largest feature of the bag's mean: enough to tell right from wrong by hand."""

    _parameter_constraints = {"fail": ["boolean"]}  # noqa: RUF012

    def __init__(self, *, fail: bool = False) -> None:
        self.fail = fail

    def _fit(self, bags, candidates):
        if self.fail:
            raise RuntimeError("out of luck")
        self.n_classes_ = candidates.shape[1]

    def _predict_proba(self, bags):
        score = np.exp(3 * bags.mean(bags.instances)[:, : self.n_classes_])
        return score / score.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("implemented", [(), ("_fit",), ("_predict_proba",)])
def test_a_method_that_leaves_out_what_it_must_implement_cannot_be_made(implemented):
    cls = type("Half", (MIPLClassifier,), {name: lambda self, *args: None for name in implemented})
    with pytest.raises(TypeError, match="abstract"):
        cls()


def test_a_failed_fit_leaves_no_half_fitted_model():
    ds = small_dataset()
    model = Nearest().fit(ds)
    with pytest.raises(RuntimeError, match="out of luck"):
        model.set_params(fail=True).fit(ds)
    with pytest.raises(NotFittedError):
        model.predict(ds)


def test_refused_input_leaves_the_fitted_model_as_it_was():
    ds = small_dataset()
    model = Nearest().fit(ds)
    before = model.predict_proba(ds)
    with pytest.raises(DataError):
        model.fit(ds.bags, ds.candidates[1:])
    with pytest.raises(ParameterError):
        model.set_params(fail="yes").fit(ds)
    assert np.array_equal(model.predict_proba(ds), before)


def test_a_model_fitted_on_a_data_set_answers_with_its_class_names():
    ds = small_dataset()
    model = Nearest().fit(ds)
    assert model.classes_.tolist() == ["cat", "ant", "bee"]
    assert set(model.predict(ds)) <= {"cat", "ant", "bee"}
    assert np.array_equal(model.predict(ds), ds.classes[model.predict_proba(ds).argmax(axis=1)])


def test_candidates_beside_a_data_set_are_taken_with_its_class_names():
    ds = small_dataset()
    everything = np.ones_like(ds.candidates)
    model = Nearest().fit(ds, everything)
    assert model.classes_.tolist() == ds.classes.tolist()
    np.testing.assert_allclose(model.resolve(ds, everything), model.predict_proba(ds), rtol=1e-6)


def test_resolve_matches_the_classes_of_a_data_set_by_name():
    ds = small_dataset()
    model = Nearest().fit(ds)
    order = [2, 0, 1]  # the same classes in another order
    turned = MIPLDataset(ds.bags, ds.candidates[:, order], classes=ds.classes[order])
    assert np.array_equal(model.resolve(turned), model.resolve(ds))


def test_a_model_without_class_names_takes_a_data_sets_columns_by_position():
    ds = small_dataset()
    model = Nearest().fit(ds.bags, ds.candidates)
    named = Nearest().fit(ds)
    assert np.array_equal(model.resolve(ds), named.resolve(ds))
    assert model.score(ds) == named.score(ds)
    wider = MIPLDataset(
        ds.bags, np.pad(ds.candidates, ((0, 0), (0, 1))), classes=["a", "b", "c", "d"], labels=ds.labels
    )
    for ask in (model.resolve, model.score):
        with pytest.raises(DataError, match="fitted with 3 classes without names, the data set has 4"):
            ask(wider)


def test_score_is_the_share_of_right_bags():
    bags, candidates, labels = small_problem()
    names = np.array(["x", "y", "z"])
    model = Nearest().fit(bags, candidates, classes=names)
    labels = np.where(np.arange(len(bags)) < 5, (labels + 1) % 3, labels)  # some are wrong
    right = model.predict(bags) == names[labels]
    assert 0 < right.mean() < 1
    for y in (labels, labels.tolist(), names[labels], names[labels].tolist(), pd.Series(names[labels])):
        assert model.score(bags, y) == right.mean()
    weight = np.arange(len(bags))
    assert model.score(bags, labels, sample_weight=weight) == pytest.approx((right @ weight) / weight.sum())


def test_score_by_candidates_is_the_share_of_bags_predicted_inside_their_set():
    bags, candidates, _ = small_problem()
    names = np.array(["x", "y", "z"])
    model = Nearest().fit(bags, candidates, classes=names)
    candidates = np.where(np.arange(len(bags))[:, None] < 9, ~candidates, candidates)  # some miss the true label
    inside = candidates[np.arange(len(bags)), model.predict_proba(bags).argmax(axis=1)].mean()
    assert 0 < inside < 1
    sets = [names[row].tolist() for row in candidates]
    for y in (candidates, sets, [set(s) for s in sets], pd.Series(["|".join(s) for s in sets])):
        assert model.score(bags, y) == inside


def test_cross_validation_takes_joined_candidate_sets():
    bags, candidates, _ = small_problem()
    joined = pd.Series(["|".join(np.array(["x", "y", "z"])[row]) for row in candidates])
    assert np.isfinite(cross_val_score(Nearest(), bags, joined, cv=3, error_score="raise")).all()


def unlabelled() -> MIPLDataset:
    ds = small_dataset()
    labels = [*ds.label_names()[:-1], None]
    return MIPLDataset(ds.bags, ds.candidates, labels=labels, classes=ds.classes, bag_ids=ds.bag_ids)


def strangers() -> MIPLDataset:
    ds = small_dataset()
    classes = ["cat", "ant", "dog"]
    return MIPLDataset(ds.bags, ds.candidates, labels=ds.labels, classes=classes, bag_ids=ds.bag_ids)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m: m.score(unlabelled()), "bag 'animal-23' has no true label; leave it out"),
        (lambda m: m.score(strangers()), r"bag 'animal-2' has the label 'dog', which is not among the classes"),
        (lambda m: m.resolve(strangers()), r"bag 'animal-\d' has the candidate 'dog', which is not among the classes"),
        (lambda m: m.score(small_dataset(), ["cat"]), "1 labels for 24 bags; there must be one per bag"),
        (lambda m: m.score(small_dataset(), 3), "cannot read labels from int; pass one label or candidate set per bag"),
        (
            lambda m: m.score(small_dataset(), sample_weight=[1, 2]),
            r"shape \(2,\) .* for 24 bags; pass one number per bag",
        ),
        (lambda m: m.score(small_dataset(), sample_weight=-np.ones(24)), "bag 'animal-0' has the sample weight -1"),
        (lambda m: m.score(small_dataset().bags), r"no labels: pass score\(bags, labels\)"),
        (lambda m: m.resolve(small_dataset().bags), r"no candidates: pass resolve\(bags, candidates\)"),
        (lambda m: m.fit(small_dataset().bags), r"no candidates: pass fit\(bags, candidates\)"),
        (
            lambda m: m.fit(small_dataset(), small_dataset().candidates & (np.arange(24) != 5)[:, None]),
            "bag 'animal-5' has no candidate label",
        ),
        (lambda m: m.predict([np.ones((2, 3))]), "the bags have 3 features, the model was fitted with 4"),
    ],
)
def test_errors_name_the_bag_and_the_remedy(ask, message):
    model = Nearest().fit(small_dataset())
    with pytest.raises(DataError, match=message):
        ask(model)


def test_columns_are_matched_by_name_where_both_sides_have_names():
    ds = small_dataset()
    model = Nearest().fit(ds)
    expected = model.predict_proba(ds)
    names = list(ds.bags.feature_names)
    turned = ds.bags.select_features(names[::-1])
    assert not np.array_equal(turned.instances, ds.bags.instances)
    assert np.array_equal(model.predict_proba(turned), expected)
    unnamed = Bags(ds.bags.instances, ds.bags.offsets)
    assert np.array_equal(model.predict_proba(unnamed), expected)
    nameless = Nearest().fit(unnamed, ds.candidates)
    assert not hasattr(nameless, "feature_names_in_")
    assert np.array_equal(nameless.predict_proba(ds), expected)


def test_a_feature_that_is_missing_or_unknown_is_named():
    ds = small_dataset()
    model = Nearest().fit(ds)
    with pytest.raises(
        DataError, match="the model has the feature 'age', the bags have not; they have 'width', 'height'"
    ):
        model.predict(ds.bags.select_features(["width", "height", "weight"]))
    wider = Bags(np.ones((2, 5)), [0, 2], feature_names=["width", "height", "weight", "age", "sex"])
    with pytest.raises(DataError, match="the bags have the feature 'sex', the model has not; leave it out"):
        model.predict(wider)


# ---------------------------------------------------------------- votes, background, groups, sample weights


class Listens(Nearest):
    """Keeps what it was told."""

    supports_sample_weight = True

    def _fit_supervised(self, bags, supervision):
        self._told = supervision
        self._fit(bags, supervision.candidates)


def voted() -> MIPLDataset:
    ds = small_dataset()
    return MIPLDataset(
        ds.bags,
        ds.candidates * np.arange(1, 25)[:, None],
        classes=ds.classes,
        bag_ids=ds.bag_ids,
        groups=np.arange(24) // 2,
        background="bee",
    )


def test_a_data_set_brings_its_weights_background_and_groups():
    ds = voted()
    told = Listens().fit(ds)._told
    np.testing.assert_array_equal(told.candidates, ds.candidates)
    np.testing.assert_array_equal(told.weights, ds.candidate_weights)
    np.testing.assert_array_equal(told.groups, ds.groups)
    assert told.background == 2
    assert told.sample_weight is None


def test_weights_of_one_in_a_data_set_stay_weights():
    ds = small_dataset()
    ones = MIPLDataset(ds.bags, ds.candidates, classes=ds.classes, candidate_weights=ds.candidates.astype(float))
    np.testing.assert_array_equal(Listens().fit(ones)._told.weights, ds.candidates)
    assert Listens().fit(ds)._told.weights is None


def test_what_is_passed_to_fit_goes_before_what_the_data_set_says():
    ds = voted()
    told = Listens().fit(ds, small_dataset().candidates, background="ant", groups=np.zeros(24, int))._told
    assert told.weights is None
    assert told.background == 1
    assert not told.groups.any()
    everything = Listens().fit(ds, [{"cat": 2.0, "ant": 1.0}] * 24, sample_weight=np.arange(1, 25))._told
    np.testing.assert_array_equal(everything.weights, [[2, 1, 0]] * 24)
    np.testing.assert_array_equal(everything.sample_weight, np.arange(1, 25))


def test_a_method_for_candidate_sets_says_once_that_weights_are_not_used():
    bags, candidates, _ = small_problem()
    with pytest.warns(UserWarning, match="Nearest uses candidate sets only") as caught:
        by_votes = Nearest().fit(bags, candidates * 3)
    assert [warning.filename for warning in caught] == [__file__]  # it points at the caller
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        by_sets = Nearest().fit(bags, candidates, background=1, groups=np.arange(24))
    assert np.array_equal(by_votes.predict_proba(bags), by_sets.predict_proba(bags))


def test_a_method_that_cannot_weight_bags_refuses_sample_weights():
    bags, candidates, _ = small_problem()
    with pytest.raises(ParameterError, match="Nearest cannot weight bags; fit it without sample_weight"):
        Nearest().fit(bags, candidates, sample_weight=np.ones(24))


def test_a_method_sees_bags_that_count_and_no_weights_where_all_are_one():
    ds = voted()
    weight = np.arange(24) % 3
    told = Listens().fit(ds, sample_weight=weight)._told
    np.testing.assert_array_equal(told.sample_weight, weight[weight > 0])
    np.testing.assert_array_equal(told.candidates, ds.candidates[weight > 0])
    np.testing.assert_array_equal(told.groups, ds.groups[weight > 0])
    told = Listens().fit(ds, sample_weight=np.minimum(weight, 1))._told
    assert told.sample_weight is None
    assert len(told) == 16


def test_a_method_that_declares_weights_must_implement_them():
    class Promises(Nearest):
        supports_sample_weight = True

    bags, candidates, _ = small_problem()
    with pytest.raises(NotImplementedError, match="Promises supports sample weights but has no _fit_weighted"):
        Promises().fit(bags, candidates, sample_weight=np.arange(1, 25))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"sample_weight": [1, 2]}, r"sample_weight has shape \(2,\) .* for 24 bags"),
        ({"sample_weight": np.r_[np.ones(23), -1]}, "bag 'animal-23' has the sample weight -1"),
        ({"sample_weight": np.r_[np.nan, np.ones(23)]}, "bag 'animal-0' has the sample weight nan"),
        ({"sample_weight": np.zeros(24)}, "all sample weights are zero"),
        ({"groups": np.ones(3, int)}, "groups must be 24 integers, one per bag"),
        ({"background": "silence"}, r"the background class 'silence' is not among the classes \['cat', 'ant', 'bee'\]"),
        ({"candidates": [{"cat": 1, "ant": -2}] * 24}, "bag 'animal-0': the weight -2 of the candidate 'ant'"),
    ],
)
def test_what_cannot_be_used_for_fitting_is_named(more, message):
    with pytest.raises(DataError, match=message):
        Listens().fit(small_dataset(), **more)


def test_restriction_keeps_ratios_and_falls_back_to_uniform():
    proba = np.array([[0.2, 0.2, 0.6], [0.0, 1.0, 0.0]])
    mask = np.array([[True, True, False], [True, False, True]])
    np.testing.assert_allclose(restrict_to_candidates(proba, mask), [[0.5, 0.5, 0], [0.5, 0, 0.5]])


class Overflows(Nearest):
    def _predict_proba(self, bags):
        proba = super()._predict_proba(bags)
        proba[3:5, 0] = np.nan
        return proba


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "predict_instances", "resolve", "score"])
def test_an_answer_that_is_not_finite_is_an_error_and_not_the_first_class(ask):
    ds = small_dataset()
    with pytest.raises(DataError, match=r"Overflows has no finite answer for (bag|instance) \d+ and \d+ more"):
        getattr(Overflows().fit(ds), ask)(ds)


def wide(unknown: int) -> MIPLDataset:
    """The small problem with a class that no bag has; nothing is known of every `unknown`-th one."""
    ds = small_dataset()
    sets = [None if i % unknown == 0 else names for i, names in enumerate(ds.candidate_sets())]
    return MIPLDataset(ds.bags, sets, classes=["dodo", *ds.classes])


def test_a_class_that_no_training_bag_makes_possible_has_probability_zero():
    ds = wide(5)
    with pytest.warns(UserWarning, match="no training bag has the candidate 'dodo', so") as caught:
        model = Nearest().fit(ds)
    assert [warning.filename for warning in caught] == [__file__]
    assert model._predict_proba(ds.bags)[:, 0].max() > 0.5  # the method itself knows no better
    for answer in (model.predict_proba(ds), model.predict_instances(ds), model.resolve(ds)):
        assert not answer[:, 0].any()
        np.testing.assert_allclose(answer.sum(axis=1), 1, rtol=1e-6)
    assert "dodo" not in model.predict(ds)
    # A bag that can be nothing else is that.
    resolved = model.resolve(ds.bags[:2], [["dodo"], ["dodo", "cat"]])
    np.testing.assert_array_equal(resolved[:, :2], [[1, 0], [0, 1]])


def test_a_class_is_possible_again_once_a_bag_has_it():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Nearest().fit(wide(5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(small_dataset())
    assert model.possible_.all()


def test_classes_of_weight_zero_bags_are_not_possible():
    bags, candidates, _ = small_problem()
    candidates = np.eye(3, dtype=bool)[np.arange(24) % 3]
    with pytest.warns(UserWarning, match="no training bag has the candidate 2, so"):
        model = Listens().fit(bags, candidates, sample_weight=np.arange(24) % 3 < 2)
    assert not model.predict_proba(bags)[:, 2].any()


@pytest.mark.parametrize("q", [2, 3])
def test_where_nothing_is_known_of_any_bag_all_classes_are_possible_and_the_user_is_told(q):
    bags, *_ = small_problem()
    with pytest.warns(UserWarning, match="every class is a candidate of every training bag"):
        assert Nearest().fit(bags, np.ones((24, q))).possible_.all()


def test_of_two_classes_a_set_of_both_is_one_in_doubt():
    bags, *_ = small_problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Nearest().fit(bags, [["owl"], ["owl", "wren"]] * 12).possible_.all()


def test_a_warning_of_many_classes_lists_the_first():
    bags, *_ = small_problem()
    with pytest.warns(UserWarning, match=r"the candidate 2, 3, 4, 5, 6 and 13 more, so"):
        Nearest().fit(bags, np.tile(np.arange(20) < 2, (24, 1)))
