"""gp knows instances, targets and noises: nothing of bags, candidates, files or methods."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import mipl.gp

FOLDER = Path(mipl.gp.__file__).parent
ALLOWED = ("mipl.gp", "mipl.compute", "mipl.errors")


def imported(source: str) -> set[str]:
    """Modules of mipl that a source imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            # "from mipl import bags" names the module in the alias.
            found |= {
                f"{node.module}.{alias.name}" if node.module == "mipl" else str(node.module) for alias in node.names
            }
    return {name for name in found if name.split(".")[0] == "mipl"}


def test_the_search_sees_every_form_of_import() -> None:
    source = "import mipl.bags\nfrom mipl import base\ndef f():\n    from mipl.dataset import MIPLDataset\nimport numpy"
    assert imported(source) == {"mipl.bags", "mipl.base", "mipl.dataset"}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("**/*.py")), ids=lambda path: path.stem)
def test_gp_imports_nothing_of_bags_or_methods(path: Path) -> None:
    foreign = {
        name
        for name in imported(path.read_text(encoding="utf-8"))
        if not any(name == allowed or name.startswith(f"{allowed}.") for allowed in ALLOWED)
    }
    assert not foreign
