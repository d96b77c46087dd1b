"""What all binary learners owe their users."""

from __future__ import annotations

import numpy as np
import pytest
from shifted_bags import shifted_bags
from sklearn.exceptions import NotFittedError

import mipl
from mipl.errors import DataError, ParameterError
from mipl.mil import LMVGPMIL, MIVAE, VGPMIL, VWSGP, MILClassifier

LEARNERS = [VWSGP, VGPMIL, LMVGPMIL, MIVAE]


def test_labels_that_are_not_binary_are_refused() -> None:
    bags, y = shifted_bags(1.0, seed=0, n=5)
    for wrong, message in ((y + 1, "bag 0 has the label"), (np.ones(10), "all bags"), (y[:-1], "one label per bag")):
        with pytest.raises(DataError, match=message):
            VGPMIL().fit(bags, wrong)


@pytest.mark.parametrize("learner", LEARNERS)
def test_an_unfitted_learner_says_so_also_after_a_fit_that_failed(learner: type) -> None:
    bags, y = shifted_bags(1.0, seed=0, n=3)
    failed = learner(random_state=-1)
    with pytest.raises(ParameterError, match="The 'random_state' parameter"):
        failed.fit(bags, y)
    for model in (learner(), failed):
        for method in ("predict", "predict_proba", "predict_instances", "decision_function"):
            with pytest.raises(NotFittedError):
                getattr(model, method)(bags)
        with pytest.raises(NotFittedError):
            model.score(bags, y)


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_saved_learner_answers_as_before(learner: type, tmp_path) -> None:
    bags, y = shifted_bags(1.0, seed=0, n=6)
    model = learner(**({"max_epochs": 2} if learner is MIVAE else {})).fit(bags, y)
    loaded = mipl.load_model(model.save(tmp_path / "learner.mipl"))
    np.testing.assert_array_equal(loaded.predict_proba(bags), model.predict_proba(bags))
    np.testing.assert_array_equal(loaded.predict_instances(bags), model.predict_instances(bags))


def test_bags_of_other_features_are_refused() -> None:
    bags, y = shifted_bags(1.0, seed=0, n=3)
    with pytest.raises(DataError, match="the bags have 3 features, the model was fitted with 10"):
        VGPMIL().fit(bags, y).predict([np.ones((2, 3))])


def test_any_kind_of_random_state_is_taken_and_a_seed_repeats_itself() -> None:
    bags, y = shifted_bags(1.0, seed=0, n=30)

    def odds(random_state):
        return VGPMIL(n_inducing=10, random_state=random_state).fit(bags, y).decision_function(bags)

    generator = np.random.RandomState(0)
    first, second = odds(generator), odds(generator)
    np.testing.assert_array_equal(odds(np.random.RandomState(0)), first)
    assert not np.array_equal(first, second)
    assert not np.array_equal(odds(None), odds(None))


def test_a_learner_without_its_three_methods_cannot_be_built() -> None:
    class Half(MILClassifier):
        def _front_end(self):
            return None

    with pytest.raises(TypeError, match="_fit"):
        Half()
