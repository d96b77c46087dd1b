"""One training step of MIPLGP (loss, gradient, new targets): the exact engine against GPyTorch, on MNIST bags.

    python benchmarks/gp_engine.py                   # the engine: growth with n, distance from the GEMM rate
    python benchmarks/gp_engine.py --gpytorch 10000  # and GPyTorch side by side (17 GB at n = 10,000)

GPyTorch is set up as in the authors' release: a shared ScaleKernel(MaternKernel), batched constant means, fixed noise
with a learned addition, a preconditioner of size 100, and its default CG tolerance of 1, a hundred times that of the
engine. Both start from the same hyper-parameters. A step in training is warm: it goes on from the one before, here
averaged over ten steps of Adam.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import gpytorch
import numpy as np
import torch
from measure import measure, print_table

import mipl
from mipl.candidates import augment_candidates
from mipl.gp.dirichlet import dirichlet_targets
from mipl.gp.exact import ConjugateGradientEngine, Evidence
from mipl.gp.kernels import scaled_matern
from mipl.miplgp.disambiguation import DISAMBIGUATIONS, initial_weights

LENGTHSCALE, OUTPUTSCALE = 6.0, 2.0  # near where training on MNIST spends most of its steps
SIZES = (2500, 5000, 10000, 20000)
WARM_STEPS = 10


def problem(n: int) -> tuple[mipl.Bags, np.ndarray]:
    """Whole bags of MNIST-MIPL with about n instances, and their augmented candidates."""
    ds = mipl.load("mnist", r=1)
    order = np.random.default_rng(0).permutation(len(ds))
    k = int(np.searchsorted(np.cumsum(ds.bags.sizes[order]), n)) + 1
    chosen = ds[np.sort(order[:k])]
    return chosen.bags, augment_candidates(chosen.candidates)


def engine_step(bags: mipl.Bags, mask: np.ndarray, n_probes: int, warm: bool = False) -> Callable[[], Evidence]:
    engine = ConjugateGradientEngine(
        bags.instances, scaled_matern(2.5, LENGTHSCALE, OUTPUTSCALE), mask.shape[1], extra_noise=0.6931,
        preconditioner_size=100, n_probes=n_probes, cg_tol=0.01, max_cg_iter=200, variance_rank=100,
        memory_budget=6 * 2**30, seed=0, device=torch.device("cpu"),
    )  # fmt: skip
    targets, noise = dirichlet_targets(initial_weights(bags, mask), 1e-4)
    rule = DISAMBIGUATIONS["released"]
    optimizer = torch.optim.Adam(engine.parameters(), lr=0.01 if warm else 0.0)

    def step() -> Evidence:
        out = engine.evidence(targets, noise, warm=warm)
        optimizer.step()
        assert rule.step is not None
        dirichlet_targets(rule.step(engine.mean.detach().numpy(), out.posterior_mean, bags, mask), 1e-4)
        return out

    return step


def gpytorch_step(bags: mipl.Bags, mask: np.ndarray) -> Callable[[], float]:
    X, C = torch.tensor(bags.instances), torch.Size((mask.shape[1],))
    y, noise = (
        torch.tensor(a.T.copy(), dtype=torch.float32) for a in dirichlet_targets(initial_weights(bags, mask), 1e-4)
    )

    class Model(gpytorch.models.ExactGP):
        def __init__(self, likelihood: gpytorch.likelihoods.Likelihood) -> None:
            super().__init__(X, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean(batch_shape=C)
            self.covar_module = scaled_matern(2.5, LENGTHSCALE, OUTPUTSCALE)

        def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    likelihood = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(noise, learn_additional_noise=True, batch_shape=C)
    model = Model(likelihood)
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)

    def step() -> float:
        model.zero_grad()
        with gpytorch.settings.max_preconditioner_size(100):
            loss = -mll(model(X), y).mean()
            loss.backward()
        return loss.item()

    return step


def gemm_cpu_seconds(n: int, columns: int) -> float:
    """CPU seconds of one (columns, n) x (n, n) product, at the best rate of a square product here."""
    A = torch.rand(4096, 4096)
    best = min(timed(lambda: A @ A).cpu for _ in range(3))
    return best * (n * n * columns) / 4096**3


class Timed(NamedTuple):
    """Wall-clock and CPU seconds (all threads) of a call; the latter also mean something on a busy machine."""

    wall: float
    cpu: float
    result: Any


def timed(call: Callable[[], Any]) -> Timed:
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    return Timed(time.perf_counter() - wall, time.process_time() - cpu, result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--gpytorch", type=int, nargs="*", default=[], help="sizes at which to run GPyTorch as well")
    parser.add_argument("--probes", type=int, default=10, help="random vectors per class; 10 is GPyTorch's default")
    args = parser.parse_args()
    rows, versus = [], []
    engine_step(*problem(1000), args.probes)()  # compile and load everything once
    for size in args.sizes:
        bags, mask = problem(size)
        n, columns = bags.n_instances, (1 + args.probes) * mask.shape[1]

        def engine(bags: mipl.Bags = bags, mask: np.ndarray = mask) -> tuple[Timed, Timed]:
            setup = timed(lambda: engine_step(bags, mask, args.probes))
            return setup, min(timed(setup.result) for _ in range(2))

        def training(bags: mipl.Bags = bags, mask: np.ndarray = mask) -> list[Timed]:
            step = engine_step(bags, mask, args.probes, warm=True)
            return [timed(step) for _ in range(1 + WARM_STEPS)][1:]

        ours = measure(engine)
        setup, step = ours.result
        warm = training()
        warm_wall, warm_cg = np.mean([w.wall for w in warm]), np.mean([w.result.iterations for w in warm])
        # CG's products, and one more for the gradient: the least that matrix products could take.
        least = (step.result.iterations + 1) * gemm_cpu_seconds(n, columns)
        rows.append(
            [n, setup.wall, step.wall, step.cpu, step.result.iterations, least, least / step.cpu, ours.peak_mib,
             float(warm_wall), float(warm_cg)]
        )  # fmt: skip
        if size in args.gpytorch:
            theirs = measure(lambda b=bags, m=mask: timed(gpytorch_step(b, m)))
            loss, memory = theirs.result.result, theirs.peak_mib
            for what, a, b in (
                ("seconds", theirs.result.wall, step.wall),
                ("seconds, in training", theirs.result.wall, float(warm_wall)),
                ("CPU seconds", theirs.result.cpu, step.cpu),
                ("peak MiB", memory, ours.peak_mib),
                ("loss", loss, step.result.loss),
            ):
                versus.append([n, what, a, b, a / b])
    header = ["n", "set-up s", "step s", "step CPU s", "CG steps", "GEMM CPU s", "share", "peak MiB"]
    header += ["step in training s", "its CG steps"]
    threads = torch.get_num_threads()
    print_table(f"One step of the engine: 6 classes, {args.probes} probes each, {threads} threads", header, rows)
    if versus:
        print_table("Against GPyTorch", ["n", "", "GPyTorch", "engine", "ratio"], versus)


if __name__ == "__main__":
    main()
