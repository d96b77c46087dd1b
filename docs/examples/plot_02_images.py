"""
Images with several tags
========================

A folder of pictures and a table of tags: each picture is a bag, cut into patches. The tags come from the web, and one of the two is
right. `mipl` finds which one, and where in the picture it is.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageDraw

import mipl

# %%
# A folder of pictures
# --------------------
#
# Small drawings, so that the page runs anywhere: on a noisy ground lie pebbles, and in one place a disc, a cross or a ring.

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
tags = ["file,candidates"]
for number in range(75):
    shape = ["disc", "cross", "ring"][number % 3]
    picture = Image.fromarray(rng.integers(90, 150, (64, 64), np.uint8))
    draw = ImageDraw.Draw(picture)
    at = rng.permutation(16)[:5]
    for k, (y, x) in enumerate(zip(16 * (at // 4), 16 * (at % 4), strict=True)):
        if k:
            draw.rectangle([x + 5, y + 6, x + 10, y + 9], fill=210)
        elif shape == "cross":
            draw.line([x + 3, y + 3, x + 12, y + 12], fill=240, width=2)
            draw.line([x + 12, y + 3, x + 3, y + 12], fill=240, width=2)
        else:
            draw.ellipse(
                [x + 3, y + 3, x + 12, y + 12],
                outline=240,
                fill=240 if shape == "disc" else None,
                width=2,
            )
    picture.save(folder / f"{number:02d}.png")
    other = rng.choice([name for name in ("disc", "cross", "ring") if name != shape])
    tags.append(f"{number:02d}.png,{'|'.join(sorted([shape, other]))}")
(folder / "tags.csv").write_text("\n".join(tags))

# On the command line: mipl resolve FOLDER --patch 16 --out labels.csv --report page.html
ds = mipl.load(folder, patch=16)
print(ds.bags, ds.candidate_sets()[:2])

# %%
# Which tag, and where
# --------------------
#
# Images of at least 16 x 16 pixels pass filters that BagGP learns from the patches themselves, without labels
# (`mipl.features.ConvKMeans`). An instance is named by its place, ``y16x32``.

model = mipl.BagGP(n_landmarks=400, random_state=0).fit(ds)
found = mipl.resolve(ds, model)
print(found.verdict)

fig, axes = plt.subplots(2, 5, figsize=(9, 4.2), layout="constrained")
for b, ax in enumerate(axes.flat):
    ax.imshow(Image.open(folder / f"{b:02d}.png"), cmap="gray", vmin=0, vmax=255)
    column = list(found.classes).index(found.labels[b])
    rows = slice(found.offsets[b], found.offsets[b + 1])
    heat = found.instance_probabilities[rows, column].reshape(4, 4)
    ax.imshow(
        heat, extent=(0, 64, 64, 0), cmap="Reds", alpha=0.45 * (heat > 0.05), vmin=0, vmax=1
    )
    ax.set_title(
        f"{' or '.join(ds.candidate_sets()[b])}?\n{found.labels[b]}, {found.probability[b]:.0%}",
        fontsize=8,
    )
    ax.axis("off")

# %%
# No patch was labelled. The drawings tell how many answers are right:

truth = np.array(["disc", "cross", "ring"])[np.arange(75) % 3]
print(f"{np.mean(found.labels == truth):.1%} of the tags")
print(f"{np.mean(model.predict(ds.bags) == truth):.1%} when the tags are not given")

# %%
# Pretrained networks in front of the method: :doc:`/python`. Folders of folders, sizes and tables: :doc:`/files`.
