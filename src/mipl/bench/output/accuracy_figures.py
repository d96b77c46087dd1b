"""Accuracy against r, against the Dirichlet prior and against time: one panel per data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mipl.bench.analysis.results import Results
from mipl.errors import DataError
from mipl.visible_text import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_against_prior", "draw_against_r", "draw_against_time"]

_WIDTH = 7.0
_COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f3c8d", "#8c6d31", "#3d3d3d", "#a5aa00",
    "#b2182b", "#1b7837", "#6a51a3", "#00868b", "#d94801", "#878787",
)  # fmt: skip
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_MARKERS = "osD^vPX<>hpd*8H"
#: (line style, marker fill) of a method's group, in the order in which groups appear.
_GROUPS = (("-", "full"), ("--", "none"), (":", "left"), ("-.", "top"))


def draw_against_r(results: Results) -> Figure:
    """Accuracy of every method against r, one panel per data set."""
    return _curves(results, {m.name: m.name for m in results.suite.methods})


def draw_against_prior(results: Results) -> Figure:
    """Accuracy against r, one line for each Dirichlet prior, as in the paper's figure, and for each other method."""
    priors = {m.name: m.params["alpha_eps"] for m in results.suite.methods if "alpha_eps" in m.params}
    if not priors:
        raise DataError("no method of the suite sets alpha_eps; the suite paper-prior does")
    names = [m.name for m in results.suite.methods]
    return _curves(results, {name: _prior_label(priors[name]) if name in priors else name for name in names})


def _curves(results: Results, labels: dict[str, str]) -> Figure:
    figure, panels = _panels(results, needs_r=True)
    styles = _styles(results)
    shift = 0.1 if len(labels) <= 4 else 0.0  # few lines: set their error bars side by side
    for dataset, ax in panels.items():
        for i, (method, label) in enumerate(labels.items()):
            found = [s for s in results.summaries.values() if s.dataset == dataset and s.method == method]
            points = sorted((s.r, s.accuracy.mean, s.accuracy.std) for s in found if s.r is not None)
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
        _name_axes(ax, dataset, "r (number of false positive labels)")
        ticks = sorted(r for d, r in results.problems if d == dataset and r is not None)
        ax.set_xticks(ticks)
        ax.set_xlim(ticks[0] - 0.3, ticks[-1] + 0.3)
    _legend(figure, panels)
    return figure


def _prior_label(value: float) -> str:
    exponent = np.log10(value)
    if exponent == round(exponent):
        return f"αε = 10{str(round(exponent)).translate(_SUPERSCRIPT)}"
    return f"αε = {value:g}"


# -------------------------------------------------------------------- accuracy against time


def draw_against_time(results: Results) -> Figure:
    """Accuracy against seconds of training, one panel per data set: means over splits and the r that all have."""
    timed = [s for s in results.summaries.values() if not np.isnan(s.fit_seconds)]
    if not timed:
        raise DataError("nothing to draw against time: the results do not say how long fits took")
    figure, panels = _panels(results)
    styles = _styles(results)
    for dataset, ax in panels.items():
        summaries = [s for s in timed if s.dataset == dataset]
        every_r = {s.r for s in summaries}
        common = {r for r in every_r if {s.method for s in summaries if s.r == r} == {s.method for s in summaries}}
        for m in results.suite.methods:
            found = [s for s in summaries if s.method == m.name and s.r in (common or every_r)]
            if found:
                seconds, mean = np.mean([s.fit_seconds for s in found]), np.mean([s.accuracy.mean for s in found])
                style = styles[m.name] | {
                    "linestyle": "none",
                    "markersize": 9 if m.name == results.suite.reference else 6,
                }
                ax.plot(seconds, mean, label=m.name, **style)
        _log_scale(ax)
        part = common and common != every_r
        title = f"{dataset}, r = {', '.join(str(r) for r in sorted(common, key=str))}" if part else dataset
        _name_axes(ax, title, "Seconds to fit")
    _legend(figure, panels)
    return figure


def _log_scale(ax: Axes) -> None:
    """A logarithmic axis of seconds with few ticks in plain figures, also where all fits take about as long."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

    low, high = ax.dataLim.intervalx
    ax.set_xscale("log")
    if high / low > 10:
        ax.xaxis.set_major_locator(LogLocator(numticks=6 if high / low < 1e6 else 4))
    else:  # no or one power of ten: room on both sides, and round numbers
        ax.set_xlim(low / 1.3, high * 1.3)
        ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


# -------------------------------------------------------------------- shared pieces


def _panels(results: Results, needs_r: bool = False) -> tuple[Figure, dict[str, Axes]]:
    """One panel for each data set that has results (and an r), up to three in a row, with room for the legend."""
    from matplotlib.figure import Figure

    present = {s.dataset for s in results.summaries.values() if s.r is not None or not needs_r}
    if not present:
        raise DataError("nothing to draw against r: the data sets are files that do not say their r")
    datasets = [label for label in results.suite.dataset_labels if label in present]
    columns = min(3, len(datasets) + 1)
    rows = -(-(len(datasets) + 1) // columns)
    figure = Figure(figsize=(_WIDTH * columns / 3, 2.3 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    flat = list(axes.flat)
    for ax in flat[len(datasets) :]:
        ax.axis("off")
    return figure, dict(zip(datasets, flat, strict=False))


def _name_axes(ax: Axes, title: str, horizontal: str) -> None:
    ax.set_title(shortened(title, 36))
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
    names = [shortened(name, 28) for name in entries]
    place.legend(entries.values(), names, loc="center", ncols=columns, columnspacing=0.8, handlelength=2.2)


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
