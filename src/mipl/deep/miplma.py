"""MIPLMA: attention that sharpens as it cools, and a margin between candidates and the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import torch
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor

from mipl.deep.base import DeepMIPL
from mipl.deep.encoder import Encoder
from mipl.deep.network import Batch, Step, cross_entropy, log_probabilities, restrict
from mipl.deep.tempered import TemperedNetwork

__all__ = ["MIPLMA"]


def margin_violation(p: Tensor, candidates: Tensor) -> Tensor:
    """(1 - best candidate + best non-candidate) / 2 of each bag (b,), from probabilities (b, q); from 0 to 1."""
    inside = torch.where(candidates, p, 0).amax(dim=1)
    outside = torch.where(candidates, 0, p).amax(dim=1)
    return (1 - inside + outside) / 2


def margin_closed_form(violation: Tensor) -> Tensor:
    """What the released program makes of each bag's violation l (b,): l / (2 - sqrt(2) l).

    It is mean / (1 - deviation) of the two numbers 0 and l: the list over which the paper takes both begins anew, with
    a zero, at every bag.
    """
    return violation / (2 - sqrt(2) * violation)


def margin_of_batch(violation: Tensor) -> Tensor:
    """The paper's mean / (1 - deviation) of violations (b,), over the bags of a step, as (b,) equal numbers."""
    variance = violation.var() if len(violation) > 1 else violation.new_zeros(())
    # The root has no slope at zero, where all violations are equal.
    deviation = (variance + torch.finfo(variance.dtype).eps).sqrt()
    return (violation.mean() / (1 - deviation)).expand(len(violation))


_MARGINS = {"closed-form": margin_closed_form, "batch": margin_of_batch}


class MIPLMANetwork(TemperedNetwork):
    """The network and the loss of `MIPLMA`."""

    def __init__(self, *args: Any, margin: str, margin_weight: float, **params: Any) -> None:
        super().__init__(*args, **params)
        self.margin = _MARGINS[margin]
        self.margin_weight = margin_weight

    def loss(self, batch: Batch, noise: torch.Generator | None) -> Step:
        """The loss (b,) of each bag; its label weights move towards the class probabilities on the candidates."""
        pooled = self.pool(batch.instances, batch.segments, noise)
        log_p = log_probabilities(pooled.logits, self.squash_logits)  # (b, q)
        p = log_p.exp()
        margin = self.margin(margin_violation(p, batch.candidates))
        loss = cross_entropy(batch.weights, log_p) + self.margin_weight * margin
        return Step(loss, restrict(p, batch.candidates))


class MIPLMA(DeepMIPL):
    r"""Multi-instance partial-label learning with margin adjustment.

    Scores of the gated attention are standardised within each bag and sharpened as the temperature falls, :math:`a =
    \mathrm{softmax}_j\big(s_j / (\sqrt L\, \tau)\big)`; the bag vector :math:`z = \sum_j a_j h_j` is classified,
    :math:`p = \mathrm{softmax}(C z + c)`. The loss of a bag with label weights w and candidates S is

    .. math:: -\sum_l w_l \log p_l + \lambda M, \qquad
              \ell = \tfrac12 \big(1 - \max_{l \in S} p_l + \max_{l \notin S} p_l\big),

    where M is made of the violations :math:`\ell` of the margin: their mean / (1 - deviation) over the bags of a step
    (``margin="batch"``, the paper's formula, which takes them over an epoch), or :math:`\ell / (2 - \sqrt 2\, \ell)` of
    each bag (``"closed-form"``, to which the released program comes down). A bag of one instance, on which the released
    program gives NaN, has attention 1. Label weights start uniform on the candidates and move to p on the candidates,
    see `mipl.deep.training.train`. `MIPLMA.paper` gives the published settings.

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
    margin : {"batch", "closed-form"}, default="batch"
        How M is made of the violations.
    margin_weight : float, default=1.0
        lambda.
    temperature : float, default=5.0
        tau in the first epoch.
    temperature_decay : float, default=0.95
        Factor of tau per epoch; at .95 the bound is reached after 77 epochs.
    min_temperature : float, default=0.1
        Lower bound of tau.
    min_deviation : float, default=0.1
        Added to the deviation by which a bag's scores are divided. The released program adds 1e-8, which lets a bag of
        two instances with nearly the same score throw the network off, see `TemperedNetwork`.
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
    W. Tang, Y.-F. Yang, Z. Wang, W. Zhang, M.-L. Zhang. Multi-instance partial-label learning with margin adjustment.
    NeurIPS 2024.
    """

    name = "MIPLMA"
    citation = "Tang, Yang, Wang, Zhang, Zhang, NeurIPS 2024"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DeepMIPL._parameter_constraints,
        "attention_size": [Interval(Integral, 1, None, closed="left")],
        "tied_gate": ["boolean"],
        "squash_logits": ["boolean"],
        "margin": [StrOptions({"batch", "closed-form"})],
        "margin_weight": [Interval(Real, 0, None, closed="left")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "temperature_decay": [Interval(Real, 0, 1, closed="right")],
        "min_temperature": [Interval(Real, 0, None, closed="neither")],
        "min_deviation": [Interval(Real, 0, None, closed="neither")],
    }
    #: The repository has settings for MNIST alone.
    _published: ClassVar[Mapping[str, Sequence[Mapping[str, Any]]]] = {
        "mnist": [{"margin_weight": 0.05}, {"margin_weight": 0.1}, {"margin_weight": 0.01}],
    }
    _published_for_all: ClassVar[Mapping[str, Any]] = {
        "learning_rate": 0.01,
        "margin": "closed-form",
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
        margin: Literal["batch", "closed-form"] = "batch",
        margin_weight: float = 1.0,
        temperature: float = 5.0,
        temperature_decay: float = 0.95,
        min_temperature: float = 0.1,
        min_deviation: float = 0.1,
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
        self.margin = margin
        self.margin_weight = margin_weight
        self.temperature = temperature
        self.temperature_decay = temperature_decay
        self.min_temperature = min_temperature
        self.min_deviation = min_deviation

    def _network(self, instance_shape: tuple[int, ...], n_classes: int, generator: torch.Generator) -> MIPLMANetwork:
        return MIPLMANetwork(
            Encoder(instance_shape, self.hidden_sizes, self.dropout, generator),
            margin=self.margin,
            margin_weight=self.margin_weight,
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
