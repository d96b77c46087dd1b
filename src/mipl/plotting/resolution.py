"""A picture of resolved bags: what was given, what was found, and which instance says so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mipl.errors import ParameterError
from mipl.io.atomic import atomic_path, check_writable
from mipl.plotting.dataset import PICTURES
from mipl.plotting.instances import draw_instance, value_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mipl.resolution import Resolution

__all__ = ["draw_resolved"]

_FOUND = "#1b7837"
_WRONG = "#b2182b"
_OTHER = "#cccccc"
_NAMES = 4  # candidate labels that fit beside a bag


def draw_resolved(resolution: Resolution, path: str | Path, n_bags: int = 8, max_instances: int = 12) -> Path:
    """Draw the first bags, one per row, and save the picture.

    At the left stand the candidates, where the label was sought among them, and the label with its probability: green,
    or red where the true label is known to be another. At the right are the instances; the one behind the label is
    framed in the same colour.

    Parameters
    ----------
    resolution : Resolution
        The answers and their bags.
    path : str or Path
        Where to save; the suffix (.png, .svg, .pdf) chooses the format.
    n_bags : int, default=8
        How many bags are shown at most.
    max_instances : int, default=12
        How many instances of a bag are shown at most; the framed one is always among them.
    """
    from matplotlib.figure import Figure

    for name, value in {"n_bags": n_bags, "max_instances": max_instances}.items():
        if value < 1:
            raise ParameterError(f"{name}={value}; a picture shows at least one")
    check_writable(path, PICTURES)
    limits = value_range(resolution.bags)
    shown = resolution[:n_bags]
    widest = min(max_instances, int(shown.bags.sizes.max()))
    lines = [_lines(shown, i) for i in range(len(shown))]
    # Inches: a character of these font sizes is about 0.075 wide, an instance 0.62.
    left = 0.3 + 0.075 * max(len(line) for pair in lines for line in pair)
    figure = Figure(figsize=(left + 0.62 * widest, 0.5 + 0.72 * len(shown)), layout="constrained")
    grid = figure.add_gridspec(len(shown), widest + 1, width_ratios=[left / 0.62] + [1] * widest)
    for i, best in enumerate(shown.instance.tolist()):
        color = _WRONG if _is_wrong(shown, i) else _FOUND
        _write(figure.add_subplot(grid[i, 0]), lines[i], color)
        for column, j in enumerate(_visible(int(shown.bags.sizes[i]), best, widest)):
            axes = figure.add_subplot(grid[i, column + 1])
            draw_instance(axes, shown.bags[i][j], shown.bags.instance_shape, limits)
            axes.set(xticks=[], yticks=[])
            for spine in axes.spines.values():
                spine.set(color=color if j == best else _OTHER, linewidth=2.6 if j == best else 0.6)
    asked = "most probable label" if shown.candidates is None else "candidates → most probable one"
    figure.suptitle(f"{asked}, with its probability; framed: the instance behind it", fontsize=9)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format=Path(path).suffix[1:].lower(), dpi=130)
    return Path(path)


def _is_wrong(shown: Resolution, i: int) -> bool:
    return shown.truth is not None and shown.truth[i] is not None and shown.truth[i] != shown.labels[i]


def _lines(shown: Resolution, i: int) -> tuple[str, str]:
    """What was given and what was found in bag i."""
    given = f"bag {shown.bag_ids[i]}"
    if shown.candidates is not None:
        names = list(map(str, shown.classes[shown.candidates[i]]))
        more = f", and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
        given += f": {{{', '.join(names[:_NAMES])}{more}}}"
    found = f"→ {shown.labels[i]}  {shown.probability[i]:.3f}"
    if shown.truth is not None and shown.truth[i] is not None:
        found += f"  ✗ true: {shown.truth[i]}" if _is_wrong(shown, i) else "  ✓"
    return given, found


def _write(axes: Axes, lines: tuple[str, str], color: str) -> None:
    axes.axis("off")
    axes.text(0, 0.68, lines[0], fontsize=9, va="center", parse_math=False)
    axes.text(0, 0.26, lines[1], fontsize=10, va="center", weight="bold", color=color, parse_math=False)


def _visible(size: int, best: int, width: int) -> list[int]:
    """The first `width` instances, the last of them giving way to `best` where that lies further on."""
    first = list(range(min(size, width)))
    return first if best < len(first) else [*first[:-1], best]
