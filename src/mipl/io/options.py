"""The options of what reads files, described once for `mipl.load`, `mipl.scan`, `mipl.check` and the commands."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from textwrap import fill, indent
from typing import Any, TypeVar

from mipl.errors import DataError, ParameterError

__all__ = ["OPTIONS", "Columns", "check_reading", "describes_options"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


#: option -> what it may be in Python, and its words, which are the same on the command line
OPTIONS: dict[str, tuple[str, str]] = {
    "bag": ("str", "Column that names the bag of each row. Default: bag_id."),
    "candidates": ("str", "Column of candidate labels, a|b or lists. Default: candidates."),
    "label": ("str", "Column of true labels, to compare with. Default: label, if there is one."),
    "features": (
        "str or sequence of str",
        "Feature columns, by name or pattern such as 'mfcc_*', or one column of lists. Default: all columns of numbers "
        "but those that are obviously an index or an id.",
    ),
    "ignore": ("str or sequence of str", "Columns to leave out, by name or pattern. Default: none."),
    "instance_id": ("str", "Column that names each instance; answers repeat it. Default: they are counted."),
    "sep": ("str", "Separator of a text file: ',' ';' or tab. Default: detected."),
    "decimal": ("str", "Decimal mark of a text file: '.' or ','. Default: detected."),
    "missing": (
        "str or mapping from str to float",
        "Missing values: drop (leave out the instance) or mean (of the column; that of the training data where the "
        "model knows it); in Python also a mapping from features to values. Default: an error.",
    ),
    "candidates_sep": ("str", "Separator of the labels in a candidates cell. Default: '|'."),
    "table": (
        "str or Path",
        "File of candidates by bag: one row per bag, one row per answer of a person, or an export of Label Studio "
        "(.json); the columns of bags and candidates are then its own. Default: none; for a folder of images the only "
        "table in it.",
    ),
    "patch": (
        "int",
        "Side in pixels of the patches that an image is cut into; where they do not divide it, the last ones overlap "
        "those before. Default: 32.",
    ),
    "size": ("int", "Side in pixels to which images are resized first. Default: as they are."),
}
#: What a model keeps of how its files were read.
_KEPT = tuple(name for name in OPTIONS if name != "table")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What a user says about files and their columns: `OPTIONS`.

    Two more are not said by users: `model_features`, the features that a model was fitted with (where `features` does
    not say otherwise these columns are taken, in this order, and all others left out), and `remembered`, which of the
    options a model has from its training files. A file that has no use for a remembered option, or no such column
    where it needs none, is read without it.
    """

    bag: str | None = None
    candidates: str | None = None
    label: str | None = None
    features: str | Sequence[str] | None = None
    ignore: str | Sequence[str] | None = None
    instance_id: str | None = None
    sep: str | None = None
    decimal: str | None = None
    missing: str | Mapping[str, float] | None = None
    candidates_sep: str = "|"
    table: str | Path | None = None
    patch: int | None = None
    size: int | None = None
    model_features: Sequence[str] | None = None
    remembered: Sequence[str] = ()

    def __post_init__(self) -> None:
        if isinstance(self.missing, Mapping):
            for name, mean in self.missing.items():
                if not isinstance(mean, Real) or not math.isfinite(mean):
                    raise ParameterError(f"missing={{{name!r}: {mean!r}}}; a mean must be a finite number")
        elif self.missing not in (None, "drop", "mean"):
            raise ParameterError(f"missing={self.missing!r}; it must be 'drop', 'mean', None, or numbers by column")
        if self.decimal not in (None, ".", ","):
            raise ParameterError(f"decimal={self.decimal!r}; it must be '.', ',' or None")
        for option, value in (("patch", self.patch), ("size", self.size)):
            if value is not None and value < 1:
                raise ParameterError(f"{option}={value}; it must be a number of pixels from 1")
        if self.sep is not None:
            spelled = {"\\t": "\t", "tab": "\t"}.get(self.sep, self.sep)
            if len(spelled) != 1 or spelled in '"\r\n':
                raise ParameterError(f"sep={self.sep!r}; it must be one character, such as ';' or 'tab'")
            object.__setattr__(self, "sep", spelled)
        if not self.candidates_sep:
            raise ParameterError("candidates_sep is empty; it must be what stands between two labels, such as '|'")

    def said(self) -> dict[str, Any]:
        """What the user says, as plain values: what a model that is fitted on the file keeps."""
        given = {name: getattr(self, name) for name in _KEPT if name not in self.remembered}
        if self.candidates_sep == Columns.candidates_sep:
            given["candidates_sep"] = None
        return {name: _plain_value(name, value) for name, value in given.items() if value is not None}


def describes_options(function: _Function) -> _Function:
    """Put the options that a function has into its docstring, in place of ``{options}``."""
    entries = [
        f"    {name} : {kind}, default={getattr(Columns, name)!r}\n{indent(fill(words, 112), ' ' * 8)}"
        for name, (kind, words) in OPTIONS.items()
        if name in function.__annotations__
    ]
    if function.__doc__ is not None:
        function.__doc__ = function.__doc__.replace("    {options}", "\n".join(entries))
    return function


def check_reading(found: Any) -> None:
    """Refuse what `Columns.said` cannot have given, as in a forged model file."""
    try:
        known = isinstance(found, dict) and Columns(**found).said() == found
    except (TypeError, ValueError):
        known = False
    if not known:
        raise DataError("what the model keeps of how its files were read is no such thing; fit it again")


def _plain_value(option: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): float(mean) for name, mean in value.items()}
    if option in ("features", "ignore") and not isinstance(value, str):
        return [str(name) for name in value]
    return int(value) if option in ("patch", "size") else str(value)
