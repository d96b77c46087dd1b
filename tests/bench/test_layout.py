"""The rooms of the bench: which may know which."""

import ast
from pathlib import Path

import pytest

import mipl.bench

ROOT = Path(mipl.bench.__file__).parent
#: room -> rooms that it may import from
KNOWS = {
    "suite": set(),
    "store": {"suite"},
    "execution": {"suite", "store"},
    "analysis": {"suite", "store"},
    "output": {"suite", "store", "analysis"},
}


def imported_rooms(file):
    """Rooms of the bench that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(file.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} has a relative import"
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[:2] == ["mipl", "bench"] and len(parts) > 2 and parts[2] in KNOWS:
                yield parts[2]


@pytest.mark.parametrize("room", KNOWS)
def test_a_room_imports_only_from_those_below_it(room):
    files = list((ROOT / room).glob("*.py"))
    assert len(files) > 2
    for file in files:
        assert set(imported_rooms(file)) <= {room, *KNOWS[room]}, file


def test_every_folder_with_code_is_a_room():
    assert {file.parent.name for file in ROOT.glob("*/*.py")} == set(KNOWS)
