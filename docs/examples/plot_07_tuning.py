"""
Tuning without labels
=====================

There are no true labels to validate on. But a good model finds the *candidate sets* of bags that it has not seen more probable than by
chance, because false candidates do not depend on the instances. `mipl.label_free_score` measures that.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV

import mipl

train, test = mipl.load("digits", r=1, seed=0).split(0.7, seed=0)

# %%
# A search
# --------
#
# An ordinary `sklearn.model_selection.GridSearchCV`, which chooses by the label-free score. The digits have true labels, so the
# accuracy on the same held-out bags is recorded beside it, to see whether the choice was right. It plays no part in the choice.


def accuracy(model, bags, y=None):
    return model.score(bags)


grid = {"lengthscale": [0.03, 0.1, 0.3, 1.0, 3.0], "n_landmarks": [20, 100]}
search = GridSearchCV(
    mipl.BagGP(cross_fit=0, random_state=0),
    grid,
    scoring={"label-free": mipl.label_free_score, "accuracy": accuracy},
    refit="label-free",
    cv=3,
).fit(train)
print(search.best_params_)
print(f"accuracy on new bags: {search.best_estimator_.score(test):.3f}")

# %%
# Was it right?
# -------------

scores = search.cv_results_["mean_test_label-free"]
truth = search.cv_results_["mean_test_accuracy"]
best = search.best_index_

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.scatter(scores, truth, color="#1f618d")
ax.scatter(scores[best], truth[best], s=160, fc="none", ec="#c0392b", label="chosen")
ax.axvline(0, color="0.6", ls=":")
ax.set(
    xlabel="label-free score (nats per bag; 0 is chance)",
    ylabel="accuracy on the same held-out bags",
    title="each dot is a setting",
)
ax.legend(loc="lower right")
agreement = np.corrcoef(scores, truth)[0, 1]
print(f"correlation {agreement:.2f}; chosen {truth[best]:.3f}, best {truth.max():.3f}")

# %%
# The score tells good settings from failures; it does not rank near ties. Like every cross-validation it judges a setting on fewer
# bags than the last fit has. It works for every method, so
# that methods can be compared as well:

for name in ("PL-kNN", "SURE", "CLPL"):
    model = mipl.make(name).fit(train)
    score = mipl.label_free_score(model, test)
    print(f"{name:7} label-free {score:+.3f}   accuracy {model.score(test):.3f}")

# %%
# More: searches over pipelines in :doc:`/python`, the figures on other data in :doc:`/baggp`.
