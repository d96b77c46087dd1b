"""
Threads of posts
================

A thread is a bag of posts. It was filed under two topics, and only one or two of its posts are about either; the rest is chat.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer

import mipl

# %%
# Some threads
# ------------
#
# Made up from small vocabularies, so that the page runs anywhere. ``mipl.load("newsgroups")`` builds threads of real messages.

rng = np.random.default_rng(0)
words = {
    "space": "orbit rocket moon launch satellite telescope shuttle planet".split(),
    "health": "doctor fever vaccine dose patient symptom clinic blood".split(),
    "motors": "engine brake wheel gear clutch exhaust tyre driver".split(),
    "chat": "hello thanks agree reply really maybe people think today question again sorry".split(),
}
threads, filed, truth = [], [], []
for number in range(90):
    topic = ["space", "health", "motors"][number % 3]
    other = str(rng.choice([name for name in words if name not in (topic, "chat")]))
    posts = [" ".join(rng.choice(words["chat"], 8)) for _ in range(rng.integers(4, 8))]
    posts.append(" ".join([*rng.choice(words[topic], 3), *rng.choice(words["chat"], 5)]))
    threads.append([posts[i] for i in rng.permutation(len(posts))])
    filed.append({topic, other})
    truth.append(topic)
print(sorted(filed[0]), *threads[0], sep="\n")

# %%
# Words to numbers
# ----------------
#
# Any vectoriser of scikit-learn will do, or sentence embeddings. Its rows are instances, its words the
# feature names.

vectorizer = TfidfVectorizer().fit(post for thread in threads for post in thread)
vocabulary = vectorizer.get_feature_names_out()
numbers = [vectorizer.transform(thread).toarray() for thread in threads]
bags = mipl.Bags.from_list([pd.DataFrame(rows, columns=vocabulary) for rows in numbers])
ds = mipl.MIPLDataset(bags, filed, labels=truth)
ds

# %%
# BagGP sees that the rows are non-negative and sparse, and takes square roots and unit length (`mipl.features.UnitRows`).

model = mipl.BagGP(n_landmarks=400, random_state=0).fit(ds)
found = mipl.resolve(ds, model)
print(found.verdict)
print(f"right: {found.accuracy:.1%}")

# %%
# The post behind each label
# --------------------------

for b in range(4):
    print(
        f"{' or '.join(sorted(filed[b]))}: {found.labels[b]} ({found.probability[b]:.0%})"
    )
    print("    ", threads[b][found.instance[b]])

# %%
# In pictures, features of text are shown as words, the largest first:

picture = found.plot(Path(tempfile.mkdtemp()) / "threads.png", n_bags=3)
fig, ax = plt.subplots(figsize=(9, 4.5), layout="constrained")
ax.imshow(plt.imread(picture))
ax.axis("off")
