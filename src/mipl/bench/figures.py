"""The figures: accuracy against r and the prior, accuracy against time, ranks, and wins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mipl.bench.results import Results
from mipl.bench.statistics import average_ranks, critical_difference
from mipl.bench.tables import win_tie_loss
from mipl.errors import DataError
from mipl.io.atomic import atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["KINDS", "draw"]

#: Text 8 pt on a page 7 in wide; letters stay letters in SVG and PDF, so that they can be searched and edited.
_STYLE = {
    "font.size": 8, "axes.titlesize": 9, "axes.labelsize": 8, "legend.fontsize": 7.5, "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.color": "#e4e4e4", "grid.linewidth": 0.6, "axes.axisbelow": True, "lines.linewidth": 1.2,
    "lines.markersize": 4.5, "legend.frameon": False, "svg.fonttype": "none", "pdf.fonttype": 42,
    "svg.hashsalt": "mipl", "savefig.dpi": 300, "figure.dpi": 100,
}  # fmt: skip
_WIDTH = 7.0
_COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f3c8d", "#8c6d31", "#3d3d3d", "#a5aa00",
    "#b2182b", "#1b7837", "#6a51a3", "#00868b", "#d94801", "#878787",
)  # fmt: skip
_MARKERS = "osD^vPX<>hpd*8H"
#: (line style, marker fill) of a method's group, in the order in which groups appear.
_GROUPS = (("-", "full"), ("--", "none"), (":", "left"), ("-.", "top"))


def draw(results: Results, kind: str, files: Sequence[str | Path]) -> list[Path]:
    """Draw one of `KINDS` and write it to each file; the suffix (.png, .svg, .pdf) chooses the format."""
    if kind not in KINDS:
        raise DataError(f"unknown figure {kind!r}; use one of {', '.join(KINDS)}")
    if not results.done:
        raise DataError("nothing to draw: no cell of the suite has finished")
    import matplotlib as mpl

    paths = [Path(file) for file in files]
    for path in paths:
        if path.suffix not in (".png", ".svg", ".pdf"):
            raise DataError(f"cannot draw to {path}; its suffix must be .png, .svg or .pdf")
    with mpl.rc_context(_STYLE):  # type: ignore[arg-type]
        figure = KINDS[kind](results)
        # The layout is found once: it would move a little with every file.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for path in paths:
            # Without the date the same results give the same file.
            metadata = (
                {"Date": None} if path.suffix == ".svg" else {"CreationDate": None} if path.suffix == ".pdf" else {}
            )
            with atomic_path(path) as temporary:
                figure.savefig(temporary, format=path.suffix[1:], bbox_inches="tight", metadata=metadata)
    return paths


# -------------------------------------------------------------------- accuracy against r


def _against_r(results: Results) -> Figure:
    """Accuracy of every method against r, one panel a data set."""
    return _curves(results, {m.name: m.name for m in results.suite.methods})


def _against_prior(results: Results) -> Figure:
    """Accuracy against r, one line for each Dirichlet prior: the paper's figure."""
    labels = {m.name: _prior_label(m.params["alpha_eps"]) for m in results.suite.methods if "alpha_eps" in m.params}
    if not labels:
        raise DataError("no method of the suite sets alpha_eps; the suite paper-prior does")
    return _curves(results, labels)


def _curves(results: Results, labels: dict[str, str]) -> Figure:
    figure, panels = _panels(results, needs_r=True)
    styles = _styles(results)
    shift = 0.1 if len(labels) <= 4 else 0.0  # few lines: set their error bars side by side
    for dataset, ax in panels.items():
        for i, (method, label) in enumerate(labels.items()):
            found = [s for s in results.summaries.values() if s.dataset == dataset and s.method == method]
            points = sorted((s.r, s.mean, s.std) for s in found if s.r is not None)
            if not points:
                continue
            r, mean, std = map(np.array, zip(*points, strict=True))
            r = r + shift * (i - (len(labels) - 1) / 2)
            line = ax.plot(r, mean, label=label, **styles[method])[0]
            if shift:
                line.set_linewidth(1.2)
                ax.errorbar(
                    r, mean, np.nan_to_num(std), fmt="none", ecolor=line.get_color(), elinewidth=0.8, capsize=1.5
                )
        _name_axes(ax, dataset, "$r$ (number of false positive labels)")
        ticks = sorted(r for d, r in results.problems if d == dataset and r is not None)
        ax.set_xticks(ticks)
        ax.set_xlim(ticks[0] - 0.3, ticks[-1] + 0.3)
    _legend(figure, panels)
    return figure


def _prior_label(value: float) -> str:
    exponent = np.log10(value)
    if exponent == round(exponent):
        return rf"$\alpha_\epsilon = 10^{{{round(exponent)}}}$"
    return rf"$\alpha_\epsilon = {value:g}$"


# -------------------------------------------------------------------- accuracy against time


def _against_time(results: Results) -> Figure:
    """Accuracy against seconds of training, means over r and splits, one panel a data set."""
    figure, panels = _panels(results)
    styles = _styles(results)
    for dataset, ax in panels.items():
        for m in results.suite.methods:
            found = [s for s in results.summaries.values() if s.dataset == dataset and s.method == m.name]
            if found:
                seconds, mean = np.mean([s.fit_seconds for s in found]), np.mean([s.mean for s in found])
                style = styles[m.name] | {
                    "linestyle": "none",
                    "markersize": 9 if m.name == results.suite.reference else 6,
                }
                ax.plot(seconds, mean, label=m.name, **style)
        ax.set_xscale("log")
        _name_axes(ax, dataset, "Seconds to fit")
    _legend(figure, panels)
    return figure


# -------------------------------------------------------------------- ranks and wins


def _ranks(results: Results) -> Figure:
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
        text = f"{names[index]}  {ranks[index]:.2f}" if left else f"{ranks[index]:.2f}  {names[index]}"
        ax.text(x + 0.01 * k * (-1 if left else 1), y, text, ha="right" if left else "left", va="center", weight=weight)
    if left_out:
        figure.text(
            0.5, 0.0, f"Left out, without results on all problems: {', '.join(left_out)}", ha="center", va="top"
        )
    return figure


def _complete(results: Results) -> tuple[list[str], np.ndarray, list[str]]:
    """Methods that have all the problems which the reference has, their accuracies (N, k), and the other methods."""
    reference = results.suite.reference
    problems = [(d, r) for d, r in results.problems if (d, r, reference) in results.summaries]
    every = [m.name for m in results.suite.methods]
    names = [name for name in every if problems and all((d, r, name) in results.summaries for d, r in problems)]
    accuracies = np.array([[results.summaries[d, r, name].mean for name in names] for d, r in problems])
    return names, accuracies.reshape(len(problems), len(names)), [name for name in every if name not in names]


def _cliques(ranks: np.ndarray, cd: float) -> list[tuple[float, float]]:
    """The longest runs of sorted ranks that lie within one critical difference, as (lowest, highest)."""
    runs = [(i, int(np.searchsorted(ranks, rank + cd, side="right")) - 1) for i, rank in enumerate(ranks)]
    longest = [(i, j) for i, j in runs if j > i and not any(a < i and b >= j for a, b in runs)]
    return [(float(ranks[i]), float(ranks[j])) for i, j in longest]


def _wins(results: Results) -> Figure:
    """How often the reference is better, equal or worse than each method, by paired t-tests."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    counts = {label: by_r[None] for label, by_r in win_tie_loss(results).items() if None in by_r}
    if not counts:
        raise DataError(f"nothing to compare: {results.suite.reference} or all others have no finished cell")
    labels = sorted(counts, key=lambda label: (counts[label]["win"] - counts[label]["loss"]) / counts[label].total())
    figure = Figure(figsize=(_WIDTH * 0.75, 0.7 + 0.24 * len(labels)))
    ax = figure.subplots()
    left = np.zeros(len(labels))
    for verdict, colour, ink in (
        ("win", "#0072b2", "white"),
        ("tie", "#c9c9c9", "black"),
        ("loss", "#d55e00", "white"),
    ):
        width = np.array([counts[label][verdict] for label in labels], dtype=float)
        bars = ax.barh(labels, width, left=left, color=colour, label=verdict, height=0.72)
        ax.bar_label(bars, [f"{w:.0f}" if w else "" for w in width], label_type="center", color=ink, fontsize=7.5)
        left += width
    ax.grid(False)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"{results.suite.reference} against each method (paired t-tests at the 0.05 level)")
    ax.set_xlim(0, left.max())
    ax.margins(y=0.01)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


# -------------------------------------------------------------------- shared pieces


def _panels(results: Results, needs_r: bool = False) -> tuple[Figure, dict[str, Axes]]:
    """One panel for each data set that has results (and an r), up to three in a row, with room for the legend."""
    from matplotlib.figure import Figure

    present = {s.dataset for s in results.summaries.values() if s.r is not None or not needs_r}
    if not present:
        raise DataError("nothing to draw against r: the data sets are files that do not say their r")
    datasets = [d.label for d in results.suite.datasets if d.label in present]
    columns = min(3, len(datasets) + 1)
    rows = -(-(len(datasets) + 1) // columns)
    figure = Figure(figsize=(_WIDTH * columns / 3, 2.3 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    flat = list(axes.flat)
    for ax in flat[len(datasets) :]:
        ax.axis("off")
    return figure, dict(zip(datasets, flat, strict=False))


def _name_axes(ax: Axes, dataset: str, horizontal: str) -> None:
    ax.set_title(dataset)
    ax.set_xlabel(horizontal)
    place = ax.get_subplotspec()
    if place is None or place.is_first_col():
        ax.set_ylabel("Accuracy")


def _legend(figure: Figure, panels: dict[str, Axes]) -> None:
    """Put the legend of all panels into the first free place."""
    entries: dict[str, Any] = {}
    for ax in panels.values():
        entries |= {label: handle for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    place = figure.axes[len(panels)]
    columns = 2 if len(entries) > 12 else 1
    place.legend(entries.values(), entries.keys(), loc="center", ncols=columns, columnspacing=0.8, handlelength=2.2)


def _styles(results: Results) -> dict[str, dict[str, Any]]:
    """Colour and marker of a method by its label, line and fill by its group; the reference is drawn on top."""
    labels = list(dict.fromkeys(m.label for m in results.suite.methods))
    groups = list(dict.fromkeys(m.group for m in results.suite.methods))
    styles = {}
    for m in results.suite.methods:
        i = labels.index(m.label)
        line, fill = _GROUPS[groups.index(m.group) % len(_GROUPS)]
        chosen = m.name == results.suite.reference
        styles[m.name] = {
            "color": _COLOURS[i % len(_COLOURS)],
            "marker": _MARKERS[i % len(_MARKERS)],
            "linestyle": line,
            "fillstyle": fill,
            "linewidth": 2.0 if chosen else 1.1,
            "zorder": 3 if chosen else 2,
        }
    return styles


KINDS: dict[str, Callable[[Results], Figure]] = {
    "prior": _against_prior,
    "r": _against_r,
    "time": _against_time,
    "ranks": _ranks,
    "wins": _wins,
}
