"""Model files: one safetensors file with a JSON header, no pickle.

The header describes the estimator as a tree of plain values; arrays are references into the tensor part. Reading
builds objects only of estimator classes that mipl or scikit-learn hold or that the program has imported itself, and
only assigns their attributes: no function named by the file is ever called, and nothing outside mipl and scikit-learn
is ever imported.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mipl import __version__
from mipl.bags import Bags
from mipl.errors import DataError, MIPLError, UnavailableError
from mipl.io.atomic import atomic_path
from mipl.io.border import first_line
from mipl.persistence_checks import answers, check_array, check_model, describe_array
from mipl.persistence_migrations import migrate

__all__ = ["load_model", "save_model"]

#: 1: arrays in C order only, the classes and parameters of 0.1 before its release; see `mipl.persistence_migrations`.
FORMAT = 2
_FITTED = re.compile(r"[a-zA-Z]\w*_")
_ATTRIBUTE = re.compile(r"_?[a-zA-Z]\w*")

Arrays = dict[str, NDArray[Any]]


def save_model(model: BaseEstimator, path: str | Path) -> Path:
    """Write a fitted model to one file, whole or not at all.

    Parameters
    ----------
    model : MIPLClassifier, PLLClassifier or MILClassifier
        Its parameters and fitted attributes are written: plain values, NumPy arrays, `Bags` and other estimators.
    path : str or Path
        Where to.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    DataError
        If an attribute cannot be written without pickle; the message names it.
    UnavailableError
        If the file cannot be written, as on a full disk.
    """
    check_is_fitted(model, "classes_")
    arrays: Arrays = {}
    tree = _encode(model, arrays, type(model).__name__)
    header = json.dumps(
        {
            "class": tree["class"],
            "model": tree,
            "answers": answers(model),
            "versions": {"mipl": __version__, "numpy": np.__version__},
        }
    )
    metadata = {"mipl_format": str(FORMAT), "mipl_model": header, "sha256": _digest(header, arrays)}
    with atomic_path(path) as temporary:
        try:
            save_file(arrays, temporary, metadata)
        except SafetensorError as error:
            raise UnavailableError(f"cannot write {path}: {error}") from error
    return Path(path)


def load_model(path: str | Path) -> BaseEstimator:
    """Read a model that its `save` wrote; a hostile file cannot run code.

    Parameters
    ----------
    path : str or Path
        The file. A model of your own class can be read once the program has imported that class.

    Returns
    -------
    MIPLClassifier, PLLClassifier or MILClassifier
        The fitted model, which answers as the saved one did.

    Raises
    ------
    DataError
        If the file is missing, damaged, changed, of a newer format or not a model of mipl; or if what it holds does
        not fit together, so that the model cannot answer for a few bags.
    """
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
                    f"{file} has model format {version}, mipl {__version__} reads up to {FORMAT}; upgrade mipl"
                )
            arrays: Arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except MIPLError:
        raise
    except Exception as error:  # such as that NumPy has no type of eight-bit floats
        raise DataError(f"{file} is damaged or not a mipl model ({first_line(error)}); save the model again") from error
    header = metadata["mipl_model"]
    if metadata.get("sha256") != _digest(header, arrays):
        raise DataError(f"{file} was changed after it was saved (its checksum does not match); save the model again")
    try:
        content = json.loads(header)
        model = _decode(migrate(content["model"], int(version)), arrays)
        # What can be saved on its own: a fitted model of one of mipl's contracts, not a transformer inside one.
        whole = isinstance(model, BaseEstimator) and hasattr(type(model), "save") and hasattr(model, "classes_")
        if whole:
            check_model(model, promised=content.get("answers") is True)
    except MIPLError as error:
        raise DataError(f"{file}: {error}") from error
    except Exception as error:  # whatever a header makes of the classes that it names
        raise DataError(f"{file} has a header that this mipl cannot read ({first_line(error)})") from error
    if not whole:
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
        return _encode_bags(value, arrays, where)
    if isinstance(value, BaseEstimator):
        state = {k: _encode(v, arrays, f"{where}.{k}") for k, v in _state(value).items()}
        return {"$": "estimator", "class": _class_path(type(value)), "state": state}
    if isinstance(value, slice):
        return {"$": "slice", "items": [_encode(v, arrays, where) for v in (value.start, value.stop, value.step)]}
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return {"$": "dtype" if isinstance(value, np.dtype) else "number type", "name": np.dtype(value).name}
    if callable(value) and hasattr(value, "__name__"):
        raise DataError(
            f"{where} is a function, which cannot be saved without pickle; make it the transform of a transformer "
            "class of your own (a BaseEstimator, of which parameters and attributes are saved), and import that class "
            "before the file is loaded"
        )
    raise DataError(
        f"{where} is a {type(value).__name__}, which cannot be saved without pickle; "
        "use plain numbers, strings, arrays or scikit-learn estimators as parameters, if need be by set_params"
    )


def _encode_array(array: NDArray[Any], arrays: Arrays, where: str) -> dict[str, Any]:
    if array.dtype.kind == "U":
        return {"$": "strings", "values": array.tolist()}
    if array.dtype.kind not in "fiub":
        raise DataError(f"{where} is an array of {array.dtype}, which cannot be saved without pickle")
    name = f"{len(arrays)}:{where}"
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    # safetensors knows C order only. BLAS takes another path for F order, with other last digits, so it is kept.
    if native.flags.f_contiguous and not native.flags.c_contiguous:
        arrays[name] = native.T
        return {"$": "array", "name": name, "order": "F", **describe_array(native.T)}
    arrays[name] = np.ascontiguousarray(native) if native.ndim else native
    return {"$": "array", "name": name, **describe_array(arrays[name])}


def _encode_bags(bags: Bags, arrays: Arrays, where: str) -> dict[str, Any]:
    return {
        "$": "bags",
        "instances": _encode_array(bags.instances, arrays, f"{where}.instances"),
        "offsets": _encode_array(bags.offsets, arrays, f"{where}.offsets"),
        "instance_shape": list(bags.instance_shape),
        "feature_names": None if bags.feature_names is None else list(bags.feature_names),
    }


def _state(estimator: BaseEstimator) -> dict[str, Any]:
    """Parameters and fitted attributes; scikit-learn's estimators keep private ones that they need too."""
    attributes = vars(estimator)
    if _is_sklearn(type(estimator)):
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
        array = arrays[node["name"]]
        check_array(array, node)
        return array.T if node.get("order") == "F" else array
    if kind == "scalar":
        return _decode(node["value"], arrays)[()]
    if kind == "strings":
        return np.array(node["values"], dtype=str)
    if kind == "tuple":
        return tuple(_decode(v, arrays) for v in node["items"])
    if kind == "dict":
        return {k: _decode(v, arrays) for k, v in node["items"].items()}
    if kind == "bags":
        instances, offsets = _decode(node["instances"], arrays), _decode(node["offsets"], arrays)
        return Bags(instances, offsets, node["instance_shape"], node.get("feature_names"))
    if kind == "slice":
        return slice(*node["items"])
    if kind in ("dtype", "number type"):
        dtype = np.dtype(node["name"])
        return dtype if kind == "dtype" else dtype.type
    if kind == "estimator":
        return _build(node, arrays)
    raise KeyError(kind)


def _build(node: dict[str, Any], arrays: Arrays) -> BaseEstimator:
    cls = _estimator_class(node["class"])
    params = set(cls._get_param_names())
    estimator: BaseEstimator = object.__new__(cls)
    for name, value in node["state"].items():
        allowed = _ATTRIBUTE.fullmatch(name) if _is_sklearn(cls) else name in params or _FITTED.fullmatch(name)
        if not allowed:
            raise DataError(f"the model file sets the attribute {name!r} of {cls.__name__}, which no fit would")
        vars(estimator)[name] = _decode(value, arrays)
    return estimator


# -------------------------------------------------------------------- classes by their names


def _class_path(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _is_sklearn(cls: type) -> bool:
    return cls.__module__.startswith("sklearn.")


def _estimator_class(path: str) -> type[BaseEstimator]:
    """The estimator class of that path: one that the program has imported, or one of mipl's or scikit-learn's."""
    module, _, name = path.partition(":")
    parts = module.split(".")
    # A class that was defined again, as a notebook's cell does, stands behind the older one of its name.
    imported = {_class_path(cls): cls for cls in _subclasses(BaseEstimator)}
    if path in imported:
        return imported[path]
    known = parts[0] in ("mipl", "sklearn") and not {"__main__", "tests", "conftest"} & set(parts)
    if known and all(part.isidentifier() for part in (*parts, name)):
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


def _subclasses(cls: type[BaseEstimator]) -> Iterator[type[BaseEstimator]]:
    for subclass in cls.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)
