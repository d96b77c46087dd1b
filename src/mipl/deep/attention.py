"""Attention over the instances of bags that lie one after the other in a flat array, without padding."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mipl.deep.encoder import linear

__all__ = [
    "GatedAttention",
    "Segments",
    "segment_softmax",
    "segment_standardize",
    "segment_sum",
]


class Segments(NamedTuple):
    """Which instance belongs to which of b bags."""

    bag: Tensor  # (n,) int64, ascending
    sizes: Tensor  # (b,) int64

    @classmethod
    def of_sizes(cls, sizes: Tensor) -> Segments:
        """The segments of bags with `sizes` (b,) instances each."""
        return cls(torch.repeat_interleave(sizes), sizes)


def segment_sum(values: Tensor, segments: Segments) -> Tensor:
    """Sum values (n, k) over each bag, to (b, k)."""
    return values.new_zeros(len(segments.sizes), *values.shape[1:]).index_add(0, segments.bag, values)


def segment_softmax(scores: Tensor, segments: Segments) -> Tensor:
    """Softmax of scores (n, k) within each bag, column by column."""
    shares: Tensor = _SegmentSoftmax.apply(scores, segments)  # type: ignore[no-untyped-call]
    return shares


def segment_standardize(scores: Tensor, segments: Segments, min_deviation: float) -> Tensor:
    """Scores (n, k) with mean zero, divided by their deviation within each bag + `min_deviation`.

    No gradient passes through the deviation, so gradients are at most 1 / min_deviation times as long. The deviation
    divides by size - 1. A bag of one instance has no deviation; its score becomes zero.
    """
    sizes = segments.sizes[:, None].to(scores.dtype)
    centred = scores - (segment_sum(scores, segments) / sizes).index_select(0, segments.bag)
    with torch.no_grad():
        variance = segment_sum(centred.square(), segments) / (sizes - 1).clamp(min=1)
        deviation = variance.sqrt().index_select(0, segments.bag) + min_deviation
    return centred / deviation


class _SegmentSoftmax(torch.autograd.Function):
    """Written out because differentiating through the spread of each bag's normaliser takes twice as long."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, segments: Segments) -> Tensor:
        index = segments.bag[:, None].expand_as(scores)
        lowest = scores.new_full((len(segments.sizes), scores.shape[1]), -torch.inf)
        top = lowest.scatter_reduce(0, index, scores, "amax")
        raised = torch.exp(scores - top.index_select(0, segments.bag))
        attention = raised / segment_sum(raised, segments).index_select(0, segments.bag)
        ctx.save_for_backward(attention, *segments)
        return attention

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        attention, bag, sizes = ctx.saved_tensors
        weighted = attention * gradients[0]
        pooled = segment_sum(weighted, Segments(bag, sizes)).index_select(0, bag)
        return weighted - attention * pooled, None


class GatedAttention(nn.Module):
    r"""One score per instance from its hidden vector h (L,) through a gate.

    .. math:: \mathrm{score} = \mathrm{MLP}\big(\tanh(V h + v) \odot \mathrm{sigmoid}(U h + u)\big),

    with :math:`V, U` of size q x L and an MLP with one hidden layer of ReLUs.

    Parameters
    ----------
    n_hidden : int
        L.
    n_classes : int
        q.
    size : int
        Width of the MLP's hidden layer.
    tied : bool
        Use :math:`U = V, u = v`, as the released programs do: they declare U and never call it.
    generator : torch.Generator
        Draws the weights.
    """

    def __init__(self, n_hidden: int, n_classes: int, size: int, tied: bool, generator: torch.Generator) -> None:
        super().__init__()
        self.content = linear(n_hidden, n_classes, generator)
        self.gate = self.content if tied else linear(n_hidden, n_classes, generator)
        self.hidden = linear(n_classes, size, generator)
        self.out = linear(size, 1, generator)

    def forward(self, h: Tensor) -> Tensor:
        """Scores (n, 1) of hidden vectors (n, L)."""
        content = self.content(h)
        gate = content if self.gate is self.content else self.gate(h)
        gated = torch.tanh(content) * torch.sigmoid(gate)
        scores: Tensor = self.out(torch.relu(self.hidden(gated)))
        return scores
