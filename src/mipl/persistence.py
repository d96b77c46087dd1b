"""Saved models: one safetensors file with a JSON header, no pickle.

The header describes the estimator as a tree of plain values; arrays are references into the tensor part. Reading
builds objects only of estimator classes from mipl, scikit-learn or subclasses of `MIPLClassifier` that the program has
imported itself, and only assigns their attributes: no function named by the file is ever called.
"""

from __future__ import annotations

import hashlib
import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from sklearn.base import BaseEstimator

import mipl
from mipl.bags import Bags
from mipl.base import MIPLClassifier
from mipl.errors import DataError
from mipl.io.atomic import atomic_path

__all__ = ["load_model", "save_model"]

FORMAT = 1
_FITTED = re.compile(r"[a-zA-Z]\w*_")
_ATTRIBUTE = re.compile(r"_?[a-zA-Z]\w*")

Arrays = dict[str, NDArray[Any]]


def save_model(model: MIPLClassifier, path: str | Path) -> Path:
    """Write a fitted model to `path`, whole or not at all."""
    if not hasattr(model, "classes_"):
        raise DataError(f"this {type(model).__name__} is not fitted yet; call fit before save")
    arrays: Arrays = {}
    tree = _encode(model, arrays, type(model).__name__)
    header = json.dumps(
        {"class": tree["class"], "model": tree, "versions": {"mipl": mipl.__version__, "numpy": np.__version__}}
    )
    metadata = {"mipl_format": str(FORMAT), "mipl_model": header, "sha256": _digest(header, arrays)}
    with atomic_path(path) as temporary:
        save_file(arrays, temporary, metadata)
    return Path(path)


def load_model(path: str | Path) -> MIPLClassifier:
    """Read a model that `MIPLClassifier.save` wrote; a hostile file cannot run code."""
    file = Path(path)
    if not file.is_file():
        raise DataError(f"no such model file: {file}")
    try:
        with safe_open(file, framework="numpy") as opened:
            metadata = opened.metadata() or {}
            version = metadata.get("mipl_format")
            if version is None or "mipl_model" not in metadata:
                raise DataError(f"{file} is a safetensors file, but not a mipl model")
            if not version.isdecimal() or int(version) > FORMAT:
                raise DataError(
                    f"{file} has model format {version}, mipl {mipl.__version__} reads up to {FORMAT}; upgrade mipl"
                )
            arrays: Arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file} is damaged or not a mipl model ({error}); save the model again") from error
    header = metadata["mipl_model"]
    if metadata.get("sha256") != _digest(header, arrays):
        raise DataError(f"{file} was changed after it was saved (its checksum does not match); save the model again")
    try:
        model = _decode(json.loads(header)["model"], arrays)
    except (KeyError, TypeError, AttributeError, RecursionError, json.JSONDecodeError) as error:
        raise DataError(f"{file} has a header that this mipl cannot read ({error!r})") from error
    if not isinstance(model, MIPLClassifier):
        raise DataError(f"{file} does not hold a mipl estimator")
    return model


def _digest(header: str, arrays: Arrays) -> str:
    digest = hashlib.sha256(header.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


# -------------------------------------------------------------------- values to a JSON tree


def _encode(value: Any, arrays: Arrays, where: str) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return {"$": "scalar", "value": _encode(np.asarray(value), arrays, where)}
    if isinstance(value, np.ndarray):
        return _encode_array(value, arrays, where)
    if isinstance(value, list | tuple):
        items = [_encode(v, arrays, f"{where}[{i}]") for i, v in enumerate(value)]
        return items if isinstance(value, list) else {"$": "tuple", "items": items}
    if isinstance(value, dict) and all(isinstance(k, str) for k in value):
        return {"$": "dict", "items": {k: _encode(v, arrays, f"{where}[{k!r}]") for k, v in value.items()}}
    if isinstance(value, Bags):
        parts: Arrays = {"instances": value.instances, "offsets": value.offsets}
        encoded = {k: _encode_array(v, arrays, f"{where}.{k}") for k, v in parts.items()}
        return {"$": "bags", **encoded, "instance_shape": list(value.instance_shape)}
    if isinstance(value, BaseEstimator):
        cls = type(value)
        state = {k: _encode(v, arrays, f"{where}.{k}") for k, v in _state(value).items()}
        return {"$": "estimator", "class": f"{cls.__module__}:{cls.__qualname__}", "state": state}
    raise DataError(
        f"{where} is a {type(value).__name__}, which cannot be saved without pickle; "
        "use plain numbers, strings, arrays or scikit-learn estimators as parameters"
    )


def _encode_array(array: NDArray[Any], arrays: Arrays, where: str) -> dict[str, Any]:
    if array.dtype.kind == "U":
        return {"$": "strings", "values": array.tolist()}
    if array.dtype.kind not in "fiub":
        raise DataError(f"{where} is an array of {array.dtype}, which cannot be saved without pickle")
    name = f"{len(arrays)}:{where}"
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    arrays[name] = native if native.flags.c_contiguous else np.ascontiguousarray(native)
    return {"$": "array", "name": name}


def _state(estimator: BaseEstimator) -> dict[str, Any]:
    """Parameters and fitted attributes; scikit-learn's estimators keep private ones that they need too."""
    attributes = vars(estimator)
    if type(estimator).__module__.startswith("sklearn."):
        return {k: v for k, v in attributes.items() if _ATTRIBUTE.fullmatch(k)}
    params = set(estimator._get_param_names())
    return {k: v for k, v in attributes.items() if k in params or _FITTED.fullmatch(k)}


# -------------------------------------------------------------------- and back


def _decode(node: Any, arrays: Arrays) -> Any:
    if isinstance(node, list):
        return [_decode(v, arrays) for v in node]
    if not isinstance(node, dict):
        return node
    kind = node["$"]
    if kind == "array":
        return arrays[node["name"]]
    if kind == "scalar":
        return _decode(node["value"], arrays)[()]
    if kind == "strings":
        return np.array(node["values"], dtype=str)
    if kind == "tuple":
        return tuple(_decode(v, arrays) for v in node["items"])
    if kind == "dict":
        return {k: _decode(v, arrays) for k, v in node["items"].items()}
    if kind == "bags":
        return Bags(_decode(node["instances"], arrays), _decode(node["offsets"], arrays), node["instance_shape"])
    if kind == "estimator":
        return _build(node, arrays)
    raise KeyError(kind)


def _build(node: dict[str, Any], arrays: Arrays) -> BaseEstimator:
    cls = _estimator_class(node["class"])
    foreign = cls.__module__.startswith("sklearn.")
    params = set(cls._get_param_names())
    estimator: BaseEstimator = object.__new__(cls)
    for name, value in node["state"].items():
        allowed = _ATTRIBUTE.fullmatch(name) if foreign else name in params or _FITTED.fullmatch(name)
        if not allowed:
            raise DataError(f"the model file sets the attribute {name!r} of {cls.__name__}, which no fit would")
        vars(estimator)[name] = _decode(value, arrays)
    return estimator


def _estimator_class(path: str) -> type[BaseEstimator]:
    module, _, name = path.partition(":")
    parts = module.split(".")
    own = {f"{c.__module__}:{c.__qualname__}": c for c in _subclasses(MIPLClassifier)}
    if path in own:
        return own[path]
    if parts[0] in ("mipl", "sklearn") and name.isidentifier() and not {"__main__", "tests", "conftest"} & set(parts):
        try:
            cls = getattr(import_module(module), name, None)
        except ImportError:
            cls = None
        if isinstance(cls, type) and issubclass(cls, BaseEstimator):
            return cls
    raise DataError(
        f"the model is of class {path}, which is not an estimator of mipl or scikit-learn; "
        "if it is your own, import it before loading the model"
    )


def _subclasses(cls: type[BaseEstimator]) -> set[type[BaseEstimator]]:
    direct = set(cls.__subclasses__())
    return direct.union(*(_subclasses(c) for c in direct))
