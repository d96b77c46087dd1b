"""Every documented parameter has words and states its default."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "mipl"


def defaults(node: ast.ClassDef | ast.FunctionDef) -> set[str]:
    """The parameters with a default, of a function or of a class's constructor."""
    if isinstance(node, ast.ClassDef):
        constructors = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
        return defaults(constructors[0]) if constructors else set()
    positional = node.args.args[len(node.args.args) - len(node.args.defaults) :]
    keywords = [a for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if d is not None]
    return {argument.arg for argument in (*positional, *keywords)}


def faults(node: ast.ClassDef | ast.FunctionDef) -> Iterator[str]:
    section = re.search(r"Parameters\n-+\n(.*?)(?=\n\w[\w ]*\n-{3,}|\Z)", ast.get_docstring(node) or "", re.DOTALL)
    lines = section[1].split("\n") if section else []
    for line, after in zip(lines, [*lines[1:], ""], strict=False):
        entry = re.match(r"([\w*, ]+) : (.*)", line)
        if not entry:
            continue
        names = {name.strip() for name in entry[1].split(",")}
        if not after.startswith("    ") and "," not in entry[2]:
            yield f"{node.name}: {entry[1]} has no words"
        if names & defaults(node) and "default" not in entry[2]:
            yield f"{node.name}: {entry[1]} does not state its default"


@pytest.mark.parametrize("file", sorted(SOURCE.rglob("*.py")), ids=lambda file: str(file.relative_to(SOURCE)))
def test_every_parameter_has_words_and_its_default(file: Path) -> None:
    nodes = [n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.ClassDef | ast.FunctionDef)]
    assert [fault for node in nodes for fault in faults(node)] == []


def test_the_rule_finds_what_it_forbids() -> None:
    code = '''
def f(a, b=1, c=2):
    """Do.

    Parameters
    ----------
    a : int
    b : int
        Words.
    c : int, default=2
        Words.
    """
'''
    assert list(faults(ast.parse(code).body[0])) == ["f: a has no words", "f: b does not state its default"]
