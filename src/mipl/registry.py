"""The table of methods: one line each, imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mipl.errors import DataError

if TYPE_CHECKING:
    from mipl.base import MIPLClassifier

__all__ = ["class_path", "make", "methods"]

#: name -> "module:class", in the order in which tables list them.
_METHODS = {
    "BagGP": "mipl.baggp.estimator:BagGP",
    "MIPLGP": "mipl.miplgp.estimator:MIPLGP",
    "MIPLGP-uniform": "mipl.miplgp.estimator:MIPLGP",
    "MIPLGP-naive": "mipl.miplgp.estimator:MIPLGP",
    "PL-kNN": "mipl.pll.plknn:PLkNNBags",
    "CLPL": "mipl.pll.clpl:CLPLBags",
    "LSB-CMM": "mipl.pll.lsbcmm:LSBCMMBags",
    "SURE": "mipl.pll.sure:SUREBags",
    "GM-PLL": "mipl.pll.gmpll:GMPLLBags",
    "PL-AGGD": "mipl.pll.plaggd:PLAGGDBags",
    "VWSGP": "mipl.mil.vwsgp:VWSGPBags",
    "VGPMIL": "mipl.mil.vgpmil:VGPMILBags",
    "LM-VGPMIL": "mipl.mil.lmvgpmil:LMVGPMILBags",
    "MIVAE": "mipl.mil.mivae:MIVAEBags",
}

#: Variants: parameters of the class above that differ from its defaults.
_PRESETS: dict[str, dict[str, Any]] = {
    "MIPLGP-uniform": {"disambiguation": "uniform"},
    "MIPLGP-naive": {"augment": False},
}


class _Methods(Mapping[str, "type[MIPLClassifier]"]):
    """A read-only mapping from method names to classes that imports a class when it is looked up."""

    def __getitem__(self, name: str) -> type[MIPLClassifier]:
        module, _, attribute = _METHODS[name].partition(":")
        return getattr(import_module(module), attribute)

    def __iter__(self) -> Iterator[str]:
        return iter(_METHODS)

    def __len__(self) -> int:
        return len(_METHODS)

    def __contains__(self, name: object) -> bool:
        return name in _METHODS

    def __repr__(self) -> str:
        return f"methods({', '.join(_METHODS)})"


def methods() -> Mapping[str, type[MIPLClassifier]]:
    """All methods, name -> class.

    >>> "PL-kNN" in methods()
    True
    """
    return _Methods()


def class_path(name: str) -> str:
    """Where the class of a method lives, ``"module:class"``, without importing it."""
    return _METHODS[name]


def make(name: str, **params: Any) -> MIPLClassifier:
    """Build an estimator by its name, upper or lower case.

    >>> make("pl-knn", embed="maxmin", k=5)
    PLkNNBags(embed='maxmin', k=5)
    """
    known = {n.lower(): n for n in _METHODS}
    if name.lower() not in known:
        raise DataError(f"unknown method {name!r}; the methods are {', '.join(_METHODS)}")
    cls = methods()[known[name.lower()]]
    valid = cls._get_param_names()
    for param in params:
        if param not in valid:
            raise DataError(f"{known[name.lower()]} has no parameter {param!r}; it has {', '.join(valid)}")
    return cls(**(_PRESETS.get(known[name.lower()], {}) | params))
