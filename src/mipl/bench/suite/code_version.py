"""Which code made a result: a digest of the source that a class can reach.

A version number does not change while a method is being developed, and a commit changes with every README. So the
version of a cell is the digest of the module that defines its method, its data set's builder, and all modules of the
same package that they import, directly or through others. Comments, docstrings and layout do not count: the digest
is taken over the syntax tree, written down by rules of our own, because `ast.dump` and `ast.unparse` change from one
Python to the next.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["canonical", "code_version"]

#: Fields of the syntax tree that say nothing about what the code does, or nothing that its place does not say.
_SILENT_FIELDS = ("ctx", "kind", "type_comment", "type_ignores")


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
    return hashlib.sha256(canonical(tree).encode()).hexdigest(), tuple(imported)


def canonical(node: Any) -> str:
    """Write a syntax tree without docstrings, the same under every version of Python that can parse it.

    Fields are named, and those that are empty are left out, so that a field which a later Python adds (as
    `type_params` in 3.12) does not show where it is not used.

    >>> canonical(ast.parse("x = 1  # one")) == canonical(ast.parse("x = (1)"))
    True
    """
    if isinstance(node, list):
        return f"[{','.join(map(canonical, node))}]"
    if isinstance(node, ast.Constant):
        return f"Constant({_canonical_value(node.value)})"
    if not isinstance(node, ast.AST):
        return _canonical_value(node)
    parts = {name: value for name, value in ast.iter_fields(node) if name not in _SILENT_FIELDS}
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        has_docstring = ast.get_docstring(node, clean=False) is not None
        parts["body"] = node.body[1:] if has_docstring else node.body
    elif isinstance(node, ast.JoinedStr):
        parts["values"] = _joined(node.values)
    written = (f"{name}={canonical(value)}" for name, value in sorted(parts.items()) if value not in (None, []))
    return f"{type(node).__name__}({','.join(written)})"


def _canonical_value(value: Any) -> str:
    """Write a literal; `repr` of a string is avoided, since what counts as printable grows with Unicode."""
    kind = type(value).__name__
    if isinstance(value, str):
        return f"{kind}:{json.dumps(value)}"
    if isinstance(value, bytes):
        return f"{kind}:{value.hex()}"
    if isinstance(value, float):
        return f"{kind}:{value.hex()}"
    if isinstance(value, complex):
        return f"{kind}:{value.real.hex()},{value.imag.hex()}"
    return f"{kind}:{value}"


def _joined(values: list[ast.expr]) -> list[ast.expr]:
    """The pieces of an f-string with neighbouring texts joined: Pythons differ in where they cut them."""
    joined: list[ast.expr] = []
    for value in values:
        text = value.value if isinstance(value, ast.Constant) else None
        last = joined[-1] if joined else None
        if isinstance(text, str) and isinstance(last, ast.Constant):
            joined[-1] = ast.Constant(str(last.value) + text)
        elif text != "":
            joined.append(value)
    return joined


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
