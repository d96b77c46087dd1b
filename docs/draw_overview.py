"""Draw the picture of the start page and of the README: what goes in, and what comes out.

python docs/draw_overview.py            # writes docs/overview.svg
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

import mipl

N_BAGS = 3
COLUMNS = 6
WIDTH, HEIGHT = 6.4, 3.1  # inches; small, so that the words can be read on a phone
GREEN = "#1b7837"


def main() -> None:
    """Resolve the digits and draw three bags."""
    mpl.rcParams["svg.hashsalt"] = "mipl"
    train = mipl.load("digits", r=1, seed=0)
    found = mipl.resolve(train, mipl.BagGP(random_state=0))
    shown = [b for b in range(len(found)) if train.bags.sizes[b] == COLUMNS][:N_BAGS]

    figure = Figure(figsize=(WIDTH, HEIGHT))
    figure.patch.set_facecolor("white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    heading = {"fontsize": 11.5, "fontweight": "bold", "va": "center"}
    axes.text(0.1, 2.82, "a bag", **heading)
    axes.text(3.4, 2.82, "candidates", **heading)
    axes.text(5.05, 2.82, "mipl finds", color=GREEN, **heading)
    for row, b in enumerate(shown):
        y = 1.8 - 0.85 * row
        for j, image in enumerate(train.bags[b].reshape(-1, 8, 8)):
            x = 0.1 + 0.52 * j
            axes.imshow(image, cmap="gray_r", extent=(x, x + 0.48, y, y + 0.7), aspect="auto", interpolation="bilinear")
            behind = j == found.instance[b]
            style = {"edgecolor": GREEN, "linewidth": 3.5} if behind else {"edgecolor": "0.75", "linewidth": 0.6}
            axes.add_patch(Rectangle((x, y), 0.48, 0.7, fill=False, zorder=3 if behind else 2, **style))
        middle = y + 0.35
        names = [str(name) for name in train.candidate_sets()[b]]
        axes.text(3.4, middle, " or ".join(names), fontsize=15, va="center")
        axes.add_patch(FancyArrowPatch((4.3, middle), (4.9, middle), arrowstyle="-|>", mutation_scale=14, color="0.4"))
        axes.text(5.05, middle, f"{found.labels[b]}", fontsize=20, va="center", color=GREEN, fontweight="bold")
        axes.text(5.45, middle, f"{found.probability[b]:.1%}", fontsize=12, va="center", color="0.25")
    axes.set(xlim=(0, WIDTH), ylim=(0, HEIGHT))
    figure.savefig(Path(__file__).parent / "overview.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
