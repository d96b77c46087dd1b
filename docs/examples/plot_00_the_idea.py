"""
The idea in pictures
====================

A bag has two candidate labels and a dozen instances. No instance is labelled. How can anything be learned from that?
Points in the plane show it: what looks hopeless in one bag is plain in a hundred.
"""

import matplotlib.pyplot as plt
import numpy as np

import mipl

ds = mipl.datasets.make_bags(
    n_bags=120,
    n_classes=3,
    n_features=2,
    separation=5,
    sizes=(8, 14),
    positive=0.12,
    seed=5,
)
names, colors = ["owl", "wren", "robin"], ["#c0392b", "#2471a3", "#b7950b"]
xy = ds.bags.instances  # (n, 2): all instances, bag after bag
box = [xy[:, 0].min() - 1, xy[:, 0].max() + 1, xy[:, 1].min() - 1, xy[:, 1].max() + 1]

# %%
# One bag tells nothing
# ---------------------
#
# A recording with some syllables; it holds an owl or a wren, not both. Most syllables are noise. One of them is the bird,
# and nobody knows which one, nor which bird.

first = int(np.flatnonzero((ds.candidates == [True, True, False]).all(axis=1))[0])
fig, ax = plt.subplots(figsize=(4, 3.4), layout="constrained")
ax.plot(*ds.bags[first].T, "o", color="0.3")
ax.set(title="one bag: owl or wren?", xlim=box[:2], ylim=box[2:])

# %%
# Many bags overlap where their labels agree
# ------------------------------------------
#
# On the left are the instances of all bags that may be owls, on the right those of bags that cannot be. Only one place is full
# on the left and empty on the right: what is there is an owl. False candidates and noise fall on both alike.

owl = ds.candidates[:, 0]
fig, (left, right) = plt.subplots(
    1, 2, figsize=(8, 3.4), sharex=True, sharey=True, layout="constrained"
)
left.plot(*xy[ds.bags.spread(owl)].T, "o", ms=3, color=colors[0])
left.set_title("all bags with the candidate owl")
right.plot(*xy[ds.bags.spread(~owl)].T, "o", ms=3, color="0.5")
right.set_title("all bags without it")

# %%
# BagGP's first model, *bag regression*, makes this a number: every instance votes with the candidate set of its bag, and a
# Gaussian process averages the votes over the plane. Each bag is read with its own vote left out, so that it cannot
# confirm itself. The second model, *bag likelihood*, sharpens the answer. Here is what they make of all instances; white is
# "none of the birds", and the bag from above is in black.

model = mipl.BagGP(n_landmarks=300, random_state=0).fit(ds)
found = model.predict_instances(ds)  # (n, q + 1), the last column: none

rgb = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in colors])
fig, ax = plt.subplots(figsize=(5, 4), layout="constrained")
ax.scatter(
    *xy.T,
    c=np.clip(found[:, :3] @ rgb + found[:, 3:], 0, 1),
    s=22,
    edgecolors="0.75",
    linewidths=0.5,
)
ax.plot(*ds.bags[first].T, "o", ms=8, mfc="none", mec="black")
for c, name in enumerate(names):
    ax.plot([], [], "o", color=colors[c], label=name)
ax.set(title="what each instance is found to be", xlim=box[:2], ylim=box[2:])
ax.legend()

# %%
# Then the bag is added up
# ------------------------
#
# For each candidate, BagGP sums over *all* ways in which the instances of the bag could carry it: this one alone, that one
# alone, both, and so on. There is a closed form for this sum, so nothing is guessed or sampled. One convincing instance
# can decide; ten unconvincing ones do not add up to a decision by chance.

evidence = model.predict_instances(ds.bags[first : first + 1])  # (n_i, q + 1)
place = np.arange(len(evidence))
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for c in (0, 1):
    ax.bar(
        place + 0.4 * c - 0.2, evidence[:, c], width=0.4, color=colors[c], label=names[c]
    )
ax.set(
    title="the instances of the bag, one by one",
    xlabel="instance",
    ylabel="probability that it is one",
)
ax.legend()

# %%
# The answer for this bag, and for all: no true label was used, they only serve to count now.

print({name: f"{p:.1%}" for name, p in zip(names, model.resolve(ds)[first], strict=True)})
right_labels = (model.resolve(ds).argmax(axis=1) == ds.labels).mean()
print(f"right among the two candidates: {right_labels:.1%} of {len(ds)} bags")

# %%
# How sure, and when not
# ----------------------
#
# How far the two models are believed is settled by bags that they have not seen: their *candidate sets* must be more
# probable than by chance, which can be checked without a single true label.

print(mipl.resolve(ds, model).verdict)

# %%
# With formulas: :doc:`/baggp`. When probabilities can be trusted:
# :ref:`sphx_glr_auto_examples_plot_06_probabilities.py`.
