"""
More bags than memory
=====================

A folder of Parquet files that does not fit into memory: look at it, learn from a sample, and answer for all of it chunk by chunk.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import mipl
from mipl.datasets import make_bags

# %%
# A folder of files
# -----------------
#
# Small ones here; nothing below would change for a thousand times as many.

folder = Path(tempfile.mkdtemp())
ds = make_bags(n_bags=2000, n_classes=5, n_features=16, separation=3.5)
for part in range(10):
    ds[part * 200 : (part + 1) * 200].save(folder / f"part-{part}.parquet")

scan = mipl.scan(folder / "part-*.parquet")  # reads footers, no bags
print(scan)

# %%
# Chunks, filters, splits
# -----------------------
#
# A chunk is an ordinary data set of whole bags. Which side of a split a bag is on depends on its id and the seed alone.

for chunk in scan.chunks(max_instances=6000):
    print(chunk)
train, test = scan.split(0.7, seed=0)
print(len(train), "training bags,", len(test), "test bags, none of them read yet")

# %%
# How many bags are enough?
# -------------------------
#
# `sample` draws bags uniformly in one pass. When accuracy stops to grow with the size of the sample, more memory would not help.

sizes, accuracy = [50, 100, 200, 400], []
for size in sizes:
    some = train.sample(size, seed=0)
    model = mipl.BagGP(n_landmarks=200, rank=200, cross_fit=0, random_state=0).fit(some)
    accuracy.append(model.score(test))  # one chunk in memory at a time
fig, ax = plt.subplots(figsize=(5, 3), layout="constrained")
ax.semilogx(sizes, accuracy, "o-", color="#1f618d")
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.set(xlabel="training bags", ylabel="accuracy on new bags", ylim=(0, 1.02))

# %%
# Answers, file by file
# ---------------------

for i, chunk in enumerate(test.chunks(max_instances=3000)):
    mipl.explain(model, chunk).save(folder / f"answers-{i}.csv")
print(sorted(file.name for file in folder.glob("answers-*")))

# %%
# ``mipl predict m.mipl 'in/*.parquet' --out answers/ --jobs 2`` does it in several processes, and goes on where a killed run
# stopped: :doc:`/scale`.
