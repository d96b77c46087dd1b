"""What the three rules of prediction, and the engines, do to the rows of MIPLGP and its variants: one fit, all rules.

    MIPL_DATA=... OMP_NUM_THREADS=1 python benchmarks/paper_rules.py results/paper-rules.csv
    MIPL_DATA=... OMP_NUM_THREADS=1 python benchmarks/paper_rules.py results/paper-engines.csv \
        --data paper-pll --methods MIPLGP --r 1 --engines exact low-rank

Methods are those of the suite "paper-pll", data sets those of the suite that `--data` names: "paper-prior" has the
features and posts that the paper's rows speak for (docs/reproduction.md). A row of the file is one fit; those that are
there are not run again, and the table at the end has the means of all.
"""

from __future__ import annotations

import argparse
import itertools
import time
from pathlib import Path
from typing import Any

from fit_store import FitStore

import mipl
from mipl.bench import load_suite
from mipl.datasets.scaling import SCALINGS

RULES = ("joint", "marginal", "mean")


def main() -> None:
    methods = {m.name: m for m in load_suite("paper-pll").methods if m.method.startswith("MIPLGP")}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--data", default="paper-prior", choices=["paper-prior", "paper-pll"])
    parser.add_argument("--datasets", nargs="+", default=["birdsong", "newsgroups", "sival", "mnist", "fmnist"])
    parser.add_argument("--methods", nargs="+", default=list(methods), choices=list(methods))
    parser.add_argument("--engines", nargs="+", default=["exact"])
    parser.add_argument("--r", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    args = parser.parse_args()
    entries = {d.load: d for d in load_suite(args.data).datasets}
    store = FitStore(
        args.path, ["dataset", "r", "method", "engine", "seed"], ["fit_cpu_seconds", "lengthscale", *RULES]
    )
    few, _ = mipl.load("digits", r=1).split(0.1, seed=0)
    mipl.MIPLGP(max_iter=2).fit(few.bags, few.candidates)  # what happens only once is not timed
    for seed, name, r in itertools.product(args.seeds, args.datasets, args.r):
        entry = entries[name]
        parts = mipl.load(name, r=r, **entry.options).split(0.5, seed=seed)
        train, test = SCALINGS[entry.scale](*parts) if entry.scale else parts
        for method, engine in itertools.product(args.methods, args.engines):
            if store.has(cell := (name, r, method, engine, seed)):
                continue
            params: dict[str, Any] = methods[method].params | methods[method].on.get(name, {})
            params |= {"random_state": seed, "engine": engine}
            begun = time.process_time()
            model = mipl.make(method, **params).fit(train.bags, train.candidates)
            figures = {"fit_cpu_seconds": time.process_time() - begun, "lengthscale": model.lengthscale_}
            figures |= {rule: model.set_params(sampling=rule).score(test.bags, test.labels) for rule in RULES}
            store.append(cell, figures)
    store.print_means()


if __name__ == "__main__":
    main()
