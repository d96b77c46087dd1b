"""Seconds and peak memory of a call, and a table of them that lines up."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Cost(NamedTuple):
    """What a call took: best wall-clock seconds, and the peak resident memory above the start, in MiB."""

    seconds: float
    peak_mib: float
    result: Any


def measure(call: Callable[[], Any], repeats: int = 1) -> Cost:
    """Run `call` and measure it; Linux's high-water mark is reset first, so earlier peaks do not count."""
    before = _reset_peak()
    best, result = float("inf"), None
    for _ in range(repeats):
        start = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - start)
    return Cost(best, max(0.0, status_mib("VmHWM") - before), result)


def compare(*calls: Callable[[], Any], repeats: int = 5) -> list[Cost]:
    """Measure several calls in turn, round after round, so that a noisy moment does not hit one of them alone."""
    rounds = [[measure(call) for call in calls] for _ in range(repeats)]
    return [
        Cost(min(c.seconds for c in costs), min(c.peak_mib for c in costs), costs[-1].result)
        for costs in zip(*rounds, strict=True)
    ]


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows with aligned columns; numbers are right-aligned."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for i, name in enumerate(header):
        table.add_column(name, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row))
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def _reset_peak() -> float:
    Path("/proc/self/clear_refs").write_text("5")
    return status_mib("VmRSS")


def status_mib(key: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) / 1024
    raise KeyError(key)
