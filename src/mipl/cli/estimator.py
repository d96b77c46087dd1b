"""An estimator from the words of a command line."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mipl.cli.assignments import parse_assignments
from mipl.cli.output import working

if TYPE_CHECKING:
    from mipl.base import MIPLClassifier
    from mipl.dataset import MIPLDataset
    from mipl.scanning.scan import Scan

__all__ = ["DEFAULT_METHOD", "MethodOption", "ParamOption", "fit_method"]

DEFAULT_METHOD = "BagGP"


def _method_names(incomplete: str) -> list[str]:
    from mipl.registry import methods

    return [name for name in methods() if name.startswith(incomplete)]


MethodOption = Annotated[
    str,
    typer.Option("--method", "-m", help="Name of a method; 'mipl methods' lists them.", autocompletion=_method_names),
]
ParamOption = Annotated[
    list[str] | None,
    typer.Option(
        "--param", "-p", help="A parameter of the method, NAME=VALUE; may be repeated. Default: the method's own."
    ),
]


def fit_method(
    dataset: MIPLDataset | Scan, method: str, params: list[str] | None, quiet: bool, client: Any = None
) -> tuple[MIPLClassifier, float]:
    """Build the method and fit it, on a cluster if there is a client; give the model and the seconds it took."""
    from mipl.registry import make

    model = make(method, **parse_assignments(params))
    shown: Any = getattr(model, "learner", model)  # inside a wrapper it is the learner that shows its progress
    has_progress = "verbose" in shown.get_params(deep=False)
    if has_progress:
        shown.set_params(verbose=not quiet)
    start = time.perf_counter()
    with working(f"fitting {model.name} on {len(dataset):,} bags", quiet or has_progress):
        model.fit(dataset, **({} if client is None else {"client": client}))
    if has_progress:
        shown.set_params(verbose=False)
    return model, time.perf_counter() - start
