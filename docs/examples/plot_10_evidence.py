"""
Reading a model's evidence
==========================

Why does a bag have this label? Because of these instances. This page reads the evidence of a model, instance by instance, and finds
where it is thin.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import mipl
from mipl.scoring import instance_average_precision

train, test = mipl.load("digits", r=1, seed=0).split(0.7, seed=0)
model = mipl.BagGP(random_state=0).fit(train)

# %%
# One bag
# -------
#
# `predict_instances` gives each instance a probability of each class; the last column is "none of them". Digits 0, 2, 4, 6, 8 are the
# classes, odd ones are never a label.

answers = mipl.explain(model, test)
b = int(np.argmax(answers.probability))
images = test.bags[b].reshape(-1, 8, 8)
evidence = answers.instance_probabilities[answers.offsets[b] : answers.offsets[b + 1]]

fig, axes = plt.subplots(
    2,
    len(images),
    figsize=(1.1 * len(images), 2.8),
    height_ratios=[1, 1.4],
    layout="constrained",
)
for j, image in enumerate(images):
    axes[0, j].imshow(image, cmap="gray_r")
    axes[0, j].axis("off")
    axes[1, j].barh(
        [*answers.classes, "none"], evidence[j], color=["#1f618d"] * 5 + ["0.7"]
    )
    axes[1, j].set(xlim=(0, 1), xticks=[])
    if j:
        axes[1, j].set_yticks([])
fig.suptitle(f"{answers.labels[b]}, {answers.probability[b]:.0%}", fontsize=10)

# %%
# Many bags
# ---------
#
# The instance behind each label is framed: green where the label is right, red where not.

order = np.argsort(answers.probability)
picture = answers[order[:4]].plot(Path(tempfile.mkdtemp()) / "doubtful.png")
fig, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
ax.imshow(plt.imread(picture))
ax.set_title("the four least certain of the new bags")
ax.axis("off")

# %%
# Is the evidence where it should be?
# -----------------------------------
#
# Digits have labels of instances, which no method uses; they can check the evidence. The average precision of finding the positive
# images among all of them, beside their share:

found = instance_average_precision(test.instance_labels, answers.instance_probabilities)
share = np.mean(test.instance_labels < test.n_classes)
print(f"average precision {found:.3f}; drawn at random {share:.3f}")

# %%
# Take the evidence away
# ----------------------
#
# A second check needs no labels at all: without the instance behind the label the bag should lose its label, without another one it
# should not.

rng = np.random.default_rng(0)
change = {"the instance behind the label": [], "another one": []}
for b in range(len(test)):
    inside = test.bags[b]
    named = int(answers.instance[b])
    other = int(rng.choice([j for j in range(len(inside)) if j != named]))
    column = list(answers.classes).index(answers.labels[b])
    for what, j in zip(change, (named, other), strict=True):
        rest = mipl.Bags.from_list([np.delete(inside, j, axis=0)])
        left = model.predict_proba(rest)[0, column]
        change[what].append(answers.probability[b] - left)
fig, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
ax.boxplot(list(change.values()), orientation="horizontal", widths=0.6)
ax.set_yticks([1, 2], list(change))
ax.set_xlabel("what the label loses in probability when it is taken out")
