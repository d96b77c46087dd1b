"""A picture of resolved bags: what was given, what was found, and which instance says so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mipl.errors import ParameterError
from mipl.io.atomic import atomic_path, check_writable
from mipl.plotting.dataset import PICTURES
from mipl.plotting.instances import Tiles
from mipl.plotting.labels import fitted, listed, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mipl.resolution import Resolution

__all__ = ["draw_resolved"]

_FOUND = "#1b7837"
_WRONG = "#b2182b"
_OTHER = "#cccccc"
_NAMES = 4  # candidate labels that are named beside a bag
_WIDEST = 3.6  # inches for the words beside a bag
_ID = 1.1  # inches of them for its id
_GIVEN, _ANSWER = 9.0, 10.0  # points of the two lines of a bag
_ACROSS = 7.5  # inches for the instances of a bag, where these are wider than images


def draw_resolved(resolution: Resolution, path: str | Path, n_bags: int = 8, max_instances: int = 12) -> Path:
    """Draw the first bags, one per row, and save the picture.

    At the left stand the candidates, where the label was sought among them, and the label with its probability: green,
    or red where the true label is known to be another. At the right are the instances: images as they are, features
    that are words as the heaviest words, others as a profile of their values. The one behind the label is framed in the
    same colour; none is where the label is the background class.

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
    tiles = Tiles(resolution.bags)
    shown = resolution[:n_bags]
    most = max_instances if tiles.kind == "image" else min(max_instances, max(1, int(_ACROSS / tiles.width)))
    widest = min(most, int(shown.bags.sizes.max()))
    lines = [_lines(shown, i) for i in range(len(shown))]
    asked = "most probable label" if shown.candidates is None else "candidates → most probable one"
    title = f"{asked}, with its probability; framed: the instance behind it"
    if shown.is_background.any():
        title += f" (none for {fitted(str(shown.background), _ID, _GIVEN)}, the background)"
    # Inches: words, a gap, and tiles with a gap each; a row per bag below the title.
    left = 0.25 + max(max(width_of(a, _GIVEN), width_of(b, _ANSWER, "bold")) for a, b in lines)
    width = max(left + (tiles.width + 0.08) * widest + 0.05, width_of(title, _GIVEN) + 0.3)
    step = tiles.height + 0.1
    height = 0.4 + step * len(shown)
    figure = Figure(figsize=(width, height))
    for i, best in enumerate(shown.instance.tolist()):
        color = _WRONG if _is_wrong(shown, i) else _FOUND
        bottom = height - 0.35 - step * (i + 1) + 0.08
        _write(figure.add_axes((0.1 / width, bottom / height, left / width, tiles.height / height)), lines[i], color)
        for column, j in enumerate(_visible(int(shown.bags.sizes[i]), best, widest)):
            x = left + (tiles.width + 0.08) * column
            axes = figure.add_axes((x / width, bottom / height, tiles.width / width, tiles.height / height))
            tiles.draw(axes, shown.bags[i][j])
            for spine in axes.spines.values():
                spine.set(color=color if j == best else _OTHER, linewidth=2.6 if j == best else 0.6)
    figure.suptitle(title, fontsize=_GIVEN, y=1 - 0.17 / height, va="center")
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format=Path(path).suffix[1:].lower(), dpi=130)
    return Path(path)


def _is_wrong(shown: Resolution, i: int) -> bool:
    return shown.truth is not None and shown.truth[i] is not None and shown.truth[i] != shown.labels[i]


def _lines(shown: Resolution, i: int) -> tuple[str, str]:
    """What was given and what was found in bag i, each as wide as its place."""
    given = f"bag {fitted(str(shown.bag_ids[i]), _ID if shown.candidates is not None else _WIDEST, _GIVEN)}"
    if shown.candidates is not None:
        names = list(map(str, shown.classes[shown.candidates[i]]))
        room = _WIDEST - width_of(f"{given}: {{}}", _GIVEN)
        given += f": {{{listed(names, room, _GIVEN, _NAMES)}}}"
    found = f"  {shown.probability[i]:.3f}"
    if shown.truth is None or shown.truth[i] is None:
        truth, end = "", ""
    elif _is_wrong(shown, i):
        truth, end = str(shown.truth[i]), "  ✗ true: "
    else:
        truth, end = "", "  ✓"
    # Two names at most share what the rest leaves.
    room = (_WIDEST - width_of(f"→ {found}{end}", _ANSWER, "bold")) / (2 if truth else 1)
    label, truth = (fitted(name, room, _ANSWER, "bold") for name in (str(shown.labels[i]), truth))
    return given, f"→ {label}{found}{end}{truth}"


def _write(axes: Axes, lines: tuple[str, str], color: str) -> None:
    axes.axis("off")
    axes.text(0, 0.68, lines[0], fontsize=_GIVEN, va="center", parse_math=False)
    axes.text(0, 0.26, lines[1], fontsize=_ANSWER, va="center", weight="bold", color=color, parse_math=False)


def _visible(size: int, best: int, width: int) -> list[int]:
    """The first `width` instances, the last of them giving way to `best` where that lies further on."""
    first = list(range(min(size, width)))
    return first if best < len(first) else [*first[:-1], best]
