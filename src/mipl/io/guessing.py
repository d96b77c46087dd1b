"""Which columns look like the bag and the candidates, by what is in them: for the words of an error only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

from mipl.io.lists import is_list, whole

__all__ = ["likely_columns"]

_ROWS = 2000
_SEPARATORS = ("|", ",", ";", "/", "+")
#: Share of the cells that hold several labels, and how often a label comes on average, at least.
_SEVERAL, _AGAIN = 0.3, 2.0
_LONGEST_LABEL = 60


def likely_columns(table: pa.Table, roles: Mapping[str, str | None]) -> dict[str, str]:
    """Arguments of `mipl.load` that would name the bag and the candidates, as far as the first rows show them.

    The bag is a text, else a whole number, that is the same in rows that follow each other and comes back nowhere; of
    several, the one with most values. Candidates are lists of text, or texts that a separator cuts into parts that
    come again and again.

    Parameters
    ----------
    table : pyarrow.Table
        One row per instance or per bag.
    roles : mapping from str to str or None
        What is known already; only the bag and the candidates that are missing here are looked for.
    """
    head = table.slice(0, _ROWS)
    taken = {name for name in roles.values() if name is not None}
    texts: dict[str, list[str]] = {}
    numbers: dict[str, list[float]] = {}
    found: dict[str, str] = {}
    for name in head.column_names:
        kind = head.schema.field(name).type
        if name in taken:
            continue
        if is_list(kind) and (pa.types.is_string(kind.value_type) or pa.types.is_large_string(kind.value_type)):
            found.setdefault("candidates", name)
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            texts[name] = [(cell or "").strip() for cell in whole(head, name).to_pylist()]
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
            cells = whole(head, name).to_pylist()
            if all(cell is not None and float(cell).is_integer() for cell in cells):
                numbers[name] = cells
    if roles.get("bag") is None:
        groups = {name: len(set(cells)) for name, cells in texts.items() if _in_runs(cells)}
        groups = groups or {name: len(set(cells)) for name, cells in numbers.items() if _in_runs(cells)}
        if groups:
            found["bag"] = max(groups, key=lambda name: groups[name])
    if roles.get("candidates") is None and "candidates" not in found:
        for name, cells in texts.items():
            sep = _separator_of(cells) if name != found.get("bag") else None
            if sep is not None:
                found["candidates"] = name
                if sep != "|":
                    found["candidates_sep"] = sep
                break
    return {
        role: found[role] for role in ("bag", "candidates", "candidates_sep") if role in found and not roles.get(role)
    }


def _in_runs(cells: Sequence[Any]) -> bool:
    """Whether equal cells follow each other, in more than one group, of which some have several."""
    distinct = set(cells)
    return "" not in distinct and 1 < len(distinct) < len(cells) and len(list(groupby(cells))) == len(distinct)


def _separator_of(cells: list[Any]) -> str | None:
    """What separates labels in these cells, None where they are no lists of labels."""
    filled = [cell for cell in cells if cell]
    for sep in _SEPARATORS:
        lists = [cell.split(sep) for cell in filled]
        parts = [part.strip() for each in lists for part in each]
        several = sum(len(each) > 1 for each in lists)
        if (
            several
            and several >= _SEVERAL * len(filled)
            and all(parts)
            and not all(part.replace(".", "").isdigit() for part in parts)
            and len(parts) >= _AGAIN * len(set(parts))
            and max(map(len, parts)) <= _LONGEST_LABEL
        ):
            return sep
    return None
