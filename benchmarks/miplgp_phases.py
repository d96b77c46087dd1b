"""Where the time of MIPLGP goes: one fit at the paper's settings and one prediction with joint draws, by phases.

    OMP_NUM_THREADS=1 python benchmarks/miplgp_phases.py --datasets mnist sival
    OMP_NUM_THREADS=1 python benchmarks/miplgp_phases.py --datasets birdsong --methods MIPLGP-naive --seeds 100 101

CPU seconds of one process. The phases of a fit are the steps of Adam, and the last solve with the roots for variances;
those of a prediction the covariance of the test instances and the mean softmax of the draws; what is left are
distances, landmarks and the kernel between test and training instances. Birdsong and SIVAL are scaled to [0, 1] as in
the suites of the paper. Needs the raw data (MIPL_DATA).
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import measure, print_table

import mipl
from mipl.datasets import min_max
from mipl.gp import posterior
from mipl.gp.exact import ConjugateGradientEngine
from mipl.miplgp import sampling
from mipl.miplgp.estimator import PAPER_SETTINGS

#: Phase -> where the function is looked up.
PHASES: dict[str, tuple[Any, str]] = {
    "steps": (ConjugateGradientEngine, "evidence"),
    "last solve, roots": (ConjugateGradientEngine, "_solve"),
    "covariance": (posterior, "_sampling_root"),
    "draws": (sampling, "joint_class_probabilities"),
}
spent: defaultdict[str, float] = defaultdict(float)


def timed(phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which adds its CPU time to `spent`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        start = time.process_time()
        result = function(*args, **kwargs)
        spent[phase] += time.process_time() - start
        return result

    return call


def halves(name: str, r: int, seed: int) -> tuple[mipl.Bags, Any, mipl.Bags, Any]:
    """Training bags and candidates, test bags and labels of the paper's size and scaling."""
    parts = mipl.load(name, r=r).split(0.5, seed=seed)
    train, test = min_max(*parts) if name in ("birdsong", "sival") else parts
    return train.bags, train.candidates, test.bags, test.labels


def phases(model: Any, bags: mipl.Bags, candidates: Any, test_bags: mipl.Bags, labels: Any) -> list[Any]:
    """Seconds of fit, prediction and phases, peak memory, learned scales, accuracy by joint draws and by means."""
    spent.clear()
    start = time.process_time()
    fit = measure(lambda: model.fit(bags, candidates))
    fitted = time.process_time()
    accuracy = float(np.mean(model.predict(test_bags) == labels))
    seconds = [fitted - start, time.process_time() - fitted, *(spent[phase] for phase in PHASES)]
    by_mean = model.set_params(sampling="mean").score(test_bags, labels)
    return [*seconds, fit.peak_mib, model.lengthscale_, model.outputscale_, accuracy, by_mean]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=["mnist", "newsgroups", "birdsong", "sival"])
    parser.add_argument("--methods", nargs="+", default=["MIPLGP"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[100])
    parser.add_argument("--r", type=int, default=1)
    args = parser.parse_args()
    for phase, (owner, name) in PHASES.items():
        setattr(owner, name, timed(phase, getattr(owner, name)))
    rows = []
    for dataset, seed in itertools.product(args.datasets, args.seeds):
        data = halves(dataset, args.r, seed)
        for method in args.methods:
            model = mipl.make(method, **PAPER_SETTINGS[dataset], n_probes=1)
            rows.append([dataset, seed, method, *phases(model, *data)])
            print(rows[-1], flush=True)
    header = ["", "seed", "method", "fit", "predict", *PHASES, "MiB", "lengthscale", "outputscale"]
    print_table(f"CPU seconds, r = {args.r}", [*header, "joint", "mean"], rows)


if __name__ == "__main__":
    main()
