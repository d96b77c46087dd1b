"""The scores that a suite may ask for, by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mipl.errors import DataError

__all__ = ["DEFAULT_SCORES", "SCORES", "ScoreName", "check_scores"]


@dataclass(frozen=True)
class ScoreName:
    """How tables name a score, and in one line what it is."""

    heading: str
    meaning: str


#: name -> heading and meaning; `mipl.bench.execution.scores` computes them, in the order of tables and CSV files.
SCORES = {
    "accuracy": ScoreName("accuracy", "share of test bags whose label is predicted"),
    "ece": ScoreName("ECE", "expected calibration error on test bags, ten bins"),
    "ece_chance": ScoreName("by chance", "the ECE of a perfectly calibrated model with the same probabilities"),
    "log_loss": ScoreName("log loss", "mean negative log probability of the true label, in nats per test bag"),
    "label_free": ScoreName("label-free", "log likelihood of the test bags' candidate sets, relative to chance"),
    "instance_ap": ScoreName("AP", "average precision of finding positive instances of test bags"),
    "resolve_accuracy": ScoreName("resolved", "share of training bags whose true candidate is found"),
    "resolve_ece": ScoreName("resolved ECE", "expected calibration error of the resolved training bags"),
}

#: What a suite records unless it says otherwise: what follows from one prediction of the test bags.
DEFAULT_SCORES = ("accuracy", "log_loss", "ece", "ece_chance")


def check_scores(names: Iterable[str]) -> tuple[str, ...]:
    """The names, checked and without repetition, in the order of `SCORES`; accuracy is always among them."""
    asked = [names] if isinstance(names, str) else list(names)
    for name in asked:
        if name not in SCORES:
            raise DataError(f"unknown score {name!r}; the scores are {', '.join(SCORES)}")
    return tuple(name for name in SCORES if name == "accuracy" or name in asked)
