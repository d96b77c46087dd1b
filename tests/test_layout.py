"""The rules of the layout, read from the source without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mipl

SOURCE = Path(mipl.__file__).parent

#: Edges that close a cycle and are meant: public methods of a data class that hand on to the room which does the work.
ALLOWED = {
    # ds.save(path): the formats build data sets when they read, and a data set writes itself by its format.
    ("mipl.dataset", "mipl.io"),
    # ds.splits(name): published splits are files, and one reader of .mat files reads them and data sets.
    ("mipl.dataset", "mipl.datasets.splits"),
}

METHODS = ("mipl.baggp", "mipl.miplgp", "mipl.pll", "mipl.mil", "mipl.deep")
CONTRACT = ("mipl.base", "mipl.checks", "mipl.registry", "mipl.persistence", "mipl.scoring", "mipl.resolution")
OUTPUT = ("mipl.cli", "mipl.bench", "mipl.report", "mipl.plotting")
DATA = ("mipl.bags", "mipl.candidates", "mipl.dataset", "mipl.datasets", "mipl.io", "mipl.loading", "mipl.rows")


def modules() -> dict[str, Path]:
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def parsed(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


def running(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node but annotations' imports (under TYPE_CHECKING) and docstrings."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for other in node.orelse:
                yield from running(other)
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        yield node
        yield from running(node)


def imported(name: str) -> set[str]:
    """The modules of mipl that a module imports: at its top, in functions, or by import_module and a string."""
    found = set()
    nodes = list(running(parsed(name)))
    by_string = any(isinstance(node, ast.alias) and node.name == "import_module" for node in nodes)
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} has a relative import"
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                found.add(submodule if submodule in MODULES else str(node.module))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and by_string:
            found.add(node.value.partition(":")[0])
    return (found & MODULES.keys()) - {name, "mipl"}


# The package itself is the public face: it imports names when they are first used, and nobody inside asks it for them.
GRAPH = {name: imported(name) for name in MODULES if name != "mipl"}


def reached(start: str, graph: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    stack = [start]
    while stack:
        for other in graph[stack.pop()] - seen:
            seen.add(other)
            stack.append(other)
    return seen


def inside(name: str, rooms: tuple[str, ...]) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


def test_the_graph_is_read():
    assert {"mipl.bags", "mipl.candidates", "mipl.persistence"} <= GRAPH["mipl.base"]  # at the top
    assert "mipl.io.atomic" in GRAPH["mipl.io"]  # in a function
    assert "mipl.io.parquet" in GRAPH["mipl.io"]  # by a name in a string
    assert "mipl.dataset" not in GRAPH["mipl.io"]  # for annotations only


def test_imports_form_no_cycle_even_inside_functions():
    graph = {name: {other for other in found if (name, other) not in ALLOWED} for name, found in GRAPH.items()}
    cycles = {name: sorted(o for o in reached(name, graph) if name in reached(o, graph)) for name in graph}
    assert not {name: cycle for name, cycle in cycles.items() if cycle}


@pytest.mark.parametrize("edge", sorted(ALLOWED), ids=" -> ".join)
def test_every_exception_is_needed(edge):
    name, other = edge
    assert other in GRAPH[name]
    assert name in reached(other, GRAPH)


def test_nobody_inside_imports_the_public_face():
    for name in GRAPH:
        for node in running(parsed(name)):
            if isinstance(node, ast.ImportFrom) and node.module == "mipl":
                names = {alias.name for alias in node.names if f"mipl.{alias.name}" not in MODULES}
                assert names <= {"__version__"}, f"{name} imports {names} from mipl"
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "mipl":
                assert node.attr in ("__version__", "__file__"), f"{name} uses mipl.{node.attr}"


@pytest.mark.parametrize(
    ("rooms", "unknown"),
    [
        pytest.param(("mipl.gp",), (*DATA, *METHODS, *CONTRACT, *OUTPUT), id="gp knows instances only"),
        pytest.param((*METHODS, "mipl.base"), OUTPUT, id="methods know nothing of what is made of their answers"),
        pytest.param(
            ("mipl.io", "mipl.datasets", "mipl.dataset", "mipl.bags"),
            ("mipl.gp", *METHODS, *CONTRACT, *OUTPUT),
            id="data know nothing of models",
        ),
        pytest.param(("mipl.persistence",), (*METHODS, "mipl.base", "mipl.gp"), id="model files name their classes"),
    ],
)
def test_a_room_reaches_nothing_of_another(rooms, unknown):
    for name in GRAPH:
        if inside(name, rooms):
            assert not {other for other in reached(name, GRAPH) if inside(other, unknown)}, name


def test_methods_import_nothing_of_files_and_data_sets_by_name():
    for name, found in GRAPH.items():
        if inside(name, METHODS):
            assert not {other for other in found if inside(other, ("mipl.io", "mipl.datasets", "mipl.loading"))}, name
