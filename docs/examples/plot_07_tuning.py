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
# An ordinary `sklearn.model_selection.GridSearchCV`; the only new thing is the scoring, which never sees `labels`.

grid = {"lengthscale": [0.03, 0.1, 0.3, 1.0, 3.0], "n_landmarks": [20, 100, 400]}
search = GridSearchCV(mipl.BagGP(cross_fit=0, random_state=0), grid, scoring=mipl.label_free_score, cv=2)
search.fit(train.bags, train.candidates)
print(search.best_params_)

# %%
# Was it right?
# -------------
#
# Digits have true labels, so the choice can be compared with the accuracy on new bags, which the search did not know.

scores = search.cv_results_["mean_test_score"]
accuracy = [mipl.BagGP(cross_fit=0, random_state=0, **p).fit(train).score(test) for p in search.cv_results_["params"]]
best = search.best_index_

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.scatter(scores, accuracy, color="#1f618d")
ax.scatter(scores[best], accuracy[best], s=160, facecolors="none", edgecolors="#c0392b", label="chosen")
ax.axvline(0, color="0.6", ls=":")
ax.set(
    xlabel="label-free score (nats per bag; 0 is chance)", ylabel="accuracy on new bags", title="each dot is a setting"
)
ax.legend(loc="lower right")
print(f"correlation {np.corrcoef(scores, accuracy)[0, 1]:.2f}; chosen {accuracy[best]:.3f}, best {max(accuracy):.3f}")

# %%
# It tells good settings from failures; between near ties it does not rank. It works for every method, which allows to choose between
# methods as well:

for name in ("PL-kNN", "SURE", "CLPL"):
    model = mipl.make(name).fit(train)
    print(f"{name:7} label-free {mipl.label_free_score(model, test):+.3f}   accuracy {model.score(test):.3f}")

# %%
# More: searches over pipelines in :doc:`/python`, the figures on other data in :doc:`/baggp`.
