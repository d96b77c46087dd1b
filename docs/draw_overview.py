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
COLUMNS = 8
GREEN = "#1b7837"


def main() -> None:
    """Resolve the digits and draw three bags."""
    mpl.rcParams["svg.hashsalt"] = "mipl"
    train = mipl.load("digits", r=1, seed=0)
    found = mipl.resolve(train, mipl.BagGP(random_state=0))
    shown = [b for b in range(len(found)) if train.bags.sizes[b] == COLUMNS][:N_BAGS]

    figure = Figure(figsize=(9.2, 3.5))
    figure.patch.set_facecolor("white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 18.4), ylim=(0, 7))
    axes.axis("off")
    heading = {"fontsize": 11, "fontweight": "bold", "va": "center"}
    axes.text(0.3, 6.5, "a bag of instances, none labelled", **heading)
    axes.text(9.0, 6.5, "its candidates", **heading)
    axes.text(13.0, 6.5, "what mipl finds", color=GREEN, **heading)
    for row, b in enumerate(shown):
        y = 4.35 - 1.95 * row
        for j, image in enumerate(train.bags[b].reshape(-1, 8, 8)):
            x = 0.3 + 1.03 * j
            axes.imshow(image, cmap="gray_r", extent=(x, x + 0.95, y, y + 1.35), aspect="auto", interpolation="nearest")
            behind = j == found.instance[b]
            style = {"edgecolor": GREEN, "linewidth": 3} if behind else {"edgecolor": "0.75", "linewidth": 0.6}
            axes.add_patch(Rectangle((x, y), 0.95, 1.35, fill=False, zorder=3 if behind else 2, **style))
        names = [str(name) for name in train.candidate_sets()[b]]
        axes.text(9.2, y + 0.68, " or ".join(names), fontsize=16, va="center")
        axes.add_patch(
            FancyArrowPatch((11.1, y + 0.68), (12.6, y + 0.68), arrowstyle="-|>", mutation_scale=16, color="0.4")
        )
        axes.text(13.0, y + 0.68, f"{found.labels[b]}", fontsize=20, va="center", color=GREEN, fontweight="bold")
        axes.text(
            13.9,
            y + 0.68,
            f"{found.probability[b]:.1%} probable,\nframed image",
            fontsize=10,
            va="center",
            color="0.25",
        )
    axes.set(xlim=(0, 18.4), ylim=(0, 7))
    figure.savefig(Path(__file__).parent / "overview.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
