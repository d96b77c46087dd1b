"""Where the time of MIPLGP goes: one fit at the paper's settings and one prediction with joint draws, by phases.

    OMP_NUM_THREADS=1 python benchmarks/miplgp_phases.py --datasets mnist sival --engines subset
    OMP_NUM_THREADS=1 python benchmarks/miplgp_phases.py --datasets birdsong --engines exact subset --seeds 100 101

CPU seconds of one process. The phases of a fit are the steps of Adam, the last solve and the roots for the variances;
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
from mipl.gp import conjugate_gradients, posterior
from mipl.gp.exact import ExactEngine
from mipl.miplgp import sampling
from mipl.miplgp.presets import paper_settings

#: Phase -> where the function is looked up.
PHASES: dict[str, tuple[Any, str]] = {
    "steps": (ExactEngine, "evidence"),
    "last solve": (conjugate_gradients.ConjugateGradientEngine, "_solve"),
    "roots": (conjugate_gradients.ConjugateGradientEngine, "_inverse_root"),
    "covariance": (posterior, "sampling_root"),
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
    parser.add_argument("--engines", nargs="+", default=["subset"])
    parser.add_argument("--methods", nargs="+", default=["MIPLGP"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[100])
    parser.add_argument("--subset-size", type=int, nargs="+", default=[6000])
    parser.add_argument("--r", type=int, default=1)
    args = parser.parse_args()
    for phase, (owner, name) in PHASES.items():
        setattr(owner, name, timed(phase, getattr(owner, name)))
    rows = []
    for dataset, seed in itertools.product(args.datasets, args.seeds):
        data = halves(dataset, args.r, seed)
        engines = [{"engine": name} for name in args.engines if name != "subset"]
        engines += [{"engine": "subset", "subset_size": k} for k in args.subset_size if "subset" in args.engines]
        for method, engine in itertools.product(args.methods, engines):
            model = mipl.make(method, **paper_settings(dataset), n_probes=1, **engine)
            rows.append([dataset, seed, method, " ".join(map(str, engine.values())), *phases(model, *data)])
            print(rows[-1], flush=True)
    header = ["", "seed", "method", "engine", "fit", "predict", *PHASES, "MiB", "lengthscale", "outputscale"]
    print_table(f"CPU seconds, r = {args.r}", [*header, "joint", "mean"], rows)


if __name__ == "__main__":
    main()
