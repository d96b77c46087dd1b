"""
Recordings of birds
===================

A recording is a bag, its syllables are the instances, and the species that somebody noted are the candidates. This page goes
the whole way from sound to labels, first with songs that it makes up, then with real forest recordings.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import spectrogram

import mipl

# %%
# From sound to syllables
# -----------------------
#
# Three species: one whistles upwards, one downwards, one trills. Rain drops and insects are in between.

rate = 8000
rng = np.random.default_rng(3)
species = ["riser", "faller", "triller"]


def syllable(kind):
    t = np.arange(int(0.12 * rate)) / rate
    start = rng.uniform(1400, 1600)
    pitch = {
        "riser": start + 9000 * t,
        "faller": start + 1100 - 9000 * t,
        "triller": start + 500 + 500 * np.sin(2 * np.pi * 45 * t),
        "insect": np.full(len(t), rng.uniform(2500, 3600)),
        "rain": np.full(len(t), 0.0),
    }[kind]
    sound = (
        np.sin(2 * np.pi * np.cumsum(pitch) / rate)
        if kind != "rain"
        else rng.normal(0, 0.7, len(t))
    )
    return sound * np.hanning(len(t))


def record(bird):
    kinds = rng.permutation([bird, *rng.choice(["insect", "rain"], rng.integers(4, 7))])
    gap = np.zeros(int(0.08 * rate))
    sound = np.concatenate([part for kind in kinds for part in (gap, syllable(kind))])
    return sound + rng.normal(0, 0.02, len(sound)), kinds


def syllables(sound):
    """Cut where it is loud; a syllable is its spectrogram at 12 times x 16 frequencies."""
    f, t, power = spectrogram(sound, rate, nperseg=128, noverlap=96)
    loud = np.convolve(power.sum(axis=0), np.ones(5) / 5, "same") > 1e-4
    edges = np.flatnonzero(np.diff(np.r_[0, loud, 0].astype(int))).reshape(-1, 2)
    rows, spans = [], []
    for begin, end in edges[np.diff(edges, axis=1)[:, 0] > 8]:
        piece = np.log10(power[:64, begin:end] + 1e-9).reshape(16, 4, -1).mean(axis=1)
        at = np.linspace(0, piece.shape[1] - 1, 12).astype(int)
        rows.append((piece[:, at] + 9).ravel())
        spans.append((t[begin], t[end - 1]))
    return np.array(rows), spans


truth = [species[i % 3] for i in range(75)]
sounds, made = zip(*(record(bird) for bird in truth), strict=True)
cut = [syllables(sound) for sound in sounds]
noted = [{bird, rng.choice([s for s in species if s != bird])} for bird in truth]
ds = mipl.MIPLDataset([rows for rows, _ in cut], noted, labels=truth)
ds

# %%
# Who sings, and when
# -------------------

model = mipl.BagGP(n_landmarks=300, random_state=0).fit(ds)
found = mipl.resolve(ds, model)
print(found.verdict)
print(f"right: {found.accuracy:.1%} of {len(found)} recordings")

fig, axes = plt.subplots(3, 1, figsize=(9, 6), layout="constrained")
for b, ax in enumerate(axes):
    ax.specgram(sounds[b] + 1e-6, NFFT=128, noverlap=96, Fs=rate, cmap="Greys", vmin=-110)
    begin, end = cut[b][1][found.instance[b]]
    ax.axvspan(begin, end, color="tab:green", alpha=0.3)
    ax.set_title(
        f"{' or '.join(sorted(noted[b]))}?  {found.labels[b]}, {found.probability[b]:.0%}",
        fontsize=9,
    )
    ax.set(ylabel="Hz", ylim=(0, 4000))
axes[-1].set_xlabel("seconds")

# %%
# Real recordings
# ---------------
#
# ``mipl.load("birdsong-natural")`` has 548 forest recordings with the one to five species that were noted for each. Experts
# labelled half of the syllables, which is used here only to count: of the labelled syllables in recordings with several
# species, how many are given the right one of these? The raw file is not part of the package (:doc:`/datasets`); where
# `MIPL_DATA` does not have it, this part is left out.

try:
    forest = mipl.load("birdsong-natural")
except mipl.MIPLError:
    forest = None
    print("no raw file of birdsong-natural here: this part was left out")

if forest:
    quick = mipl.BagGP(n_landmarks=300, cross_fit=0, random_state=0).fit(forest)
    noted = forest.bags.spread(forest.candidates)  # (n, q): of the syllable's recording
    guess = (quick.predict_instances(forest)[:, :-1] * noted).argmax(axis=1)
    counted = (forest.instance_labels >= 0) & (noted.sum(axis=1) > 1)

    fig, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
    for row, name in enumerate(forest.classes):
        mine = counted & (forest.instance_labels == row)
        if mine.any():
            ax.barh(f"{name} ({mine.sum()})", np.mean(guess[mine] == row), color="#1f618d")
            ax.plot(
                np.mean(1 / noted[mine].sum(axis=1)), f"{name} ({mine.sum()})", "k|", ms=14
            )
    ax.set(
        xlim=(0, 1),
        xlabel="share of syllables that are given their species; the mark: by chance",
    )
    ax.invert_yaxis()
    right = np.mean(guess[counted] == forest.instance_labels[counted])
    chance = np.mean(1 / noted[counted].sum(axis=1))
    print(f"{right:.1%} of {counted.sum()} syllables; by chance {chance:.1%}")

# %%
# Half of the species are found, the others hardly ever. An assumption does not hold here: all species that were noted do sing,
# and `BagGP` looks for one label per recording (:doc:`/problem`), so that some species take the syllables of others. Where you
# can, cut recordings so that one bird is in each.
