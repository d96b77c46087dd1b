"""How an answer was made: versions, method, parameters, and what the caller adds."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mipl.resolution import Resolution

__all__ = ["provenance"]


def provenance(resolution: Resolution, notes: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name and value, line by line.

    Parameters
    ----------
    resolution : Resolution
        Knows its method, the version of mipl and the time it took.
    notes : mapping from str to anything
        What else to say; the parameters of an estimator are a mapping of their own.
    """
    lines = [("method", resolution.method or "not told"), ("time", f"{resolution.seconds:.3g} s")]
    for name, value in notes.items():
        lines.append((name, _parameters(value) if isinstance(value, Mapping) else str(value)))
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn", "torch"))
    return [
        *lines,
        ("mipl", resolution.version),
        ("libraries", f"Python {platform.python_version()}, {libraries}"),
        ("page written", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
    ]


def _parameters(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items()) or "none"
