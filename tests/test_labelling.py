"""The order in which to label: against a loop over bags that follows the formula, and on bags made to be alike."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mipl.labelling import GAMMA, NOISE, ClassSimilarity, entropies, order_to_label, undecided


def drawn(m: int, q: int, seed: int) -> tuple[NDArray[np.float64], list[ClassSimilarity]]:
    """A posterior with some certain bags, and correlations of random profiles for each class."""
    rng = np.random.default_rng(seed)
    posterior = rng.dirichlet(np.full(q, 0.4), m)
    posterior[::4] = np.eye(q)[rng.integers(q, size=len(posterior[::4]))]
    alike = []
    for c in range(q):
        bags = np.flatnonzero((posterior[:, c] > 0) & (posterior[:, c] < 1))
        profiles = rng.standard_normal((len(bags), 3))
        profiles /= np.linalg.norm(profiles, axis=1, keepdims=True)
        alike.append(ClassSimilarity(bags, profiles @ profiles.T))
    return posterior, alike


def one_after_the_other(posterior: NDArray[np.float64], alike: list[ClassSimilarity]) -> list[tuple[int, float]]:
    """Bags and what their answers tell about others, by loops over bags and classes."""
    m, q = posterior.shape
    kernels = np.zeros((q, m, m))
    for c, (bags, values) in enumerate(alike):
        kernels[c][np.ix_(bags, bags)] = values
    tau = posterior * (1 - posterior)
    order: list[tuple[int, float]] = []
    while True:
        gains = {}
        for b in range(m):
            own = -sum(p * np.log(p) for p in posterior[b] if p > 0)
            if own < 1e-6 or b in [each for each, _ in order]:
                continue
            others = sum(
                GAMMA * tau[b, c] * tau[a, c] * kernels[c, a, b] ** 2 for c in range(q) for a in range(m) if a != b
            )
            gains[b] = (own + others, others)
        if not gains:
            return order
        best = max(gains, key=lambda b: gains[b][0])
        order.append((best, gains[best][1]))
        for c in range(q):
            k = kernels[c][:, best].copy()
            if k[best] > 0:
                kernels[c] -= np.outer(k, k) / (k[best] + NOISE)
        tau[best] = 0


@settings(max_examples=20)
@given(st.integers(2, 12), st.integers(2, 4), st.integers(0, 1000))
def test_the_order_is_that_of_the_formula_bag_by_bag(m: int, q: int, seed: int):
    posterior, alike = drawn(m, q, seed)
    found = order_to_label(posterior, alike)
    expected = one_after_the_other(posterior, alike)
    assert np.argsort(found.rank)[: len(expected)].tolist() == [b for b, _ in expected]
    np.testing.assert_allclose(found.others[[b for b, _ in expected]], [g for _, g in expected], atol=1e-10)
    np.testing.assert_array_equal(np.sort(found.rank), np.arange(m))


def test_without_similarities_the_order_is_by_entropy():
    posterior, _ = drawn(30, 3, 0)
    found = order_to_label(posterior)
    np.testing.assert_array_equal(np.argsort(found.rank), np.argsort(-entropies(posterior), kind="stable"))
    assert not found.others.any()


def test_the_first_bags_come_from_different_groups_of_like_bags():
    group = np.repeat(np.arange(4), 10)
    posterior = np.full((40, 2), 0.5)
    alike = [ClassSimilarity(np.arange(40), (group[:, None] == group).astype(float))] * 2
    first = np.argsort(order_to_label(posterior, alike).rank)[:4]
    assert sorted(group[first].tolist()) == [0, 1, 2, 3]


def test_a_bag_of_a_large_group_comes_before_a_slightly_less_certain_loner():
    posterior = np.array([[0.5, 0.5], *[[0.55, 0.45]] * 6])
    values = np.zeros((7, 7))
    values[0, 0] = 1
    values[1:, 1:] = 1
    found = order_to_label(posterior, [ClassSimilarity(np.arange(7), values)] * 2)
    assert found.rank[0] > 0
    assert order_to_label(posterior).rank[0] == 0


def test_what_the_caller_gave_is_not_changed_and_beyond_the_picks_nothing_is_lost():
    posterior, alike = drawn(20, 3, 5)
    before = [values.copy() for _, values in alike]
    found = order_to_label(posterior, alike, picks=3)
    for (_, values), kept in zip(alike, before, strict=True):
        np.testing.assert_array_equal(values, kept)
    np.testing.assert_array_equal(np.sort(found.rank), np.arange(20))
    np.testing.assert_array_equal(np.argsort(found.rank)[:3], np.argsort(order_to_label(posterior, alike).rank)[:3])


def test_some_bags_keep_their_ranks_among_all():
    posterior, alike = drawn(12, 3, 1)
    found = order_to_label(posterior, alike)
    part = found.select(np.array([5, 2]))
    assert part.rank.tolist() == [found.rank[5], found.rank[2]]
    assert part.own.tolist() == [found.own[5], found.own[2]]


def test_certain_bags_are_decided_and_the_least_certain_are_kept():
    posterior = np.array([[1.0, 0.0], [0.6, 0.4], [0.9, 0.1], [0.5, 0.5]])
    assert undecided(posterior, 10).tolist() == [1, 2, 3]
    assert undecided(posterior, 2).tolist() == [1, 3]
