"""Draw how BagGP decides, in four steps: the picture of docs/baggp.md.

python docs/draw_baggp.py            # writes docs/baggp.svg
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import mipl

NAMES = ["owl", "wren", "robin"]
COLORS = ["#c0392b", "#2471a3", "#b7950b"]


def main() -> None:
    """Fit points in the plane and draw them."""
    mpl.rcParams["svg.hashsalt"] = "mipl"
    ds = mipl.datasets.make_bags(
        n_bags=120, n_classes=3, n_features=2, separation=5, sizes=(8, 14), positive=0.12, seed=5
    )
    model = mipl.BagGP(n_landmarks=300, random_state=0).fit(ds)
    first = int(np.flatnonzero((ds.candidates == [True, True, False]).all(axis=1))[0])
    bag, xy = ds.bags[first], ds.bags.instances
    owl = ds.bags.spread(ds.candidates[:, 0])

    figure = Figure(figsize=(8.4, 7), layout="constrained")
    figure.patch.set_facecolor("white")
    (one, many), (every, added) = figure.subplots(2, 2)
    points = {"linestyle": "none", "marker": "o", "rasterized": True}
    one.plot(*bag.T, color="0.25", markersize=6, **points)
    one.set_title("1  one bag: owl or wren?", loc="left")
    many.plot(*xy[owl].T, color=COLORS[0], markersize=3, label="bags that may be owls", **points)
    many.plot(*xy[~owl].T, color="0.7", markersize=3, label="bags that cannot be", **points)
    many.set_title("2  many bags: one place is red alone", loc="left")
    many.legend(loc="upper right", fontsize=8)

    found = model.predict_instances(ds)
    for c, (name, color) in enumerate(zip(NAMES, COLORS, strict=True)):
        sure = found[:, c] > 0.5
        every.plot(*xy[sure].T, color=color, markersize=3.5, label=name, **points)
    negative = found[:, -1] >= 0.5
    every.plot(*xy[negative].T, markeredgecolor="0.75", markerfacecolor="none", markersize=3.5, label="none", **points)
    every.plot(*bag.T, markeredgecolor="black", markerfacecolor="none", markersize=8, **points)
    every.set_title("3  every instance: a bird, or none", loc="left")
    every.legend(loc="upper right", fontsize=8)
    for axes in (one, many, every):
        axes.set(xlim=(xy[:, 0].min() - 1, xy[:, 0].max() + 1), ylim=(xy[:, 1].min() - 1, xy[:, 1].max() + 1))
        axes.set(xticks=[], yticks=[])

    evidence = model.predict_instances(ds.bags[first : first + 1])
    for c in (0, 1):
        at = np.arange(len(evidence)) + 0.4 * c - 0.2
        added.bar(at, evidence[:, c], width=0.4, color=COLORS[c], label=NAMES[c])
    answer = model.resolve(ds)[first]
    added.set_title(f"4  the bag added up: {NAMES[answer.argmax()]}, {answer.max():.1%}", loc="left")
    added.set(xlabel="instance of the bag (the circles in 3)", ylabel="probability", ylim=(0, 1))
    added.legend(loc="upper right", fontsize=8)
    figure.savefig(Path(__file__).parent / "baggp.svg", dpi=160, metadata={"Date": None})


if __name__ == "__main__":
    main()
