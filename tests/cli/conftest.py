"""The command line, run in this process as a user runs it."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from mipl.cli import main


class Done(NamedTuple):
    stdout: str
    stderr: str


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Done]:
    """Run a command line in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run_words(*words: object, code: int = 0) -> Done:
        monkeypatch.setattr(sys, "argv", ["mipl", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        told = Done(*capsys.readouterr())
        assert ended.value.code == code, told.stderr + told.stdout
        return told

    return run_words


@pytest.fixture
def rows(tmp_path: Path) -> Callable[[str], list[dict[str, str]]]:
    """The rows of a CSV file in that folder."""

    def read(name: str) -> list[dict[str, str]]:
        with (tmp_path / name).open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    return read


@pytest.fixture
def animals(tmp_path: Path) -> dict[str, str]:
    """Two CSV files: train.csv with bags of ants, bees and cats, new.csv where only bees and cats are candidates.

    The instances of each class lie far from those of the others, so that any method finds the truth, which is given
    back by bag id for new.csv.
    """
    rng = np.random.default_rng(0)
    centre = {"ant": 0.0, "bee": 10.0, "cat": 20.0}

    def write(name: str, labels: list[str], candidates: dict[str, str], told: bool) -> None:
        with (tmp_path / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["bag_id", "candidates", "length", "width", *(["label"] if told else [])])
            for i, label in enumerate(labels):
                for _ in range(3):
                    x = rng.normal(centre[label], 0.1, 2).tolist()
                    writer.writerow([f"{name[0]}{i}", candidates[label], *x, *([label] if told else [])])

    write("train.csv", ["ant", "bee", "cat"] * 12, {name: name for name in centre}, told=False)
    found = ["bee", "cat", "cat", "bee"]
    write("new.csv", found, {"bee": "bee|cat", "cat": "bee|cat"}, told=True)
    return {f"n{i}": label for i, label in enumerate(found)}
