"""All methods on all data sets at a glance: one row per method, one panel per data set."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from mipl.bench.analysis.results import Results
from mipl.errors import DataError
from mipl.visible_text import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_overview"]

_WIDTH = 7.0
_CHOSEN, _OTHER = "#0072b2", "#6f6f6f"
_NAME = 24  # characters of a method's name
_TITLES = 72  # characters of all titles in a line


def draw_overview(results: Results) -> Figure:
    """Accuracy of every method, the best on average at the top; a row joins what a method reaches for each r.

    Methods are ordered by their mean accuracy over the data sets at the smallest r of each, which more methods have
    finished than the others. The reference is set off in colour.
    """
    from matplotlib.figure import Figure

    means = {(s.dataset, s.r, s.method): s.accuracy.mean for s in results.summaries.values()}
    datasets = [label for label in results.suite.dataset_labels if any(d == label for d, _, _ in means)]
    every_r = {d: sorted({r for e, r, _ in means if e == d}, key=lambda r: -1 if r is None else r) for d in datasets}
    if not means:
        raise DataError("nothing to draw: no cell of the suite has finished")
    found = [m.name for m in results.suite.methods if any(name == m.name for _, _, name in means)]
    easiest = {
        name: np.mean([means[d, every_r[d][0], name] for d in datasets if (d, every_r[d][0], name) in means] or [0.0])
        for name in found
    }
    order = sorted(found, key=lambda name: -easiest[name])
    across = max(8, _TITLES // len(datasets))
    titles = [fill(shortened(dataset, 2 * across), across, break_on_hyphens=False) for dataset in datasets]
    height = 0.75 + 0.19 * len(order) + 0.16 * max(title.count("\n") for title in titles)
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    panels = figure.subplots(1, len(datasets), sharey=True, squeeze=False)[0]
    for ax, dataset, title in zip(panels, datasets, titles, strict=True):
        for row, name in enumerate(order):
            colour = _CHOSEN if name == results.suite.reference else _OTHER
            reached = [
                (k, means[dataset, r, name]) for k, r in enumerate(every_r[dataset]) if (dataset, r, name) in means
            ]
            ax.plot([x for _, x in reached], [row] * len(reached), color=colour, linewidth=1.0, alpha=0.45, zorder=2)
            for k, x in reached:
                inside = colour if k == 0 else "white"
                size = 5.5 if k == 0 else 3.6
                ax.plot(x, row, "o", color=colour, markerfacecolor=inside, markersize=size, zorder=4 - k / 10)
        if results.suite.reference in order:
            ax.axhspan(*(order.index(results.suite.reference) + np.array([-0.5, 0.5])), color="#e3eef7", zorder=0)
        ax.set_title(title)
        ax.set(xlim=(-0.04, 1.06), ylim=(len(order) - 0.4, -0.6), xticks=[0, 0.5, 1], xticklabels=["0", "0.5", "1"])
        ax.grid(axis="y", visible=False)
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
    panels[0].set_yticks(range(len(order)), [shortened(name, _NAME) for name in order])
    for label, name in zip(panels[0].get_yticklabels(), order, strict=True):
        label.set(weight="bold" if name == results.suite.reference else "normal")
    figure.supxlabel(_legend(every_r), fontsize=8)
    return figure


def _legend(every_r: dict[str, list[int | None]]) -> str:
    known = sorted({r for all_r in every_r.values() for r in all_r if r is not None})
    if len(known) < 2:
        return "accuracy"
    others = ", ".join(str(r) for r in known[1:])
    return f"accuracy with {known[0]} (●) and {others} (○) false labels per bag"
