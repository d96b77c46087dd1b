"""What BagGP costs: against the bound of its matrix products, against GPyTorch, and how it grows.

    python benchmarks/flagship_speed.py fit            digits, MNIST, SIVAL, Birdsong, Newsgroups: phases, and the
                                                       multiple of the bound of its products; --gpytorch for a ratio
    python benchmarks/flagship_speed.py cores          the same fits by one and by two threads: clock and bits
    python benchmarks/flagship_speed.py start          seconds until mipl.BagGP can be used, and what they consist of;
                                                       seconds of `mipl resolve` on a CSV file of 100 bags
    python benchmarks/flagship_speed.py growth         10k to 300k synthetic instances; --largest 1000000 for more
    python benchmarks/flagship_speed.py accuracy       what fits to development splits are worth, to be compared
                                                       with another commit (--seeds 100 101 ...)
    python benchmarks/flagship_speed.py predict        rate of prediction against that of its matrix products

`fit` needs the raw data (MIPL_DATA). Threads are the caller's choice (OMP_NUM_THREADS).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import measure, print_table

import mipl
from mipl.baggp import estimator, learning
from mipl.bags import Bags
from mipl.datasets.synthetic import make_bags
from mipl.scoring import calibration_error, log_loss

STEPS = 500  # of the released training loop
#: What a fit calls, by the module that calls it, and the phase that it belongs to.
PHASES = (
    (estimator, "median_distance", "landmarks"),
    (estimator, "kmeans_landmarks", "landmarks"),
    (estimator, "principal_map", "map"),
    (estimator, "low_rank", "features"),
    (learning, "fits_of", "folds: Gram"),
    (learning, "fit_bag_regressions", "regressions"),
    (learning, "fit_bag_likelihoods", "likelihoods"),
    (learning, "fit_stacking", "stacking"),
)
DATA = ["digits", "mnist", "sival", "birdsong", "newsgroups"]
#: False labels per bag where accuracy is compared.
FALSE_LABELS = {"digits": 1, "mnist": 3, "sival": 1, "birdsong": 1, "newsgroups": 2}


def best_seconds(call: Callable[[], object], repeats: int = 3) -> float:
    return measure(call, repeats).seconds


def cpu_seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def gemm_bound(n: int, model: mipl.BagGP) -> float:
    """CPU seconds of one product of (n, M) and (M, M) matrices, n M^2 multiplications."""
    M = len(model.landmarks_)
    block, square = torch.randn(512, M), torch.randn(M, M)
    return min(cpu_seconds(lambda: block @ square) for _ in range(5)) * n / len(block)


def gpytorch_step(bags: Bags, candidates: np.ndarray, n: int = 2000) -> float:
    """Seconds of one training step of q + 1 exact processes on n instances, scaled by (N / n)^2 to all N.

    As the released code of MIPLGP: one Matern kernel for all classes, fixed noise and one Adam step. Conjugate
    gradients cost at least the square of the instances, so the scaled figure is a lower bound.
    """
    import gpytorch

    n = min(n, bags.n_instances)
    x = torch.tensor(bags.instances[:n])
    q = candidates.shape[1]
    allowed = np.concatenate([candidates, np.ones((len(candidates), 1), dtype=bool)], axis=1)[bags.bag_of_instance[:n]]
    alpha = torch.tensor(1e-4 + allowed / allowed.sum(axis=1, keepdims=True), dtype=torch.float32).T
    noise = torch.log(1 / alpha + 1)
    target = torch.log(alpha) - noise / 2

    class Process(gpytorch.models.ExactGP):
        def __init__(self, likelihood: gpytorch.likelihoods.Likelihood) -> None:
            super().__init__(x.expand(q + 1, *x.shape), target, likelihood)
            shape = torch.Size([q + 1])
            self.mean_module = gpytorch.means.ConstantMean(batch_shape=shape)
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5))

        def forward(self, inputs: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(inputs), self.covar_module(inputs))

    likelihood = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(noise, batch_shape=torch.Size([q + 1]))
    model = Process(likelihood).train()
    marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)

    def step() -> None:
        optimiser.zero_grad()
        loss = -marginal(model(*model.train_inputs), model.train_targets).sum()
        loss.backward()
        optimiser.step()

    return best_seconds(step, 1) * (bags.n_instances / n) ** 2


@contextmanager
def phases() -> Iterator[dict[str, float]]:
    """Count the CPU seconds of what a fit calls, by phase, for the time of the context."""
    spent: dict[str, float] = defaultdict(float)

    def timed(phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                spent[phase] += time.thread_time() - start

        return call

    before = [(module, name, getattr(module, name)) for module, name, _ in PHASES]
    for module, name, phase in PHASES:
        setattr(module, name, timed(phase, getattr(module, name)))
    try:
        yield spent
    finally:
        for module, name, function in before:
            setattr(module, name, function)


def fit(names: list[str], gpytorch: bool) -> None:
    rows, ratios = [], []
    columns = list(dict.fromkeys(phase for *_, phase in PHASES))
    train, _ = mipl.load("digits", r=1, seed=0).split(0.7, seed=1)
    mipl.BagGP().fit(train)  # what happens only once
    for name in names:
        train, _ = mipl.load(name, r=1, seed=0).split(0.7, seed=0)
        model = mipl.BagGP()
        with phases() as spent:
            start = time.process_time()
            cost = measure(lambda model=model, train=train: model.fit(train.bags, train.candidates))
            cpu = time.process_time() - start
        n = train.bags.n_instances
        bound = gemm_bound(n, model)
        parts = [spent[phase] for phase in columns]
        rows.append([name, n, cost.seconds, cpu, bound, cpu / bound, *parts, cpu - sum(parts), cost.peak_mib])
        print(name, f"{cpu:.2f} CPU s, {cpu / bound:.1f} times the bound", flush=True)
        if gpytorch and name == "mnist":
            released = STEPS * gpytorch_step(train.bags, train.candidates)
            ratios.append([name, released, released / cost.seconds])
    header = ["data", "instances", "fit s", "CPU s", "bound CPU s", "multiple", *columns, "front end and rest", "MiB"]
    print_table(f"Fit, {torch.get_num_threads()} threads", header, rows)
    if ratios:
        print_table("GPyTorch", ["data", f"{STEPS} steps, s", "times the fit"], ratios)


def cores(names: list[str]) -> None:
    """Seconds of the clock with one thread and with two, and whether the models have the same bits."""
    rows = []
    threads = torch.get_num_threads
    for name in names:
        train, _ = mipl.load(name, r=1, seed=0).split(0.7, seed=0)
        found, seconds = [], []
        for n_threads in (1, 2):
            torch.get_num_threads = lambda n_threads=n_threads: n_threads  # what a fit asks; nothing is set
            start = time.perf_counter()
            found.append(mipl.BagGP().fit(train.bags, train.candidates))
            seconds.append(time.perf_counter() - start)
        torch.get_num_threads = threads
        same = all(np.array_equal(getattr(found[0], key), getattr(found[1], key)) for key in ("coef_", "posterior_"))
        rows.append([name, train.bags.n_instances, *seconds, seconds[1] / seconds[0], str(same)])
    print_table("Two threads", ["data", "instances", "one, s", "two, s", "ratio", "same bits"], rows)


def start() -> None:
    """CPU seconds of imports in processes of their own and clock of `mipl resolve`, the best of three."""
    rows = []
    for code in ("import numpy", "import sklearn.base", "import torch", "import torch, sklearn.base", "import mipl"):
        rows.append([code, _import_seconds(code)])
    both = rows[3][1]
    rows.append(["import mipl; mipl.BagGP", _import_seconds("import mipl; mipl.BagGP")])
    rows.append(["what mipl adds to torch and sklearn.base", rows[-1][1] - both])
    print_table("Start-up", ["", "CPU s"], rows)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "hundred.csv"
        mipl.load("digits", r=1, seed=0)[:100].to_frame().to_csv(file, index=False)
        command = [sys.executable, "-m", "mipl", "resolve", str(file)]
        seconds = best_seconds(lambda: subprocess.run(command, check=True, capture_output=True))
    print(f"mipl resolve, 100 bags of digits in a CSV file: {seconds:.2f} s of the clock")


def _import_seconds(code: str) -> float:
    report = "import time; print(time.process_time())"
    times = [subprocess.check_output([sys.executable, "-c", f"{code}; {report}"]) for _ in range(3)]
    return min(map(float, times))


def accuracy(names: list[str], seeds: list[int]) -> None:
    """Means over splits: of new bags, and of the posterior of training bags."""
    rows = []
    for name in names:
        found = [_worth(name, seed) for seed in seeds]
        rows.append([name, FALSE_LABELS[name], len(seeds), *np.mean(found, axis=0).tolist()])
        print(*rows[-1], flush=True)
    both = [f"{prefix}{figure}" for prefix in ("", "resolved ") for figure in ("accuracy", "ECE", "log loss")]
    print_table("Development splits", ["data", "r", "splits", "CPU s", *both], rows)


def _worth(name: str, seed: int) -> list[float]:
    train, test = mipl.load(name, r=FALSE_LABELS[name], seed=seed).split(0.7, seed=seed)
    model = mipl.BagGP()
    found = [cpu_seconds(lambda: model.fit(train))]
    for labels, proba in ((test.labels, model.predict_proba(test.bags)), (train.labels, model.posterior_)):
        right = float(np.mean(proba.argmax(axis=1) == labels))
        found += [right, calibration_error(labels, proba), log_loss(labels, proba)]
    return found


def growth(largest: int) -> None:
    rows, last = [], None
    for n in (10_000, 30_000, 100_000, 300_000, 1_000_000):
        if n > largest:
            break
        ds = make_bags(n_bags=n // 20, n_classes=10, n_features=64, sizes=(10, 30), separation=6.0, positive=0.1, r=2)
        cost = measure(lambda ds=ds: mipl.BagGP().fit(ds.bags, ds.candidates))
        exponent = np.log(cost.seconds / last[1]) / np.log(n / last[0]) if last else float("nan")
        rows.append([n, cost.seconds, cost.peak_mib, n * 1000 * 4 / 2**20, exponent])
        print(*rows[-1], flush=True)
        last = n, cost.seconds
    print_table("Growth", ["instances", "fit s", "peak MiB", "features n x rank, MiB", "exponent"], rows)


def predict(n: int = 100_000) -> None:
    ds = make_bags(n_bags=n // 20, n_classes=10, n_features=64, sizes=(10, 30), separation=6.0, positive=0.1)
    model = mipl.BagGP().fit(ds.bags[:500], ds.candidates[:500])
    Z, T = torch.tensor(model.landmarks_), torch.tensor(model.feature_map_)
    block, coef = torch.tensor(ds.bags.instances[:512]), torch.randn(T.shape[1], 20)
    kernel, features, scores = (torch.empty(len(block), k) for k in (len(Z), T.shape[1], 20))

    def multiply() -> None:
        for _ in range(n // len(block)):
            torch.mm(block, Z.T, out=kernel)
            torch.mm(kernel, T, out=features)
            torch.mm(features, coef, out=scores)

    products = min(cpu_seconds(multiply) for _ in range(3))
    seconds = min(cpu_seconds(lambda: model.predict_proba(ds.bags)) for _ in range(3))
    rows = [[n, len(Z), seconds, products, products / seconds]]
    print_table("Prediction", ["instances", "landmarks", "CPU s", "products alone", "share of GEMM rate"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    fits = commands.add_parser("fit")
    fits.add_argument("datasets", nargs="*", default=DATA)
    fits.add_argument("--gpytorch", action="store_true")
    commands.add_parser("cores").add_argument("datasets", nargs="*", default=DATA[1:])
    commands.add_parser("start")
    commands.add_parser("growth").add_argument("--largest", type=int, default=300_000)
    splits = commands.add_parser("accuracy")
    splits.add_argument("datasets", nargs="*", default=DATA)
    splits.add_argument("--seeds", type=int, nargs="+", default=[100, 101, 102])
    commands.add_parser("predict")
    args = parser.parse_args()
    if args.command == "fit":
        fit(args.datasets, args.gpytorch)
    elif args.command == "cores":
        cores(args.datasets)
    elif args.command == "start":
        start()
    elif args.command == "accuracy":
        accuracy(args.datasets, args.seeds)
    elif args.command == "growth":
        growth(args.largest)
    else:
        predict()


if __name__ == "__main__":
    main()
