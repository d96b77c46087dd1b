"""Every Python block of the README and of the documentation runs as printed.

The blocks of a file run one after the other in one namespace, in an empty folder. A block that cannot run everywhere
says so, with the reason, in its fence: ```python skip="needs raw data". Where the comment of a print is what it prints,
a value or a text that ends in dots, it is compared.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import mipl

ROOT = Path(__file__).parents[1]
_FENCE = re.compile(r"^```python(?P<info>[^\n]*)\n(?P<code>.*?)^```[ ]*$", re.DOTALL | re.MULTILINE)
_SKIP = re.compile(r'skip="[^"]+"')


class Block(NamedTuple):
    line: int
    info: str
    code: str


def blocks(text: str) -> list[Block]:
    return [
        Block(text[: found.start("code")].count("\n"), found["info"].strip(), found["code"])
        for found in _FENCE.finditer(text)
    ]


def pages() -> list[str]:
    """The pages of docs/ with Python blocks."""
    return [
        name
        for name in sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
        if blocks((ROOT / name).read_text(encoding="utf-8"))
    ]


def promises(code: str) -> list[str]:
    """The values and texts that comments say a print prints."""
    comments = re.findall(r"^ *print\(.*\) +# (.*)$", code, re.MULTILINE)
    return [text for text in comments if re.match(r"[\[({]|[A-Z]\w+\(", text) or text.endswith(" ...")]


def run_page(name: str) -> dict[str, Any]:
    """Run all blocks of a page, and give the names that they define."""
    printed: list[str] = []

    def record(*values: Any) -> None:
        print(*values)
        printed.append(" ".join(" ".join(map(str, values)).split()))

    namespace: dict[str, Any] = {"__name__": "__main__", "print": record}
    for block in blocks((ROOT / name).read_text(encoding="utf-8")):
        assert not block.info or _SKIP.fullmatch(block.info), f"{name}:{block.line}: what does {block.info!r} mean?"
        if not block.info:
            # Leading empty lines make the line numbers of a traceback those of the page.
            exec(compile("\n" * block.line + block.code, str(ROOT / name), "exec"), namespace)
            for text in promises(block.code):
                expected = " ".join(text.removesuffix("...").split())
                assert any(line.startswith(expected) for line in printed), f"{name}:{block.line}: {text} is not printed"
    return namespace


@pytest.mark.parametrize("name", pages())
def test_every_python_block_runs_as_printed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    run_page(name)


def test_the_readme_runs_as_printed_and_prints_names_of_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    defined = run_page("README.md")
    train, test = defined["train"], defined["test"]
    predicted, resolved = re.findall(r"\[((?:'\d'\s*)+)\]", capsys.readouterr().out)
    assert re.findall(r"\d", predicted) == list(defined["model"].predict(test)[:8])
    assert re.findall(r"\d", resolved) == list(defined["res"].labels[:4])
    assert defined["model"].score(test) > 0.8
    assert np.mean(defined["res"].labels == train.label_names()) > 0.9
    assert {path.name for path in tmp_path.iterdir()} == {"labels.csv", "page.html", "model.mipl"}


def suites() -> list[str]:
    """The suites of experiments that pages and examples print."""
    page = (ROOT / "docs/bench.md").read_text(encoding="utf-8")
    script = (ROOT / "docs/examples/plot_08_own_method.py").read_text(encoding="utf-8")
    indented = re.findall(r"^# \.\. code-block:: toml\n#\n((?:#.*\n)+?)#\n# (?! )", script, re.MULTILINE)
    return [
        *re.findall(r"^```toml\n(.*?)^```", page, re.DOTALL | re.MULTILINE),
        *(re.sub(r"^# {0,4}", "", block, flags=re.MULTILINE) for block in indented),
    ]


@pytest.mark.parametrize("text", suites(), ids=["docs/bench.md", "plot_08_own_method.py"])
def test_the_suites_that_are_printed_are_suites(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    mipl.load("digits").save("my-bags.parquet")
    Path("suite.toml").write_text(text, encoding="utf-8")
    suite = mipl.bench.load_suite("suite.toml")
    assert suite.reference in [method.name for method in suite.methods]
    assert len(suite.cells()) == len(suite.methods) * suite.splits * sum(
        1 if data.load.endswith(".parquet") else len(suite.r) for data in suite.datasets
    )


def test_comments_that_are_what_a_print_prints_are_found():
    code = "print(a)  # [1, 2]\n  print(b)   # names\nprint(c) # Bags(2)\nprint(d)  # no such file; ...\nx = 1  # [3]\n"
    assert promises(code) == ["[1, 2]", "Bags(2)", "no such file; ..."]


def test_blocks_are_found_with_their_line_and_their_fence():
    text = 'a\n```python\nx = 1\n```\n```sh\nls\n```\n\n```python skip="no data"\ny = 1\n\nz = 2\n```\n'
    assert blocks(text) == [Block(2, "", "x = 1\n"), Block(9, 'skip="no data"', "y = 1\n\nz = 2\n")]
