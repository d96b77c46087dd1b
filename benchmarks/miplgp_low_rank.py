"""MIPLGP with the low-rank engine against the exact one, and the cost of the three rules of prediction.

    OMP_NUM_THREADS=1 python benchmarks/miplgp_low_rank.py --datasets birdsong sival --steps 10
    OMP_NUM_THREADS=1 python benchmarks/miplgp_low_rank.py --datasets mnist --steps 50 --sampling marginal joint mean

All engines see the same bags, take the same number of steps of Adam and predict the other bags, one after the other
in one run. CPU seconds are compared, which also mean something on a busy machine. The lengthscale starts at
the median distance, from where few steps suffice; ``--lengthscale 1`` is the paper's start. Needs the raw data
(MIPL_DATA).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from measure import measure, print_table
from sklearn.preprocessing import MinMaxScaler

import mipl
from mipl.miplgp.estimator import PAPER_SETTINGS


def cpu_seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def scaled(bags: mipl.Bags, scaler: MinMaxScaler) -> mipl.Bags:
    return mipl.Bags(scaler.transform(bags.instances).astype(np.float32), bags.offsets)


def compare(name: str, args: argparse.Namespace) -> None:
    train, test = mipl.load(name, r=args.r).split(args.train_size, seed=0)
    bags, test_bags = train.bags, test.bags
    if args.minmax:
        scaler = MinMaxScaler().fit(bags.instances)
        bags, test_bags = scaled(bags, scaler), scaled(test_bags, scaler)
    settings = PAPER_SETTINGS[name] | {"max_iter": args.steps, "lengthscale": args.lengthscale}
    low_rank: list[dict[str, Any]] = [{"engine": "low-rank", "n_landmarks": M} for M in args.landmarks]
    rows = []
    for params in [*([] if args.no_exact else [{"engine": "exact"}]), *low_rank]:
        model = mipl.MIPLGP(**(settings | params))
        fit = measure(lambda model=model: cpu_seconds(lambda: model.fit(bags, train.candidates)))
        row = [" ".join(map(str, params.values())), fit.seconds, fit.result[0], fit.peak_mib, model.lengthscale_]
        for rule in args.sampling:
            model.sampling = rule
            seconds, predicted = cpu_seconds(lambda model=model: model.predict(test_bags))
            row += [seconds, float(np.mean(predicted == test.labels))]
        rows.append([*row, (rows[0] if rows else row)[2] / row[2]])
        print(rows[-1], flush=True)
    header = ["engine", "fit s", "fit CPU s", "peak MiB", "lengthscale"]
    for rule in args.sampling:
        header += [f"{rule} CPU s", "accuracy"]
    threads, n = torch.get_num_threads(), bags.n_instances
    title = f"{name}, r = {args.r}: {n:,} training instances, {args.steps} steps, {threads} threads"
    print_table(title, [*header, "fit faster"], rows)


def lengthscale(text: str) -> float | str:
    return text if text == "median" else float(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=["mnist", "birdsong", "sival"])
    parser.add_argument("--r", type=int, default=1)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--train-size", type=float, default=0.5)
    parser.add_argument("--minmax", action="store_true", help="scale each feature to [0, 1] on the training bags")
    parser.add_argument("--no-exact", action="store_true", help="leave the exact engine out")
    parser.add_argument("--landmarks", type=int, nargs="*", default=[500, 1000], help="of the low-rank engine")
    parser.add_argument("--lengthscale", type=lengthscale, default="median")
    parser.add_argument("--sampling", nargs="+", default=["marginal", "mean"], choices=["marginal", "joint", "mean"])
    args = parser.parse_args()
    for name in args.datasets:
        compare(name, args)


if __name__ == "__main__":
    main()
