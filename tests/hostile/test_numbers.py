"""Numerical corner cases of every method: sizes, constants, duplicates, zeros. `pytest --slow -s` prints the counts."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from quick_methods import quick

import mipl
from mipl.bags import Bags
from mipl.errors import MIPLError
from mipl.small_problems import small_problem

SEED = 20
#: Sizes of features, from the smallest single-precision number to the largest.
SIZES = (1e-45, 1e-38, 1e-30, 1e-19, 1e-8, 1.0, 1e8, 1e19, 1e30, 3.4e38)
#: How many cases are drawn for each method.
FITS, PREDICTIONS = 12, 40

Rng = np.random.Generator
Rows = np.ndarray


def _one_size(X: Rows, rng: Rng) -> Rows:
    return X * rng.choice(SIZES)


def _a_size_per_feature(X: Rows, rng: Rng) -> Rows:
    return X * rng.choice(SIZES, X.shape[1])


def _one_wild_value(X: Rows, rng: Rng) -> Rows:
    X = X.copy()
    X[rng.integers(len(X)), rng.integers(X.shape[1])] = rng.choice((-1, 1)) * rng.choice(SIZES)
    return X


def _wild_rows(X: Rows, rng: Rng) -> Rows:
    X = X.copy()
    start = rng.integers(len(X))
    X[start : start + rng.integers(1, 6)] = rng.choice((-1, 1)) * 10 ** rng.uniform(3, 38)
    return X


def _two_far_groups(X: Rows, rng: Rng) -> Rows:
    return X + (rng.random((len(X), 1)) < 0.5) * 10 ** rng.uniform(3, 38)


def _a_size_per_row(X: Rows, rng: Rng) -> Rows:
    return X * 10 ** rng.uniform(-44, 38, (len(X), 1))


def _a_constant_feature(X: Rows, rng: Rng) -> Rows:
    X = X.copy()
    X[:, rng.integers(X.shape[1])] = rng.choice(SIZES)
    return X


def _all_equal(X: Rows, rng: Rng) -> Rows:
    return np.full_like(X, rng.choice(SIZES))


def _few_distinct_rows(X: Rows, rng: Rng) -> Rows:
    return X[rng.integers(0, 3, len(X))] * rng.choice(SIZES)


def _a_far_origin(X: Rows, rng: Rng) -> Rows:
    return X + rng.choice(SIZES)


def _mostly_zero(X: Rows, rng: Rng) -> Rows:
    return np.abs(X) * (rng.random(X.shape) < 0.2) * rng.choice(SIZES)


CASES: tuple[Callable[[Rows, Rng], Rows], ...] = (
    _one_size,
    _a_size_per_feature,
    _one_wild_value,
    _wild_rows,
    _two_far_groups,
    _a_size_per_row,
    _a_constant_feature,
    _all_equal,
    _few_distinct_rows,
    _a_far_origin,
    _mostly_zero,
)


def draw(bags: Bags, rng: Rng) -> tuple[str, Bags]:
    case = CASES[rng.integers(len(CASES))]
    with np.errstate(all="ignore"):
        X = case(bags.instances.astype(np.float64) / 4, rng)
    limit = float(np.finfo(np.float32).max)
    return case.__name__, Bags(np.clip(X, -limit, limit).astype(np.float32), bags.offsets)


def judge(model: mipl.MIPLClassifier, bags: Bags, candidates: np.ndarray) -> str:
    """Nothing where all answers are probabilities, else what is wrong."""
    for found in (model.predict_proba(bags), model.predict_instances(bags), model.resolve(bags, candidates)):
        if not np.isfinite(found).all():
            return "not finite"
        if not np.allclose(found.sum(axis=1), 1, atol=1e-4):
            return "does not sum to one"
    return ""


def attempt(action: Callable[[], str]) -> str:
    """What became of an attempt: "answered", "refused" by an error of ours, or what went wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return action() or "answered"
    except MIPLError:
        return "refused"
    except Exception as error:
        return f"raw {type(error).__name__}: {error}"[:200]


def campaign(name: str, fits: int, predictions: int) -> tuple[Counter[str], list[str]]:
    rng = np.random.default_rng([SEED, list(mipl.methods()).index(name)])
    bags, candidates, _ = small_problem()
    counts: Counter[str] = Counter()
    wrong: list[str] = []

    def note(what: str, result: str) -> None:
        counts[result if result in ("answered", "refused") else "wrong"] += 1
        if result not in ("answered", "refused"):
            wrong.append(f"{what}: {result}")

    for _ in range(fits):
        case, drawn = draw(bags, rng)
        note(f"fit {case}", attempt(lambda: judge(quick(name).fit(drawn, candidates), drawn, candidates)))  # noqa: B023
    model = quick(name).fit(bags, candidates)
    for _ in range(predictions):
        case, drawn = draw(bags, rng)
        note(f"predict {case}", attempt(lambda: judge(model, drawn, candidates)))  # noqa: B023
    return counts, wrong


@pytest.mark.slow
@pytest.mark.parametrize("name", mipl.methods())
def test_every_corner_case_is_answered_or_refused_in_our_words(name: str) -> None:
    counts, wrong = campaign(name, FITS, PREDICTIONS)
    print(f"\n{name}: {sum(counts.values())} tried, {dict(counts)}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ["BagGP", "FastMIPL", "SURE", "VWSGP"])
def test_a_sample_of_the_campaign(name: str) -> None:
    counts, wrong = campaign(name, 2, 8)
    assert not wrong, "\n".join(wrong)
    assert sum(counts.values()) == 10


@pytest.mark.slow
def test_ten_thousand_predictions_do_not_grow_the_memory() -> None:
    resource = pytest.importorskip("resource")
    bags, candidates, _ = small_problem()
    model = quick("BagGP").fit(bags, candidates)
    for _ in range(200):
        model.predict(bags[:1])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(10_000):
        model.predict(bags[:1])
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"\n10,000 predictions: {grown} KiB more")
    assert grown < 8 * 1024
