"""Options and fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No deadlines: a busy machine is not a counterexample. The same examples in every run: what fails, failed before, too.
# A long search with examples that nobody has seen: pytest --hypothesis-profile=thorough
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("mipl", patient, derandomize=True)
settings.register_profile("thorough", patient, max_examples=3000)
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
