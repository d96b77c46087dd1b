"""What a network of bags is: the questions that training and prediction ask, and the attention networks' answers."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax

from mipl.deep.attention import GatedAttention, Segments, segment_sum
from mipl.deep.encoder import Encoder, linear

__all__ = [
    "AttentionNetwork",
    "BagNetwork",
    "BagScores",
    "Batch",
    "Pooled",
    "Step",
    "cross_entropy",
    "log_probabilities",
    "restrict",
    "uniform_weights",
]

#: Squashed logits stay this far from 0 and 1 in training.
_CLAMP = 1e-5


class Batch(NamedTuple):
    """Some training bags, their instances one after the other."""

    instances: Tensor  # (n, d)
    segments: Segments
    candidates: Tensor  # (b, q) bool
    weights: Tensor  # (b, q), label weights before this step


class Step(NamedTuple):
    """What a network says of a batch."""

    loss: Tensor  # (b,); a term of the whole batch is part of every bag's
    belief: Tensor  # (b, q), what the label weights move towards


class BagScores(NamedTuple):
    """What a network says of bags that it does not learn from."""

    bags: Tensor  # (b, q), higher for a more probable class
    attention: Tensor  # (n, 1), or (n, q) where each class has its own; positive


class BagNetwork(nn.Module, metaclass=ABCMeta):
    """A network that scores bags, trained by `mipl.deep.training.train`.

    Dropout and all other randomness come from the generator `noise` that a call is given; a call without one is
    deterministic. So there is no training mode to be left on by mistake.
    """

    #: Parameters that prediction does not need and a fitted model does not keep.
    training_only: ClassVar[tuple[str, ...]] = ()

    encoder: Encoder

    @abstractmethod
    def loss(self, batch: Batch, noise: torch.Generator | None) -> Step:
        """The loss of each bag of a batch, and the belief in its labels."""

    @abstractmethod
    def scores(self, instances: Tensor, segments: Segments, noise: torch.Generator | None = None) -> BagScores:
        """Scores of bags and the attention of their instances (n, d)."""

    @abstractmethod
    def probabilities(self, scores: Tensor) -> Tensor:
        """Class probabilities (b, q) from the scores (b, q) of all bags of a prediction."""

    def end_epoch(self) -> None:
        """Called after each epoch of training, for quantities with a schedule of their own."""


class Pooled(NamedTuple):
    """Bags as seen by an attention network."""

    vector: Tensor  # (b, L), sum of the instances' hidden vectors, weighted by attention
    logits: Tensor  # (b, q)
    attention: Tensor  # (n, 1), sums to one in each bag
    score: Tensor  # (n, 1), before the softmax


class AttentionNetwork(BagNetwork):
    """Encoder, gated attention and a linear classifier of the bag vector; a method adds `attend` and `loss`.

    Parameters
    ----------
    encoder : Encoder
        From raw instances to hidden vectors.
    n_hidden, n_classes, attention_size : int
        L, q and the width of the attention's hidden layer.
    tied_gate : bool
        See `GatedAttention`.
    squash_logits : bool
        See `log_probabilities`.
    generator : torch.Generator
        Draws the weights.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        n_hidden: int,
        n_classes: int,
        attention_size: int,
        tied_gate: bool,
        squash_logits: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.squash_logits = squash_logits
        self.gate = GatedAttention(n_hidden, n_classes, attention_size, tied_gate, generator)
        self.classifier = linear(n_hidden, n_classes, generator)

    @abstractmethod
    def attend(self, score: Tensor, segments: Segments) -> Tensor:
        """Attention (n, 1) from scores (n, 1); it sums to one in each bag."""

    def pool(self, instances: Tensor, segments: Segments, noise: torch.Generator | None) -> Pooled:
        """Bag vectors and logits of bags with instances (n, d)."""
        h = self.encoder(instances, noise)  # (n, L)
        score = self.gate(h)  # (n, 1)
        attention = self.attend(score, segments)
        vector = segment_sum(attention * h, segments)  # (b, L)
        return Pooled(vector, self.classifier(vector), attention, score)

    def scores(self, instances: Tensor, segments: Segments, noise: torch.Generator | None = None) -> BagScores:
        """Logits (b, q) of bags and the attention (n, 1) of their instances (n, d)."""
        pooled = self.pool(instances, segments, noise)
        return BagScores(pooled.logits, pooled.attention)

    def probabilities(self, scores: Tensor) -> Tensor:
        """Class probabilities (b, q) from logits (b, q), each bag for itself."""
        return log_probabilities(scores, self.squash_logits, clamp=False).exp()


def log_probabilities(logits: Tensor, squash: bool, clamp: bool = True) -> Tensor:
    r"""Log class probabilities (b, q) from logits (b, q): log softmax, of the logits or of their sigmoids.

    With `squash`, as in the released programs, the largest probability cannot exceed :math:`e / (e + q - 1)`: .405
    for 5 classes, .102 for 25. In training they keep the sigmoids within [1e-5, 1 - 1e-5] (`clamp`).
    """
    if squash:
        logits = torch.sigmoid(logits)
        if clamp:
            logits = logits.clamp(_CLAMP, 1 - _CLAMP)
    return log_softmax(logits, dim=1)


def cross_entropy(weights: Tensor, log_p: Tensor) -> Tensor:
    """Cross-entropy (b,) of log probabilities (b, q) under label weights (b, q)."""
    return -(weights * log_p).sum(dim=1)


def uniform_weights(candidates: Tensor) -> Tensor:
    """Equal weight for each candidate of a bag, from (m, q) bool."""
    return candidates / candidates.sum(dim=1, keepdim=True)


def restrict(belief: Tensor, candidates: Tensor) -> Tensor:
    """Beliefs (b, q) on the candidates only, normalised."""
    kept = torch.where(candidates, belief, 0)
    return kept / kept.sum(dim=1, keepdim=True).clamp(min=torch.finfo(kept.dtype).tiny)
