"""Commands that README, documentation and examples print: those of a user run, and all others name what exists.

Blocks of a page run line by line, in a folder with the files that they mention. What needs a cluster, raw data or an
hour is parsed: its commands, options and scripts exist.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

import mipl
from mipl.cli import app, main

ROOT = Path(__file__).parents[1]
BUILT = ("_build", "generated", "auto_examples")
SOURCES = [
    *sorted(ROOT.glob("*.md")),
    *(p for p in sorted(ROOT.glob("docs/**/*.md")) if p.relative_to(ROOT / "docs").parts[0] not in BUILT),
    *sorted(ROOT.glob("docs/examples/*.py")),
]
_FENCED = re.compile(r"^```sh\n(.*?)^```[ ]*$", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"^    ((?:\w+=\S+ )*(?:mipl|python) .*)$", re.MULTILINE)
_INLINE = re.compile(  # but for scripts of earlier commits
    r"(`{1,2})((?:\w+=\S+ )*(?:mipl|python benchmarks/\w+\.py)(?: [^`]*)?)\1(?!`|\s+of\s+commit)"
)


def lines(block: str) -> list[str]:
    return [line for line in block.replace("\\\n", " ").splitlines() if line.strip()]


def commands(text: str) -> list[list[str]]:
    """The words of every command of mipl and of the benchmarks in a text, without settings before it and comments."""
    without_blocks = re.sub(r"^```.*?^```[ ]*$", "", text, flags=re.DOTALL | re.MULTILINE)
    found = [line for block in _FENCED.findall(text) for line in lines(block)]
    found += _INDENTED.findall(without_blocks)
    found += [" ".join(code.split()) for _, code in _INLINE.findall(without_blocks)]
    every = [shlex.split(re.sub(r"\$\([^)]*\)", "1", line), comments=True) for line in found]
    every = [words[next((i for i, word in enumerate(words) if "=" not in word), len(words)) :] for words in every]
    return [words for words in every if words[:1] == ["mipl"] or "".join(words[:2]).startswith("pythonbenchmarks/")]


def why_not(words: list[str]) -> str | None:
    """What a command names that does not exist."""
    if words[0] == "python":
        script = ROOT / words[1]
        if not script.exists():
            return f"no {words[1]}"
        code = script.read_text(encoding="utf-8")
        options = [word for word in words[2:] if word.startswith("--")]
        missing = [word for word in options if f'"{word}"' not in code]
        return f"{words[1]} has no {', '.join(missing)}" if missing else None
    command: Any = typer.main.get_command(app)
    rest = words[1:]
    while rest and hasattr(command, "commands") and not rest[0].startswith("-"):
        if rest[0].isupper() or rest[0] == "...":  # COMMAND stands for any
            return None
        if rest[0] not in command.commands:
            return f"no command {rest[0]}"
        command, rest = command.commands[rest[0]], rest[1:]
    context = command.make_context("mipl", [], resilient_parsing=True)
    known = {option for parameter in command.get_params(context) for option in parameter.opts}
    missing = [word for word in rest if re.match(r"--?[a-z]", word) and word not in known]
    return f"no option {', '.join(missing)}" if missing else None


@pytest.mark.parametrize("page", SOURCES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_is_printed_exists(page: Path):
    found = commands(page.read_text(encoding="utf-8"))
    assert [f"{' '.join(words)}: {why}" for words in found if (why := why_not(words))] == []


def test_commands_are_found_and_what_they_lack_is_told():
    text = (
        "Say `mipl check F`, ``mipl fit --outt m``, `A=1 python benchmarks/bags.py --no`, `mipl.load` or\n"
        "`mipl data\nmake`.\n"
        "```sh\nexport A=1\nmipl predict m.mipl 'a b.csv'  # comment\n```\n\n    mipl demo --out x\n    python x.py\n"
    )
    found = commands(text)
    assert found == [
        ["mipl", "predict", "m.mipl", "a b.csv"],
        ["mipl", "demo", "--out", "x"],
        ["mipl", "check", "F"],
        ["mipl", "fit", "--outt", "m"],
        ["python", "benchmarks/bags.py", "--no"],
        ["mipl", "data", "make"],
    ]
    told = [why_not(words) for words in found]
    assert told == [None, None, None, "no option --outt", "benchmarks/bags.py has no --no", "no command make"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the pages talk about: birds.csv with candidates, new.csv without, files of bags in in/."""
    monkeypatch.chdir(tmp_path)
    birds = mipl.datasets.make_bags(n_bags=24, n_classes=3, n_features=3, separation=6, sizes=(3, 5), positive=0.4)
    birds.save("birds.csv")
    (tmp_path / "in").mkdir()
    birds[:12].save("in/1.parquet")
    birds[12:].save("in/2.parquet")
    rows = (tmp_path / "birds.csv").read_text(encoding="utf-8").splitlines()
    table = [row.split(",") for row in rows if not row.startswith("#")]
    kept = [i for i, name in enumerate(table[0]) if name not in ("candidates", "label")]
    (tmp_path / "new.csv").write_text("\n".join(",".join(row[i] for i in kept) for row in table), encoding="utf-8")
    return tmp_path


#: The pages whose commands a reader types first, and the files that the commands leave.
TYPED = {
    "README.md": {"labels.csv", "page.html", "birds.mipl", "predicted.csv"},
    "docs/index.md": {"demo"},
    "docs/command-line.md": {"demo", "labels.csv", "birds.mipl", "p.csv"},
    "docs/files.md": {"labels.xlsx", "birds.mipl", "p.csv"},
    "docs/scale.md": {"m.mipl", "answers"},
}


@pytest.mark.parametrize("name", TYPED)
def test_the_commands_of_a_page_run_as_printed(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch):
    before = {path.name for path in folder.iterdir()}
    for block in _FENCED.findall((ROOT / name).read_text(encoding="utf-8")):
        for line in lines(block):
            words = shlex.split(line, comments=True)
            if words[0] != "mipl" or "--scheduler" in words:  # pip is tried by `make package`, clusters in tests/cli
                continue
            monkeypatch.setattr(sys, "argv", words)
            with pytest.raises(SystemExit) as ended:
                main()
            assert ended.value.code == 0, line
    assert {path.name for path in folder.iterdir()} - before == TYPED[name]
