"""MIVAE: a variational auto-encoder with a latent variable for each instance and one for the bag."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import Interval
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from mipl.bags import Bags
from mipl.compute import limit_torch, seed_of, torch_device
from mipl.errors import DataError
from mipl.mil.base import LogOdds, MILClassifier
from mipl.mil.network import Gaussian, MIVAENetwork
from mipl.mil.standardizer import Standardizer
from mipl.progress import track

__all__ = ["MIVAE"]


class MIVAE(MILClassifier):
    r"""Multi-instance variational auto-encoder.

    A bag label :math:`y` draws a latent variable of the bag, :math:`z_B \sim p(z_B \mid y)`, and each instance
    :math:`x_n` comes from :math:`z_B` and its own :math:`z_n \sim N(0, I)`. Inference uses two encoders:
    :math:`q(z_n \mid x_n)`, and :math:`q(z_B \mid x_1, \ldots) \propto \prod_n q(z_B \mid x_n)`. A classifier gives
    each instance log-odds :math:`h(z_n, z_B)`, and a bag has the largest of its instances. The loss of a bag is

    .. math:: \sum_n \lVert x_n - \hat x_n \rVert^2 + \sum_n \mathrm{KL}(q(z_n \mid x_n) \,\Vert\, N(0, I))
              + \mathrm{KL}(q(z_B) \,\Vert\, p(z_B \mid y)) + w\, \mathrm{BCE}(\max_n h(z_n, z_B), y),

    with one draw of the latent variables and both divergences in closed form. Training keeps the epoch with the
    least reconstruction error plus weighted cross-entropy on held-out training bags, and stops `patience` epochs after
    it. Predictions use posterior means. A bag with several copies is encoded once and its loss is weighted.

    Parameters
    ----------
    latent_dim : int, default=64
        Size of :math:`z_n` and of :math:`z_B`.
    hidden_dim : int, default=256
        Width of hidden layers (the paper's code has 512, three times the work). Instances that are images of at least
        11 x 11 pixels get convolutional encoders.
    aux_weight : float, default=1e4
        w, the weight of the classification loss.
    learning_rate : float, default=5e-4
        Of AdamW.
    weight_decay : float, default=5e-4
        Of AdamW.
    max_epochs : int, default=100
        Passes over the training bags at most.
    batch_size : int, default=32
        Bags in a mini-batch; the paper's code has 100, too few steps per epoch for a few hundred bags.
    validation_fraction : float, default=0.1
        Share of the training bags held out for early stopping; at least one bag.
    patience : int, default=10
        Epochs without improvement before training stops.
    device : str, default="cpu"
        Where torch computes: ``"cpu"``, ``"cuda"``, ...
    verbose : bool, default=False
        Show a progress bar on a terminal.
    random_state : int, RandomState or None, default=0
        Seed of weights, batches, held-out bags and latent draws; the global generator of torch is not used.

    Attributes
    ----------
    weights_ : dict of str to array
        The network's parameters.
    instance_shape_ : tuple of int
        Shape of one instance, (h, w) for images.
    losses_ : (epochs,)
        Loss of the held-out bags after each epoch.

    References
    ----------
    W. Zhang. Non-I.I.D. multi-instance learning for predicting instance and bag labels with variational
    auto-encoder. IJCAI 2021.
    """

    name = "MIVAE"
    citation = "Zhang, IJCAI 2021"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "latent_dim": [Interval(Integral, 1, None, closed="left")],
        "hidden_dim": [Interval(Integral, 1, None, closed="left")],
        "aux_weight": [Interval(Real, 0, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left")],
        "device": [str],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }
    #: Small networks hold the interpreter's lock most of the time, so threads would take turns.
    parallel: ClassVar[Literal["threads", "processes"]] = "processes"

    def __init__(
        self,
        *,
        latent_dim: int = 64,
        hidden_dim: int = 256,
        aux_weight: float = 1e4,
        learning_rate: float = 5e-4,
        weight_decay: float = 5e-4,
        max_epochs: int = 100,
        batch_size: int = 32,
        validation_fraction: float = 0.1,
        patience: int = 10,
        device: str = "cpu",
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.latent_dim = latent_dim
        self.hidden_dim = hidden_dim
        self.aux_weight = aux_weight
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    def _front_end(self) -> Standardizer:
        return Standardizer()

    @limit_torch(one_thread=False)
    def _fit(self, features: NDArray[np.float32], bags: Bags, copies: NDArray[np.int64]) -> None:
        if len(bags) < 2:
            raise DataError("MIVAE needs at least two bags: one to learn from and one held out to know when to stop")
        self.instance_shape_ = bags.instance_shape
        data = Bags(features, bags.offsets, bags.instance_shape)
        seed = seed_of(self.random_state)
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(bags))
        n_held = min(max(1, round(self.validation_fraction * len(bags))), len(bags) - 1)
        held, train = order[:n_held], order[n_held:]
        generator = torch.Generator().manual_seed(seed)
        network = self._network(generator)
        noise = self._noise(generator)
        optimizer = torch.optim.AdamW(
            network.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay, fused=True
        )
        losses: list[float] = []
        for epoch in track(range(self.max_epochs), "MIVAE", verbose=self.verbose):
            shuffled = rng.permutation(train)
            for rows in gen_batches(len(shuffled), self.batch_size):
                chosen = shuffled[rows]
                optimizer.zero_grad()
                self._training_loss(network, data[chosen], copies[chosen], noise).backward()
                optimizer.step()
            losses.append(self._held_out_loss(network, data[held], copies[held]))
            if not np.isfinite(losses[-1]):
                raise DataError(f"the loss is {losses[-1]} after epoch {epoch}; lower the learning_rate")
            if losses[-1] == min(losses):
                best, self.weights_ = epoch, _to_numpy(network)
            elif epoch - best >= self.patience:
                break
        self.losses_ = np.array(losses)

    def _training_loss(
        self, network: MIVAENetwork, bags: Bags, copies: NDArray[np.int64], noise: torch.Generator
    ) -> Tensor:
        """Mean loss of the copies of bags, through one draw of the latent variables."""
        x, bag, weight = self._tensors(bags, copies)
        q_instance, q_bag = network.encode(x, bag, len(bags))
        x_hat, _, log_odds = network.decode(q_instance.sample(noise), q_bag.sample(noise), bag, noise)
        standard = Gaussian(torch.zeros_like(q_instance.mean), torch.zeros_like(q_instance.mean))
        per_instance = ((x - x_hat) ** 2).sum(dim=1) + q_instance.divergence(standard)
        prior = network.prior()
        per_label = Gaussian(q_bag.mean[:, None], q_bag.log_variance[:, None]).divergence(prior)  # (m, 2)
        per_label = per_label + self.aux_weight * _cross_entropy(log_odds)
        total = (weight.sum(dim=1)[bag] * per_instance).sum() + (weight * per_label).sum()
        return total / weight.sum()

    @torch.no_grad()
    def _held_out_loss(self, network: MIVAENetwork, bags: Bags, copies: NDArray[np.int64]) -> float:
        """Mean reconstruction error and cross-entropy of the copies of bags, at the posterior means."""
        x, bag, weight = self._tensors(bags, copies)
        q_instance, q_bag = network.encode(x, bag, len(bags))
        x_hat, _, log_odds = network.decode(q_instance.mean, q_bag.mean, bag)
        error = (weight.sum(dim=1)[bag] * ((x - x_hat) ** 2).sum(dim=1)).sum()
        return float((error + self.aux_weight * (weight * _cross_entropy(log_odds)).sum()) / weight.sum())

    @limit_torch(one_thread=False)
    @torch.no_grad()
    def _log_odds(self, features: NDArray[np.float32], bags: Bags) -> LogOdds:
        network = self._network(torch.Generator())
        # A saved array may be read-only, which torch warns of; load_state_dict copies it in any case.
        network.load_state_dict({name: torch.tensor(value) for name, value in self.weights_.items()})
        data = Bags(features, bags.offsets, self.instance_shape_)
        of_bags, of_instances = [], []
        for rows in gen_batches(len(bags), self.batch_size):
            part = data[rows]
            x, bag, _ = self._tensors(part, np.zeros((len(part), 2), np.int64))
            q_instance, q_bag = network.encode(x, bag, len(part))
            _, instance_odds, bag_odds = network.decode(q_instance.mean, q_bag.mean, bag)
            of_bags.append(bag_odds.cpu().numpy())
            of_instances.append(instance_odds.cpu().numpy())
        return np.concatenate(of_bags).astype(np.float64), np.concatenate(of_instances).astype(np.float64)

    def _network(self, generator: torch.Generator) -> MIVAENetwork:
        network = MIVAENetwork.drawn(self.instance_shape_, self.latent_dim, self.hidden_dim, generator)
        return network.to(torch_device(self.device))

    def _noise(self, generator: torch.Generator) -> torch.Generator:
        """The source of latent draws and dropout: the same generator, or one on the device that goes on from it."""
        device = torch_device(self.device)
        if device.type == "cpu":
            return generator
        return torch.Generator(device).manual_seed(int(torch.randint(2**62, (), generator=generator)))

    def _tensors(self, bags: Bags, copies: NDArray[np.int64]) -> tuple[Tensor, Tensor, Tensor]:
        """Instances (n, d), their bags (n,) and the copies (m, 2), on the device."""
        return (
            torch.tensor(bags.instances, device=self.device),
            torch.tensor(bags.bag_of_instance, device=self.device),
            torch.tensor(copies, dtype=torch.float32, device=self.device),
        )


def _cross_entropy(log_odds: Tensor) -> Tensor:
    """Of bags (m,) under either label, (m, 2)."""
    both = log_odds[:, None].expand(-1, 2)
    labels = torch.tensor([0.0, 1.0], device=log_odds.device).expand_as(both)
    return binary_cross_entropy_with_logits(both, labels, reduction="none")


def _to_numpy(network: MIVAENetwork) -> dict[str, NDArray[np.float32]]:
    return {name: value.detach().cpu().numpy().copy() for name, value in network.state_dict().items()}
