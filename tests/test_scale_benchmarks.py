"""The benchmarks that put themselves between a fit and its blocks still see every step."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed")


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")


def test_the_cost_model_notes_every_step_of_a_fit() -> None:
    import scale_constants
    import scale_model
    from scale_cases import scanned

    n = 6000
    with scanned(n) as scan:
        steps, fetched, own, seconds = scale_constants.measure_fit(scan, n, 30)
    # All fits share the steps of the regression and of the likelihood.
    assert steps["_right_hand_sides"].calls > 1
    assert steps["likelihood_statistics"].calls > 10
    assert steps["_block"].calls >= 1  # more where a metric is tried
    assert 0 < own < seconds
    assert fetched > 0
    found = scale_constants.Constants(steps, fetched, (own, 0.0), 0.05, 0.01, 0.001, 1.1, 15)
    alone, pair = (
        scale_model.simulate(1e8, n_workers, found, np.random.default_rng(0), local=True).seconds
        for n_workers in (1, 2)
    )
    assert math.isfinite(alone)
    assert 1 < alone / pair < 2


def test_the_bytes_of_a_step_are_those_of_the_formula_and_the_heads_of_messages() -> None:
    from scale_cluster import moved_per_step, workers

    with workers(1) as client:
        few, many = (moved_per_step(client, 2000, rank, 3) for rank in (500, 2500))
    assert many.formula == 5 * few.formula
    # The difference has no heads, but a heartbeat may be among it.
    assert many.measured - few.measured == pytest.approx(many.formula - few.formula, rel=0.1)
