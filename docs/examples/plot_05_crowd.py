"""
Votes of a crowd
================

Seven people look at each bag and do not agree. A majority vote throws the minority away; the plain set of all names throws the
numbers away. Votes can be given as they are, and BagGP finds out how far the crowd can be trusted.
"""

import matplotlib.pyplot as plt
import numpy as np

import mipl

# %%
# A crowd that is often wrong
# ---------------------------
#
# Bags of handwritten digits. Each of seven voters names the right digit with probability 0.4, else another one.

digits = mipl.load("digits", r=0, seed=0)
rng = np.random.default_rng(0)
q = digits.n_classes
votes = np.zeros((len(digits), q), dtype=int)
for b, label in enumerate(digits.labels):
    chance = np.full(q, 0.6 / (q - 1))
    chance[label] = 0.4
    votes[b] = rng.multinomial(7, chance)
names = digits.classes.tolist()
given = [{name: int(n) for name, n in zip(names, row, strict=True) if n} for row in votes]
print(given[:3])

# %%
# Votes go in as they are: a mapping per bag, a matrix (m, q), or ``owl:3|wren:1`` in a file.

ds = mipl.MIPLDataset(digits.bags, given, labels=digits.label_names(), classes=names)
sets = mipl.MIPLDataset(
    digits.bags, [set(g) for g in given], labels=digits.label_names(), classes=names
)

with_votes = mipl.BagGP(n_landmarks=400, random_state=0).fit(ds)
as_sets = mipl.BagGP(n_landmarks=400, random_state=0).fit(sets)
print(f"share of the votes that are right: {with_votes.vote_reliability_:.2f}")
print(f"correlation of their errors: {with_votes.vote_correlation_:.2f}")

# %%
# Both are found without true labels, from how the votes agree with each other and with the instances: a vote is right four times
# in ten, and people err independently. Whole numbers count people; to give odds, divide the weights of each bag by their sum.
#
# What is gained
# --------------

in_the_set = ds.candidates[np.arange(len(ds)), digits.labels]
majority = np.mean((votes + rng.random(votes.shape) * 0.01).argmax(axis=1) == digits.labels)
right = {
    "majority of seven": majority,
    "BagGP, names only": np.mean(as_sets.resolve(sets).argmax(axis=1) == digits.labels),
    "BagGP, votes": np.mean(with_votes.resolve(ds).argmax(axis=1) == digits.labels),
}
fig, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
bars = ax.barh(list(right), list(right.values()), color=["0.7", "#7fb3d5", "#1f618d"])
ax.bar_label(bars, fmt="{:.1%}", padding=-45, color="white", weight="bold")
ax.axvline(in_the_set.mean(), color="0.3", ls=":")
ax.set(
    xlim=(0, 1.12),
    xlabel=f"right labels; the dotted line: somebody said it ({in_the_set.mean():.1%})",
)
ax.invert_yaxis()

# %%
# Where the crowd is lopsided
# ---------------------------
#
# Bags of which the model is surest that the majority is wrong: these are worth a second look.

posterior = with_votes.resolve(ds)
winner = votes.argmax(axis=1)
doubt = np.argsort(posterior[np.arange(len(ds)), winner])[:4]
for b in doubt:
    answer = f"{names[posterior[b].argmax()]} ({posterior[b].max():.0%})"
    print(
        f"bag {ds.bag_ids[b]}: votes {given[b]}, model {answer}, truth {names[digits.labels[b]]}"
    )

# %%
# What if nobody named the truth? `candidate_noise="auto"` finds out how often that happens, see :doc:`/baggp`. Real votes,
# fifty per photograph: ``mipl.load("cifar10h")``, :doc:`/datasets`.
