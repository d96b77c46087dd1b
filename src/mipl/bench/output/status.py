"""What is done and what it cost, in words."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from mipl.bench.analysis.results import Results
from mipl.bench.duration import duration
from mipl.bench.output.render import render
from mipl.bench.output.table import Entry, Row, Table

__all__ = ["status", "status_counts"]


def status_counts(results: Results) -> list[dict[str, Any]]:
    """Counts of cells, seconds of fits and predictions and the highest memory of each method of a suite."""
    counts = {name: Counter(place.method for place in getattr(results, name)) for name in ("done", "running", "failed")}
    expected = Counter(place.method for place in results.suite.cells())
    seconds: dict[str, float] = defaultdict(float)
    memory: dict[str, float] = defaultdict(float)
    for place, record in results.done.items():
        seconds[place.method] += (record.outcome.fit_seconds or 0.0) + (record.outcome.predict_seconds or 0.0)
        memory[place.method] = max(memory[place.method], record.outcome.memory_mib or 0.0)
    found = []
    for name in expected:
        numbers = {state: counts[state][name] for state in ("done", "running", "failed")}
        cost = {"seconds": seconds[name], "memory_mib": memory[name]} if numbers["done"] else {}
        found.append({"method": name, **numbers, "to_run": expected[name] - sum(numbers.values()), **cost})
    return found


def status(results: Results) -> str:
    """Describe how far a suite is: counts and cost of each method, what runs, and the errors."""
    counts = status_counts(results)
    states = ("done", "running", "failed", "to_run")
    rows: list[list[str | float]] = [
        [each["method"], *(each[state] for state in states), *(_cost(each) if each["done"] else ["", ""])]
        for each in counts
    ]
    total = {
        "seconds": sum(each.get("seconds", 0.0) for each in counts),
        "memory_mib": max((each.get("memory_mib", 0.0) for each in counts), default=0.0),
    }
    rows.append(["In total", *(sum(each[state] for each in counts) for state in states), *_cost(total)])
    table = Table(
        caption=f"{results.suite.name}: {len(results.done)} of {results.size} cells done",
        header=["Algorithm", "done", "running", "failed", "to run", "time", "memory"],
        rows=[Row([Entry(value) for value in row], rule=row is rows[-1]) for row in rows],
        notes=[*_running(results), *_errors(results), *_outdated(results), *_lacking(results)],
    )
    return render(table, "text")


def _cost(of: dict[str, Any]) -> list[str]:
    return [duration(of["seconds"]), f"{of['memory_mib']:.0f} MiB"]


def _running(results: Results) -> list[str]:
    return [f"running: {record.cell.of(place.method)}" for place, record in results.running.items()]


def _outdated(results: Results) -> list[str]:
    if not results.outdated:
        return []
    return [
        f"{results.outdated} results were made by another version of the code; `mipl bench run` makes them anew, "
        "with --any-code it keeps them."
    ]


def _lacking(results: Results) -> list[str]:
    if not results.lacking:
        return []
    names = ", ".join(f"{name} ({count})" for name, count in results.lacking.items())
    return [
        f"results without a score that the suite asks for: {names}; tables show a dash, `mipl bench run "
        "--missing-scores` runs these cells again."
    ]


def _errors(results: Results) -> list[str]:
    """Group the failed cells by method and error; the first of each stands for all."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for place, record in results.failed.items():
        first_line = (record.outcome.error.splitlines() or [""])[0]
        groups[place.method, first_line].append(record.cell.of(place.method))
    return [
        f"failed: {cells[0]}{f' and {len(cells) - 1} more' if len(cells) > 1 else ''}: {error}"
        for (_, error), cells in groups.items()
    ]
