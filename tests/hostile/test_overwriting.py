"""Ordinary commands on equal, linked, nested and relative paths: every input is afterwards what it was before."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import typer
from command_lines import LINES, Line, make_folder
from hostile_files import Tally, dataset

from mipl.cli import app, main


def link(make: Callable[[Path, Path], None]) -> Callable[[Path, str], str]:
    """A form of a path: another name in the folder `sub`, with a suffix that a command asks for."""

    def form(path: Path, suffix: str) -> str:
        alias = Path("sub") / "-".join([make.__name__, *path.parts, suffix])
        if not alias.is_symlink() and not alias.exists():
            make(path, alias)
        return str(alias)

    return form


def linked(path: Path, alias: Path) -> None:
    alias.symlink_to(path.absolute())


def relative(path: Path, alias: Path) -> None:
    alias.symlink_to(Path("..") / path)


def twice(path: Path, alias: Path) -> None:
    between = alias.with_name(f"between-{alias.name}")
    between.symlink_to(Path("..") / path)
    alias.symlink_to(between.name)


def hard(path: Path, alias: Path) -> None:
    if path.exists():
        alias.hardlink_to(path)
    else:  # an output that is not there yet has one name only
        alias.symlink_to(path.absolute())


#: How one file may be named, the suffix aside; links have the suffix that they are asked for.
PLAIN: list[Callable[[Path, str], str]] = [
    lambda path, suffix: str(path),
    lambda path, suffix: f"./{path}",
    lambda path, suffix: f".//sub/..//{path}",
    lambda path, suffix: str(path.absolute()),
    lambda path, suffix: f"../{Path.cwd().name}/{path}",
    lambda path, suffix: f"here/{path}",
]
LINKS = [link(linked), link(relative), link(twice), link(hard)]


def contents(folder: Path) -> dict[str, bytes]:
    """All files, a link being what it points to only where it has become a file of its own."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def run(words: list[str]) -> int:
    sys.argv = ["mipl", *words]
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def combinations(line: Line) -> Iterator[list[str]]:
    """A command line with one of its outputs named as another file of the command, in every form."""
    words, also = line.words.split(), list(line.also)
    files = [word for word in (*words, *also) if word[0] in "<>"]
    turn = itertools.count()
    for place in (i for i, word in enumerate(words) if word[0] == ">"):
        for other in files:
            if other == words[place]:
                continue
            for form in (*PLAIN, *LINKS):
                named = [
                    (PLAIN + LINKS)[next(turn) % 10](Path(word[1:]), Path(word).suffix) if word[0] == "<" else word
                    for word in words
                ]
                named[place] = form(Path(other[1:]), Path(words[place]).suffix)
                yield [word.removeprefix(">") for word in named]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(make_folder(tmp_path))
    monkeypatch.setattr(sys, "argv", ["mipl"])
    monkeypatch.setattr("mipl.cli.app", typer.main.get_command(app))  # typer would make it anew for every run
    (tmp_path / "here").symlink_to(".")
    return tmp_path


@pytest.mark.parametrize("step", [pytest.param(7, id="sample"), pytest.param(1, id="campaign", marks=pytest.mark.slow)])
def test_an_output_that_is_another_file_of_the_command_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], step: int
):
    tried = [words for line in LINES for words in combinations(line)]
    before, tally = contents(folder), Tally("outputs that are other files of the command")
    for words in tried[::step]:
        code, after = run(words), contents(folder)
        told = capsys.readouterr().err
        what = "refused" if code == 2 and told.count("\n") == 1 and after == before else "lost"
        tally.count("refused for its suffix" if what == "refused" and "suffix" in told else what, f"{words}: {told}")
        before = after
    tally.check()


@pytest.mark.parametrize(
    "step", [pytest.param(37, id="sample"), pytest.param(1, id="campaign", marks=pytest.mark.slow)]
)
def test_a_command_with_files_of_its_own_to_write_leaves_its_inputs_alone(
    folder: Path, capsys: pytest.CaptureFixture[str], step: int
):
    before, tally = contents(folder), Tally("outputs of their own")
    for line, form in [(line, form) for line in LINES for form in PLAIN + LINKS][::step]:
        words = [
            form(Path(word[1:]) if word[0] == "<" else Path("sub") / word[1:], Path(word).suffix)
            if word[0] in "<>"
            else word
            for word in line.words.split()
        ]
        code = run(words)
        after = contents(folder)
        right = code == 0 and before.items() <= after.items()
        tally.count("done" if right else "lost", f"{words}: {capsys.readouterr().err}")
        for name in after.keys() - before.keys():
            (folder / name).unlink()
    tally.check()


PLACES = [".", "a", "a/b", "c", "c/a"]
OUTS = ["out/", "a", "a/b", "c", ".", "c/new/", "a/../c", "here/a", "linked/"]


@pytest.mark.parametrize(
    "count", [pytest.param(25, id="sample"), pytest.param(1000, id="campaign", marks=pytest.mark.slow)]
)
def test_answers_in_a_folder_take_the_place_of_nothing_but_answers(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], count: int
):
    rng, tally = np.random.default_rng(15), Tally("predictions into folders")
    table = (folder / "d.csv").read_bytes()
    for i in range(count):
        tree = folder / f"tree{i}"
        for place in PLACES:
            (tree / place).mkdir(parents=True, exist_ok=True)
            for suffix in rng.choice([".csv", ".txt", ".csv.gz", ".jsonl"], int(rng.integers(3)), replace=False):
                file = tree / place / f"{'xy'[int(rng.integers(2))]}{suffix}"
                if suffix == ".jsonl":
                    dataset(plain=True).save(file)
                else:
                    file.write_bytes(gzip.compress(table) if suffix == ".csv.gz" else table)
        (tree / "here").symlink_to(".")
        (tree / "linked").symlink_to("c")
        given = sorted(str(path.relative_to(tree)) for path in tree.rglob("[xy].*"))
        if not given:
            continue
        here = tree / ["", "a", "c/a"][int(rng.integers(3))]
        monkeypatch.chdir(here)
        sources = [source(given, tree, rng) for _ in range(int(rng.integers(1, 4)))]
        words = ["predict", str(folder / "m.mipl"), *sources, "--out", name(str(rng.choice(OUTS)), tree, rng)]
        before = contents(tree)
        code = run(words)
        after = contents(tree)
        spared = before.items() <= after.items() and (code == 0 or after == before)
        told = capsys.readouterr().err
        tally.count(("done" if code == 0 else "refused") if spared and code in (0, 2) else "lost", f"{words}: {told}")
        if code == 0:
            assert run([*words, "--json"]) == 0
            skipped = [each["skipped"] for each in json.loads(capsys.readouterr().out)]
            tally.count("skipped" if all(skipped) and contents(tree) == after else "lost", f"again: {words}")
    tally.check()


def source(given: list[str], tree: Path, rng: np.random.Generator) -> str:
    """A file, a folder or a pattern, in any form."""
    kind = rng.random()
    path = str(rng.choice(given)) if kind < 0.7 else str(rng.choice(PLACES))
    return name(path, tree, rng) + ("/*.csv" if kind > 0.85 else "")


def name(path: str, tree: Path, rng: np.random.Generator) -> str:
    form = int(rng.integers(4))
    if form == 0:
        return str(tree / path)
    near = os.path.relpath(tree / path)
    return [near, f"./{near}", os.path.join(os.path.relpath(tree), "here", path)][form - 1] + ("/" * path.endswith("/"))
