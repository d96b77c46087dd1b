import math

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

import mipl
from mipl.bench import Suite
from mipl.bench.execution.scores import _SCORES
from mipl.bench.execution.worker import build, run_cell
from mipl.bench.suite import Cell
from mipl.bench.suite.scores import SCORES


def test_every_score_that_a_suite_may_ask_for_can_be_computed():
    assert list(_SCORES) == list(SCORES)


def test_scores_of_a_cell_equal_those_computed_by_hand():
    (cell,) = Suite(methods=["PL-kNN"], datasets=["digits"], splits=1).cells().values()
    scores = run_cell(cell, list(SCORES)).scores
    train, test = mipl.load("digits", r=1).split(0.5, seed=0)
    model = mipl.make("PL-kNN", random_state=0).fit(train.bags, train.candidates)
    proba, resolved = model.predict_proba(test.bags), model.resolve(train.bags, train.candidates)
    negative = model.predict_instances(test.bags)[:, -1]
    assert list(scores) == list(SCORES)
    assert scores["accuracy"] == np.mean(proba.argmax(axis=1) == test.labels)
    clipped = np.maximum(proba, 1e-12)
    assert scores["log_loss"] == pytest.approx(-np.mean(np.log(clipped[np.arange(len(test)), test.labels])))
    positive = test.instance_labels < test.n_classes
    assert scores["instance_ap"] == pytest.approx(average_precision_score(positive, 1 - negative))
    assert scores["resolve_accuracy"] == np.mean(resolved.argmax(axis=1) == train.labels)
    assert scores["label_free"] == mipl.label_free_score(model, test.bags, test.candidates)


def test_a_method_without_probabilities_has_accuracy_alone():
    scores = run_cell(Cell("digits", 1, "bench_methods:Constant", 0), list(SCORES)).scores
    assert {name for name, value in scores.items() if not math.isnan(value)} == {"accuracy"}


def test_a_users_method_with_probabilities_has_what_follows_from_them():
    outcome = run_cell(Cell("digits", 1, "bench_methods:Tunable", 0), list(SCORES))
    known = {name for name, value in outcome.scores.items() if not math.isnan(value)}
    assert known == {"accuracy", "ece", "ece_chance", "log_loss", "label_free"}
    assert outcome.scores["ece"] == pytest.approx(abs(outcome.scores["accuracy"] - 0.75))


@pytest.mark.parametrize("labels", [[0, 1, None, 1] * 5, [0, 1, 0, 1] * 5])
def test_bags_without_a_true_label_are_left_out(tmp_path, labels):
    rng = np.random.default_rng(0)
    file = tmp_path / "bags.npz"
    mipl.MIPLDataset([rng.normal(size=(2, 3)) for _ in labels], [{0, 1}] * len(labels), labels=labels).save(file)
    cell = Cell(str(file), None, "bench_methods:Tunable", 0)
    outcome = run_cell(cell, ["accuracy", "log_loss"])
    _, test = mipl.load(file).split(0.5, seed=0)
    known = test.labels[test.labels >= 0]
    assert outcome.n_test == len(known)
    assert outcome.scores["accuracy"] == np.mean(known == 0)
    expected = -np.mean(np.log(np.where(known == 0, 0.75, 0.25)))
    assert outcome.scores["log_loss"] == pytest.approx(expected)


def test_the_split_seeds_the_model_or_the_learner_inside_it_unless_the_suite_does():
    assert build(Cell("digits", 1, "bench_methods:Tunable", 7)).random_state == 7
    assert build(Cell("digits", 1, "bench_methods:Tunable", 7, params={"random_state": 3})).random_state == 3
    assert build(Cell("digits", 1, "bench_methods:Wrapper", 7)).learner.random_state == 7
    assert run_cell(Cell("digits", 1, "bench_methods:Wrapper", 7)).error == "RuntimeError: seed 7"


def test_a_method_is_fitted_to_votes_and_groups_as_well_as_to_candidates(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(48) % 3
    bags = [rng.normal(size=(3, 2)) + 3 * label for label in labels]
    votes = [{int(label): 5, int((label + 1) % 3): 1} for label in labels]
    file = tmp_path / "votes.npz"
    mipl.MIPLDataset(bags, votes, labels=labels, groups=np.arange(48) % 6).save(file)
    cell = Cell(str(file), None, "BagGP", 0, params={"n_landmarks": 20})
    train, test = mipl.load(file).split(0.5, seed=0)
    known, unknown = (mipl.BagGP(n_landmarks=20, random_state=0) for _ in range(2))
    known.fit(train)
    unknown.fit(train.bags, train.candidates)
    scores = [mipl.scoring.log_loss(test.labels, model.predict_proba(test)) for model in (known, unknown)]
    assert scores[0] != scores[1]
    assert run_cell(cell, ["log_loss"]).scores["log_loss"] == scores[0]
