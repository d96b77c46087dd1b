"""
What a probability means, and when not to trust it
==================================================

"90 %" should be right nine times out of ten. This page measures whether it is, and shows three cases in which a probability does
not help: two that the model notices itself, and one that it does not.
"""

import matplotlib.pyplot as plt
import numpy as np

import mipl
from mipl.datasets import make_bags
from mipl.scoring import calibration_error, chance_calibration_error

# %%
# A hard problem, and how sure the model is
# -----------------------------------------
#
# Overlapping classes: some bags cannot be told. Half of the bags are held out, and their true labels are used here only to count.

kind = {"n_classes": 4, "n_features": 6, "sizes": (4, 8), "positive": 0.3}
ds = make_bags(n_bags=400, separation=2.8, **kind)
train, test = ds.split(0.5, seed=0)
model = mipl.BagGP(n_landmarks=300, random_state=0).fit(train)
proba = model.predict_proba(test)
sure, right = proba.max(axis=1), proba.argmax(axis=1) == test.labels

bins = np.linspace(0.25, 1, 7)
which = np.digitize(sure, bins[1:-1])
fig, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
for k in range(len(bins) - 1):
    n = int((which == k).sum())
    if n:
        share = right[which == k].mean()
        at, error = sure[which == k].mean(), np.sqrt(share * (1 - share) / n)
        ax.errorbar(at, share, yerr=error, fmt="o", color="#1f618d")
        ax.annotate(f" {n}", (at, share), fontsize=8, va="top")
ax.plot([0.2, 1], [0.2, 1], color="0.6", lw=1)
ax.set(
    xlabel="probability of the label",
    ylabel="share of right labels",
    title="new bags, and how many",
)

# %%
# The calibration error sums the distances from the diagonal up. It is never zero on so few bags; what matters is how far it is
# above what a perfectly calibrated model would have by chance.

error, chance = calibration_error(test.labels, proba), chance_calibration_error(proba)
print(f"calibration error {error:.3f}, by chance {chance:.3f}, accuracy {right.mean():.3f}")

# %%
# When instances say nothing
# --------------------------
#
# Labels that have nothing to do with the instances: the model notices, without any true label, and says so.

noise = make_bags(n_bags=120, separation=0, seed=1, **kind)
found = mipl.resolve(noise, mipl.BagGP(n_landmarks=200, random_state=0))
print(found.verdict)

# %%
# When two labels always come together
# ------------------------------------
#
# If every bag of class 0 also has the candidate 1, and the other way round, nothing tells which is which. No method can know; the
# probabilities should then be close to one half, and they are.

twins = make_bags(n_bags=120, separation=5, r=0, seed=2, **kind)
sets = twins.candidates.copy()
pair = sets[:, 0] | sets[:, 1]
sets[pair, 0] = sets[pair, 1] = True
unsure = mipl.BagGP(n_landmarks=200, random_state=0).fit(twins.bags, sets)
posterior = unsure.resolve(twins.bags, sets)
print("bags of the pair:", posterior[pair].max(axis=1).mean().round(2))

# %%
# When new bags come from elsewhere
# ---------------------------------
#
# A probability is about bags like those of the training. Another microphone or another hospital shifts the features, and the model
# cannot know. The same test bags, moved away from the training data in steps:

shifts, rng = np.array([0, 0.5, 1, 2, 4, 8, 16, 32, 64]), np.random.default_rng(1)
direction = rng.normal(size=6)
direction /= np.linalg.norm(direction)
said, true = [], []
for shift in shifts:
    moved = mipl.Bags(test.bags.instances + shift * direction, test.bags.offsets)
    proba = model.predict_proba(moved)
    said.append(proba.max(axis=1).mean())
    true.append(np.mean(proba.argmax(axis=1) == test.labels))

fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot(shifts, said, "o-", color="#c0392b", label="probability, mean")
ax.plot(shifts, true, "o-", color="#1f618d", label="share of right labels")
ax.axhline(1 / 4, color="0.6", ls=":")
ax.set_xscale("symlog", base=2, linthresh=0.5)
ax.set_xticks(shifts, [f"{shift:g}" for shift in shifts])
ax.set(
    xlabel="shift, in standard deviations of a class",
    ylim=(0, 1.05),
    title="dotted: chance",
)
ax.legend(loc=(0.02, 0.35))

# %%
# A small shift does harm: bags that are pushed towards one class are taken for it, wrongly and with confidence. Only far away from all
# that was seen does the model say that it knows nothing. So the probabilities do not protect against a shift; measure it. If
# training bags come from several sources, say so (``groups=``): whole sources are then held out together while the probabilities
# are fitted. :doc:`/baggp` has figures for new recordings of Birdsong, in the rows with an asterisk.
#
# In short
# --------
#
# - Read `Resolution.verdict` first: it tells whether the instances say anything at all.
# - Compare `label_free_score_` with its error: below two errors, treat answers as guesses.
# - Look at the bags that `Resolution.review` marks, and at labels that only ever occur together.
# - For data from elsewhere, have some of their bags labelled, and measure as above before you rely on the rest.
