"""A picture of resolved bags: what was given, what was found, and which instance says so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mipl.dataset import MIPLDataset
from mipl.io.atomic import atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_resolved"]

_FOUND = "#1b7837"
_WRONG = "#b2182b"


def draw_resolved(
    dataset: MIPLDataset,
    posterior: NDArray[np.floating[Any]],
    evidence: NDArray[np.floating[Any]],
    path: str | Path,
    n_bags: int = 8,
    max_instances: int = 12,
) -> Path:
    """Draw the first `n_bags` bags, one a row, and save the picture.

    Parameters
    ----------
    dataset : MIPLDataset
    posterior : (m, q), as `MIPLClassifier.resolve` gives it
    evidence : (n, q + 1), as `MIPLClassifier.predict_instances` gives it
        The instance with the most evidence for the resolved label is framed.
    path : where to save, .png or .svg
    n_bags, max_instances : int
        How many bags and how many instances of each are shown; the framed one is always among them.
    """
    from matplotlib.figure import Figure

    shown = range(min(n_bags, len(dataset)))
    bags, widest = dataset.bags, min(max_instances, int(dataset.bags.sizes[: len(shown)].max()))
    figure = Figure(figsize=(3.0 + 0.62 * widest, 0.5 + 0.72 * len(shown)), layout="constrained")
    grid = figure.add_gridspec(len(shown), widest + 1, width_ratios=[4.4] + [1] * widest, wspace=0.04, hspace=0.08)
    limits = float(bags.instances.min()), float(bags.instances.max())
    for i in shown:
        found = int(np.argmax(posterior[i]))
        low, high = bags.offsets[i], bags.offsets[i + 1]
        best = int(np.argmax(evidence[low:high, found]))
        _write_labels(figure.add_subplot(grid[i, 0]), dataset, posterior, i, found)
        for column, j in enumerate(_visible(high - low, best, widest)):
            axes = figure.add_subplot(grid[i, column + 1])
            _draw_instance(axes, bags[i][j], bags.instance_shape, limits)
            axes.set(xticks=[], yticks=[])
            for spine in axes.spines.values():
                spine.set(color=_FOUND if j == best else "#cccccc", linewidth=2.6 if j == best else 0.6)
    figure.suptitle("candidates → resolved label with its probability; framed: the instance behind it", fontsize=9)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=130)
    return Path(path)


def _write_labels(axes: Axes, dataset: MIPLDataset, posterior: NDArray[np.floating[Any]], i: int, found: int) -> None:
    axes.axis("off")
    names = dataset.classes.astype(str)
    candidates = ", ".join(names[dataset.candidates[i]])
    axes.text(0, 0.68, f"bag {dataset.bag_ids[i]}: {{{candidates}}}", fontsize=9, va="center")
    truth = None if dataset.labels is None or dataset.labels[i] < 0 else int(dataset.labels[i])
    remark = "" if truth is None else ("  ✓" if truth == found else f"  ✗ true: {names[truth]}")
    color = _FOUND if truth in (None, found) else _WRONG
    text = f"→ {names[found]}  {posterior[i, found]:.2f}{remark}"
    axes.text(0, 0.26, text, fontsize=10, va="center", weight="bold", color=color)


def _visible(size: int, best: int, width: int) -> list[int]:
    """The first `width` instances, the last of them giving way to `best` where that lies further on."""
    first = list(range(min(size, width)))
    return first if best < len(first) else [*first[:-1], best]


def _draw_instance(
    axes: Axes, instance: NDArray[np.float32], shape: tuple[int, ...], limits: tuple[float, float]
) -> None:
    if len(shape) == 2:
        axes.imshow(instance.reshape(shape), cmap="gray_r", vmin=limits[0], vmax=limits[1])
    else:
        side = int(np.ceil(np.sqrt(len(instance))))
        tile = np.full(side * side, np.nan)
        tile[: len(instance)] = instance
        axes.imshow(tile.reshape(side, side), cmap="viridis", vmin=limits[0], vmax=limits[1])
