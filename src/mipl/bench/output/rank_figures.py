"""All methods at a glance: average ranks with a critical difference, and wins, ties and losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mipl.bench.analysis.results import Results
from mipl.bench.analysis.statistics import average_ranks, critical_difference
from mipl.errors import DataError
from mipl.visible_text import shortened, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_ranks", "draw_wins"]

_WIDTH = 7.0
_NAME = 32  # characters of a method's name


def draw_ranks(results: Results) -> Figure:
    """Average ranks over (data set, r) with Nemenyi's critical difference: methods under one bar do not differ."""
    from matplotlib.figure import Figure

    names, accuracies, left_out = _complete(results)
    n, k = accuracies.shape
    if k < 3 or n < 2:
        raise DataError(f"ranks need at least 3 methods with results on the same 2 problems; there are {k} and {n}")
    ranks = average_ranks(accuracies)
    cd = critical_difference(k, n)
    order = np.argsort(ranks)
    bars = _cliques(ranks[order], cd)
    half = (k + 1) // 2
    # One unit of height is a line of text; names hang below the bars, the worst ranks to the right.
    first = -0.8 - 0.55 * len(bars)
    margin = 0.32 * (k - 1)
    figure = Figure(figsize=(_WIDTH, 0.17 * (3.2 - first + half)))
    ax = figure.subplots()
    figure.subplots_adjust(0, 0, 1, 1)
    ax.axis("off")
    ax.set_xlim(1 - margin, k + margin)
    ax.set_ylim(first - half, 3.2)
    ax.plot([1, k], [0, 0], color="black", linewidth=1)
    for tick in range(1, k + 1, 1 + k // 13):
        ax.plot([tick, tick], [0, 0.25], color="black", linewidth=0.8)
        ax.text(tick, 0.35, str(tick), ha="center", va="bottom")
    ax.plot([1, 1 + cd], [2.3, 2.3], color="black", linewidth=1)
    for end in (1, 1 + cd):
        ax.plot([end, end], [2.1, 2.5], color="black", linewidth=1)
    ax.text(1 + cd + 0.02 * k, 2.3, f"critical difference {cd:.2f} (Nemenyi, 0.05 level, {n} problems)", va="center")
    for i, (low, high) in enumerate(bars):
        y = -0.6 - 0.55 * i
        ax.plot([low - 0.004 * k, high + 0.004 * k], [y, y], color="black", linewidth=2.4, solid_capstyle="butt")
    for position, index in enumerate(order):
        left = position < half
        y = first - (position if left else k - 1 - position)
        x = 1 - 0.03 * k if left else k + 0.03 * k
        ax.plot([ranks[index], ranks[index], x], [0, y, y], color="#777777", linewidth=0.7, zorder=1)
        weight = "bold" if names[index] == results.suite.reference else "normal"
        name = shortened(names[index], _NAME)
        text = f"{name}  {ranks[index]:.2f}" if left else f"{ranks[index]:.2f}  {name}"
        ax.text(x + 0.01 * k * (-1 if left else 1), y, text, ha="right" if left else "left", va="center", weight=weight)
    if left_out:
        figure.text(
            0.5,
            0.0,
            visible(f"Left out, without results on all problems: {', '.join(left_out)}"),
            ha="center",
            va="top",
        )
    return figure


def _complete(results: Results) -> tuple[list[str], np.ndarray, list[str]]:
    """Methods that have all the problems which the reference has, their accuracies (N, k), and the other methods."""
    reference = results.suite.reference
    problems = [(d, r) for d, r in results.problems if (d, r, reference) in results.summaries]
    every = [m.name for m in results.suite.methods]
    names = [name for name in every if problems and all((d, r, name) in results.summaries for d, r in problems)]
    accuracies = np.array([[results.summaries[d, r, name].accuracy.mean for name in names] for d, r in problems])
    return names, accuracies.reshape(len(problems), len(names)), [name for name in every if name not in names]


def _cliques(ranks: np.ndarray, cd: float) -> list[tuple[float, float]]:
    """The longest runs of sorted ranks that lie within one critical difference, as (lowest, highest)."""
    runs = [(i, int(np.searchsorted(ranks, rank + cd, side="right")) - 1) for i, rank in enumerate(ranks)]
    longest = [(i, j) for i, j in runs if j > i and not any(a < i and b >= j for a, b in runs)]
    return [(float(ranks[i]), float(ranks[j])) for i, j in longest]


def draw_wins(results: Results) -> Figure:
    """How often the reference is better, equal or worse than each method, by paired t-tests."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    verdicts = ("win", "tie", "loss")
    totals = {label: by_r[None] for label, by_r in results.win_tie_loss().items() if None in by_r}
    counts = {label: count for label, count in totals.items() if any(count[verdict] for verdict in verdicts)}
    if not counts:
        raise DataError(f"nothing to compare: {results.suite.reference} or all others have no finished cell")
    labels = sorted(counts, key=lambda label: (counts[label]["win"] - counts[label]["loss"]) / counts[label].total())
    figure = Figure(figsize=(_WIDTH * 0.75, 0.7 + 0.24 * len(labels)))
    ax = figure.subplots()
    left = np.zeros(len(labels))
    colours = (("#0072b2", "white"), ("#c9c9c9", "black"), ("#d55e00", "white"))
    for verdict, (colour, ink) in zip(verdicts, colours, strict=True):
        width = np.array([counts[label][verdict] for label in labels], dtype=float)
        bars = ax.barh(range(len(labels)), width, left=left, color=colour, label=verdict, height=0.72)
        ax.bar_label(bars, [f"{w:.0f}" if w else "" for w in width], label_type="center", color=ink, fontsize=7.5)
        left += width
    ax.set_yticks(range(len(labels)), [shortened(label, _NAME) for label in labels])
    ax.grid(False)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"{shortened(results.suite.reference, _NAME)} against each method (paired t-tests at the 0.05 level)")
    ax.set_xlim(0, left.max())
    ax.margins(y=0.01)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure
