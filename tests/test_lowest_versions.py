"""The lower bounds of pyproject.toml and what `make test-lowest` installs are the same."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def canonical(name):
    return re.sub(r"\[.*|[-_.]+", lambda found: "-" if found[0][0] != "[" else "", name).lower()


def numbers(text):
    """A version as numbers, without zeros at its end: 1.12 and 1.12.0 are the same."""
    found = [int(part) for part in re.match(r"[\d.]+", text)[0].strip(".").split(".")]
    while found[-1] == 0:
        found.pop()
    return found


def lowest():
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonical(name): numbers(found) for name, found in pairs}


def test_every_lower_bound_is_what_the_lowest_versions_are_tested_with():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = dict(re.fullmatch(r"([\w.-]+)>=([\d.]+)", each).groups() for each in project["dependencies"])
    assert {canonical(name): numbers(bound) for name, bound in bounds.items()}.items() <= lowest().items()


@pytest.mark.parametrize("name", sorted(lowest()))
def test_no_installed_version_is_below_its_bound(name):
    try:
        found = numbers(version(name))
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed here")
    assert found >= lowest()[name]
