"""What BagGP costs: against the bound of its matrix products, against GPyTorch, and how it grows.

    python benchmarks/flagship_speed.py fit            MNIST, Birdsong, SIVAL; multiple of the GEMM bound; GPyTorch
    python benchmarks/flagship_speed.py growth         10k to 300k synthetic instances; --largest 1000000 for more
    python benchmarks/flagship_speed.py predict        rate of prediction against that of its matrix products

`fit` needs the raw data (MIPL_DATA). Threads are the caller's choice (OMP_NUM_THREADS).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from measure import measure, print_table

import mipl
from mipl.bags import Bags
from mipl.datasets.synthetic import make_bags

STEPS = 500  # of the released training loop


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


def fit(names: list[str]) -> None:
    rows = []
    for name in names:
        train, _ = mipl.load(name, r=1, seed=0).split(0.7, seed=0)
        model = mipl.BagGP()
        start = time.process_time()
        cost = measure(lambda model=model, train=train: model.fit(train.bags, train.candidates))
        cpu = time.process_time() - start
        bound = gemm_bound(train.bags.n_instances, model)
        row = [name, train.bags.n_instances, cost.seconds, cpu, cost.peak_mib, bound, cpu / bound]
        if name == "mnist":
            released = STEPS * gpytorch_step(train.bags, train.candidates)
            row += [released, released / cost.seconds]
        rows.append(row + [""] * (9 - len(row)))
    header = ["data", "instances", "fit s", "CPU s", "MiB", "GEMM bound CPU s", "multiple", "GPyTorch x 500 s", "ratio"]
    print_table(f"Fit, {torch.get_num_threads()} threads", header, rows)


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
    commands.add_parser("fit").add_argument("datasets", nargs="*", default=["mnist", "birdsong", "sival"])
    commands.add_parser("growth").add_argument("--largest", type=int, default=300_000)
    commands.add_parser("predict")
    args = parser.parse_args()
    if args.command == "fit":
        fit(args.datasets)
    elif args.command == "growth":
        growth(args.largest)
    else:
        predict()


if __name__ == "__main__":
    main()
