"""Bags of several files put together; columns are matched by name, and every bag is of one file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.errors import DataError
from mipl.io.labels import map_labels
from mipl.io.raw import RawBags

__all__ = ["join"]


def join(files: Sequence[str], parts: Sequence[RawBags]) -> RawBags:
    """Put bags of several files one after the other.

    Parameters
    ----------
    files : sequence of str
        What messages call the files.
    parts : sequence of RawBags
        The bags of each file. Feature names must be the same, in any order, or absent everywhere.
    """
    first = parts[0]
    as_text = len({type(v) for part in parts for s in part.candidates or [] for v in s}) > 1  # "1|2", and "1|x"
    labelled = any(part.candidates is not None for part in parts)
    told = any(part.labels is not None for part in parts)
    starts = np.cumsum([0] + [len(part.values) for part in parts])
    remarks = [*first.remarks[:1], f"{len(parts)} files, {sum(len(part.bag_ids) for part in parts):,} bags"]
    return RawBags(
        where=f"{files[0]} and {len(files) - 1} more",
        name=first.name,
        description=first.description,
        values=np.concatenate([_matched(files, parts, i) for i in range(len(parts))]),
        offsets=np.concatenate([[0], *(part.offsets[1:] + s for part, s in zip(parts, starts, strict=False))]),
        bag_ids=_ids(files, parts),
        candidates=_strings([s for p in parts for s in p.candidates or [[]] * len(p.bag_ids)], as_text)
        if labelled
        else None,
        labels=[_text(v, as_text) for p in parts for v in p.labels or [None] * len(p.bag_ids)] if told else None,
        classes=_classes(parts, as_text),
        background=_text(next((p.background for p in parts if p.background is not None), None), as_text),
        instance_labels=_instance_labels(parts, as_text),
        groups=_all([part.groups for part in parts]),
        instance_ids=_all([part.instance_ids for part in parts]),
        instance_shape=first.instance_shape,
        feature_names=first.feature_names,
        lines=_all([part.lines for part in parts]),
        texts={(i + int(s), j): t for p, s in zip(parts, starts, strict=False) for (i, j), t in p.texts.items()},
        problems=[problem for part in parts for problem in part.problems],
        roles=first.roles,
        remarks=remarks + [remark for part in parts for remark in part.remarks[1:]],
        column_names=first.column_names,
        files=np.repeat(np.array(files), [len(part.bag_ids) for part in parts]),
    )


def _matched(files: Sequence[str], parts: Sequence[RawBags], i: int) -> NDArray[Any]:
    """The values of part i with their columns in the order of the first part's."""
    first, part = parts[0], parts[i]
    if first.feature_names is None or part.feature_names is None:
        one_named = (first.feature_names is None) != (part.feature_names is None)
        if one_named or first.values.shape[1] != part.values.shape[1]:
            raise DataError(
                f"{files[i]} has {part.values.shape[1]} features, {files[0]} has {first.values.shape[1]}, and not both "
                "have names for them; all files must have the same features"
            )
        return part.values
    wanted, given = list(first.feature_names), list(part.feature_names)
    if set(wanted) != set(given):
        lost = [name for name in wanted if name not in given] or [name for name in given if name not in wanted]
        raise DataError(f"{files[0]} and {files[i]} do not have the same features: {lost[0]!r} is in only one of them")
    return part.values if wanted == given else part.values[:, [given.index(name) for name in wanted]]


def _ids(files: Sequence[str], parts: Sequence[RawBags]) -> NDArray[Any]:
    owner: dict[Any, str] = {}
    for file, part in zip(files, parts, strict=True):
        for each in part.bag_ids.tolist():
            if str(each) in owner:
                raise DataError(
                    f"the bag {each!r} is in both {owner[str(each)]} and {file}; put the rows of a bag into one file, "
                    "and give bags of different files different ids"
                )
            owner[str(each)] = file
    kinds = {part.bag_ids.dtype.kind for part in parts}
    return np.concatenate([part.bag_ids.astype(str) if len(kinds) > 1 else part.bag_ids for part in parts])


def _classes(parts: Sequence[RawBags], as_text: bool) -> list[Any] | None:
    """The classes of all parts, where one names them; in the first part's order if they are the same."""
    if all(part.classes is None for part in parts):
        return None
    everything = dict.fromkeys(_text(c, as_text) for part in parts for c in part.classes or [])
    for part in parts:
        everything |= dict.fromkeys(_text(v, as_text) for s in part.candidates or [] for v in s)
    names = list(everything)
    return names if parts[0].classes is not None and len(names) == len(parts[0].classes) else sorted(names)


def _instance_labels(parts: Sequence[RawBags], as_text: bool) -> NDArray[np.int64] | None:
    """Instance labels are indices of a part's own classes; they are kept where all parts have the same classes."""
    own = [part.classes or sorted({v for s in part.candidates or [] for v in s}) for part in parts]
    if any(part.instance_labels is None for part in parts) or any(classes != own[0] for classes in own):
        return None
    return _all([part.instance_labels for part in parts])


def _all(arrays: list[NDArray[Any] | None]) -> NDArray[Any] | None:
    """All arrays in one, or None where one is missing."""
    known = [array for array in arrays if array is not None]
    if len(known) < len(arrays):
        return None
    kinds = {array.dtype.kind for array in known}
    return np.concatenate([array.astype(str) if len(kinds) > 1 else array for array in known])


def _strings(entries: list[Any], as_text: bool) -> list[Any]:
    return [map_labels(entry, lambda label: _text(label, as_text)) for entry in entries]


def _text(value: Any, as_text: bool) -> Any:
    return str(value) if as_text and value is not None else value
