"""The one training loop: mini-batches of bags, SGD, label weights that follow what the network believes."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from mipl.bags import Bags
from mipl.deep.attention import Segments
from mipl.deep.network import BagNetwork, Batch, uniform_weights
from mipl.errors import ParameterError
from mipl.progress import track

__all__ = ["Plan", "Training", "moved_weights", "train"]


@dataclass(frozen=True)
class Plan:
    """How a network is trained; the parameters are those of `DeepMIPL`."""

    max_epochs: int
    batch_size: int | None
    learning_rate: float
    momentum: float
    weight_decay: float
    schedule: Literal["cosine", "constant"]
    per_bag: bool

    def step_size(self, epoch: int, n_bags: int) -> float:
        """What the mean gradient of a step of `n_bags` bags is multiplied by."""
        rate = self.learning_rate * (n_bags if self.per_bag else 1)
        if self.schedule == "cosine":
            rate *= (1 + math.cos(math.pi * epoch / self.max_epochs)) / 2
        return rate

    def inertia(self, epoch: int) -> float:
        """The share of the old label weights that is kept: 1 in the first epoch, 1 / max_epochs in the last."""
        return (self.max_epochs - epoch) / self.max_epochs


class Training(NamedTuple):
    """What is left of a training beside the network's parameters."""

    weights: NDArray[np.float32]  # (m, q), label weights at the end
    loss: NDArray[np.float64]  # (epochs,), mean loss of the bags in each whole epoch


def moved_weights(weights: Tensor, belief: Tensor, inertia: float) -> Tensor:
    """Label weights (b, q) after a step: a share `inertia` of the old ones, the rest from the network's belief."""
    return inertia * weights + (1 - inertia) * belief


def train(
    network: BagNetwork,
    bags: Bags,
    candidates: NDArray[np.bool_],
    plan: Plan,
    *,
    generator: torch.Generator,
    device: torch.device,
    progress: str | None = None,
) -> Training:
    r"""Train `network` in place by SGD with Nesterov momentum on mini-batches of bags.

    Label weights start uniform on the candidates. In epoch t of T the loss of a bag uses its weights w, and then

    .. math:: w \leftarrow \rho_t w + (1 - \rho_t)\, \hat p, \qquad \rho_t = (T - t) / T,

    where :math:`\hat p` is the network's belief in that very step. A step follows the mean gradient of its b bags,
    times the learning rate, times b where the rate is per bag: b bags in one step then move the parameters as far as b
    steps of one bag, as long as the gradient does not turn meanwhile.

    An interrupt (Ctrl-C) ends the training; what was learned so far is kept, with a warning. A progress bar is shown
    under the name `progress`, if there is one.
    """
    noise = torch.Generator(device).manual_seed(int(torch.randint(2**62, (), generator=generator)))
    data = _TrainingBags(bags, candidates, device)
    optimizer = torch.optim.SGD(
        network.parameters(),
        lr=plan.learning_rate,
        momentum=plan.momentum,
        nesterov=plan.momentum > 0,
        weight_decay=plan.weight_decay,
        fused=device.type in ("cpu", "cuda"),
    )
    losses: list[float] = []
    try:
        for epoch in track(range(plan.max_epochs), progress or "", verbose=progress is not None):
            order = torch.randperm(len(bags), generator=generator).to(device)
            losses.append(_epoch(network, data, order, plan, epoch, optimizer, noise))
            network.end_epoch()
    except KeyboardInterrupt:
        warnings.warn(
            f"training was interrupted in epoch {len(losses) + 1} of {plan.max_epochs}; "
            "the model keeps what it learned",
            ConvergenceWarning,
            stacklevel=2,
        )
    return Training(data.weights.cpu().numpy(), np.array(losses))


def _epoch(
    network: BagNetwork,
    data: _TrainingBags,
    order: Tensor,
    plan: Plan,
    epoch: int,
    optimizer: torch.optim.Optimizer,
    noise: torch.Generator,
) -> float:
    """One pass over all bags; the mean of their losses."""
    size = plan.batch_size or len(order)
    inertia = plan.inertia(epoch)
    total = torch.zeros((), device=data.weights.device)
    for start in range(0, len(order), size):
        index = order[start : start + size]
        batch = data.batch(index)
        step = network.loss(batch, noise)
        optimizer.zero_grad()
        step.loss.mean().backward()
        for group in optimizer.param_groups:
            group["lr"] = plan.step_size(epoch, len(index))
        optimizer.step()
        data.weights[index] = moved_weights(batch.weights, step.belief.detach(), inertia)
        total += step.loss.detach().sum()
    mean = float(total) / len(order)
    if not math.isfinite(mean):
        raise ParameterError(f"the loss is {mean} in epoch {epoch + 1}; lower the learning_rate or the batch_size")
    return mean


class _TrainingBags:
    """Training bags on the device, with the label weights that change as training goes on."""

    def __init__(self, bags: Bags, candidates: NDArray[np.bool_], device: torch.device) -> None:
        self.instances = torch.tensor(bags.instances, device=device)
        self.starts = torch.tensor(bags.offsets[:-1], device=device)
        self.sizes = torch.tensor(bags.sizes, device=device)
        self.candidates = torch.tensor(candidates, device=device)
        self.weights = uniform_weights(self.candidates)

    def batch(self, index: Tensor) -> Batch:
        """The bags `index` (b,)."""
        sizes = self.sizes[index]
        segments = Segments.of_sizes(sizes)
        shift = self.starts[index] - (sizes.cumsum(0) - sizes)  # from the place in the batch to the place in the data
        rows = shift[segments.bag] + torch.arange(len(segments.bag), device=index.device)
        return Batch(self.instances.index_select(0, rows), segments, self.candidates[index], self.weights[index])
