"""FastMIPL: a variational classifier with one attention per class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor, nn

from mipl.bags import Bags
from mipl.deep.attention import Segments, segment_sum
from mipl.deep.base import DeepMIPL, blocks, score_bags
from mipl.deep.class_weights import (
    LogDeterminant,
    class_scores,
    divergence,
    log_determinant,
    sample_weights,
    weight_scale,
)
from mipl.deep.encoder import Encoder
from mipl.deep.network import BagNetwork, BagScores, Batch, Step, cross_entropy, restrict
from mipl.deep.softmax_start import Start, softmax_start

__all__ = ["FastMIPL"]

#: Bags that all score the same have no deviation to divide by.
_MIN_DEVIATION = 1e-12


def over_bags(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation of scores (b, ...) over bags; one bag alone has deviation 1."""
    if len(scores) == 1:
        return scores[0], torch.ones_like(scores[0])
    deviation, mean = torch.std_mean(scores, dim=0)
    return mean, deviation.clamp(min=_MIN_DEVIATION)


class FastMIPLNetwork(BagNetwork):
    """The network and the loss of `FastMIPL`."""

    training_only: ClassVar[tuple[str, ...]] = ("factor", "log_prior_scale")
    score_mean: Tensor
    score_deviation: Tensor

    def __init__(
        self,
        encoder: Encoder,
        *,
        n_hidden: int,
        n_classes: int,
        n_samples: int,
        average_samples: bool,
        renormalize_weights: bool,
        score_scaling: Literal["train", "batch"],
        kl_weight: float,
        kl_refresh: int,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.n_samples = n_samples
        self.average_samples = average_samples
        self.renormalize_weights = renormalize_weights
        self.score_scaling = score_scaling
        self.kl_weight = kl_weight
        self.kl_refresh = kl_refresh
        self.mean = nn.Parameter(torch.zeros(n_classes, 2 * n_hidden))
        self.factor = nn.Parameter(torch.empty(n_classes, 2 * n_hidden, 2 * n_hidden))
        self.log_prior_scale = nn.Parameter(torch.zeros(n_classes, 2))  # of attending and of scoring weights
        self.register_buffer("score_mean", torch.zeros(n_classes))
        self.register_buffer("score_deviation", torch.ones(n_classes))
        self.n_bags = 1
        self._steps = 0
        self._log_det: LogDeterminant | None = None

    @torch.no_grad()
    def begin(self, start: Start, n_bags: int) -> None:
        """Take over the first values of all parameters but the encoder's, for a training on `n_bags` bags."""
        self.n_bags = n_bags
        self.mean.copy_(start.mean)
        self.factor.copy_(start.factor)
        self.log_prior_scale.copy_(start.log_prior_scale)

    def divergence(self) -> Tensor:
        """KL of posterior from prior, summed over classes; covariances are factorised every `kl_refresh` calls."""
        if self._log_det is None or self._steps % self.kl_refresh == 0:
            self._log_det = log_determinant(self.factor)
        self._steps += 1
        log_scale = self.log_prior_scale.repeat_interleave(self.mean.shape[1] // 2, dim=1)
        return divergence(self.mean, self.factor, self._log_det.at(self.factor), log_scale).sum()

    def loss(self, batch: Batch, noise: torch.Generator | None) -> Step:
        """The loss (b,) of each bag; its label weights move towards the softmax of its scores, on the candidates."""
        q = len(self.mean)
        h = self.encoder(batch.instances, noise)
        beta = sample_weights(self.mean, self.factor, self.n_samples, noise)  # (q, 2 L, s)
        scores = class_scores(h, beta, batch.segments).bags.unflatten(1, (q, -1))  # (b, q, s)
        mean, deviation = over_bags(scores)
        z = weight_scale(beta) * (scores - mean) / deviation
        fit = cross_entropy(batch.weights, z.mean(dim=2) if self.average_samples else z.sum(dim=2))
        belief = z.softmax(dim=1).mean(dim=2)  # (b, q)
        if self.renormalize_weights:
            belief = restrict(belief, batch.candidates)
        penalty = self.kl_weight * self.divergence() / self.n_bags
        return Step(fit + penalty, torch.where(batch.candidates, belief, 0))

    def scores(self, instances: Tensor, segments: Segments, noise: torch.Generator | None = None) -> BagScores:
        """Scores (b, q) of bags at the posterior mean, and one attention (n, q) per class of their instances."""
        return class_scores(self.encoder(instances, noise), self.mean[:, :, None], segments)

    def probabilities(self, scores: Tensor) -> Tensor:
        """Class probabilities (b, q) from scores (b, q), standardised over the training bags or over these bags."""
        mean, deviation = self.score_mean, self.score_deviation
        if self.score_scaling == "batch":
            mean, deviation = over_bags(scores)
        return (weight_scale(self.mean[:, :, None]).squeeze(1) * (scores - mean) / deviation).softmax(dim=1)


class FastMIPL(DeepMIPL):
    r"""Fast multi-instance partial-label learning by a variational classifier.

    Class c has weights :math:`\beta_c = (\beta_{u,c}, \beta_{z,c})` with posterior :math:`N(\mu_c, F_c F_c^T + 10^{-4}
    I)` and a normal prior with learnt variances. In bag i with hidden vectors :math:`h_{ij}`, each class has its own
    attention, and scores are standardised over the bags of a step,

    .. math:: a_{ijc} = \mathrm{softmax}_j(h_{ij}^T \beta_{u,c}), \quad
              \zeta_{ic} = \sum_j a_{ijc}\, h_{ij}^T \beta_{z,c} / b_c, \quad
              z_{ic} = b_c\, (\zeta_{ic} - \mathrm{mean}_i\, \zeta_{ic}) / \mathrm{std}_i\, \zeta_{ic},

    with :math:`b_c` the root mean square of :math:`\beta_{z,c}`. The loss of n bags with label weights w is, over
    samples of :math:`\beta`,

    .. math:: -\tfrac1n \sum_i \sum_c w_{ic}\, \mathrm{E}\, z_{ic} + \tfrac{\kappa}{n} \sum_c \mathrm{KL}(\beta_c) .

    It has no normaliser: negative evidence comes from the standardisation alone. Label weights move to the softmax of z
    on the candidates, see `mipl.deep.training.train`. The release also learns an intercept per class, which changes
    neither the other gradients nor any prediction; it is left out. Prediction takes the posterior mean.

    Covariances are factorised for the KL alone (samples need no factor), and only every `kl_refresh` steps; in
    between, their log determinant is continued linearly. `FastMIPL.paper` gives the published settings.

    Parameters
    ----------
    hidden_sizes : sequence of int, default=(256, 128)
        Widths of the encoder's linear layers; the last one is L.
    dropout : float, default=0.5
        Share of the encoder's hidden units left out in training.
    n_samples : int, default=10
        Draws of the weights in each step.
    average_samples : bool, default=True
        Average the loss over the draws. False sums, as the released program does; the more draws, the less the KL
        counts and the longer the steps.
    score_scaling : {"train", "batch"}, default="train"
        Predictions standardise scores by mean and deviation of the training bags, or of the bags that are passed
        together, as the released program does: there a bag's answer depends on the others, and a bag alone always
        gets the first class.
    dropout_at_prediction : bool, default=False
        Leave hidden units out in prediction too, as the released program does; the draws come from random_state.
    init_from_own_encoder : bool, default=True
        Start from a softmax regression on the bag means of the encoder at hand. False takes those of an encoder that is
        then thrown away, and steps of the regression that are too long for it, as the released program does: a random
        direction, several times as long.
    renormalize_weights : bool, default=True
        Let label weights sum to one. False does not, as in the released program: bags that the model finds unlike
        their candidates fade out.
    kl_weight : float, default=0.1
        kappa, the weight of the KL in the loss. The released program has 1 beside a sum over draws, which is
        1 / n_samples beside their average.
    kl_refresh : int, default=10
        Steps between two factorisations of the covariances; 1 for exact gradients.
    learning_rate : float, default=0.1
        Step length on the mean gradient of a step, whatever batch_size is.
    schedule : {"cosine", "constant"}, default="cosine"
        The learning rate falls to zero along a cosine, or stays.
    max_epochs : int, default=100
        Passes over the training bags; there is no early stopping.
    batch_size : int or None, default=128
        Bags per step, over which scores are standardised; None takes all bags at once.
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
        Seed of initial weights, order of bags, dropout and draws. torch's global generator is neither read nor set.
    verbose : bool, default=False
        Show a progress bar on a terminal.

    Attributes
    ----------
    state_ : dict of str to array
        What the network learned and prediction needs; the factors F are not kept.
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
    Y.-F. Yang, W. Tang, M.-L. Zhang. Fast multi-instance partial-label learning. AAAI 2025.
    """

    name = "FastMIPL"
    citation = "Yang, Tang, Zhang, AAAI 2025"
    _rate_per_bag = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DeepMIPL._parameter_constraints,
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "average_samples": ["boolean"],
        "score_scaling": [StrOptions({"train", "batch"})],
        "dropout_at_prediction": ["boolean"],
        "init_from_own_encoder": ["boolean"],
        "renormalize_weights": ["boolean"],
        "kl_weight": [Interval(Real, 0, None, closed="left")],
        "kl_refresh": [Interval(Integral, 1, None, closed="left")],
    }
    _published: ClassVar[Mapping[str, Sequence[Mapping[str, Any]]]] = {
        dataset: [
            {"hidden_sizes": sizes, "max_epochs": epochs, "learning_rate": rate, "n_samples": samples}
            for rate, samples in zip(rates, draws, strict=True)
        ]
        for dataset, sizes, epochs, rates, draws in (
            ("mnist", (256, 128), 200, (5e-4, 5e-4, 5e-4), (40, 30, 50)),
            ("fmnist", (256, 128), 200, (5e-4, 5e-4, 5e-4), (30, 40, 20)),
            ("birdsong", (512, 256), 500, (1e-3, 2e-3, 5e-3), (10, 20, 30)),
            ("sival", (512, 1024, 256), 500, (2e-3, 5e-3, 5e-3), (30, 20, 30)),
        )
    }
    _published_for_all: ClassVar[Mapping[str, Any]] = {
        "average_samples": False,
        "score_scaling": "batch",
        "dropout_at_prediction": True,
        "init_from_own_encoder": False,
        "renormalize_weights": False,
        "kl_weight": 1.0,
        "kl_refresh": 1,
        "schedule": "constant",
        "batch_size": None,
    }

    def __init__(
        self,
        *,
        hidden_sizes: Sequence[int] = (256, 128),
        dropout: float = 0.5,
        n_samples: int = 10,
        average_samples: bool = True,
        score_scaling: Literal["train", "batch"] = "train",
        dropout_at_prediction: bool = False,
        init_from_own_encoder: bool = True,
        renormalize_weights: bool = True,
        kl_weight: float = 0.1,
        kl_refresh: int = 10,
        learning_rate: float = 0.1,
        schedule: Literal["cosine", "constant"] = "cosine",
        max_epochs: int = 100,
        batch_size: int | None = 128,
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
        self.n_samples = n_samples
        self.average_samples = average_samples
        self.score_scaling = score_scaling
        self.dropout_at_prediction = dropout_at_prediction
        self.init_from_own_encoder = init_from_own_encoder
        self.renormalize_weights = renormalize_weights
        self.kl_weight = kl_weight
        self.kl_refresh = kl_refresh

    def _network(self, instance_shape: tuple[int, ...], n_classes: int, generator: torch.Generator) -> FastMIPLNetwork:
        return FastMIPLNetwork(
            Encoder(instance_shape, self.hidden_sizes, self.dropout, generator),
            n_hidden=self.hidden_sizes[-1],
            n_classes=n_classes,
            n_samples=self.n_samples,
            average_samples=self.average_samples,
            renormalize_weights=self.renormalize_weights,
            score_scaling=self.score_scaling,
            kl_weight=self.kl_weight,
            kl_refresh=self.kl_refresh,
        )

    def _prepare(
        self, network: BagNetwork, bags: Bags, candidates: NDArray[np.bool_], generator: torch.Generator
    ) -> None:
        assert isinstance(network, FastMIPLNetwork)
        encoder, noise = network.encoder, None
        if not self.init_from_own_encoder:
            encoder = Encoder(bags.instance_shape, self.hidden_sizes, self.dropout, generator)
            if self.standardize:
                encoder.standardize(torch.tensor(bags.instances))
            encoder.to(network.mean.device)
            noise = torch.Generator(network.mean.device).manual_seed(self.seed_)
        means = bag_means(encoder, bags, network.mean.device, noise)
        start = softmax_start(means, torch.tensor(candidates), generator, same_encoder=self.init_from_own_encoder)
        network.begin(start, len(bags))

    def _complete(self, network: BagNetwork, bags: Bags) -> None:
        assert isinstance(network, FastMIPLNetwork)
        mean, deviation = over_bags(score_bags(network, bags, network.mean.device).bags)
        network.score_mean.copy_(mean)
        network.score_deviation.copy_(deviation)

    def _prediction_noise(self, device: torch.device) -> torch.Generator | None:
        return torch.Generator(device).manual_seed(self.seed_) if self.dropout_at_prediction else None


@torch.no_grad()
def bag_means(encoder: Encoder, bags: Bags, device: torch.device, noise: torch.Generator | None) -> Tensor:
    """The mean hidden vector (m, L) of each bag, on the CPU."""
    parts = []
    for block in blocks(bags):
        segments = Segments.of_sizes(torch.tensor(block.sizes, device=device))
        h = encoder(torch.tensor(block.instances, device=device), noise)
        parts.append((segment_sum(h, segments) / segments.sizes[:, None]).cpu())
    return torch.cat(parts)
