"""The tables of docs/scale.md from the measurements of results/scale.csv."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scale_cases import Case, Found

Known = dict[Case, Found]


class Table(NamedTuple):
    """Lines below a title; rows are words."""

    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    remarks: list[str]


def predict_table(known: Known) -> Table | None:
    """Rates of prediction against that in memory."""
    mine = _part(known, "predict")
    base = next((found.seconds / case.instances for case, found in mine if case.where == "memory"), None)
    if base is None:
        return None
    rows = [
        (
            {"memory": "in memory", "files": "streamed from files"}[case.where],
            f"{case.instances:,}",
            f"{case.instances / found.seconds:,.0f}",
            f"{base * case.instances / found.seconds:.2f}",
            f"{found.resident_mib:,.0f}",
        )
        for case, found in mine
    ]
    remarks = ["Goals: at least 0.7 of the rate in memory, within 2,048 MiB."]
    return Table(_title("Prediction", mine), ("bags", "instances", "instances / s", "ratio", "MiB"), rows, remarks)


def fit_table(known: Known) -> Table | None:
    """Time per instance out of core against that in memory, and how it grows."""
    mine = _part(known, "fit")
    memory = next(((case, found) for case, found in mine if case.where == "memory"), None)
    if memory is None:
        return None
    base, cpu_base = (each / memory[0].instances for each in memory[1][:2])
    rows = [
        (
            {"memory": "in memory", "files": "out of core"}[case.where],
            f"{case.instances:,}",
            f"{found.seconds:,.0f}",
            f"{1e6 * found.seconds / case.instances:,.0f}",
            f"{found.seconds / case.instances / base:.2f}",
            f"{found.cpu_seconds / case.instances / cpu_base:.2f}",
            f"{found.resident_mib:,.0f}",
        )
        for case, found in mine
    ]
    remarks = ["Goals: at most 1.3 times the time per instance in memory, within 4,096 MiB."]
    sizes, seconds = zip(*((c.instances, f.seconds) for c, f in mine if c.where == "files"), strict=True)
    if len(sizes) > 1:
        grown = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        remarks.append(
            f"From {min(sizes):,} to {max(sizes):,} instances time grows as n^{grown:.2f}; goal: at most 1.1."
        )
    header = ("bags", "instances", "s", "µs / instance", "ratio", "ratio of CPU time", "MiB")
    return Table(_title("Fit", mine), header, rows, remarks)


def dask_table(known: Known) -> Table | None:
    """Time on workers against that of one process."""
    mine = _part(known, "dask")
    base = {case.instances: found for case, found in mine if case.where == "process"}
    rows, remarks = [], []
    for case, found in mine:
        if case.instances not in base:
            continue
        alone = base[case.instances]
        same = "yes" if found.digest == alone.digest else "no"
        ratios = f"{found.seconds / alone.seconds:.2f}", f"{found.cpu_seconds / alone.cpu_seconds:.2f}"
        rows.append((case.where, f"{case.instances:,}", f"{found.seconds:,.0f}", *ratios, f"{found.cores}", same))
        if found.moved:
            remarks.append(
                f"On {case.where} a step of the bag likelihood of {case.instances:,} instances moves {found.moved:,} "
                f"bytes between processes; the formula says {found.formula:,}, and heads of messages are "
                f"{found.moved / found.formula - 1:.1%}."
            )
    if not rows:
        return None
    remarks.insert(0, "Goals: at most 1.15 on one worker, and 0.59 on two where each has a core.")
    header = ("where", "instances", "s", "ratio", "ratio of CPU time", "cores", "same bits")
    return Table(_title("Fit on Dask", mine), header, rows, remarks)


TABLES: dict[str, Callable[[Known], Table | None]] = {"predict": predict_table, "fit": fit_table, "dask": dask_table}


def _part(known: Known, part: str) -> list[tuple[Case, Found]]:
    """What was measured of a part: in memory or in one process first, then by size."""
    order = ("memory", "process", "1 worker", "2 workers", "files")
    mine = [(case, found) for case, found in known.items() if case.part == part]
    return sorted(mine, key=lambda each: (order.index(each[0].where), each[0].instances))


def _title(what: str, mine: list[tuple[Case, Found]]) -> str:
    landmarks, cores = mine[0][0].landmarks, max(found.cores for _, found in mine)
    return f"{what} with {landmarks:,} landmarks on {cores} core{'s' if cores > 1 else ''}"


def markdown(table: Table) -> Iterator[str]:
    """The lines of a table."""
    yield from (f"{table.title}:", "")
    yield f"| {' | '.join(table.header)} |"
    yield "|---" + "|---:" * (len(table.header) - 1) + "|"
    yield from (f"| {' | '.join(row)} |" for row in table.rows)
    yield ""
    yield from table.remarks


def print_tables(known: Known) -> None:
    """Print every table of which there are measurements."""
    for build in TABLES.values():
        table = build(known)
        if table is not None:
            print("\n".join(markdown(table)), end="\n\n")


def write_tables(known: Known, page: Path) -> None:
    """Put the tables between their marks in a page of Markdown."""
    text = page.read_text()
    for name, build in TABLES.items():
        table = build(known)
        if table is not None:
            text = put(text, name, "\n".join(markdown(table)))
    page.write_text(text)


def put(text: str, name: str, content: str) -> str:
    """A text with what lies between the marks of a name replaced."""
    pattern = rf"(<!-- {name}: from .*? -->\n).*?(\n<!-- end of {name} -->)"
    changed, count = re.subn(pattern, lambda m: f"{m[1]}{content}{m[2]}", text, flags=re.DOTALL)
    if count != 1:
        raise ValueError(f"{count} places for the table {name!r}")
    return changed
