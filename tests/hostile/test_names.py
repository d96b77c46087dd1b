"""Hostile names from load to save to the command line: the same names in every format, or a refusal in one line."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hostile_files import Tally

import mipl
from mipl.cli import main
from mipl.visible_text import visible

FORMATS = [".parquet", ".feather", ".npz", ".csv", ".jsonl", ".mat"]
PARTS = [
    "\x1b[2J", "\x1b]0;t\x07", "\x9b31m", "=1+1", "+x", "-x", "@x", "[bold]", "[/]", "$\\frac{$", "<b>", "'", '"', "|",
    ":3", ",", ";", "\t", "\n", "\r", "\0", "\u202e", "\u2028", "# mipl {}", "{}", "[1]", "None", "nan", "1e5", "007",
    "../x", "%s", "größe", "名", "\U0001f600", " ", "{0}",
]  # fmt: skip


def named(rng: np.random.Generator) -> mipl.MIPLDataset:
    def names(count: int) -> list[str]:
        made: dict[str, None] = {}
        while len(made) < count:
            made["".join(rng.choice(PARTS, int(rng.integers(1, 4)))) + "ab"[int(rng.integers(2))]] = None
        return list(made)

    classes = names(3)
    return mipl.MIPLDataset(
        mipl.Bags(rng.normal(size=(8, 2)).astype(np.float32), [0, 2, 4, 6, 8], feature_names=names(2)),
        [[classes[i % 3], classes[(i + 1) % 3]] for i in range(4)],
        labels=[classes[i % 3] for i in range(4)],
        classes=classes,
        bag_ids=names(4),
    )


@pytest.mark.parametrize(
    "count", [pytest.param(6, id="sample"), pytest.param(150, id="campaign", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("suffix", FORMATS)
def test_names_come_back_as_they_were_and_are_shown_as_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], suffix: str, count: int
):
    rng, tally = np.random.default_rng(9), Tally(f"hostile names, {suffix}")
    path = tmp_path / f"x{suffix}"
    for i in range(count):
        ds = named(rng)
        path.unlink(missing_ok=True)
        tally.of(lambda ds=ds: mipl.load(ds.save(path)).equals(ds), i)
        if not path.exists():
            continue
        monkeypatch.setattr(sys, "argv", ["mipl", "check", str(path)])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = "".join(capsys.readouterr())
        safe = ended.value.code in (0, 1, 2) and visible(shown, keep="\n") == shown
        tally.count("shown" if safe else "raw error", shown)
    tally.check()
