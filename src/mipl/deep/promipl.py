"""ProMIPL: a generative model of the labels resolves the candidates, a classifier learns from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import torch
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval
from torch import Tensor, nn
from torch.nn.functional import log_softmax

from mipl.deep.base import DeepMIPL
from mipl.deep.encoder import Encoder, linear
from mipl.deep.network import Batch, Step, cross_entropy, log_probabilities, restrict
from mipl.deep.tempered import TemperedNetwork

__all__ = ["ProMIPL"]

#: Inverse temperature of the relaxed Bernoulli draws.
_SHARPNESS = 1.5


def binary_entropy(q: Tensor) -> Tensor:
    """The mean (b,) over labels of the entropy of probabilities (b, q) strictly between 0 and 1."""
    return -(q * q.log() + (1 - q) * torch.log1p(-q)).mean(dim=1)


def relaxed_bernoulli(q: Tensor, noise: torch.Generator | None) -> Tensor:
    """Draws between 0 and 1, near the ends, that gradients of probabilities (b, q) pass through; q without noise."""
    if noise is None:
        return q
    eps = torch.finfo(q.dtype).eps
    u = torch.rand(q.shape, generator=noise, device=q.device, dtype=q.dtype).clamp(eps, 1 - eps)
    return torch.sigmoid(_SHARPNESS * (torch.logit(q) + torch.logit(u)))


class ProMIPLNetwork(TemperedNetwork):
    """The networks and the loss of `ProMIPL`."""

    def __init__(
        self,
        *args: Any,
        n_hidden: int,
        n_classes: int,
        entropy_weight: float,
        reconstruction_weight: float,
        generator: torch.Generator,
        **params: Any,
    ) -> None:
        super().__init__(*args, n_hidden=n_hidden, n_classes=n_classes, generator=generator, **params)
        self.entropy_weight = entropy_weight
        self.reconstruction_weight = reconstruction_weight
        self.inference = _label_network(n_hidden + n_classes, (256, 512, 256), n_classes, generator)
        self.generation = _label_network(n_hidden + n_classes, (256, 512), n_classes, generator)

    def infer(self, vector: Tensor, weights: Tensor) -> Tensor:
        """Probability (b, q) that each label applies, from bag vectors (b, L) and label weights (b, q)."""
        eps = torch.finfo(vector.dtype).eps
        q = torch.sigmoid(self.inference(torch.cat([vector, weights], dim=1))) * weights
        return q.clamp(eps, 1 - eps)

    def generate(self, vector: Tensor, labels: Tensor) -> Tensor:
        """Logits (b, q) of the true label, from bag vectors (b, L) and drawn labels (b, q)."""
        logits = self.generation(torch.cat([vector, labels], dim=1))
        return torch.sigmoid(logits) if self.squash_logits else logits

    def loss(self, batch: Batch, noise: torch.Generator | None) -> Step:
        """The loss (b,) of each bag; its label weights move towards the generated label on the candidates."""
        pooled = self.pool(batch.instances, batch.segments, noise)
        log_p = log_probabilities(pooled.logits, self.squash_logits)  # (b, q)
        q = self.infer(pooled.vector, batch.weights)
        generated = self.generate(pooled.vector, relaxed_bernoulli(q, noise))
        loss = cross_entropy(q.detach(), log_p) - self.entropy_weight * binary_entropy(q)
        loss = loss + self.reconstruction_weight * cross_entropy(batch.weights, log_softmax(generated, dim=1))
        belief = generated if self.squash_logits else generated.softmax(dim=1)
        return Step(loss, restrict(belief, batch.candidates))


def _label_network(n_in: int, sizes: Sequence[int], n_classes: int, generator: torch.Generator) -> nn.Sequential:
    """Linear layers with ReLUs, started by He's rule with biases from 0 to .1, and a linear layer to the classes."""
    layers: list[nn.Module] = []
    for size in sizes:
        layer = linear(n_in, size, generator)
        nn.init.uniform_(layer.weight, -sqrt(6 / n_in), sqrt(6 / n_in), generator=generator)
        nn.init.uniform_(layer.bias, 0, 0.1, generator=generator)
        layers += [layer, nn.ReLU()]
        n_in = size
    return nn.Sequential(*layers, linear(n_in, n_classes, generator))


class ProMIPL(DeepMIPL):
    r"""A generative model of the labels for multi-instance partial-label learning.

    Attention and classifier are those of `MIPLMA`. Beside them, an inference network reads the bag vector z and the
    label weights s and gives each label a probability, :math:`q = \mathrm{sigmoid}(f(z, s)) \odot s`; a relaxed
    Bernoulli draw :math:`\tilde y` of these enters a generator, :math:`g = G(z, \tilde y)`. The loss of a bag is

    .. math:: -\sum_l \bar q_l \log p_l - \alpha\, \tfrac1q \sum_l H(q_l) - \beta \sum_l s_l \log
              \mathrm{softmax}(g)_l ,

    where :math:`\bar q` passes no gradient and H is the entropy of one label, which is made large. The generator, not
    the classifier, resolves the candidates: s moves to softmax(g) on the candidates, see `mipl.deep.training.train`.
    The released program keeps the temperature at 5, where attention is nearly the mean, and takes sigmoids of g both
    for logits and for what s moves to (`squash_logits`). `ProMIPL.paper` gives the published settings.

    Parameters
    ----------
    hidden_sizes : sequence of int, default=(128,)
        Widths of the encoder's linear layers; the last one is the length L of a bag vector.
    attention_size : int, default=128
        Width of the attention's hidden layer.
    dropout : float, default=0.5
        Share of the encoder's hidden units left out in training.
    tied_gate : bool, default=False
        Use one matrix for both halves of the gate, as in the released program, see `GatedAttention`.
    squash_logits : bool, default=False
        Take the softmax of the logits' sigmoids, as in the released program, see `log_probabilities`.
    entropy_weight : float, default=1.0
        alpha.
    reconstruction_weight : float, default=1.0
        beta.
    temperature : float, default=5.0
        tau in the first epoch.
    temperature_decay : float, default=0.95
        Factor of tau per epoch; 1 keeps it.
    min_temperature : float, default=0.1
        Lower bound of tau.
    min_deviation : float, default=0.1
        Added to the deviation by which a bag's scores are divided. The released program adds 1e-8, which lets a bag of
        two instances with nearly the same score throw the network off, see `TemperedNetwork`.
    learning_rate : float, default=0.005
        Step length of one bag: a step of b bags takes b * learning_rate on their mean gradient, so one learning rate
        suits every batch_size.
    schedule : {"cosine", "constant"}, default="cosine"
        The learning rate falls to zero along a cosine, or stays.
    max_epochs : int, default=100
        Passes over the training bags; there is no early stopping.
    batch_size : int or None, default=16
        Bags per step; None takes all bags at once.
    momentum : float, default=0.9
        Nesterov momentum.
    weight_decay : float or "auto", default="auto"
        Factor of the parameters that is added to the gradient, for all parameters. "auto" is 3e-3 for images that a
        front end describes (features), else 1e-4.
    standardize : bool, default=True
        Bring instances to mean 0 and deviation 1 over the training bags, each feature by itself; images as a whole.
    features : "images", "auto", None or scikit-learn transformer, default="images"
        Applied to instances before the encoder. "auto" takes what BagGP would, see `mipl.features.choose_features`;
        "images" does so for images of at least 16 x 16 pixels alone, so that filters found without labels take the
        place of the encoder's convolutions, and leaves all else as it is. None lets the convolutions learn.
    device : str, default="cpu"
        Where torch computes: "cpu", "cuda", ...
    random_state : int, RandomState or None, default=0
        Seed of initial weights, order of bags and dropout. torch's global generator is neither read nor set.
    verbose : bool, default=False
        Show a progress bar on a terminal.

    Attributes
    ----------
    state_ : dict of str to array
        What the network learned.
    weights_ : (m, q)
        Label weights of the training bags at the end of training.
    loss_ : (epochs,)
        Mean training loss of each epoch.
    features_ : transformer or None
        The fitted front end, where there is one.
    seed_ : int
        The seed that random_state gave.

    References
    ----------
    Y.-F. Yang et al. ProMIPL: a generative probabilistic disambiguation model for multi-instance partial-label
    learning. ICDM 2024. The title is that of the authors' repository, yangyf22/ProMIPL; the proceedings were not at
    hand.
    """

    name = "ProMIPL"
    citation = "Yang et al., ICDM 2024"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DeepMIPL._parameter_constraints,
        "attention_size": [Interval(Integral, 1, None, closed="left")],
        "tied_gate": ["boolean"],
        "squash_logits": ["boolean"],
        "entropy_weight": [Interval(Real, 0, None, closed="left")],
        "reconstruction_weight": [Interval(Real, 0, None, closed="left")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "temperature_decay": [Interval(Real, 0, 1, closed="right")],
        "min_temperature": [Interval(Real, 0, None, closed="neither")],
        "min_deviation": [Interval(Real, 0, None, closed="neither")],
    }
    #: The repository has settings for MNIST alone.
    _published: ClassVar[Mapping[str, Sequence[Mapping[str, Any]]]] = {
        "mnist": [{"learning_rate": 0.005}, {"learning_rate": 0.005}, {"learning_rate": 0.0085}],
    }
    _published_for_all: ClassVar[Mapping[str, Any]] = {
        "schedule": "constant",
        "temperature_decay": 1.0,
        "tied_gate": True,
        "squash_logits": True,
        "min_deviation": 1e-8,
        "batch_size": 1,
    }

    def __init__(
        self,
        *,
        hidden_sizes: Sequence[int] = (128,),
        attention_size: int = 128,
        dropout: float = 0.5,
        tied_gate: bool = False,
        squash_logits: bool = False,
        entropy_weight: float = 1.0,
        reconstruction_weight: float = 1.0,
        temperature: float = 5.0,
        temperature_decay: float = 0.95,
        min_temperature: float = 0.1,
        min_deviation: float = 0.1,
        learning_rate: float = 0.005,
        schedule: Literal["cosine", "constant"] = "cosine",
        max_epochs: int = 100,
        batch_size: int | None = 16,
        momentum: float = 0.9,
        weight_decay: float | Literal["auto"] = "auto",
        standardize: bool = True,
        features: str | BaseEstimator | None = "images",
        device: str = "cpu",
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            hidden_sizes=hidden_sizes,
            dropout=dropout,
            learning_rate=learning_rate,
            schedule=schedule,
            max_epochs=max_epochs,
            batch_size=batch_size,
            momentum=momentum,
            weight_decay=weight_decay,
            standardize=standardize,
            features=features,
            device=device,
            random_state=random_state,
            verbose=verbose,
        )
        self.attention_size = attention_size
        self.tied_gate = tied_gate
        self.squash_logits = squash_logits
        self.entropy_weight = entropy_weight
        self.reconstruction_weight = reconstruction_weight
        self.temperature = temperature
        self.temperature_decay = temperature_decay
        self.min_temperature = min_temperature
        self.min_deviation = min_deviation

    def _network(self, instance_shape: tuple[int, ...], n_classes: int, generator: torch.Generator) -> ProMIPLNetwork:
        return ProMIPLNetwork(
            Encoder(instance_shape, self.hidden_sizes, self.dropout, generator),
            entropy_weight=self.entropy_weight,
            reconstruction_weight=self.reconstruction_weight,
            temperature=self.temperature,
            decay=self.temperature_decay,
            min_temperature=self.min_temperature,
            min_deviation=self.min_deviation,
            n_hidden=self.hidden_sizes[-1],
            n_classes=n_classes,
            attention_size=self.attention_size,
            tied_gate=self.tied_gate,
            squash_logits=self.squash_logits,
            generator=generator,
        )
