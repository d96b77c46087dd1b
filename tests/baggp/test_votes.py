"""Votes and odds: the prior against an urn, what is found without labels, and where votes end and sets begin."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import softmax

import mipl
from mipl import BagGP, MIPLDataset
from mipl.baggp.votes import Belief, are_votes, fit_belief, label_log_prior
from mipl.datasets.synthetic import make_bags


def ask(labels: np.ndarray, q: int, people: int, reliability: float, correlation: float = 0.0) -> np.ndarray:
    """Votes (m, q) of so many people for each bag, with the same chances within a bag."""
    rng, m = np.random.default_rng(people), len(labels)
    chance = np.where(np.arange(q) == labels[:, None], reliability, (1 - reliability) / (q - 1))
    if correlation:
        chance = np.array([rng.dirichlet((1 / correlation - 1) * row) for row in chance])
    return rng.multinomial(people, chance, size=m).astype(float)


def nothing(votes: np.ndarray) -> torch.Tensor:
    return torch.zeros(votes.shape, dtype=torch.float64)


def posterior(votes: np.ndarray, belief: Belief) -> np.ndarray:
    return softmax(label_log_prior(votes > 0, votes, belief, 0.0), axis=1)


# ---------------------------------------------------------------- the prior


def test_the_prior_is_that_of_people_who_draw_from_an_urn_of_the_bag() -> None:
    # Polya's urn: every vote that was given is put back with one more of its kind, so that errors within a bag agree.
    q, reliability, correlation, votes = 4, 0.7, 0.1, [0, 0, 1, 0, 2]
    concentration = 1 / correlation - 1
    expected = np.ones(q)
    for c in range(q):
        urn = np.full(q, concentration * (1 - reliability) / (q - 1))
        urn[c] = concentration * reliability
        for vote in votes:
            expected[c] *= urn[vote] / urn.sum()
            urn[vote] += 1
    counts = np.bincount(votes, minlength=q)[None].astype(float)
    found = posterior(counts, Belief(reliability, correlation))
    expected = 0.99 * expected / expected.sum() + 0.01 / q  # in one bag of a hundred they see another thing
    np.testing.assert_allclose(found[0], expected, rtol=1e-9)
    assert found[0, 3] > 0  # nobody said so, and it may be true


def test_without_correlation_every_vote_has_the_odds_of_dawid_and_skenes_coin() -> None:
    votes = np.array([[2.0, 1.0, 0.0], [3.0, 1.0, 1.0]])
    coin = softmax(votes * np.log(0.8 * 2 / 0.2), axis=1)
    np.testing.assert_allclose(posterior(votes, Belief(0.8, 1e-9)), 0.99 * coin + 0.01 / 3, rtol=1e-5)


# ---------------------------------------------------------------- votes or not


def test_whole_numbers_are_votes_and_sets_among_them_stay_sets() -> None:
    given = [{"owl": 3, "wren": 1}, {"wren": 1}, ["owl", "wren"], "wren", None, {"owl": 0.75, "tit": 0.25}]
    ds = MIPLDataset(np.zeros((6, 1, 1)), given)
    assert ds.classes.tolist() == ["owl", "tit", "wren"]
    assert are_votes(ds.candidate_weights).tolist() == [True, True, False, False, False, False]
    prior = label_log_prior(ds.candidates, ds.candidate_weights, Belief(0.8, 0.05, 1.0), 0.0)
    assert np.isfinite(prior[:2]).all()
    assert prior[2].tolist() == [0, -np.inf, 0]
    assert prior[3].tolist() == [-np.inf, -np.inf, 0]
    assert prior[4].tolist() == [0, 0, 0]
    np.testing.assert_allclose(prior[5], [0, -np.log(3), -np.inf])


def test_weights_that_are_all_one_are_plain_sets() -> None:
    ds = make_bags(n_bags=60, n_classes=4, n_features=6, separation=5.0, sizes=(3, 6), r=1, seed=2)
    sets, ones = (
        BagGP(n_landmarks=100).fit(ds.bags, given, classes=ds.classes)
        for given in (ds.candidate_sets(), [dict.fromkeys(labels, 1) for labels in ds.candidate_sets()])
    )
    assert np.array_equal(sets.posterior_, ones.posterior_)
    assert (ones.vote_reliability_, ones.vote_correlation_, ones.vote_strength_) == (None, None, None)


# ---------------------------------------------------------------- what is found


@pytest.mark.parametrize("people", [2, 5, 50])
@pytest.mark.parametrize("reliability", [0.6, 0.95])
def test_agreement_alone_tells_how_reliable_people_are(people: int, reliability: float) -> None:
    labels = np.arange(600) % 10
    votes = ask(labels, 10, people, reliability)
    found = fit_belief(nothing(votes), votes)
    assert found.reliability == pytest.approx(reliability, abs=0.05)
    assert found.correlation < 0.06
    says = posterior(votes, found)
    assert says.max(axis=1).mean() == pytest.approx(np.mean(says.argmax(axis=1) == labels), abs=0.03)


def test_errors_that_people_share_make_many_votes_say_less() -> None:
    labels = np.arange(5000) % 5
    votes = ask(labels, 5, 30, 0.7, correlation=0.3)
    found = fit_belief(nothing(votes), votes)
    assert found.reliability == pytest.approx(0.7, abs=0.05)
    assert found.correlation == pytest.approx(0.3, abs=0.05)
    says = posterior(votes, found)
    assert says.max(axis=1).mean() == pytest.approx(np.mean(says.argmax(axis=1) == labels), abs=0.04)
    alone = posterior(votes, found._replace(correlation=1e-6))
    assert alone.max(axis=1).mean() > 0.95  # where each vote counts in full, the crowd is far too sure


@pytest.mark.parametrize("votes", [5 * np.eye(4)[np.arange(300) % 4], np.full((300, 4), 2.0), 2 * np.eye(4)[:1]])
def test_unanimous_people_people_at_odds_and_a_single_bag_give_finite_answers(votes: np.ndarray) -> None:
    found = fit_belief(nothing(votes), votes)
    assert 0.25 <= found.reliability <= 1
    assert 0 < found.correlation < 1
    prior = label_log_prior(votes > 0, votes, found, 0.0)
    assert np.isfinite(prior).all()
    assert np.array_equal(prior == 0, votes == votes.max(axis=1, keepdims=True))


# ---------------------------------------------------------------- the estimator


@pytest.fixture(scope="module")
def crowd() -> tuple[MIPLDataset, np.ndarray]:
    ds = make_bags(n_bags=200, n_classes=5, n_features=8, separation=3.0, sizes=(3, 8), positive=0.3, r=0, seed=200)
    return ds, ask(ds.labels, 5, 7, 0.6)


def test_labels_by_votes_and_instances_are_better_than_the_majority_and_as_sure_as_they_are_right(crowd) -> None:
    ds, votes = crowd
    model = BagGP(n_landmarks=200, rank=150).fit(ds.bags, votes)
    right = np.mean(model.posterior_.argmax(axis=1) == ds.labels)
    assert right > np.mean(votes.argmax(axis=1) == ds.labels) + 0.03
    assert model.posterior_.max(axis=1).mean() == pytest.approx(right, abs=0.03)
    assert model.vote_reliability_ == pytest.approx(0.6, abs=0.04)
    assert 0 < model.outside_.sum() < 10  # somebody named the truth nearly everywhere


def test_features_without_information_leave_the_votes_their_say(crowd) -> None:
    ds, _ = crowd
    votes = ask(ds.labels, 5, 15, 0.6)
    noise = [np.random.default_rng(i).normal(size=(3, 4)) for i in range(len(ds))]
    model = BagGP(n_landmarks=100).fit(noise, votes)
    assert np.mean(model.posterior_.argmax(axis=1) == ds.labels) > np.mean(votes.argmax(axis=1) == ds.labels) - 0.01


def test_a_saved_model_keeps_its_belief(crowd, tmp_path) -> None:
    ds, votes = crowd
    model = BagGP(n_landmarks=20, cross_fit=0).fit(ds.bags, np.where(np.arange(200)[:, None] < 100, votes, votes / 8))
    again = mipl.load_model(model.save(tmp_path / "m.mipl"))
    names = ["vote_reliability_", "vote_correlation_", "vote_strength_"]
    assert [getattr(model, name) for name in names] == [getattr(again, name) for name in names]
    assert model.vote_strength_ is not None
