"""What releases rest on names only what exists: make's targets, files, extras and commands.

That the wheel works in an empty environment is checked by ``make package`` and in test_package.py.
"""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def made(text: str) -> set[str]:
    """The targets that a text calls: in code, on a line of its own, or as a step of a workflow."""
    calls = re.findall(r"(?:`|run: )make ((?:[a-z-]+ ?)+)|^ *make ((?:[a-z-]+ ?)+)(?: +#.*)?$", text, re.MULTILINE)
    return {target for call in calls for target in "".join(call).split()}


@pytest.mark.parametrize(
    "path",
    [
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / "docs").glob("*.md")),
        *WORKFLOWS,
        ROOT / "Dockerfile",
        ROOT / ".ci/run",
    ],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_every_make_target_that_is_named_exists(path: Path):
    assert made(path.read_text(encoding="utf-8")) - targets() == set()


def test_targets_are_found_in_code_and_not_in_prose():
    text = "`make a b-c`, we make sense,\nmake x, and\n    make d      # e\n      - run: make f\nmake g\n"
    assert made(text) == {"a", "b-c", "d", "f", "g"}
    assert {"demo", "test", "test-lowest"} <= targets()


def test_workflows_run_the_make_targets_of_a_release():
    called = {path.stem: made(path.read_text(encoding="utf-8")) for path in WORKFLOWS}
    assert {"lint", "test", "test-lowest", "docs", "package", "image"} <= called["test"]
    assert {"test", "package"} <= called["release"]
    for path in WORKFLOWS:
        for name, job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].items():
            assert job["runs-on"], (path.name, name)
            assert all(("uses" in step) != ("run" in step) for step in job["steps"]), (path.name, name)


def test_the_dockerfile_copies_what_is_there_and_starts_what_is_installed():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    let_through = [
        line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")
    ]
    sources = [name for line in re.findall(r"^COPY (.*)$", text, re.MULTILINE) for name in line.split()[:-1]]
    assert {"pyproject.toml", "setup.py", "README.md", "src", *PROJECT["license-files"]} <= set(sources)
    for name in sources:
        assert (ROOT / name).exists(), name
        assert any(fnmatch(name, pattern) for pattern in let_through), f".dockerignore hides {name}"
    assert re.findall(r"\.\[([\w,]+)\]", text)[0] in PROJECT["optional-dependencies"]
    assert re.search(r'^ENTRYPOINT \["(\w+)"\]$', text, re.MULTILINE)[1] in PROJECT["scripts"]  # type: ignore[index]


def test_the_description_for_a_package_index_has_no_link_into_the_repository(monkeypatch: pytest.MonkeyPatch):
    setuptools = pytest.importorskip("setuptools")
    given: dict[str, str] = {}
    monkeypatch.setattr(setuptools, "setup", lambda **keywords: given.update(keywords))
    runpy.run_path(str(ROOT / "setup.py"))
    text = given["long_description"]
    assert [target for target in re.findall(r"\]\(([^)]*)\)", text) if not target.startswith("https:")] == []
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code = re.findall(r"^```\w+\n.*?^```$", readme, re.DOTALL | re.MULTILINE)
    assert len(code) == 2
    assert all(block in text for block in code)
    assert "\n\n    make demo" in text  # a block below the picture
    assert "BagGP | 1 |" in text


def test_broken_links_of_the_built_site_are_found(tmp_path: Path):
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#x">1</a><a href="b.html#y">2</a><img src="c.png">'
    )
    (tmp_path / "b.html").write_text('<p id="x"><a href="a.html#top">3</a><a href="https://example.org/#z">4</a></p>')
    command = [sys.executable, str(ROOT / ".ci" / "site_links.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.splitlines() == ["a.html: b.html#y", "a.html: c.png"]
    (tmp_path / "a.html").write_text('<h1 id="top">A</h1><a href="b.html#x">1</a>')
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
