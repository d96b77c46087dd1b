"""
What a probability means, and when not to trust it
==================================================

"90 %" should be right nine times out of ten. This page measures whether it is, and shows three cases in which no probability can help.
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

ds = make_bags(n_bags=400, n_classes=4, n_features=6, separation=2.8, sizes=(4, 8), positive=0.3, r=1, seed=0)
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
        ax.errorbar(sure[which == k].mean(), share, yerr=np.sqrt(share * (1 - share) / n), fmt="o", color="#1f618d")
        ax.annotate(
            f"{n} bags", (sure[which == k].mean(), share), xytext=(6, -12), textcoords="offset points", fontsize=8
        )
ax.plot([0.2, 1], [0.2, 1], color="0.6", lw=1)
ax.set(xlabel="probability of the label", ylabel="share of right labels", title="new bags: said, and true")

# %%
# The calibration error sums the distances from the diagonal up. It is never zero on so few bags; what matters is how far it is
# above what a perfectly calibrated model would have by chance.

print(f"calibration error {calibration_error(test.labels, proba):.3f}, "
      f"by chance {chance_calibration_error(proba):.3f}, accuracy {right.mean():.3f}")  # fmt: skip

# %%
# What the probability does *not* say: it is about bags like those of the training. A new microphone, another hospital, and it no
# longer holds. On Birdsong with new recordings the error was 0.11 instead of 0.03, and 0.05 once the fit
# was told which bags share a recording (:doc:`/baggp`).
#
# When instances say nothing
# --------------------------
#
# Labels that have nothing to do with the instances: the model notices, without any true label, and says so.

noise = make_bags(n_bags=120, n_classes=4, n_features=6, separation=0, sizes=(4, 8), r=1, seed=1)
found = mipl.resolve(noise, mipl.BagGP(n_landmarks=200, random_state=0))
print(found.verdict)

# %%
# When two labels always come together
# ------------------------------------
#
# If every bag of class 0 also has the candidate 1, and the other way round, nothing tells which is which. No method can know; the
# probabilities should then be close to one half, and they are.

twins = make_bags(n_bags=120, n_classes=4, n_features=6, separation=5, sizes=(4, 8), positive=0.3, r=0, seed=2)
sets = twins.candidates.copy()
pair = sets[:, 0] | sets[:, 1]
sets[pair, 0] = sets[pair, 1] = True
posterior = mipl.BagGP(n_landmarks=200, random_state=0).fit(twins.bags, sets).resolve(twins.bags, sets)
print("bags of the pair:", posterior[pair].max(axis=1).mean().round(2))

# %%
# When bags look like nothing before
# ----------------------------------
#
# The same bags, moved away from the training data in steps: the model becomes unsure rather than wrong with confidence.

shifts, rng = np.array([0, 2, 4, 8, 16, 32]), np.random.default_rng(0)
direction = rng.normal(size=6) / np.sqrt(6)
means = [
    model.predict_proba(mipl.Bags(test.bags.instances + shift * direction, test.bags.offsets)).max(axis=1).mean()
    for shift in shifts
]
fig, ax = plt.subplots(figsize=(5, 3), layout="constrained")
ax.plot(shifts, means, "o-", color="#1f618d")
ax.axhline(1 / 4, color="0.6", ls=":")
ax.set(xlabel="distance from the training data", ylabel="mean largest probability", ylim=(0, 1), title="dotted: chance")

# %%
# In short
# --------
#
# - Read `Resolution.verdict` first: it tells whether the instances say anything at all.
# - Compare `label_free_score_` with its error: below two errors, treat answers as guesses.
# - Look at the bags that `Resolution.review` marks, and at labels that only ever occur together.
# - For data from elsewhere, keep some bags of theirs with true labels and measure as above.
