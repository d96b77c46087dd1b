"""A fit says what it is doing, and learns the same whether anybody watches or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import mipl
from mipl.baggp import blocks as blocks_module
from mipl.progress import SILENT, Phases

PHASES = ["front end", "landmarks", "features", "Gram matrix", "bag regression", "bag likelihood"]
ALL = ["digests of the bags", *PHASES, "stacking"]

Seen = list[tuple[str, int, int | None]]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """What a fit with `verbose` says, in order."""
    told: Seen = []

    @contextmanager
    def show(title: str, *, verbose: bool) -> Iterator[Phases]:
        assert title == "BagGP"
        yield Phases(lambda *said: told.append(said)) if verbose else SILENT

    monkeypatch.setattr("mipl.baggp.estimator.show_phases", show)
    return told


def phases(seen: Seen) -> list[str]:
    """The phases in their order, each once per time that it was entered."""
    names = [phase for phase, _, _ in seen]
    return [name for i, name in enumerate(names) if i == 0 or name != names[i - 1]]


def steps(seen: Seen, phase: str) -> list[tuple[int, int | None]]:
    return [(done, total) for name, done, total in seen if name == phase]


def test_a_fit_says_every_phase_once_and_how_far_it_is(seen: Seen) -> None:
    mipl.BagGP(n_landmarks=60, verbose=1).fit(mipl.load("digits", r=1, seed=0))
    assert phases(seen) == ALL
    done = [done for done, _ in steps(seen, "bag likelihood")]
    assert done == sorted(done)
    assert done[0] == 0
    assert len(done) > 20
    assert all(0 <= done <= total for _, done, total in seen if total is not None)
    assert steps(seen, "features") == [(0, 1), (1, 1)]


def test_nothing_is_said_by_default_and_what_is_learned_is_the_same(seen: Seen) -> None:
    ds = mipl.load("digits", r=1, seed=0)[:60]
    quiet = mipl.BagGP(n_landmarks=40).fit(ds)
    assert seen == []
    loud = mipl.BagGP(n_landmarks=40, verbose=True).fit(ds)
    assert seen
    for name in ("coef_", "posterior_", "stacking_weights_"):
        np.testing.assert_array_equal(getattr(quiet, name), getattr(loud, name))


def test_a_fit_to_files_counts_its_runs(seen: Seen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks_module.divide, "__defaults__", (100,))
    monkeypatch.setattr("mipl.baggp.estimator.SAMPLE_INSTANCES", 300)
    ds = mipl.load("digits", r=1, seed=0)
    ds.save(tmp_path / "d.parquet")
    mipl.BagGP(n_landmarks=40, memory_budget=0, verbose=True).fit(mipl.scan(tmp_path))
    assert phases(seen) == ALL
    counted = steps(seen, "features")
    assert counted == [(k, len(counted) - 1) for k in range(len(counted))]
    assert len(counted) > 5
