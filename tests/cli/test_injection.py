"""A hostile data set through every command: its names are text in terminal, picture, page and table."""

from __future__ import annotations

import csv
import json
import logging
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

import mipl

CLASSES = [
    "\x1b[31mred\x1b[0m",
    "\x9b31m\x1b]0;title\x07",
    "[bold]x[/]",
    "$\\frac{$",
    "=1+1",
    "<script>alert(1)</script>",
    "rechts\u202etfel",
]
BAGS = ["=1+1", "\x1b[2Jwiped", "[red]", "-cmd", "@sum", "two\nlines", "'quoted", "+1-x", "\ttab", "[/]"]
FEATURES = ["=x", "[/]\x1b[1mf\u202e"]
INSTANCES = ["\x1b[5m", "[blink]", "=2+2"]


def hostile(n_bags: int = 35) -> mipl.MIPLDataset:
    rng = np.random.default_rng(0)
    q = len(CLASSES)
    values = [rng.normal(10 * (i % q), 0.1, (3, 2)) for i in range(n_bags)]
    return mipl.MIPLDataset(
        mipl.Bags.from_list(values, feature_names=FEATURES),
        [{CLASSES[i % q], CLASSES[(i + 1) % q]} for i in range(n_bags)],
        labels=[CLASSES[i % q] for i in range(n_bags)],
        classes=CLASSES,
        bag_ids=[BAGS[i] if i < len(BAGS) else f"bag {i}" for i in range(n_bags)],
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made")
    hostile().save(path / "h.parquet")
    mipl.make("PL-kNN").fit(hostile()).save(path / "m.mipl")
    with (path / "long.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["bag_id", "candidates", "syllable", *FEATURES, "\x1b]0;extra\x07"])
        for i, (bag, labels) in enumerate(zip(hostile().bags, hostile().candidate_sets(), strict=True)):
            for values, name in zip(bag, INSTANCES, strict=True):
                writer.writerow([f"\x1b[{i}m", "|".join(labels), name, *values.tolist(), "\x9btext"])
    return path


@pytest.fixture
def told(run, tmp_path: Path, made: Path) -> Callable[..., str]:
    """Run a command in a folder of hostile files; what it prints must not act on a terminal."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)

    def words(*given: object, code: int = 0) -> str:
        done = run(*given, code=code)
        for text in (done.stdout, done.stderr):
            acting = {c for c in text if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c in "\u202e\u2028"}
            assert not acting, (given, acting)
        return done.stdout + done.stderr

    return words


COMMANDS = [
    ("fit", "h.parquet", "-m", "PL-kNN", "-o", "n.mipl"),
    ("check", "h.parquet"),
    ("check", "long.csv"),
    ("check", "long.csv", "--instance-id", "syllable", "--json"),
    ("data", "info", "h.parquet"),
    ("data", "info", "long.csv", "--ignore", "syllable"),
    ("data", "show", "h.parquet", "-o", "h.png"),
    ("info", "m.mipl"),
    ("info", "m.mipl", "--json"),
    ("predict", "m.mipl", "h.parquet"),
    ("predict", "m.mipl", "h.parquet", "--json"),
    ("predict", "m.mipl", "h.parquet", "--out", "-"),
    ("predict", "m.mipl", "long.csv", "--instance-id", "syllable", "--instances", "i.csv"),
    ("predict", "m.mipl", "long.csv", "--chunk", "9", "--out", "-"),
    ("explain", "m.mipl", "h.parquet"),
    ("explain", "m.mipl", "h.parquet", "--out", "e.html"),
    ("resolve", "h.parquet", "-m", "PL-kNN", "--report", "p.html"),
    ("resolve", "long.csv", "-m", "PL-kNN", "--json"),
    ("-vv", "resolve", "long.csv", "-m", "PL-kNN"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_nothing_that_is_printed_acts_on_a_terminal(told, words):
    try:
        text = told(*words)
    finally:
        logging.getLogger("mipl").handlers[1:] = []
        logging.getLogger("mipl").setLevel(logging.NOTSET)
    if words in (("check", "h.parquet"), ("info", "m.mipl"), ("predict", "m.mipl", "h.parquet")):
        assert "[bold]x[/]" in text  # no markup
        assert r"\x1b[31mred\x1b[0m" in text


@pytest.mark.parametrize(
    "words",
    [
        ("predict", "m.mipl", "lacks.csv"),
        ("resolve", "h.parquet", "--decisions", "d.csv"),
        ("fit", "h.parquet", "-o", "\x1b[31m/m.mipl"),
        ("data", "info", "\x1b[31m.parquet"),
        ("resolve", "long.csv", "--bag", "\x1b]0;x\x07"),
        ("fit", "h.parquet", "-m", "\x1b[31m", "-o", "n.mipl"),
        ("fit", "twice.csv", "-o", "n.mipl"),
    ],
    ids=lambda words: repr(" ".join(words)),
)
@pytest.mark.parametrize("debug", [False, True])
def test_errors_quote_names_as_text(told, tmp_path, words, debug):
    (tmp_path / "lacks.csv").write_text("bag_id,=x,\x1b[9m\na,1,2\n")
    (tmp_path / "d.csv").write_text("bag_id,decision\n\x1b[2Jwiped,\x9bnobody\n")
    (tmp_path / "twice.csv").write_text("bag_id,candidates,x\n\x1b[1ma,\x1b[7mb,1\n\x1b[1ma,\x1b[6mc,2\n")
    text = told(*words, *(["--debug"] if debug else []), code=2)
    assert r"\x1b" in text
    assert ("Traceback" in text) == debug


def test_pictures_are_drawn_with_any_name(tmp_path):
    data = hostile()
    found = mipl.resolve(data, mipl.make("PL-kNN"))
    assert imread(found.plot(tmp_path / "r.png", n_bags=10)).std() > 0.01
    svg = found.plot(tmp_path / "r.svg", n_bags=10).read_text(encoding="utf-8")
    assert not {c for c in svg if ord(c) < 32 and c not in "\n\t"}


def test_an_id_like_a_formula_goes_from_resolve_through_decisions(told, tmp_path, rows):
    told("resolve", "h.parquet", "-m", "PL-kNN", "--out", "labels.csv")
    answers = rows("labels.csv")
    assert [row["bag_id"] for row in answers[:5]] == ["'=1+1", "\x1b[2Jwiped", "[red]", "'-cmd", "'@sum"]
    assert not any(cell[:1] in tuple("=+-@\t\r") for row in answers for cell in row.values())
    with (tmp_path / "d.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["bag_id", "decision"])
        writer.writerows([row["bag_id"], row["second_label"]] for row in answers)
    words = ("resolve", "h.parquet", "-m", "PL-kNN", "--decisions", "d.csv", "--json")
    assert "labels taken as certain" in told(*words[:-1])
    decided = {row["bag_id"]: row["label"] for row in json.loads(told(*words))}
    plain = {
        row["bag_id"]: row["second_label"] for row in json.loads(told("resolve", "h.parquet", "-m", "PL-kNN", "--json"))
    }
    assert decided == plain
    assert set(decided) == set(hostile().bag_ids)


def test_raw_tables_have_the_names_as_they_are(told, rows):
    told("resolve", "h.parquet", "-m", "PL-kNN", "--out", "raw.csv", "--raw", "--instances", "i.csv")
    assert [row["bag_id"] for row in rows("raw.csv")[: len(BAGS)]] == BAGS
    assert {row["bag_id"] for row in rows("i.csv")} == set(hostile().bag_ids)


def test_data_set_files_are_never_escaped(tmp_path: Path):
    for suffix in (".parquet", ".jsonl", ".feather", ".npz"):
        hostile().save(tmp_path / f"h{suffix}")
        assert mipl.load(tmp_path / f"h{suffix}").equals(hostile())
    formulas = mipl.MIPLDataset([np.ones((1, 2))] * 2, [{"=a", "+b"}, {"-c"}], bag_ids=["=1+1", "@x"])
    formulas.save(tmp_path / "f.csv")
    assert mipl.load(tmp_path / "f.csv").equals(formulas)


def test_warnings_are_one_line_without_the_place_in_the_code(told, monkeypatch):
    from mipl.pll import EmbeddedPLL

    fit = EmbeddedPLL.fit

    def warned(self, *args, **kwargs):
        warnings.warn("bag \x1b[31m is odd", stacklevel=2)
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(EmbeddedPLL, "fit", warned)
    words = ("fit", "h.parquet", "-m", "PL-kNN", "-o", "m.mipl")
    assert told(*words).splitlines()[0] == r"mipl: warning: bag \x1b[31m is odd"
    assert told(*words, "--quiet") == ""
    assert "warning" not in told(*words, "--json")
