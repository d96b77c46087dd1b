"""Damaged and re-signed model files: refused at load in one line, or a model that answers with probabilities."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hostile_files import DAMAGE, Tally, flipped, resigned

import mipl
from mipl.checks import small_problem

METHODS = ["PL-kNN", "SURE", "BagGP", "VGPMIL", "DEMIPL"]
FAST = METHODS[:2]


def saved(method: str, folder: Path) -> Path:
    bags, candidates, _ = small_problem()
    quick = {"DEMIPL": {"n_epochs": 2}, "VGPMIL": {"learner__n_inducing": 4}}
    model = mipl.make(method)
    known = model.get_params()
    return (
        model.set_params(**{k: v for k, v in quick.get(method, {}).items() if k in known})
        .fit(bags, candidates)
        .save(folder / "m.mipl")
    )


def ask(tally: Tally, path: Path, example: object) -> None:
    """Load a model and ask it everything."""
    bags, candidates, _ = small_problem()
    found = []

    def answer() -> None:
        model = mipl.load_model(path)
        found.append(model.predict_proba(bags))
        found.append(model.predict_instances(bags))
        found.append(model.resolve(bags, candidates))
        model.predict(bags)

    with np.errstate(all="ignore"):
        tally.of(answer, example)
    if any(not np.isfinite(each).all() for each in found):
        tally.count("not finite", example)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("method", "count"),
    [
        *((method, 25) for method in FAST),
        *(pytest.param(method, 400, marks=pytest.mark.slow, id=f"{method}-campaign") for method in METHODS),
    ],
)
def test_a_resigned_model_is_refused_or_answers(tmp_path: Path, method: str, count: int):
    path = saved(method, tmp_path)
    content = path.read_bytes()
    rng, tally = np.random.default_rng(6), Tally(f"re-signed models, {method}")
    for i in range(count):
        path.write_bytes(content)
        resigned(path, rng)
        ask(tally, path, i)
    tally.check()


@pytest.mark.parametrize(
    "count", [pytest.param(40, id="sample"), pytest.param(4000, id="campaign", marks=pytest.mark.slow)]
)
def test_a_damaged_model_file_is_refused(tmp_path: Path, count: int):
    path = saved("PL-kNN", tmp_path)
    content = path.read_bytes()
    expected = mipl.load_model(path).predict_proba(small_problem()[0])
    rng, tally = np.random.default_rng(7), Tally("damaged models")
    for i in range(count):
        damage = DAMAGE[i % len(DAMAGE)] if i % 2 else flipped
        path.write_bytes(damage(content, rng))
        tally.of(lambda: np.array_equal(mipl.load_model(path).predict_proba(small_problem()[0]), expected), i)
    tally.check()
