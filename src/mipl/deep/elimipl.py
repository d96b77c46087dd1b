"""ELIMIPL: scaled softmax attention, and losses that use candidates and non-candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import torch
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval
from torch import Tensor

from mipl.deep.attention import Segments, segment_softmax
from mipl.deep.base import DeepMIPL
from mipl.deep.encoder import Encoder
from mipl.deep.network import AttentionNetwork, Batch, Step, cross_entropy, log_probabilities, restrict

__all__ = ["ELIMIPL"]

#: Log probabilities are kept this far below zero where log(1 - p) is taken.
_BELOW_ONE = 1e-6


def candidate_mass(log_p: Tensor, candidates: Tensor) -> Tensor:
    """The probability (b,) of a bag's candidates together, from log probabilities (b, q)."""
    return torch.where(candidates, log_p.exp(), 0).sum(dim=1)


def exclusion(log_p: Tensor, candidates: Tensor) -> Tensor:
    """The sum (b,) of -log(1 - p) over a bag's non-candidates, from log probabilities (b, q)."""
    log_rest = torch.log(-torch.expm1(log_p.clamp(max=-_BELOW_ONE)))
    return -torch.where(candidates, 0, log_rest).sum(dim=1)


class ELIMIPLNetwork(AttentionNetwork):
    """The network and the loss of `ELIMIPL`."""

    def __init__(
        self, *args: Any, n_hidden: int, sparsity_weight: float, exclusion_weight: float, **params: Any
    ) -> None:
        super().__init__(*args, n_hidden=n_hidden, **params)
        self.root = sqrt(n_hidden)
        self.sparsity_weight = sparsity_weight
        self.exclusion_weight = exclusion_weight

    def attend(self, score: Tensor, segments: Segments) -> Tensor:
        """Attention (n, 1), softmax of scores (n, 1) over the root of L."""
        return segment_softmax(score / self.root, segments)

    def loss(self, batch: Batch, noise: torch.Generator | None) -> Step:
        """The loss (b,) of each bag; its label weights move towards the class probabilities on the candidates."""
        pooled = self.pool(batch.instances, batch.segments, noise)
        log_p = log_probabilities(pooled.logits, self.squash_logits)  # (b, q)
        loss = cross_entropy(batch.weights, log_p)
        loss = loss + self.sparsity_weight * candidate_mass(log_p, batch.candidates)
        loss = loss + self.exclusion_weight * exclusion(log_p, batch.candidates)
        return Step(loss, restrict(log_p.exp(), batch.candidates))


def _settings(learning_rate: float, exclusion_weight: float, sparsity_weight: float) -> dict[str, float]:
    return {
        "learning_rate": learning_rate,
        "exclusion_weight": exclusion_weight,
        "sparsity_weight": sparsity_weight,
    }


class ELIMIPL(DeepMIPL):
    r"""Exploiting conjugate label information for multi-instance partial-label learning.

    Hidden vectors :math:`h_j` of a bag's instances are averaged with attention :math:`a = \mathrm{softmax}_j(s_j /
    \sqrt L)` of their gated scores, :math:`z = \sum_j a_j h_j`, and classified, :math:`p = \mathrm{softmax}(C z + c)`.
    The loss of a bag with label weights w and candidates S is

    .. math:: -\sum_l w_l \log p_l + \mu \sum_{l \in S} p_l - \gamma \sum_{l \notin S} \log(1 - p_l) .

    The term with :math:`\mu`, which the paper calls sparsity, is the mass of the candidates: minimising it pushes
    probability out of the candidate set. As long as :math:`\mu \le \gamma` the third term pushes back at least as hard.
    Label weights start uniform on the candidates and move to p on the candidates, see `mipl.deep.training.train`.
    `ELIMIPL.paper` gives the published settings; the defaults leave out what is peculiar to the released program.

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
    sparsity_weight : float, default=0.1
        mu.
    exclusion_weight : float, default=1.0
        gamma.
    learning_rate : float, default=0.01
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
    W. Tang, W. Zhang, M.-L. Zhang. Exploiting conjugate label information for multi-instance partial-label learning.
    IJCAI 2024.
    """

    name = "ELIMIPL"
    citation = "Tang, Zhang, Zhang, IJCAI 2024"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DeepMIPL._parameter_constraints,
        "attention_size": [Interval(Integral, 1, None, closed="left")],
        "tied_gate": ["boolean"],
        "squash_logits": ["boolean"],
        "sparsity_weight": [Interval(Real, 0, None, closed="left")],
        "exclusion_weight": [Interval(Real, 0, None, closed="left")],
    }
    _published: ClassVar[Mapping[str, Sequence[Mapping[str, Any]]]] = {
        "mnist": [_settings(0.05, 0.1, 1), _settings(0.05, 0.1, 1), _settings(0.05, 0.1, 0.1)],
        "fmnist": [_settings(0.01, 0.5, 1), _settings(0.01, 0.5, 1), _settings(0.05, 0.5, 1)],
        "birdsong": [_settings(0.01, 10, 10)] * 3,
        "sival": [_settings(0.01, 10, 10), _settings(0.01, 10, 10), _settings(0.05, 10, 10)],
    }
    _published_for_all: ClassVar[Mapping[str, Any]] = {"tied_gate": True, "squash_logits": True, "batch_size": 1}

    def __init__(
        self,
        *,
        hidden_sizes: Sequence[int] = (128,),
        attention_size: int = 128,
        dropout: float = 0.5,
        tied_gate: bool = False,
        squash_logits: bool = False,
        sparsity_weight: float = 0.1,
        exclusion_weight: float = 1.0,
        learning_rate: float = 0.01,
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
        self.sparsity_weight = sparsity_weight
        self.exclusion_weight = exclusion_weight

    def _network(self, instance_shape: tuple[int, ...], n_classes: int, generator: torch.Generator) -> ELIMIPLNetwork:
        return ELIMIPLNetwork(
            Encoder(instance_shape, self.hidden_sizes, self.dropout, generator),
            sparsity_weight=self.sparsity_weight,
            exclusion_weight=self.exclusion_weight,
            n_hidden=self.hidden_sizes[-1],
            n_classes=n_classes,
            attention_size=self.attention_size,
            tied_gate=self.tied_gate,
            squash_logits=self.squash_logits,
            generator=generator,
        )
