"""What habits of the released programs do to accuracy, beside those that `deep.py quirks` measures.

    python benchmarks/deep_habits.py habits.csv scaling     # z-scores over all bags, ELIMIPL's presets on tables
    python benchmarks/deep_habits.py habits.csv labels      # ProMIPL's inferred labels, on digits
    python benchmarks/deep_habits.py habits.csv attention   # DEMIPL's attention term, on MNIST
    python benchmarks/deep_habits.py habits.csv steps       # ELIMIPL in steps of 1 and 16 bags, on MNIST

``scaling`` fits the presets for Birdsong and SIVAL, r = 3, once with features standardised by the training bags and
once by all bags, the test bags included, three splits each; it needs the raw data (MIPL_DATA). ``labels`` fits ProMIPL
on five splits of the embedded digits: as published, with inferred labels multiplied by the candidate mask in place of
the label weights, and without the term that makes their entropy large. ``attention`` fits DEMIPL's preset for MNIST,
r = 1, with the term on its attention and without it, three splits, ten minutes each; it needs the raw data, and so does
``steps``: ELIMIPL's preset for MNIST, r = 1, on the third split, where in steps of 16 bags it learns nothing, in steps
of one bag and from another seed. A finished fit is not run again.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from fit_store import FitStore
from torch import Tensor

import mipl
from deep import scaled_by_all
from mipl.dataset import MIPLDataset
from mipl.deep import DEMIPL, ELIMIPL, ProMIPL
from mipl.deep.base import DeepMIPL
from mipl.deep.promipl import ProMIPLNetwork

Problem = tuple[MIPLDataset, MIPLDataset]


class MaskedNetwork(ProMIPLNetwork):
    """ProMIPL's networks with inferred labels on all candidates alike; those are the labels with a weight above 0."""

    def infer(self, vector: Tensor, weights: Tensor) -> Tensor:
        """Probability (b, q) that each label applies."""
        eps = torch.finfo(vector.dtype).eps
        q = torch.sigmoid(self.inference(torch.cat([vector, weights], dim=1))) * (weights > 0)
        return q.clamp(eps, 1 - eps)


class MaskedProMIPL(ProMIPL):
    """ProMIPL with those networks."""

    def _network(self, *given: Any) -> ProMIPLNetwork:
        network = super()._network(*given)
        network.__class__ = MaskedNetwork
        return network


def fit_once(store: FitStore, cell: tuple[str, str, str, int], model: DeepMIPL, problem: Problem) -> None:
    """Append the accuracy of a model on a problem, unless it is there."""
    train, test = problem
    if not store.has(cell):
        store.append(cell, {"accuracy": model.fit(train).score(test)})


def mnist(split: int) -> Problem:
    """Training and test bags of MNIST, r = 1, as `deep_published.py` takes them."""
    return mipl.load("mnist", r=1, seed=split).split(train_size=0.7, seed=split)


def scaling(store: FitStore) -> None:
    for split in range(3):
        for dataset in ("birdsong", "sival"):
            for by in ("training bags", "all bags"):
                cell = ("ELIMIPL", dataset, f"scaled by {by}", split)
                if store.has(cell):
                    continue
                data = mipl.load(dataset, r=3, seed=split)
                train, test = (scaled_by_all(data) if by == "all bags" else data).split(train_size=0.7, seed=split)
                model = ELIMIPL.paper(dataset, 3, batch_size=16, standardize=by == "training bags", random_state=split)
                store.append(cell, {"accuracy": model.fit(train).score(test)})


def labels(store: FitStore) -> None:
    models = {
        "as published": ProMIPL(),
        "labels by the candidate mask": MaskedProMIPL(),
        "no entropy term": ProMIPL(entropy_weight=0.0),
    }
    for split in range(5):
        problem = mipl.load("digits", r=1, seed=split).split(train_size=0.7, seed=split)
        for habit, model in models.items():
            fit_once(store, ("ProMIPL", "digits", habit, split), model.set_params(random_state=split), problem)


def attention(store: FitStore) -> None:
    fits: dict[str, dict[str, Any]] = {
        "attention term": {"batch_size": 16},
        "no attention term": {"batch_size": 16, "entropy_weight": 0},
        "no attention term, one bag a step": {"entropy_weight": 0},
    }
    for split in range(3):
        problem = mnist(split)
        for habit, params in fits.items():
            model = DEMIPL.paper("mnist", 1, **params, random_state=split)
            fit_once(store, ("DEMIPL", "mnist", habit, split), model, problem)


def steps(store: FitStore) -> None:
    fits: dict[str, dict[str, Any]] = {
        "16 bags a step, seed 2": {"batch_size": 16, "random_state": 2},
        "one bag a step, seed 2": {"random_state": 2},
        "16 bags a step, seed 3": {"batch_size": 16, "random_state": 3},
    }
    problem = mnist(2)
    for habit, params in fits.items():
        fit_once(store, ("ELIMIPL", "mnist", habit, 2), ELIMIPL.paper("mnist", 1, **params), problem)


HABITS = {"scaling": scaling, "labels": labels, "attention": attention, "steps": steps}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the file of results")
    parser.add_argument("habit", choices=list(HABITS))
    given = parser.parse_args()
    store = FitStore(given.out, ("method", "dataset", "habit", "split"), ("accuracy",))
    HABITS[given.habit](store)
    store.print_means(over="split")


if __name__ == "__main__":
    main()
