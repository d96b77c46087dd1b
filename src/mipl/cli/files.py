"""The options of every command that reads files, in one place."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mipl.cli.output import say, working
from mipl.io.options import OPTIONS, Columns

if TYPE_CHECKING:
    from mipl.base import MIPLClassifier
    from mipl.io.raw import Loaded

__all__ = ["BackgroundOption", "FilesArgument", "Reading", "as_words", "reads_files"]

FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Data set files (.csv, .tsv, .parquet, .feather, .jsonl, .xlsx, .npz, .mat; text also .gz, .bz2, .xz, "
        ".zst), patterns, folders of files or images, - for standard input, or the name of a data set.",
    ),
]

BackgroundOption = Annotated[
    str | None,
    typer.Option("--background", help="Class whose bags have no positive instance. Default: the one the file names."),
]

_PANEL = "What the columns are"


_KINDS: dict[str, Any] = {
    **dict.fromkeys(("features", "ignore"), list[str] | None),
    "table": Path | None,
    **dict.fromkeys(("patch", "size"), int | None),
}
_MORE: dict[str, Any] = {
    "patch": {"rich_help_panel": "Images"},
    "size": {"rich_help_panel": "Images"},
    "missing": {
        "metavar": "drop|mean",
        "autocompletion": lambda incomplete: [word for word in ("drop", "mean") if word.startswith(incomplete)],
    },
}
_OPTIONS: dict[str, Any] = {
    name: Annotated[
        _KINDS.get(name, str | None),
        typer.Option(f"--{name.replace('_', '-')}", help=words, **{"rich_help_panel": _PANEL, **_MORE.get(name, {})}),
    ]
    for name, (_, words) in OPTIONS.items()
}


@dataclass(frozen=True)
class Reading:
    """How a command was asked to read its files."""

    options: dict[str, Any]
    of_model: dict[str, Any] = field(default_factory=dict)  #: further arguments of `Columns`, where a model is asked

    def for_model(self, model: MIPLClassifier, quiet: bool) -> Reading:
        """The same for bags that a saved model is asked about: what is not said is as in its training files."""
        names, reading, given = getattr(model, "feature_names_in_", None), getattr(model, "reading_", {}), self.given()
        if given.get("missing") == "mean":
            if isinstance(reading.get("missing"), dict):
                del given["missing"]  # it is the mean of the training data that is meant
            else:
                told = "the model does not know the means of its training data (fit it with --missing mean)"
                say(f"warning: {told}; missing values get the mean of their column in the new file", quiet)
        kept = {name: value for name, value in reading.items() if name not in given}
        if kept:
            say(f"read as in training: {as_words(kept)}", quiet)
        known = {} if names is None else {"model_features": tuple(names.tolist())}
        return Reading({**self.options, **kept}, {**known, "remembered": tuple(kept)})

    def columns(self) -> Columns:
        """What was said about the columns, and what a model knows of them."""
        return Columns(**self.given(), **self.of_model)

    def given(self) -> dict[str, Any]:
        """The options that were given, as `mipl.load` and `mipl.check` take them."""
        return {name: value for name, value in self.options.items() if value not in (None, [])}

    def refuse_overwriting(
        self, files: Sequence[str], outputs: Sequence[str | Path | None], *others: Path | None
    ) -> None:
        """Refuse outputs of the command that are among its files, its table of candidates or its other inputs."""
        from mipl.overwriting import refuse_overwriting

        refuse_overwriting(outputs, [self.options["table"], *others], files)

    def load(
        self, files: Sequence[str], quiet: bool, unlabelled: Sequence[Any] | None = None, **options: Any
    ) -> Loaded:
        """Read the data, and say how the columns were taken; options that are None are not given."""
        from mipl.checking.report import joined_names
        from mipl.loading import load_with_ids

        with working(f"reading {', '.join(files[:3])}", quiet):
            given = {name: value for name, value in options.items() if value is not None}
            loaded = load_with_ids(list(files), self.columns(), unlabelled, **given)
        # With -v the library's own log says so.
        if not logging.getLogger("mipl").isEnabledFor(logging.INFO):
            for remark in loaded.remarks:
                say(remark, quiet)
        if unlabelled is None:
            joined = joined_names(loaded.dataset.classes.tolist(), self.columns().candidates_sep)
            if joined is not None:
                sep, names = joined
                say(
                    f"warning: the class {names[0]!r} looks like several; if it is, pass --candidates-sep {sep!r}",
                    quiet,
                )
        return loaded


def as_words(reading: dict[str, Any]) -> str:
    """How files are read, in one line.

    >>> as_words({"bag": "Aufnahme", "decimal": ",", "missing": {"width": 1.5}})
    "bag='Aufnahme', decimal=',', missing='mean' of the training data"
    """
    told = {k: "'mean' of the training data" if isinstance(v, dict) else repr(v) for k, v in reading.items()}
    return ", ".join(f"{name}={value}" for name, value in told.items())


def reads_files(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of files; it gets them as the argument `reading`, a `Reading`."""
    own = inspect.signature(command, eval_str=True)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in _OPTIONS.items()
    ]
    kept = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own.parameters.values() if p.name != "reading"]

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        options = {name: given.pop(name) for name in _OPTIONS}
        command(reading=Reading(options), **given)

    with_options.__signature__ = inspect.Signature([*kept, *added])  # type: ignore[attr-defined]
    with_options.__annotations__ = {p.name: p.annotation for p in [*kept, *added]}
    del with_options.__wrapped__
    return with_options
