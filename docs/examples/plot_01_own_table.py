"""
Your own table, in five minutes
===============================

A spreadsheet with one row per instance: which bag it belongs to, the candidate labels of the bag, and the features. This is all
that is needed. Here the bags are recordings, the instances their syllables, and two people wrote down what they heard.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import mipl

# %%
# The file
# --------
#
# It is made here, so that the page runs anywhere; yours comes from a spreadsheet. What belongs to a recording stands in one of
# its rows.

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(1)
voice = {
    "owl": (0.4, 250.0),
    "wren": (3.0, 900.0),
    "robin": (2.0, 400.0),
    "noise": (1.5, 600.0),
}  # kHz, ms
lines = ["recording,heard,pitch,length,loudness,remark"]
for number in range(90):
    bird = ["owl", "wren", "robin"][number % 3]
    other = rng.choice([name for name in ("owl", "wren", "robin") if name != bird])
    heard = "|".join(rng.permutation([bird, other]))
    kinds = rng.permutation([bird, *["noise"] * rng.integers(3, 7)])
    for syllable, kind in enumerate(kinds):
        pitch, length = voice[kind] * rng.normal(1, 0.15, 2)
        first = heard if syllable == 0 else ""
        loudness = rng.uniform(20, 60)
        lines.append(f"R{number},{first},{pitch:.3f},{length:.0f},{loudness:.1f},")
file = folder / "recordings.csv"
file.write_text("\n".join(lines))
print("\n".join(lines[:6]))

# %%
# Look before you learn
# ---------------------
#
# `check` finds everything that is wrong or odd at once, each with its remedy. On the command line:
# ``mipl check recordings.csv --bag recording --candidates heard``.

print(mipl.check(file, bag="recording", candidates="heard"))
ds = mipl.load(file, bag="recording", candidates="heard")
ds

# %%
# Which bird is it?
# -----------------
#
# ``mipl resolve recordings.csv --bag recording --candidates heard --out labels.csv --report page.html`` does the same.

found = mipl.resolve(ds)
print(found.verdict)
columns = ["bag_id", "candidates", "label", "probability", "instance", "review"]
found.to_frame()[columns].head(6)

# %%
# The instance behind each label is framed. Each curve is one syllable: pitch, length and loudness, from left to right.

found.plot(folder / "found.png", n_bags=4)
fig, ax = plt.subplots(figsize=(9, 5), layout="constrained")
ax.imshow(plt.imread(folder / "found.png"))
ax.axis("off")

# %%
# A page to look at, to correct and to show
# -----------------------------------------
#
# One HTML file without any server. The doubtful bags come first; choose another label where it is wrong, save the decisions,
# and give them back with ``mipl resolve ... --decisions decisions.csv``.

page = found.report(folder / "page.html", title="Recordings")
found.save(folder / "labels.csv")

# sphinx_gallery_start_ignore
from html import escape


class Page:
    def _repr_html_(self):
        code = escape(page.read_text(encoding="utf-8"), quote=True)
        return f'<iframe srcdoc="{code}" style="width: 100%; height: 480px; border: 1px solid #ccc" title="page"></iframe>'


# sphinx_gallery_end_ignore
Page()

# %%
# New recordings
# --------------
#
# A fitted model answers for new files, which need no candidates.

model = mipl.BagGP(random_state=0).fit(ds)
model.save(folder / "birds.mipl")
new = folder / "new.csv"
new.write_text("""\
recording,pitch,length,loudness
N1,0.41,240,30
N1,1.60,610,44
N2,1.40,580,35
N2,3.10,880,51
""")
loaded = mipl.load_model(folder / "birds.mipl")
answers = mipl.explain(loaded, mipl.load(new, bag="recording", unlabelled=loaded.classes_))
answers.to_frame()[["bag_id", "predicted", "probability", "instance"]]

# %%
# More about files, columns and formats: :doc:`/files`. Errors and their cures: :doc:`/troubleshooting`.
