"""``mipl info``: what a saved model is."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Any

from mipl.cli.answers import ModelArgument
from mipl.cli.files import as_words
from mipl.cli.output import JsonOption, QuietOption, print_json, print_table

__all__ = ["info"]

_SHOWN = 20


def info(model: ModelArgument, json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Say what a model file holds: method, parameters, classes, features, how it reads files, size and versions."""
    from mipl.persistence import load_model
    from mipl.registry import describe

    loaded: Any = load_model(model)
    found = describe(loaded)
    names = getattr(loaded, "feature_names_in_", None)
    about: dict[str, Any] = {
        "file": str(model),
        "bytes": model.stat().st_size,
        "method": getattr(loaded, "name", "") or type(loaded).__name__,
        "parameters": {} if found is None else found[1],
        "classes": loaded.classes_.tolist(),
        "features": None if names is None else list(names),
        "n_features": getattr(loaded, "n_features_in_", None),
        "instance_shape": list(getattr(loaded, "instance_shape_", ())) or None,
        "reading": getattr(loaded, "reading_", {}),
        "versions": _versions(model),
    }
    if json:
        print_json(about)
        return
    about["reading"] = as_words(about["reading"]) or None
    print_table("", ("what", "value"), [(key.replace("_", " "), _shown(value)) for key, value in about.items()])


def _versions(path: Path) -> dict[str, str]:
    """The versions that wrote a model file which can be read."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as opened:
        metadata = opened.metadata()
    written = json_format.loads(metadata["mipl_model"]).get("versions", {})
    known = written if isinstance(written, dict) else {}  # nothing else reads them, so nothing has checked them
    return {"format": metadata["mipl_format"], **{name: str(version) for name, version in known.items()}}


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return ", ".join(f"{k}={v!r}" if not isinstance(v, str) else f"{k}={v}" for k, v in value.items()) or "defaults"
    if isinstance(value, list) and len(value) > _SHOWN:
        return f"{', '.join(map(str, value[:_SHOWN]))} and {len(value) - _SHOWN} more"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return None if value is None else f"{value:,}" if isinstance(value, int) else str(value)
