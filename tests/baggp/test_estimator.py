"""BagGP: what it learns, from what kinds of bags, without ever seeing a label."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, KFold

import mipl
from mipl import BagGP, Bags, MIPLDataset, label_free_score, load_model
from mipl.datasets.synthetic import make_bags
from mipl.errors import ParameterError, UnavailableError

SMALL = {"n_bags": 150, "n_classes": 5, "n_features": 10, "separation": 5.0, "sizes": (5, 15), "positive": 0.2}


def fast() -> BagGP:
    return BagGP(n_landmarks=300, rank=200)


def with_candidates(ds: MIPLDataset, candidates: np.ndarray) -> MIPLDataset:
    return MIPLDataset(ds.bags, candidates, ds.labels, classes=ds.classes, instance_labels=ds.instance_labels)


def accuracy(ds: MIPLDataset, train_size: float = 0.6) -> float:
    train, test = ds.split(train_size, seed=0)
    return fast().fit(train.bags, train.candidates).score(test.bags, test.labels)


def test_it_classifies_resolves_and_finds_instances_on_digits() -> None:
    train, test = mipl.load("digits", r=1, seed=1).split(0.7, seed=1)
    model = BagGP().fit(train.bags, train.candidates)
    assert model.score(test.bags, test.labels) >= 0.95
    assert np.mean(model.resolve(train.bags, train.candidates).argmax(axis=1) == train.labels) >= 0.95
    assert np.mean(model.posterior_.argmax(axis=1) == train.labels) >= 0.95
    assert test.instance_labels is not None
    assert np.mean(model.predict_instances(test.bags).argmax(axis=1) == test.instance_labels) >= 0.93


def test_true_labels_of_a_data_set_are_never_used() -> None:
    ds = make_bags(**SMALL)
    wrong = MIPLDataset(ds.bags, ds.candidates, ds.candidates.argmax(axis=1), classes=ds.classes)
    assert (wrong.labels != ds.labels).any()
    assert np.array_equal(fast().fit(wrong).predict_proba(ds.bags), fast().fit(ds).predict_proba(ds.bags))


# ---------------------------------------------------------------- kinds of bags


def test_plain_multi_class_bags() -> None:
    assert accuracy(make_bags(**SMALL, r=0)) >= 0.95


def test_three_false_labels_of_seven() -> None:
    assert accuracy(make_bags(**{**SMALL, "n_classes": 7, "n_bags": 280, "separation": 6.0}, r=3)) >= 0.9


def test_candidate_sets_of_varying_size() -> None:
    ds = make_bags(**SMALL, r=0, seed=3)
    rng, candidates = np.random.default_rng(0), ds.candidates.copy()
    for row in candidates:
        row[rng.choice(5, rng.integers(0, 5), replace=False)] = True
    assert {1, 5} <= set(candidates.sum(axis=1))
    assert accuracy(with_candidates(ds, candidates)) >= 0.95


def test_class_imbalance_of_six_to_one() -> None:
    ds = make_bags(**{**SMALL, "n_bags": 600}, r=2, seed=1)
    kept = [np.flatnonzero(ds.labels == c)[:n] for c, n in enumerate([120, 90, 60, 40, 20])]
    train, test = ds[np.sort(np.concatenate(kept))].split(0.6, seed=0)
    predicted = fast().fit(train.bags, train.candidates).predict(test.bags)
    recall = [np.mean(predicted[test.labels == c] == c) for c in range(5)]
    assert min(recall) >= 0.75
    assert np.mean(predicted == test.labels) >= 0.95


def test_a_false_label_that_comes_with_one_class_in_most_bags_does_no_harm() -> None:
    # Class 0 brings the false label 1 in 80 % of its bags; bags of class 1 show what 1 looks like.
    ds = make_bags(**{**SMALL, "n_bags": 250}, r=1, seed=2)
    rng, candidates = np.random.default_rng(0), ds.candidates.copy()
    for b in np.flatnonzero(ds.labels == 0):
        candidates[b] = False
        candidates[b, [0, 1 if rng.random() < 0.8 else rng.integers(2, 5)]] = True
    assert accuracy(with_candidates(ds, candidates)) >= accuracy(ds) - 0.05


def test_two_labels_that_only_occur_together_cannot_be_told_apart_but_the_others_can() -> None:
    ds = make_bags(**{**SMALL, "n_bags": 250}, r=1, seed=2)
    candidates = ds.candidates.copy()
    candidates[:, :2] = (ds.labels < 2)[:, None]
    candidates[ds.labels < 2, 2:] = False
    alone = (ds.labels >= 2) & (candidates.sum(axis=1) == 1)
    candidates[alone, 2 + (ds.labels[alone] - 1) % 3] = True
    train, test = with_candidates(ds, candidates).split(0.6, seed=0)
    proba = fast().fit(train.bags, train.candidates).predict_proba(test.bags)
    others = test.labels >= 2
    assert np.mean(proba[others].argmax(axis=1) == test.labels[others]) >= 0.95
    assert np.mean(proba[~others].argmax(axis=1) < 2) >= 0.95


@pytest.mark.parametrize("positive", [1e-6, 0.5, 1.0], ids=["one instance", "half", "all instances"])
def test_any_share_of_positive_instances(positive: float) -> None:
    assert accuracy(make_bags(**{**SMALL, "positive": positive}, seed=4)) >= 0.9


def test_two_classes_half_of_the_bags_ambiguous() -> None:
    ds = make_bags(**{**SMALL, "n_classes": 2}, r=0, seed=6)
    candidates = ds.candidates.copy()
    candidates[::2] = True
    assert accuracy(with_candidates(ds, candidates)) >= 0.95


def test_fifty_classes() -> None:
    many = {"n_bags": 400, "n_classes": 50, "n_features": 30, "separation": 8.0, "sizes": (4, 8), "positive": 0.3}
    assert accuracy(make_bags(**many, r=3, seed=7), 0.8) >= 0.95


def test_bags_of_one_instance_are_partial_label_learning() -> None:
    assert accuracy(make_bags(**{**SMALL, "sizes": (1, 1), "positive": 1.0}, r=2, seed=8)) >= 0.95


def test_duplicate_instances_and_constant_features() -> None:
    ds = make_bags(**SMALL, seed=9)
    twice = Bags.from_list([np.repeat(bag, 2, axis=0) for bag in ds.bags])
    assert accuracy(MIPLDataset(twice, ds.candidates, ds.labels, classes=ds.classes)) >= 0.95
    constant = np.full((ds.bags.n_instances, 3), 7.0, dtype=np.float32)
    wider = Bags(np.concatenate([ds.bags.instances, constant], axis=1), ds.bags.offsets)
    assert accuracy(MIPLDataset(wider, ds.candidates, ds.labels, classes=ds.classes)) >= 0.95


def test_nothing_is_claimed_where_the_candidates_say_nothing() -> None:
    ds = make_bags(**SMALL)
    model = fast().fit(ds.bags, np.ones_like(ds.candidates))
    np.testing.assert_allclose(model.predict_proba(ds.bags), 0.2)


def test_a_class_that_no_bag_has_changes_nothing_that_is_learned(tmp_path: Path) -> None:
    train, test = make_bags(**{**SMALL, "n_bags": 100}, r=2, seed=3).split(0.6, seed=0)
    some = train[~train.candidates[:, 1]]  # as after a split, or for a class of a file that is not used
    candidates = np.where(np.arange(len(some))[:, None] % 4 == 0, True, some.candidates)
    without = np.delete(candidates, 1, axis=1)
    wanted = BagGP(n_landmarks=60, rank=40).fit(
        some.bags, without, classes=np.delete(some.classes, 1), background=some.classes[2]
    )
    with pytest.warns(UserWarning, match=f"candidate {some.classes[1].item()!r}"):
        model = BagGP(n_landmarks=60, rank=40).fit(
            some.bags, candidates, classes=some.classes, background=some.classes[2]
        )
    loaded = load_model(model.save(tmp_path / "m.mipl"))
    for found in (model, loaded):
        for answer, expected in (
            (found.predict_proba(test.bags), wanted.predict_proba(test.bags)),
            (found.predict_instances(test.bags), wanted.predict_instances(test.bags)),
            (found.resolve(some.bags, candidates), wanted.resolve(some.bags, without)),
            (found.posterior_, wanted.posterior_),
        ):
            np.testing.assert_array_equal(np.delete(answer, 1, axis=1), expected)
            assert not answer[:, 1].any()
    # What is noise in the sets does not make it possible either.
    with pytest.warns(UserWarning, match="candidate"):
        noisy = (
            BagGP(n_landmarks=60, rank=40)
            .set_params(candidate_noise=0.2)
            .fit(some.bags, candidates, classes=some.classes)
        )
    for sets in (candidates, some.candidates, np.eye(5, dtype=bool)[test.labels[: len(some)]]):
        posterior = noisy.resolve(some.bags[: len(sets)], sets)
        assert np.isfinite(posterior).all()
        assert not posterior[sets.sum(axis=1) > 1, 1].any()


def test_one_possible_class_is_certain() -> None:
    ds = make_bags(**SMALL, r=0)
    alone = ds[ds.labels == 2]
    with pytest.warns(UserWarning, match="no training bag has the candidate"):
        np.testing.assert_array_equal(fast().fit(alone).predict_proba(ds)[:, 2], 1)


def test_equal_instances_everywhere_give_finite_answers() -> None:
    candidates = make_bags(**SMALL).candidates
    bags = Bags(np.ones((600, 3)), np.arange(0, 601, 4))
    assert np.isfinite(fast().fit(bags, candidates).predict_proba(bags)).all()


# ---------------------------------------------------------------- settings


def test_any_transformer_can_be_the_front_end() -> None:
    train, test = make_bags(**SMALL).split(0.6, seed=0)
    model = BagGP(features=PCA(5), n_landmarks=300, rank=200).fit(train.bags, train.candidates)
    assert model.landmarks_.shape[1] == 5
    assert model.score(test.bags, test.labels) >= 0.9


@pytest.mark.parametrize("setting", [{"features": "pca"}, {"n_landmarks": 0}, {"rank": -1}, {"lengthscale": 0.0}])
def test_impossible_settings_are_refused_by_name(setting: dict) -> None:
    ds = make_bags(**SMALL)
    with pytest.raises(ParameterError, match=next(iter(setting))):
        BagGP(**setting).fit(ds.bags, ds.candidates)


def test_the_label_free_score_is_zero_for_chance_and_bounded_by_certainty() -> None:
    ds = make_bags(**SMALL)

    class Fixed(BagGP):
        def _predict_proba(self, bags: Bags) -> np.ndarray:
            return self.answer

    model = Fixed(n_landmarks=50, rank=20).fit(ds.bags, ds.candidates)
    model.answer = np.full(ds.candidates.shape, 0.2)
    assert label_free_score(model, ds.bags, ds.candidates) == pytest.approx(0)
    model.answer = np.eye(5)[ds.labels]
    assert label_free_score(model, ds.bags, ds.candidates) == pytest.approx(np.log(5 / 2))


def test_grid_search_without_labels_rejects_a_bad_length_scale() -> None:
    ds = make_bags(**SMALL)
    search = GridSearchCV(
        fast(), {"lengthscale": [0.02, 1.0]}, scoring=label_free_score, cv=KFold(2, shuffle=True, random_state=0)
    )
    search.fit(ds.bags, ds.candidates)
    assert search.best_params_ == {"lengthscale": 1.0}


def test_any_random_state_of_scikit_learn_is_taken() -> None:
    ds = make_bags(**{**SMALL, "n_bags": 40})
    small = {"n_landmarks": 30, "rank": 20}
    by_state = [BagGP(**small, random_state=np.random.RandomState(5)).fit(ds).predict_proba(ds) for _ in range(2)]
    assert np.array_equal(*by_state)
    assert np.isfinite(BagGP(**small, random_state=None).fit(ds).predict_proba(ds)).all()


def test_a_device_that_is_not_there_is_named() -> None:
    ds = make_bags(**{**SMALL, "n_bags": 40})
    with pytest.raises(ParameterError, match="device='gpu'"):
        BagGP(device="gpu").fit(ds)
    if not torch.cuda.is_available():
        with pytest.raises(UnavailableError, match="device='cuda'"):
            BagGP(device="cuda").fit(ds)


# ---------------------------------------------------------------- what is known of labels


def test_resolve_answers_for_training_bags_with_their_cross_fitted_posterior() -> None:
    train, test = make_bags(**SMALL).split(0.6, seed=0)
    model = fast().fit(train)
    assert np.array_equal(model.resolve(train), model.posterior_)
    assert np.array_equal(model.resolve(train[5:9]), model.posterior_[5:9])
    others = model.predict_proba(test) * test.candidates
    np.testing.assert_allclose(model.resolve(test), others / others.sum(axis=1, keepdims=True))


def test_votes_help_where_the_majority_is_right() -> None:
    ds = make_bags(**{**SMALL, "separation": 2.5}, r=2, seed=1)
    rng = np.random.default_rng(0)
    votes = ds.candidates * rng.integers(1, 4, ds.candidates.shape).astype(float)
    votes[np.arange(len(ds)), ds.labels] += rng.integers(0, 4, len(ds))
    plain, voted = fast().fit(ds.bags, ds.candidates), fast().fit(ds.bags, votes)
    assert (plain.vote_reliability_, plain.vote_strength_, voted.vote_strength_) == (None, None, None)
    accuracy = [np.mean(model.posterior_.argmax(axis=1) == ds.labels) for model in (plain, voted)]
    assert accuracy[1] > accuracy[0] + 0.02


@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("trained_with", ["odds", "sets"])
def test_odds_on_new_bags_count_as_in_training(trained_with: str, noise: float) -> None:
    train, test = mipl.load("digits", r=2, seed=0).split(0.5, seed=0)
    rng = np.random.default_rng(0)
    own, new = (ds.candidates * rng.integers(1, 9, ds.candidates.shape) / 10 for ds in (train, test))
    model = fast().set_params(candidate_noise=noise)
    model.fit(train.bags, own if trained_with == "odds" else train.candidates)
    strength = model.vote_strength_ if trained_with == "odds" else 1.0
    share = np.where(test.candidates, new**strength, 0)
    prior = (1 - noise) * share / share.sum(axis=1, keepdims=True)
    prior += np.where(test.candidates, 0, noise / (5 - test.candidates.sum(axis=1, keepdims=True)))
    expected = model.predict_proba(test.bags) * prior
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.resolve(test.bags, new), expected, atol=1e-8)
    turned = test.candidates[:, ::-1]
    voted = MIPLDataset(test.bags, turned, classes=range(4, -1, -1), candidate_weights=new[:, ::-1])
    np.testing.assert_allclose(mipl.resolve(voted, model).posterior, expected, atol=1e-8)
    np.testing.assert_allclose(model.resolve(voted), expected, atol=1e-8)
    assert np.abs(model.resolve(test.bags, test.candidates) - expected).max() > 0.01
    np.testing.assert_array_equal(model.resolve(train.bags, own), model.posterior_)


def test_counts_of_people_on_new_bags_grow_with_every_vote() -> None:
    train, test = mipl.load("digits", r=2, seed=0).split(0.5, seed=0)
    own, few = (np.where(ds.candidates, 1, 0) for ds in (train, test))
    own[np.arange(len(train)), train.labels] += 4
    few[np.arange(len(test)), test.candidates.argmax(axis=1)] += 1
    model = fast().fit(train.bags, own)
    first = [model.resolve(test.bags, n * few)[np.arange(len(test)), test.candidates.argmax(1)] for n in (1, 4)]
    assert (first[1] >= first[0]).all()
    assert first[1].mean() > first[0].mean() + 0.05


@pytest.mark.parametrize("kind", ["votes", "odds"])
def test_weights_that_say_nothing_are_not_believed(kind: str) -> None:
    ds = make_bags(**SMALL, r=2, seed=1)
    rng = np.random.default_rng(0)
    weights = ds.candidates * rng.integers(1, 20, ds.candidates.shape).astype(float)
    model = fast().fit(ds.bags, weights if kind == "votes" else weights / 20)
    assert model.vote_reliability_ < 0.6 if kind == "votes" else model.vote_strength_ < 0.3
    assert np.mean(model.posterior_.argmax(axis=1) == ds.labels) > 0.9


def test_bags_of_which_nothing_is_known_are_used_and_resolved() -> None:
    ds = make_bags(**SMALL, r=1, seed=3)
    sets = [None if i % 3 == 0 else labels for i, labels in enumerate(ds.candidate_sets())]
    model = fast().fit(ds.bags, sets, classes=ds.classes)
    unknown = np.arange(len(ds)) % 3 == 0
    assert np.mean(model.posterior_[unknown].argmax(axis=1) == ds.labels[unknown]) > 0.85


def test_a_background_bag_is_one_without_positives() -> None:
    ds = make_bags(**{**SMALL, "n_bags": 400}, r=0, seed=4)
    rng = np.random.default_rng(0)
    empty = ds.labels == 0  # bags of class 0 lose their positives: nothing is in them
    bags = [
        bag[row == 5] if is_empty else bag
        for bag, row, is_empty in zip(ds.bags, np.split(ds.instance_labels, ds.bags.offsets[1:-1]), empty, strict=True)
    ]
    candidates = ds.candidates.copy()
    candidates[np.arange(400), rng.integers(0, 5, 400)] = True
    silent = MIPLDataset(bags, candidates, ds.labels, classes=["silence", "a", "b", "c", "d"], background="silence")
    train, test = silent.split(0.6, seed=0)
    model = fast().fit(train)
    assert model.score(test) > 0.85
    assert np.mean(model.predict(test)[test.labels == 0] == "silence") > 0.7
    assert (model.predict_instances(test)[:, 0] == 0).all()


def test_groups_are_held_out_together_and_change_the_weights() -> None:
    # Each bag occurs in five copies: held out one by one, its copies give it away.
    ds = make_bags(**{**SMALL, "n_bags": 40, "separation": 1.0}, r=1, seed=5)
    five = ds[np.repeat(np.arange(40), 5)]
    alone = fast().fit(five.bags, five.candidates)
    together = fast().fit(five.bags, five.candidates, groups=np.repeat(np.arange(40), 5))
    assert together.label_free_score_ < alone.label_free_score_ - 0.1


def test_bags_of_a_single_group_are_held_out_one_by_one() -> None:
    ds = make_bags(**{**SMALL, "n_bags": 40})
    one, none = (fast().fit(ds.bags, ds.candidates, groups=groups) for groups in (np.zeros(40, dtype=int), None))
    assert one.label_free_score_ == none.label_free_score_ > 0
    assert np.array_equal(one.posterior_, none.posterior_)


@pytest.mark.parametrize(("m", "q"), [(90, 3), (150, 10)])
def test_features_without_information_give_honest_probabilities(m: int, q: int) -> None:
    gaps = []
    for seed in range(2):
        ds = make_bags(n_bags=m * 2 // q * q, n_classes=q, n_features=6, separation=0.0, sizes=(3, 6), r=1, seed=seed)
        train, test = ds.split(0.5, seed=seed)
        model = fast().fit(train)
        proba = model.predict_proba(test)
        gaps.append(proba.max(axis=1).mean() - np.mean(proba.argmax(axis=1) == test.labels))
        gaps.append(model.posterior_.max(axis=1).mean() - np.mean(model.posterior_.argmax(axis=1) == train.labels))
    assert abs(np.mean(gaps)) < 0.12
