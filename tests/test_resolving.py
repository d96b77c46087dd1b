"""mipl.resolve and mipl.explain: the model's columns, the data set's names, and no confusion between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from evidence_model import EvidenceModel
from sklearn.exceptions import NotFittedError

import mipl
from mipl import DataError, MIPLDataset, ParameterError
from mipl.small_problems import small_problem


@pytest.fixture
def model() -> EvidenceModel:
    """A model of ant, bee and cat."""
    train = MIPLDataset([np.ones((1, 3))] * 3, [{"ant"}, {"bee"}, {"cat"}])
    return EvidenceModel().fit(train)


def animals(candidates: Any, labels: Any = None, classes: Any = None) -> MIPLDataset:
    """Two bags: the second instance of "first" looks like bee, the only instance of "last" like cat, then ant."""
    bags = [np.array([[1, 1, 1], [2, 7, 1], [6, 1, 1]]), np.array([[3, 1, 5]])]
    return MIPLDataset(bags, candidates, labels=labels, classes=classes, bag_ids=["first", "last"])


# -------------------------------------------------------------------- classes of the model, names of the data set


def test_a_data_set_of_some_of_the_models_classes_gets_the_right_names(model: EvidenceModel):
    found = mipl.resolve(animals([{"bee", "cat"}, {"bee", "cat"}], labels=["bee", "cat"]), model)
    assert found.classes.tolist() == ["ant", "bee", "cat"]
    assert found.labels.tolist() == ["bee", "cat"]
    assert found.candidates.tolist() == [[False, True, True]] * 2
    assert found.accuracy == 1
    np.testing.assert_allclose(found.posterior, [[0, 7 / 8, 1 / 8], [0, 1 / 6, 5 / 6]])
    assert found.instance.tolist() == [1, 0]


def test_votes_that_a_method_cannot_use_are_told_of_and_equal_ones_are_not(model: EvidenceModel, recwarn: Any):
    voted = animals([{"bee": 1, "cat": 9}, {"bee": 2}])
    with pytest.warns(UserWarning, match="uses candidate sets only"):
        found = mipl.resolve(voted, model)
    with pytest.warns(UserWarning, match="uses candidate sets only"):
        np.testing.assert_array_equal(model.resolve(voted), found.posterior)
    recwarn.clear()
    np.testing.assert_array_equal(
        mipl.resolve(animals([{"bee": 3, "cat": 3}, {"bee"}]), model).posterior, found.posterior
    )
    assert not recwarn.list


@pytest.mark.parametrize("order", [["cat", "bee", "ant"], ["bee", "dog", "cat", "ant"]])
def test_the_order_of_a_data_sets_classes_and_those_that_nobody_has_do_not_matter(model: EvidenceModel, order: Any):
    found = mipl.resolve(animals([{"ant", "bee"}, {"cat", "ant"}], classes=order), model)
    assert found.labels.tolist() == ["bee", "cat"]
    assert found.candidates.tolist() == [[True, True, False], [True, False, True]]


def test_a_candidate_that_the_model_does_not_know_is_named_with_its_bag(model: EvidenceModel):
    message = (
        r"bag 'last' has the candidate 'dog', which the model does not know; its classes are 'ant', .* fit a model"
    )
    with pytest.raises(DataError, match=message):
        mipl.resolve(animals([{"bee", "cat"}, {"cat", "dog"}]), model)


@pytest.mark.parametrize("call", [mipl.resolve, lambda ds, model: mipl.explain(model, ds)])
def test_six_and_the_text_six_are_not_the_same_class(call: Any):
    by_text = EvidenceModel().fit(MIPLDataset([np.ones((1, 3))] * 3, [{"1"}, {"6"}, {"7"}]))
    by_number = EvidenceModel().fit(MIPLDataset([np.ones((1, 3))] * 3, [{1}, {6}, {7}]))
    of_numbers = animals([{6, 7}, {6, 7}], labels=[6, 7])
    message = r"classes of the data set are integers \(6, 7\), those of the model text \('1', '6', '7'\); give both"
    with pytest.raises(DataError, match=message):
        call(of_numbers, by_text)
    assert call(of_numbers, by_number).labels.tolist() == [6, 7]


def test_all_classes_compete_when_new_bags_are_explained(model: EvidenceModel):
    found = mipl.explain(model, animals([{"bee", "cat"}, {"ant", "bee"}], labels=["cat", "ant"]))
    assert found.candidates is None
    assert found.labels.tolist() == ["bee", "cat"]
    assert found.second_label.tolist() == ["ant", "ant"]
    assert found.bag_ids.tolist() == ["first", "last"]
    assert found.accuracy == 0
    np.testing.assert_allclose(found.posterior, [[6 / 14, 7 / 14, 1 / 14], [3 / 9, 1 / 9, 5 / 9]])


def test_a_true_label_that_the_model_does_not_have_counts_as_a_mistake(model: EvidenceModel):
    found = mipl.explain(model, animals([{"bee", "dog"}, {"bee", "dog"}], labels=["bee", "dog"]))
    assert found.truth.tolist() == ["bee", "dog"]
    assert found.accuracy == 0.5


def test_bags_alone_can_be_explained(model: EvidenceModel):
    data = animals([{"bee", "cat"}, {"cat"}])
    for bags in (data.bags, list(data.bags)):
        found = mipl.explain(model, bags)
        assert found.labels.tolist() == ["bee", "cat"]
        assert found.bag_ids.tolist() == [0, 1]
        assert found.truth is None
    assert mipl.explain(model, data.bags, instances=False).instance_probabilities is None


# -------------------------------------------------------------------- models


def test_a_fitted_model_answers_as_it_is_and_an_unfitted_one_is_fitted(model: EvidenceModel):
    data = animals([{"ape", "bat"}, {"bat", "cow"}])
    fresh = EvidenceModel()
    assert mipl.resolve(data, fresh).labels.tolist() == ["bat", "cow"]
    assert fresh.n_fitted_ == 2
    mipl.resolve(animals([{"bee", "cat"}, {"cat"}]), model)
    assert model.n_fitted_ == 3
    assert model.classes_.tolist() == ["ant", "bee", "cat"]


def test_baggp_is_the_model_where_none_is_given():
    data = mipl.load("digits", r=1, seed=0)
    found = mipl.resolve(data)
    fitted = mipl.BagGP(random_state=0).fit(data)
    assert found.method == "BagGP"
    assert found.seconds > 0
    np.testing.assert_array_equal(found.posterior, fitted.resolve(data))
    np.testing.assert_array_equal(found.instance_probabilities, fitted.predict_instances(data))
    assert found.accuracy > 0.9
    positive = data.instance_labels[data.bags.offsets[:-1] + found.instance]
    assert np.mean(positive == data.labels) > 0.9


def test_the_same_names_with_a_model_of_more_classes_give_the_same_answers():
    """Independent of any table: the bags of two classes, resolved by a model of five, are right by their true names."""
    data = mipl.load("digits", r=1, seed=0)
    model = mipl.make("PL-kNN").fit(data)
    mask = data.candidates[:, [3, 4]].all(axis=1)
    sets = [names for names, keep in zip(data.candidate_sets(), mask, strict=True) if keep]
    part = MIPLDataset(data.bags[mask], sets, labels=np.array(data.label_names())[mask])
    assert part.classes.tolist() == data.classes[3:].tolist()
    np.testing.assert_array_equal(mipl.resolve(part, model).posterior, mipl.resolve(data, model).posterior[mask])


def test_what_is_no_model_and_what_is_no_data_set_is_said(model: EvidenceModel):
    data = animals([{"bee", "cat"}, {"cat"}])
    with pytest.raises(ParameterError, match="not the class EvidenceModel"):
        mipl.resolve(data, EvidenceModel)
    with pytest.raises(ParameterError, match="not a str"):
        mipl.explain("m.mipl", data)
    with pytest.raises(DataError, match=r"not a Bags; for bags without candidates use explain"):
        mipl.resolve(data.bags, model)
    with pytest.raises(NotFittedError):
        mipl.explain(EvidenceModel(), data)


@pytest.mark.parametrize("name", ["BagGP", "PL-kNN"])
def test_the_background_of_the_model_or_else_of_the_data_has_no_instance(name: str):
    bags, candidates, _ = small_problem()
    plain = MIPLDataset(bags, candidates, classes=["ant", "bee", "cat"])
    silent = MIPLDataset(bags, candidates, classes=["ant", "bee", "cat"], background="bee")
    told, untold = mipl.make(name).fit(silent), mipl.make(name).fit(plain)
    for found in (mipl.resolve(plain, told), mipl.explain(told, bags), mipl.resolve(silent, untold)):
        assert found.background == "bee"
        bees = found.labels == "bee"
        assert bees.any()
        assert not bees.all()
        np.testing.assert_array_equal(found.instance < 0, bees)
    assert mipl.explain(untold, bags).background is None
