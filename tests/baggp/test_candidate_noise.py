"""Candidate noise: the posterior against sums over sets and labellings, and the rate that is found without labels."""

from __future__ import annotations

import math
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
import torch

import mipl
from mipl import BagGP, MIPLDataset
from mipl.bag_posterior import bag_evidence, label_posterior
from mipl.baggp.candidate_noise import fit_candidate_noise, noisy_log_prior
from mipl.baggp.votes import Belief, fit_belief, label_log_prior
from mipl.datasets.synthetic import make_bags
from mipl.errors import ParameterError

NAMES = ["ant", "bee", "cat", "dog", "elk"]
MODEL_OF_FORMAT_1 = Path(__file__).parents[1] / "data" / "models-format-1" / "BagGP.mipl"


def fast(candidate_noise: float | str = 0.0) -> BagGP:
    return BagGP(n_landmarks=200, rank=150, candidate_noise=candidate_noise)


def without_truth(ds: MIPLDataset, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Candidate sets of which a share lacks the truth, and which these are."""
    rng, candidates = np.random.default_rng(1), ds.candidates.copy()
    wrong = np.zeros(len(ds), dtype=bool)
    wrong[rng.choice(len(ds), round(share * len(ds)), replace=False)] = True
    for b in np.flatnonzero(wrong):
        new = rng.choice(np.flatnonzero(~candidates[b]))
        candidates[b, ds.labels[b]] = False
        candidates[b, new] = True
    return candidates, wrong


@pytest.fixture(scope="module")
def problem() -> MIPLDataset:
    return make_bags(n_bags=200, n_classes=5, n_features=10, separation=5.0, sizes=(5, 15), positive=0.2, r=1, seed=3)


# ---------------------------------------------------------------- the prior


@pytest.mark.parametrize("rate", [0.1, 0.6])
@pytest.mark.parametrize("size", [2, 3])
def test_the_posterior_is_the_sum_over_labellings_of_bags_whose_set_may_lack_the_truth(rate: float, size: int) -> None:
    # The truth c is any class; with probability 1 - rate the set is c and size - 1 others, else size labels without c.
    q, given = 4, frozenset(range(1, 1 + size))
    logits = torch.randn(3, q, generator=torch.Generator().manual_seed(size), dtype=torch.float64)
    joint = np.zeros(q)
    for c in range(q):
        sets = [frozenset(s) for s in combinations(range(q), size)]
        holding, lacking = ([s for s in sets if (c in s) is wanted] for wanted in (True, False))
        chance = sum((1 - rate) / len(holding) for s in holding if s == given)
        chance += sum(rate / len(lacking) for s in lacking if s == given)
        carriers = (ways for ways in product([False, True], repeat=3) if any(ways))
        joint[c] = chance * sum(math.exp(sum(logits[j, c] for j in range(3) if ways[j])) for ways in carriers)
    known = np.array([[0.0 if c in given else -np.inf for c in range(q)]])
    evidence = bag_evidence(logits, torch.tensor([0, 3])).log_evidence
    found = label_posterior(evidence, torch.tensor(noisy_log_prior(known, rate)))
    np.testing.assert_allclose(found[0], joint / joint.sum(), rtol=1e-12)


def test_odds_stay_as_they_are_and_labels_without_odds_share_the_noise() -> None:
    odds = np.array([[0.6, 0.2, 0.0, 0.0], [0.1, 0.1, 0.2, 0.0]])
    prior = np.exp(label_log_prior(odds > 0, odds, Belief(strength=1.0), 0.1))
    expected = [[0.675, 0.225, 0.05, 0.05], [0.225, 0.225, 0.45, 0.1]]
    np.testing.assert_allclose(prior / prior.sum(axis=1, keepdims=True), expected)


def test_a_single_label_is_certain_and_a_set_of_all_classes_lacks_none() -> None:
    known = np.array([[0.0, -np.inf, -np.inf], [0.0, 0.0, 0.0]])
    assert np.array_equal(noisy_log_prior(known, 0.3), known)


def test_without_noise_nothing_is_touched() -> None:
    known = np.array([[0.0, 0.0, -np.inf]])
    assert noisy_log_prior(known, 0.0) is known


def test_wrong_sets_do_not_make_good_odds_look_bad() -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(6, size=400)
    evidence = torch.tensor(8.0 * np.eye(6)[label])
    odds = np.where(np.arange(6) == label[:, None], 4.0, 0.0) + np.where(rng.random((400, 6)) < 0.2, 1.0, 0.0)
    wrong = rng.random(400) < 0.3
    odds[wrong] = np.where(np.arange(6) == label[wrong, None], 0.0, rng.integers(1, 3, (wrong.sum(), 6)))
    assert fit_belief(evidence, odds / 8, 0.3).strength > fit_belief(evidence, odds / 8).strength - 1e-3


# ---------------------------------------------------------------- the rate, from log evidence


def sets_of(log_odds: torch.Tensor, rate: float, false: int, seed: int = 0) -> np.ndarray:
    """Sets (m, q) around labels that are drawn by log odds (m, q); a share of them lacks the label."""
    rng, (m, q) = np.random.default_rng(seed), log_odds.shape
    p = torch.softmax(log_odds, dim=1).numpy()
    label = np.array([rng.choice(q, p=row) for row in p])
    candidates = np.zeros((m, q), dtype=bool)
    for b in range(m):
        others = rng.permutation(np.delete(np.arange(q), label[b]))
        candidates[b, others[: false + 1]] = True
        if rng.random() >= rate:
            candidates[b, others[false]] = False
            candidates[b, label[b]] = True
    return candidates


def odds(m: int, q: int, scale: float) -> torch.Tensor:
    return scale * torch.randn(m, q, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("false", [1, 2])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.2])
def test_the_rate_is_found_whatever_the_scale_of_the_evidence(rate: float, false: int) -> None:
    right = odds(1500, 6, 5.0)
    candidates = sets_of(right, rate, false)
    for confidence in (0.3, 4.0):
        assert fit_candidate_noise(confidence * right, candidates) == pytest.approx(rate, abs=0.035)


@pytest.mark.parametrize("m", [60, 300])
def test_evidence_that_says_nothing_finds_no_noise(m: int) -> None:
    rates = [fit_candidate_noise(odds(m, 5, 3.0), sets_of(odds(m, 5, 0.0), 0.2, 1, seed)) for seed in range(5)]
    assert np.median(rates) == 0
    assert max(rates) < 0.25


def test_only_single_labels_give_no_noise() -> None:
    assert fit_candidate_noise(odds(20, 3, 2.0), np.eye(3, dtype=bool)[np.arange(20) % 3]) == 0


# ---------------------------------------------------------------- the estimator


@pytest.fixture(scope="module")
def noisy(problem: MIPLDataset) -> tuple[BagGP, np.ndarray, np.ndarray]:
    candidates, wrong = without_truth(problem, 0.2)
    return fast("auto").fit(problem.bags, candidates, classes=NAMES), candidates, wrong


def test_auto_finds_the_share_of_wrong_sets_and_which_they_are(problem: MIPLDataset, noisy) -> None:
    model, candidates, wrong = noisy
    assert model.candidate_noise_ == pytest.approx(0.2, abs=0.05)
    above = model.outside_[wrong][:, None] > model.outside_[~wrong]
    assert above.mean() > 0.95
    np.testing.assert_allclose(model.outside_, (model.posterior_ * ~candidates).sum(axis=1))
    np.testing.assert_allclose(model.posterior_.sum(axis=1), 1)
    assert np.mean(model.posterior_.argmax(axis=1) == problem.labels) > 0.95


def test_new_bags_are_resolved_under_the_same_noise(noisy) -> None:
    model, *_ = noisy
    new = make_bags(n_bags=20, n_classes=5, n_features=10, separation=5.0, sizes=(5, 15), positive=0.2, r=1, seed=8)
    rate, p, inside = model.candidate_noise_, model.predict_proba(new.bags), new.candidates
    prior = np.where(inside, (1 - rate) / 2, rate / 3)
    np.testing.assert_allclose(
        model.resolve(new.bags, inside), prior * p / (prior * p).sum(axis=1, keepdims=True), rtol=1e-9
    )


def test_on_clean_sets_auto_answers_as_without_noise_to_the_last_bit(problem: MIPLDataset) -> None:
    plain, auto = fast().fit(problem), fast("auto").fit(problem)
    assert auto.candidate_noise_ == 0
    assert np.array_equal(plain.posterior_, auto.posterior_)
    assert np.array_equal(plain.predict_proba(problem), auto.predict_proba(problem))
    assert not plain.outside_.any()


def test_single_labels_unknown_bags_and_a_background_class_keep_their_meaning_under_noise() -> None:
    ds = make_bags(n_bags=60, n_classes=4, n_features=6, separation=5.0, sizes=(3, 6), r=1, seed=2)
    names = ["silence", "a", "b", "c"]
    sets = [[names[c] for c in np.flatnonzero(row)] for row in ds.candidates]
    single = np.arange(60) % 3 == 0
    for b in range(60):
        if single[b]:
            sets[b] = [names[ds.labels[b]]]
        elif b % 3 == 1:
            sets[b] = None
    model = fast(0.1).fit(ds.bags, sets, classes=names, background="silence")
    assert (model.posterior_[single, ds.labels[single]] == 1).all()
    assert (model.outside_[[s is None for s in sets]] == 0).all()
    assert (model.outside_[[s is not None and len(s) > 1 for s in sets]] > 0).all()
    assert np.isfinite(model.predict_proba(ds.bags)).all()
    assert (model.predict_instances(ds.bags)[:, 0] == 0).all()


def test_a_saved_model_keeps_its_noise(noisy, problem: MIPLDataset, tmp_path) -> None:
    model, candidates, _ = noisy
    again = mipl.load_model(model.save(tmp_path / "m.mipl"))
    assert again.candidate_noise == "auto"
    assert again.candidate_noise_ == model.candidate_noise_
    assert np.array_equal(again.outside_, model.outside_)
    for sets in (candidates, problem.candidates):
        assert np.array_equal(again.resolve(problem.bags, sets), model.resolve(problem.bags, sets))


def test_a_model_file_from_before_the_option_resolves_among_the_candidates() -> None:
    model = mipl.load_model(MODEL_OF_FORMAT_1)
    assert (model.candidate_noise, model.candidate_noise_) == (0.0, 0.0)
    bags = [np.ones((2, model.n_features_in_)), np.zeros((3, model.n_features_in_))]
    candidates = np.array([[True, True, False], [False, True, True]])
    found = model.resolve(bags, candidates)
    assert (found[~candidates] == 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)


@pytest.mark.parametrize("value", [-0.1, 1.0, "maybe", None])
def test_an_impossible_rate_is_refused_by_name(problem: MIPLDataset, value: object) -> None:
    with pytest.raises(ParameterError, match="candidate_noise"):
        BagGP(candidate_noise=value).fit(problem)


def test_a_label_off_the_set_is_shown_as_such_and_marked_for_review(noisy, problem: MIPLDataset) -> None:
    model, candidates, wrong = noisy
    found = mipl.resolve(MIPLDataset(problem.bags, candidates, classes=NAMES), model)
    best = model.posterior_.argmax(axis=1)
    off = ~candidates[np.arange(len(best)), best]
    assert np.mean(off[wrong]) > 0.8
    np.testing.assert_allclose(found.outside, model.outside_)
    assert found.labels.tolist() == [NAMES[c] for c in best]
    assert found.review[off].all()
    assert f"not among their candidates ({off.sum()})" in found.verdict
    assert found.columns()["outside"] == pytest.approx(model.outside_)
