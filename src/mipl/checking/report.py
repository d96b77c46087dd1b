"""The report of a check: problems, sizes and a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mipl.arrays import is_table
from mipl.checking.classes import check_classes, possible_labels
from mipl.checking.instances import check_instances
from mipl.dataset import MIPLDataset
from mipl.datasets.registry import dataset_names
from mipl.errors import DataError, MIPLError
from mipl.io import frames
from mipl.io.columns import Columns
from mipl.io.problems import Problem
from mipl.io.raw import RawBags
from mipl.io.sources import expand, read_joined, read_raw
from mipl.loading import check_source, load_with_ids, with_background

__all__ = ["Report", "check"]

_ORDER = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True, repr=False)
class Report:
    """What `mipl.check` found.

    Parameters
    ----------
    problems : tuple of Problem
        Errors first, then warnings, then notes.
    summary : dict
        Numbers of bags, instances, features and classes, bags per class, and sizes of candidate sets, as far as the
        data could be read.
    remarks : tuple of str, default=()
        How the files were read: which columns were taken for what.
    """

    problems: tuple[Problem, ...]
    summary: dict[str, Any]
    remarks: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether nothing stops a fit."""
        return not any(problem.severity == "error" for problem in self.problems)

    @property
    def verdict(self) -> str:
        """One line for a person."""
        counts = {s: sum(p.severity == s for p in self.problems) for s in _ORDER}
        told = ", ".join(f"{n} {s}{'s' if n > 1 else ''}" for s, n in counts.items() if n) or "no problems"
        size = self.summary
        what = f"{size['bags']:,} bags, {size['instances']:,} instances, {size['classes']} classes: " if size else ""
        return f"{what}{'usable' if self.usable else 'not usable yet'} ({told})"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return {
            "usable": self.usable,
            "verdict": self.verdict,
            "problems": [problem.to_dict() for problem in self.problems],
            "summary": self.summary,
            "remarks": list(self.remarks),
        }

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return "\n".join([*(f"{p.severity}: {p}" for p in self.problems), self.verdict])


def check(source: Any, **options: Any) -> Report:
    """Look for everything that is wrong or odd in a data set; nothing is raised but for wrong options.

    Parameters
    ----------
    source : MIPLDataset, str, Path, sequence of these paths, or table
        A data set, or what `mipl.load` takes.
    **options
        Those of `mipl.load`: `bag`, `candidates`, `label`, `features`, `background`, ...

    Returns
    -------
    Report

    Examples
    --------
    >>> import mipl
    >>> report = mipl.check("digits")
    >>> report.usable, report.verdict
    (True, '150 bags, 1,125 instances, 5 classes: usable (no problems)')
    """
    images: dict[str, Any] = {name: options.pop(name) for name in ("table", "patch", "size") if name in options}
    unlabelled = options.pop("unlabelled", None)
    background = options.pop("background", None)
    known = Columns.__dataclass_fields__
    columns = Columns(**{name: options.pop(name) for name in list(options) if name in known})
    try:
        raw = _raw(source, columns, images, options)
    except MIPLError as error:
        told = dict.fromkeys([str(error), *_unreadable_alone(source, columns, images)])
        return Report(tuple(Problem("unreadable", "error", "", text) for text in told), {})
    return check_raw(raw, columns, unlabelled, background)


def check_raw(
    raw: RawBags, columns: Columns, unlabelled: Sequence[Any] | None = None, background: Any = None
) -> Report:
    """Check bags as a file has them."""
    problems = [
        *raw.problems,
        *raw.oddities(),
        *check_instances(raw, columns),
        *check_classes(raw, columns, unlabelled),
    ]
    if not any(problem.severity == "error" for problem in problems):
        try:  # whatever else a data set refuses
            dataset = raw.load(columns.missing, unlabelled).dataset
            if background is not None:
                with_background(dataset, background)
        except DataError as error:
            problems.append(Problem("unusable", "error", "", str(error)))
    problems.sort(key=lambda problem: _ORDER[problem.severity])
    return Report(tuple(problems), _summary(raw), tuple(raw.remarks))


def _raw(source: Any, columns: Columns, images: dict[str, Any], options: dict[str, Any]) -> RawBags:
    if isinstance(source, MIPLDataset):
        return RawBags.from_dataset(source, source.name or "the data set")
    if is_table(source) and not options:
        return frames.read(source, columns)
    sources = [source] if isinstance(source, str | Path) else list(source)
    if len(sources) == 1 and str(sources[0]) in dataset_names():
        return RawBags.from_dataset(load_with_ids(sources, columns, None, images, **options).dataset, str(sources[0]))
    if options:
        raise DataError(f"files have no option {', '.join(map(repr, options))}; see mipl.load for those they have")
    for each in sources:
        check_source(each)
    return read_joined(expand(sources), columns, **images)


def _unreadable_alone(source: Any, columns: Columns, images: dict[str, Any]) -> list[str]:
    """What is wrong with each of several files that cannot be read, not with the first of them alone."""
    if isinstance(source, MIPLDataset) or is_table(source):
        return []
    try:
        files = expand([source] if isinstance(source, str | Path) else list(source))
    except MIPLError:
        return []
    errors = []
    for file in files if len(files) > 1 else []:
        try:
            read_raw(file, columns, **{name: value for name, value in images.items() if name != "table"})
        except MIPLError as error:
            errors.append(str(error))
    return errors


def _summary(raw: RawBags) -> dict[str, Any]:
    sets = possible_labels(raw)
    names = raw.classes or sorted({label for labels in sets for label in labels}, key=str)
    sizes = [len(set(labels)) for labels in sets]
    return {
        "bags": len(raw.bag_ids),
        "instances": len(raw.values),
        "features": raw.values.shape[1],
        "classes": len(names),
        "candidate_of": {str(name): sum(name in labels for labels in sets) for name in names},
        "candidate_sizes": {str(k): sizes.count(k) for k in sorted(set(sizes))},
    }
