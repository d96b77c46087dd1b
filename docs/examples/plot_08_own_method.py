"""
Add a method, and compare it
============================

A new method is one class with two functions. It then has everything that the others have: data sets, pipelines, searches, files,
pages, and a place in the tables.
"""

from numbers import Real
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.utils._param_validation import Interval

import mipl
from mipl.checks import check_mipl_estimator

# %%
# Two functions
# -------------
#
# Class centres of the bags' means, each bag shared among its candidates; then the shares follow the distances, a few times over.
# Inputs arrive checked: a `mipl.Bags`, and an (m, q) mask. What is learned ends in an underscore.


class NearestMean(mipl.MIPLClassifier):
    """The class whose mean bag is nearest."""

    name = "NearestMean"
    _parameter_constraints: ClassVar = {
        "sharpness": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(self, *, sharpness=1.0, random_state=0):
        self.sharpness = sharpness
        self.random_state = random_state

    def _fit(self, bags, candidates):
        Z = bags.mean(bags.instances)  # (m, d)
        self.scale_ = float(Z.var(axis=0).sum())
        share = candidates / candidates.sum(axis=1, keepdims=True)
        for _ in range(10):
            self.centres_ = (share.T @ Z) / share.sum(axis=0)[:, None]
            share = candidates * self._nearness(Z)
            share /= share.sum(axis=1, keepdims=True)

    def _predict_proba(self, bags):
        return self._nearness(bags.mean(bags.instances))

    def _nearness(self, Z):
        distance = ((Z[:, None] - self.centres_) ** 2).sum(axis=2)
        nearest = distance.min(axis=1, keepdims=True)
        weight = np.exp(-self.sharpness * (distance - nearest) / self.scale_) + 1e-9
        return weight / weight.sum(axis=1, keepdims=True)


# %%
# Does it keep its promises?
# --------------------------
#
# The same checks that every method of the library passes: shapes, seeds, names, saving, errors, order of bags and instances. A first
# version divided by the mean distance of the bags at hand, and was caught: "other bags of a call matter".

check_mipl_estimator(NearestMean())

# %%
# How good is it?
# ---------------

ds = mipl.load("digits", r=1, seed=0)
methods = {
    "NearestMean": NearestMean(sharpness=5.0),
    "PL-kNN": mipl.make("PL-kNN"),
    "SURE": mipl.make("SURE"),
    "VGPMIL": mipl.make("VGPMIL", n_inducing=60),
    "BagGP": mipl.BagGP(n_landmarks=300, cross_fit=0, random_state=0),
}
scores = {name: cross_val_score(model, ds, cv=3) for name, model in methods.items()}
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for i, (name, values) in enumerate(scores.items()):
    ax.plot(values, [i] * len(values), "o", color="0.6", ms=4)
    ax.plot(values.mean(), i, "D", color="#c0392b" if name == "NearestMean" else "#1f618d")
ax.set_yticks(range(len(scores)), list(scores))
ax.axvline(1 / ds.n_classes, color="0.6", ls=":")
ax.set(
    xlim=(0, 1.02),
    xlabel="accuracy on held-out bags, three folds and their mean; dotted: chance",
)

# %%
# All data sets and methods
# -------------------------
#
# In a module of your own the class has a place in the experiments, by its import path, beside the results that are there already
# (:doc:`/bench`):
#
# .. code-block:: toml
#
#    datasets = ["digits", "mnist"]
#    r = [1, 2, 3]
#    splits = 10
#    reference = "NearestMean"
#
#    [[methods]]
#    method = "my_module:NearestMean"
#
#    [[methods]]
#    method = ["BagGP", "MIPLGP", "SURE"]
#
# ``mipl bench run mine.toml --jobs 2``, then ``mipl bench table mine.toml``.
