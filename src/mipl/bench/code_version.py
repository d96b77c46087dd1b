"""Which code made a result: a digest of the source that a class can reach.

A version number does not change while a method is being developed, and a commit changes with every README. So the
version of a cell is the digest of the module that defines its method, its data set's builder, and all modules of the
same package that they import, directly or through others. Comments, docstrings and layout do not count: the digest
is taken over the syntax tree.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

__all__ = ["code_version"]


@cache
def code_version(*modules: str) -> str:
    """Digest (12 hex digits) of the named modules and of what they import from their own top-level packages."""
    seen: dict[str, str] = {}
    queue = list(modules)
    while queue:
        module = queue.pop()
        file = _source_file(module)
        if module in seen or file is None:
            continue
        seen[module], imported = _digest(file, module)
        queue += imported
    text = "\n".join(f"{name} {digest}" for name, digest in sorted(seen.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@cache
def _digest(file: Path, module: str) -> tuple[str, tuple[str, ...]]:
    """Digest of one file's syntax tree, and the modules of the same package that it may import."""
    tree = ast.parse(file.read_bytes())
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    top = module.partition(".")[0]
    # The package's own __init__ lists every public name: it would tie each method to all others.
    imported = [name for name in _imports(tree, package) if name.startswith(f"{top}.")]
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            _drop_docstring(node)
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), tuple(imported)


def _imports(tree: ast.Module, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, *([base] if base else [])])
            yield base
            # `from package import module` names a module, `from module import name` does not; files decide.
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _drop_docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    if ast.get_docstring(node, clean=False) is not None:
        node.body = node.body[1:]


@cache
def _source_file(module: str) -> Path | None:
    """The source of a module, found without importing it (its top-level package is located, not run)."""
    top, *rest = module.split(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    if not rest:
        return Path(spec.origin) if spec.origin.endswith(".py") else None
    base = Path(spec.origin).parent.joinpath(*rest)
    for file in (base.with_suffix(".py"), base / "__init__.py"):
        if file.is_file():
            return file
    return None
