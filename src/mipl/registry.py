"""The table of methods: one line each, imported when it is first asked for."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mipl.errors import ParameterError

if TYPE_CHECKING:
    from mipl.base import MIPLClassifier

__all__ = ["Method", "class_path", "code_paths", "describe", "make", "methods"]

_EMBEDDED = "mipl.pll.embedding:EmbeddedPLL"
_ONE_VS_REST = "mipl.mil.ovr:OneVsRest"


@dataclass(frozen=True, eq=False)
class Method:
    """A method of the library: called with parameters, it gives an estimator.

    A method is a class, perhaps with other defaults (`params`) and perhaps inside a wrapper that carries it to bags
    with candidate sets. Parameters are flat: those of the wrapper go to the wrapper, all others to the learner, which
    can also be addressed as ``learner__name``. Nothing is imported before it is needed.

    Parameters
    ----------
    name : str
        Name in tables, in files and on the command line.
    path : str
        ``"module:class"`` of the class that does the work.
    params : mapping, default={}
        What the method presets.
    wrapper : str, default=""
        ``"module:class"`` of a class whose parameter `learner` takes the other one, or nothing.

    Examples
    --------
    >>> method = methods()["PL-kNN"]
    >>> method(embed="maxmin", n_neighbors=5)
    EmbeddedPLL(embed='maxmin', learner=PLkNN(n_neighbors=5))
    >>> method.parameters()
    {'embed': 'mean', 'n_neighbors': 10, 'random_state': 0}
    """

    name: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    wrapper: str = ""

    def __call__(self, **params: Any) -> MIPLClassifier:
        """Build the estimator."""
        known = self.parameters()
        own = self._own_parameters()
        to_wrapper: dict[str, Any] = {}
        to_learner: dict[str, Any] = {}
        for given, value in {**self.params, **params}.items():
            name = given.removeprefix("learner__") if self.wrapper else given
            if name not in known or (given != name and name in own):
                raise ParameterError(f"{self.name} has no parameter {given!r}; {_instead(name, known, 'it has')}")
            (to_wrapper if name in own else to_learner)[name] = value
        learner = _load(self.path)(**to_learner)
        method: MIPLClassifier = _load(self.wrapper)(learner, **to_wrapper) if self.wrapper else learner
        return method

    @property
    def summary(self) -> str:
        """What it does, in one line."""
        return (inspect.getdoc(_load(self.path)) or "").partition("\n")[0]

    @property
    def citation(self) -> str:
        """Where it was published."""
        citation: str = _load(self.path).citation
        return citation

    def parameters(self) -> dict[str, Any]:
        """Names and defaults of all parameters, those of the wrapper first."""
        return {**self._own_parameters(), **_defaults(_load(self.path)), **self.params}

    def _own_parameters(self) -> dict[str, Any]:
        """Names and defaults of the wrapper's parameters."""
        defaults = _defaults(_load(self.wrapper)) if self.wrapper else {}
        return {name: default for name, default in defaults.items() if name != "learner"}


#: All methods, in the order in which tables list them.
_METHODS = {
    method.name: method
    for method in (
        Method("BagGP", "mipl.baggp.estimator:BagGP"),
        Method("MIPLGP", "mipl.miplgp.estimator:MIPLGP"),
        Method("MIPLGP-uniform", "mipl.miplgp.estimator:MIPLGP", {"disambiguation": "uniform"}),
        Method("MIPLGP-naive", "mipl.miplgp.estimator:MIPLGP", {"augment": False}),
        Method("DEMIPL", "mipl.deep.demipl:DEMIPL"),
        Method("ELIMIPL", "mipl.deep.elimipl:ELIMIPL"),
        Method("MIPLMA", "mipl.deep.miplma:MIPLMA"),
        Method("ProMIPL", "mipl.deep.promipl:ProMIPL"),
        Method("FastMIPL", "mipl.deep.fastmipl:FastMIPL"),
        Method("PL-kNN", "mipl.pll.plknn:PLkNN", wrapper=_EMBEDDED),
        Method("CLPL", "mipl.pll.clpl:CLPL", wrapper=_EMBEDDED),
        Method("LSB-CMM", "mipl.pll.lsbcmm:LSBCMM", wrapper=_EMBEDDED),
        Method("SURE", "mipl.pll.sure:SURE", wrapper=_EMBEDDED),
        Method("GM-PLL", "mipl.pll.gmpll:GMPLL", wrapper=_EMBEDDED),
        Method("PL-AGGD", "mipl.pll.plaggd:PLAGGD", wrapper=_EMBEDDED),
        Method("VWSGP", "mipl.mil.vwsgp:VWSGP", wrapper=_ONE_VS_REST),
        Method("VGPMIL", "mipl.mil.vgpmil:VGPMIL", wrapper=_ONE_VS_REST),
        Method("LM-VGPMIL", "mipl.mil.lmvgpmil:LMVGPMIL", wrapper=_ONE_VS_REST),
        Method("MIVAE", "mipl.mil.mivae:MIVAE", wrapper=_ONE_VS_REST),
    )
}


class _Methods(Mapping[str, Method]):
    """A read-only view of the table; names can be listed without importing any method."""

    def __getitem__(self, name: str) -> Method:
        return _METHODS[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_METHODS)

    def __len__(self) -> int:
        return len(_METHODS)

    def __repr__(self) -> str:
        return f"methods({', '.join(_METHODS)})"


def methods() -> Mapping[str, Method]:
    """All methods, name -> `Method`.

    >>> "PL-kNN" in methods()
    True
    >>> methods()["SURE"](lam=0.5)
    EmbeddedPLL(learner=SURE(lam=0.5))
    """
    return _Methods()


def make(name: str, **params: Any) -> MIPLClassifier:
    """Build an estimator by its name, upper or lower case, with parameters of the wrapper and of the learner alike.

    >>> make("pl-knn", embed="maxmin", n_neighbors=5)
    EmbeddedPLL(embed='maxmin', learner=PLkNN(n_neighbors=5))
    """
    known = {n.lower(): method for n, method in _METHODS.items()}
    if name.lower() not in known:
        raise ParameterError(f"unknown method {name!r}; {_instead(name, _METHODS, 'the methods are')}")
    return known[name.lower()](**params)


def describe(estimator: Any) -> tuple[str, dict[str, Any]] | None:
    """Name and changed parameters of an estimator, the inverse of `make`; None where no method is of its kind.

    >>> describe(make("PL-kNN", embed="maxmin", n_neighbors=5))
    ('PL-kNN', {'embed': 'maxmin', 'n_neighbors': 5})
    """
    own = estimator.get_params(deep=False)
    learner = own.pop("learner", None)
    wrapper, worker = ("", estimator) if learner is None else (_path(estimator), learner)
    for method in _METHODS.values():
        if (method.path, method.wrapper) == (_path(worker), wrapper) and not method.params:
            given = {**worker.get_params(deep=False), **own}
            defaults = method.parameters()
            return method.name, {n: given[n] for n, d in defaults.items() if given[n] is not d and given[n] != d}
    return None


def class_path(name: str) -> str:
    """Where the class that does the work of a method lives, ``"module:class"``, without importing it.

    For a method inside a wrapper it is the learner's; see `code_paths` for both.
    """
    return _METHODS[name].path


def code_paths(name: str) -> tuple[str, ...]:
    """Where all classes of a method live, ``"module:class"`` each: the learner's, and the wrapper's where it has one.

    >>> code_paths("SURE")
    ('mipl.pll.sure:SURE', 'mipl.pll.embedding:EmbeddedPLL')
    """
    method = _METHODS[name]
    return (method.path, method.wrapper) if method.wrapper else (method.path,)


def _load(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


def _path(instance: Any) -> str:
    return f"{type(instance).__module__}:{type(instance).__qualname__}"


def _defaults(cls: type) -> dict[str, Any]:
    return {name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()}


def _instead(name: str, known: Iterable[str], listing: str) -> str:
    """What an error offers instead of an unknown name: the closest known one, and all."""
    by_lower = {n.lower(): n for n in known}
    names = f"{listing} {', '.join(by_lower.values())}"
    close = get_close_matches(name.lower(), by_lower, n=1)
    return f"did you mean {by_lower[close[0]]!r}? {names[0].upper()}{names[1:]}" if close else names
