"""Figures, drawn in one style and written as PNG, SVG or PDF."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mipl.bench.analysis.results import Results
from mipl.bench.output.accuracy_figures import draw_against_prior, draw_against_r, draw_against_time
from mipl.bench.output.overview_figure import draw_overview
from mipl.bench.output.rank_figures import draw_ranks, draw_wins
from mipl.errors import DataError, ParameterError
from mipl.io.atomic import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["KINDS", "draw"]

#: Text 8 pt on a page 7 in wide; letters stay letters in SVG and PDF, so that they can be searched and edited.
_STYLE = {
    "font.size": 8, "axes.titlesize": 9, "axes.labelsize": 8, "legend.fontsize": 7.5, "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.color": "#e4e4e4", "grid.linewidth": 0.6, "axes.axisbelow": True, "lines.linewidth": 1.2,
    "lines.markersize": 4.5, "legend.frameon": False, "svg.fonttype": "none", "pdf.fonttype": 42,
    "svg.hashsalt": "mipl", "savefig.dpi": 300, "figure.dpi": 100,
    "text.parse_math": False,  # a method may be called $x$
}  # fmt: skip
#: The date that a format would write, taken out: the same results give the same file.
_DATED: dict[str, dict[str, None]] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}

#: The style belongs to the process while a figure is drawn, so that one thread draws at a time.
_DRAWING = threading.Lock()


def draw(results: Results, kind: str, files: Sequence[str | Path]) -> list[Path]:
    """Draw one of `KINDS` and write it to each file; the suffix (.png, .svg, .pdf) chooses the format."""
    if kind not in KINDS:
        raise ParameterError(f"unknown figure {kind!r}; use one of {', '.join(KINDS)}")
    if not results.done:
        raise DataError("nothing to draw: no cell of the suite has finished")
    import matplotlib as mpl

    paths = [Path(file) for file in files]
    for path in paths:
        if path.suffix not in _DATED:
            raise ParameterError(f"cannot draw to {path}; its suffix must be one of {', '.join(_DATED)}")
    with _DRAWING, mpl.rc_context(_STYLE):  # type: ignore[arg-type]
        figure = KINDS[kind](results)
        # The layout is found once: it would move a little with every file.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for path in paths:
            with atomic_path(path) as temporary:
                figure.savefig(temporary, format=path.suffix[1:], bbox_inches="tight", metadata=_DATED[path.suffix])
    return paths


KINDS: dict[str, Callable[[Results], Figure]] = {
    "overview": draw_overview,
    "prior": draw_against_prior,
    "r": draw_against_r,
    "time": draw_against_time,
    "ranks": draw_ranks,
    "wins": draw_wins,
}
