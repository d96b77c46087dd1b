"""DeepMIPL: what the deep methods share, from parameters to prediction."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from mipl.bags import Bags
from mipl.base import MIPLClassifier
from mipl.compute import limit_torch, seed_of, torch_device
from mipl.deep.attention import Segments, runs_of_bags
from mipl.deep.encoder import convolves
from mipl.deep.network import BagNetwork, BagScores
from mipl.deep.training import Plan, train
from mipl.errors import ParameterError
from mipl.features.auto import choose_features

__all__ = ["DeepMIPL", "blocks", "score_bags"]

#: Instances that a prediction encodes at a time.
_BLOCK_ROWS = 8192
#: `weight_decay="auto"`. Dropout acts on single instances and averages out in a bag of some forty images, of which few
#: matter; the larger decay keeps the network from learning such bags by heart.
_TABLE_DECAY = 1e-4
_IMAGE_DECAY = 3e-3


class DeepMIPL(MIPLClassifier):
    """Base of the deep methods: a front end, a network (`_network`) and the one training loop.

    The constructor's parameters below are those of every deep method; each one documents them in full.

    Attributes
    ----------
    state_ : dict of str to array
        What the network learned; `save` writes it without pickle.
    weights_ : (m, q)
        Label weights of the training bags at the end of training.
    loss_ : (epochs,)
        Mean training loss of each epoch.
    seed_ : int
        The seed that `random_state` gave.
    features_ : transformer or None
        The fitted front end, where there is one.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "hidden_sizes": ["array-like"],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "schedule": [StrOptions({"cosine", "constant"})],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "weight_decay": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "standardize": ["boolean"],
        "features": [None, StrOptions({"images", "auto"}), HasMethods(["fit", "transform"])],
        "device": [str],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }
    #: Whether the learning rate is of one bag, so that a step of b bags is b times as long.
    _rate_per_bag: ClassVar[bool] = True
    #: Published settings: data set -> parameters for r = 1, 2, 3; and those that all data sets share.
    _published: ClassVar[Mapping[str, Sequence[Mapping[str, Any]]]] = {}
    _published_for_all: ClassVar[Mapping[str, Any]] = {}

    def __init__(
        self,
        *,
        hidden_sizes: Sequence[int],
        dropout: float,
        learning_rate: float,
        schedule: Literal["cosine", "constant"],
        max_epochs: int,
        batch_size: int | None,
        momentum: float,
        weight_decay: float | Literal["auto"],
        standardize: bool,
        features: str | BaseEstimator | None,
        device: str,
        random_state: Any,
        verbose: bool,
    ) -> None:
        self.hidden_sizes = hidden_sizes
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.standardize = standardize
        self.features = features
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, dataset: str, r: int, **params: Any) -> Self:
        """The published settings of this method for a data set.

        Parameters
        ----------
        dataset : {"mnist", "fmnist", "birdsong", "sival"}
            Where the authors' repository has no settings for a data set, those for "mnist" are taken, with a warning.
        r : {1, 2, 3}
            Number of false positive labels per bag.
        **params
            Parameters that replace published ones.
        """
        known = ("mnist", "fmnist", "birdsong", "sival")
        if dataset not in known or r not in (1, 2, 3):
            raise ParameterError(
                f"{cls.name} has no published settings for dataset={dataset!r}, r={r}; dataset is one of "
                f"{', '.join(map(repr, known))} and r is 1, 2 or 3. For other data use the defaults, {cls.name}()"
            )
        if dataset not in cls._published:
            warnings.warn(
                f"the authors of {cls.name} give no settings for {dataset!r}; these are their settings for 'mnist'",
                stacklevel=2,
            )
        settings = cls._published.get(dataset, cls._published["mnist"])[r - 1]
        # The released loaders leave images as they are; tables are scaled by their --normalize.
        shared = {"standardize": dataset in ("birdsong", "sival"), "features": None, "weight_decay": 1e-4}
        return cls(**{**shared, **cls._published_for_all, **settings, **params})

    @abstractmethod
    def _network(self, instance_shape: tuple[int, ...], n_classes: int, generator: torch.Generator) -> BagNetwork:
        """A network with fresh weights."""

    def _prepare(
        self, network: BagNetwork, bags: Bags, candidates: NDArray[np.bool_], generator: torch.Generator
    ) -> None:
        """Set what a method sets in the network before training starts."""

    def _complete(self, network: BagNetwork, bags: Bags) -> None:
        """Set what a method sets in the network after training."""

    # ---------------------------------------------------------------- fit

    @limit_torch(one_thread=True)
    def _fit(self, bags: Bags, candidates: NDArray[np.bool_]) -> None:
        self._check_hidden_sizes()
        device = torch_device(self.device)
        self.seed_ = seed_of(self.random_state)
        front_end = self._front_end(bags)
        self.features_ = None if front_end is None else front_end.fit(bags.instances)
        encoded = self._encoded(bags)
        generator = torch.Generator().manual_seed(self.seed_)
        network = self._network(encoded.instance_shape, len(self.classes_), generator)
        if self.standardize:
            network.encoder.standardize(torch.tensor(encoded.instances))
        network.to(device)
        self._prepare(network, encoded, candidates, generator)
        progress = self.name if self.verbose else None
        training = train(
            network, encoded, candidates, self._plan(bags), generator=generator, device=device, progress=progress
        )
        self._complete(network, encoded)
        self.weights_, self.loss_ = training.weights, training.loss
        self.state_ = {
            name: value.detach().cpu().numpy().copy()
            for name, value in network.state_dict().items()
            if name not in network.training_only
        }

    def _plan(self, bags: Bags) -> Plan:
        decay = self.weight_decay
        if decay == "auto":
            decay = _IMAGE_DECAY if self._finds_filters(bags) else _TABLE_DECAY
        return Plan(
            max_epochs=self.max_epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            momentum=self.momentum,
            weight_decay=decay,
            schedule=self.schedule,
            per_bag=self._rate_per_bag,
        )

    def _check_hidden_sizes(self) -> None:
        sizes = list(self.hidden_sizes)
        if not sizes or not all(isinstance(size, Integral) and size > 0 for size in sizes):
            raise ParameterError(f"hidden_sizes={self.hidden_sizes!r} must be one or more positive integers")

    def _finds_filters(self, bags: Bags) -> bool:
        """Whether filters found without labels take the place of the convolutions."""
        return self.features in ("images", "auto") and convolves(bags.instance_shape)

    def _front_end(self, bags: Bags) -> Any:
        """The unfitted transformer for these bags, or None."""
        if self.features == "auto" or self._finds_filters(bags):
            return choose_features(bags, self.seed_, self.device)
        return None if self.features in (None, "images") else clone(self.features)

    def _encoded(self, bags: Bags) -> Bags:
        """Bags as the encoder sees them: raw, or what the front end makes of them."""
        if self.features_ is None:
            return bags
        return Bags(np.asarray(self.features_.transform(bags.instances), dtype=np.float32), bags.offsets)

    # ---------------------------------------------------------------- prediction

    def _prediction_noise(self, device: torch.device) -> torch.Generator | None:
        """The source of randomness in predictions; by default there is none."""
        return None

    @limit_torch(one_thread=True)
    @torch.no_grad()
    def _judge(self, bags: Bags) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Class probabilities (m, q) of bags and the attention (n, 1 or q) of their instances."""
        device = torch_device(self.device)
        encoded = self._encoded(bags)
        network = self._network(encoded.instance_shape, len(self.classes_), torch.Generator().manual_seed(0))
        # A saved array may be read-only, which torch warns of; load_state_dict copies it in any case.
        state = {name: torch.tensor(value) for name, value in self.state_.items()}
        network.load_state_dict(state, strict=not network.training_only)
        network.to(device)
        scored = score_bags(network, encoded, device, self._prediction_noise(device))
        return network.cpu().probabilities(scored.bags).numpy(), scored.attention.numpy()

    def _predict_proba(self, bags: Bags) -> NDArray[np.floating[Any]]:
        return self._judge(bags)[0]

    def _predict_instances(self, bags: Bags) -> NDArray[np.floating[Any]]:
        """The bag's class probabilities times an instance's attention, relative to the largest in its bag.

        The most attended instance of a bag is given the bag's own probabilities, the others less in proportion, and
        what is missing to one is the probability of the negative class. Attention says how much an instance counts in
        the bag's score. It was not trained to be a probability and is not one.
        """
        proba, attention = self._judge(bags)
        relative = attention / bags.spread(bags.max(attention))  # (n, 1) or (n, q)
        positive = relative * bags.spread(proba)  # (n, q)
        return np.column_stack([positive, np.clip(1 - positive.sum(axis=1), 0, None)])


@torch.no_grad()
def score_bags(
    network: BagNetwork, bags: Bags, device: torch.device, noise: torch.Generator | None = None
) -> BagScores:
    """Scores of bags and the attention of their instances, computed block by block; in double precision, on the CPU."""
    parts = []
    for block in blocks(bags):
        segments = Segments.of_sizes(torch.tensor(block.sizes, device=device))
        parts.append(network.scores(torch.tensor(block.instances, device=device), segments, noise))
    return BagScores(
        torch.cat([part.bags.cpu() for part in parts]).double(),
        torch.cat([part.attention.cpu() for part in parts]).double(),
    )


def blocks(bags: Bags) -> Iterator[Bags]:
    """Runs of bags with at most `_BLOCK_ROWS` instances, at least one bag each."""
    return (bags[run] for run in runs_of_bags(bags.offsets.tolist(), _BLOCK_ROWS))
