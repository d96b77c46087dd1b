"""Options and fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# No deadlines: a busy machine is not a counterexample. A long search: pytest --hypothesis-profile=thorough
settings.register_profile("mipl", deadline=None)
settings.register_profile("thorough", max_examples=3000, deadline=None)
settings.load_profile("mipl")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run tests that take minutes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="takes minutes; run pytest --slow"))


@pytest.fixture(scope="session")
def raw_data() -> Path:
    """The folder of raw data files; tests that need it are skipped where it is absent."""
    folder = os.environ.get("MIPL_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("raw data not found; set MIPL_DATA to their folder")
    return Path(folder)
