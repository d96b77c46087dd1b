"""Attention over the instances of bags that lie one after the other in a flat array, without padding."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mipl.deep.encoder import linear

__all__ = [
    "GatedAttention",
    "Segments",
    "attended_scores",
    "runs_of_bags",
    "segment_softmax",
    "segment_standardize",
    "segment_sum",
]


#: Instances that are attended to at a time: their scores of all classes and draws stay in the cache.
_ROWS_AT_A_TIME = 512


class Segments(NamedTuple):
    """Which instance belongs to which of b bags."""

    bag: Tensor  # (n,) int64, ascending
    sizes: Tensor  # (b,) int64

    @classmethod
    def of_sizes(cls, sizes: Tensor) -> Segments:
        """The segments of bags with `sizes` (b,) instances each."""
        return cls(torch.repeat_interleave(sizes), sizes)

    def parts(self, n_rows: int) -> Iterator[tuple[slice, slice, Segments]]:
        """Runs of bags with at most `n_rows` instances or one bag: which instances, which bags, their own segments."""
        offsets = [0, *self.sizes.cumsum(0).tolist()]
        for these in runs_of_bags(offsets, n_rows):
            rows = slice(offsets[these.start], offsets[these.stop])
            yield rows, these, Segments(self.bag[rows] - these.start, self.sizes[these])


def runs_of_bags(offsets: Sequence[int], n_rows: int) -> Iterator[slice]:
    """Bags in runs of at most `n_rows` instances, at least one bag each, from offsets (m + 1,) of their instances."""
    start = 0
    while start < len(offsets) - 1:
        stop = max(start + 1, bisect_right(offsets, offsets[start] + n_rows) - 1)
        yield slice(start, stop)
        start = stop


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


def attended_scores(h: Tensor, attending: Tensor, scoring: Tensor, segments: Segments) -> tuple[Tensor, Tensor]:
    """Scores h @ scoring (n, k) summed over each bag by the attention softmax(h @ attending), column by column.

    Takes hidden vectors (n, L) and weights (L, k); returns the bags' (b, k), and the attention (n, k), which no
    gradient passes through.
    """
    bags, attention = _AttendedScores.apply(h, attending, scoring, segments)  # type: ignore[no-untyped-call]
    return bags, attention


class _AttendedScores(torch.autograd.Function):
    r"""Written out so that it runs over some bags at a time, and because the gradient is short.

    With attention a, scores s and their sum :math:`t = \sum a s` over the bag, :math:`dt = a\, ds + a (s - t)\, du`,
    where u are the logits of the attention.
    """

    @staticmethod
    def forward(ctx: Any, h: Tensor, attending: Tensor, scoring: Tensor, segments: Segments) -> tuple[Tensor, Tensor]:
        attention, score = h.new_empty(2, len(h), attending.shape[1])
        bags = h.new_empty(len(segments.sizes), attending.shape[1])
        ctx.n_rows = _ROWS_AT_A_TIME if h.device.type == "cpu" else len(h)
        for rows, these, own in segments.parts(ctx.n_rows):
            attention[rows] = segment_softmax(h[rows] @ attending, own)
            torch.mm(h[rows], scoring, out=score[rows])
            bags[these] = segment_sum(attention[rows] * score[rows], own)
        ctx.mark_non_differentiable(attention)
        ctx.set_materialize_grads(False)  # or a gradient of zeros is made for the attention
        ctx.save_for_backward(h, attending, scoring, attention, score, bags, *segments)
        return bags, attention

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        of_bags = gradients[0]
        if of_bags is None:
            return None, None, None, None
        h, attending, scoring, attention, score, bags, *segments = ctx.saved_tensors
        of_h, of_attending, of_scoring = torch.empty_like(h), torch.zeros_like(attending), torch.zeros_like(scoring)
        for rows, these, own in Segments(*segments).parts(ctx.n_rows):
            of_score = of_bags[these].index_select(0, own.bag).mul_(attention[rows])
            of_logits = (score[rows] - bags[these].index_select(0, own.bag)).mul_(of_score)
            torch.mm(of_logits, attending.T, out=of_h[rows])
            of_h[rows].addmm_(of_score, scoring.T)
            of_attending.addmm_(h[rows].T, of_logits)
            of_scoring.addmm_(h[rows].T, of_score)
        return of_h, of_attending, of_scoring, None


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
