"""What the bag likelihood sums up over blocks, for several fits at a time (`mipl.baggp.likelihood`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mipl.bag_posterior import bag_evidence, instance_posterior, spread
from mipl.baggp.blocks import Block, add_up
from mipl.baggp.constants import CHUNK_ROWS, MIN_PRIOR

__all__ = ["LabelPrior", "curvature", "likelihood_statistics", "moderated_evidence", "positives", "thin_scores"]


class LabelPrior(NamedTuple):
    """What F fits know of the labels of a block's bags, on candidates only: evidence of other labels is never needed.

    Attributes
    ----------
    fits : the fits that any bag of the block counts in
    counts : (m_b, F), how often each bag counts; None for once
    columns : (m_b, F, k) int64, candidate classes, padded by others
    probability : (m_b, F, k), zero on the padding
    """

    fits: tuple[int, ...]
    counts: Tensor | None
    columns: Tensor
    probability: Tensor

    @classmethod
    def of(cls, prior: Tensor, candidates: Tensor, counts: Tensor) -> LabelPrior:
        """Take priors (m_b, F, q) at candidates (m_b, F, q), each given at least a little, of bags that count so often.

        Fits in which no bag of the block counts are left out.
        """
        kept = torch.nonzero(counts.any(dim=0)).flatten()
        prior, candidates, counts = prior[:, kept], candidates[:, kept], counts[:, kept]
        k = int(candidates.sum(dim=2).max()) if len(kept) else 0
        is_candidate, columns = torch.sort(candidates.byte(), dim=2, descending=True, stable=True)
        columns = columns[:, :, :k]
        probability = prior.gather(2, columns).clamp(min=MIN_PRIOR)
        return cls(
            tuple(kept.tolist()),
            None if bool((counts == 1).all()) else counts,
            columns,
            torch.where(is_candidate[:, :, :k].bool(), probability, 0.0),
        )

    def only(self, fits: Sequence[int]) -> LabelPrior:
        """The same for those fits alone that are among these."""
        places = [place for place, fit in enumerate(self.fits) if fit in fits]
        if len(places) == len(self.fits):
            return self
        at = torch.tensor(places, dtype=torch.int64, device=self.columns.device)
        counts = None if self.counts is None else self.counts[:, at]
        return LabelPrior(tuple(self.fits[i] for i in places), counts, self.columns[:, at], self.probability[:, at])


def likelihood_statistics(
    block: Block,
    prior: LabelPrior,
    fits: Sequence[int],
    weights: Tensor,
    bias: Tensor,
    log_kappa: float,
    hold_prior: bool,
    background: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """A block's part of the negative log likelihood of each of some fits, and then of each gradient (q + 1, k).

    The weights (F, q + 1, k) are those of the last k features; the others count for nothing. With `hold_prior` the
    prior is taken for the labels' posterior: the objective is then the expected log evidence.
    """
    prior, offsets = prior.only(fits), block.offsets
    features = block.features[:, -weights.shape[2] :]
    F, n, rows = len(prior.fits), len(features), weights.shape[1]
    if not F:
        return (bias.new_zeros(()),) * (2 * len(fits))
    f = _all_logits(features, _own(weights, fits, prior), bias)  # (F, q + 1, n): a short last axis is slow to sum over
    own = rows * torch.arange(F, device=f.device)[:, None]
    columns = spread((prior.columns + own).flatten(1), offsets)  # (n, F k), rows of all fits
    logits = f.view(F * rows, n).T.gather(1, columns).view(n, F, -1) - f[:, -1].T[:, :, None]
    logits = logits.flatten(1).double() + log_kappa
    evidence = bag_evidence(logits, offsets, None if background is None else background[prior.columns].flatten(1))
    log_evidence = evidence.log_evidence.view(prior.columns.shape)
    if hold_prior:
        posterior = prior.probability
        log_likelihood = (posterior * log_evidence).sum(dim=2)
    else:
        log_prior = torch.log(prior.probability)
        log_likelihood = torch.logsumexp(log_evidence + log_prior, dim=2)
        posterior = torch.exp(log_evidence + log_prior - log_likelihood[:, :, None])
    R = instance_posterior(logits, evidence, posterior.flatten(1), offsets).to(f.dtype)  # (n, F k)
    of_rows = None if prior.counts is None else spread(prior.counts, offsets).T  # (F, n)
    log_p = torch.log_softmax(f, dim=1)
    value = -_weighed(log_likelihood, prior.counts).sum(dim=0) - _weighed(log_p[:, -1].double(), of_rows).sum(dim=1)
    residual = log_p.exp_()
    residual.view(F * rows, n).T.scatter_add_(1, columns, -R)
    residual[:, -1] -= 1 - R.view(n, F, -1).sum(dim=2).T
    if of_rows is not None:
        residual *= of_rows.to(residual.dtype)[:, None]
    # The long side last: BLAS is ten times slower on features' @ residual.
    gradient = (residual.view(F * rows, n) @ features).view(F, rows, -1).double()
    return _at_fits(fits, prior, value) + _at_fits(fits, prior, gradient)


def curvature(block: Block, prior: LabelPrior, weights: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    """The diagonals (q + 1, k) of the instances' curvature per fit, at weights (F, q + 1, k) of k features."""
    features = block.features[:, -weights.shape[2] :]
    fits = range(len(weights))
    if not prior.fits:
        return (bias.new_zeros(()),) * len(fits)
    p = torch.softmax(_all_logits(features, _own(weights, fits, prior), bias), dim=1)
    information = p * (1 - p)
    if prior.counts is not None:
        information *= spread(prior.counts, block.offsets).T.to(p.dtype)[:, None]
    pieces = zip(information.flatten(0, 1).split(CHUNK_ROWS, dim=1), features.split(CHUNK_ROWS), strict=True)
    (total,) = add_up(((part @ chunk.square()).double(),) for part, chunk in pieces)
    return _at_fits(fits, prior, total.view(len(prior.fits), *weights.shape[1:]))


def _weighed(values: Tensor, counts: Tensor | None) -> Tensor:
    return values if counts is None else values * counts


def _own(weights: Tensor, fits: Sequence[int], prior: LabelPrior) -> Tensor:
    """The weights of the fits of a block, of weights (F, q + 1, k) of all fits that are asked for."""
    if len(prior.fits) == len(fits):
        return weights
    return weights[[i for i, fit in enumerate(fits) if fit in prior.fits]]


def _at_fits(fits: Sequence[int], prior: LabelPrior, values: Tensor) -> tuple[Tensor, ...]:
    """Values of the fits of a block, at their places among all; zero, of no shape, for the others."""
    zero = values.new_zeros(())
    found = dict(zip(prior.fits, values, strict=True))
    return tuple(found.get(fit, zero) for fit in fits)


def _all_logits(features: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
    """Logits (F, q + 1, n) of all classes and of "negative", from features (n, k) and weights (F, q + 1, k)."""
    f = _products(features, weights)
    f += bias.to(f.dtype)[:, None]
    return f


def _products(features: Tensor, weights: Tensor) -> Tensor:
    """Products (F, q, n) of features (n, k) with weights (F, q, k)."""
    left = weights.flatten(0, 1).to(features.dtype)
    out = features.new_empty(len(left), len(features))
    for chunk, columns in zip(features.split(CHUNK_ROWS), out.split(CHUNK_ROWS, dim=1), strict=True):
        torch.mm(left, chunk.T, out=columns)
    return out.view(*weights.shape[:2], -1)


# -------------------------------------------------------------------- reading bags after a stage


def thin_scores(block: Block, weights: Tensor) -> Tensor:
    """Products (F, q, n_b) of the last k features with weights (F, q, k)."""
    return _products(block.features[:, -weights.shape[2] :], weights)


def positives(block: Block, scores: Tensor, counts: Tensor, intercept: Tensor) -> tuple[Tensor, Tensor]:
    """How many instances are positive per fit (F,) by their scores (F, q, n_b), of how many, by counts (m_b, F)."""
    positive = torch.sigmoid((scores.double() + intercept[:, None]).logsumexp(dim=1))
    of_rows = spread(counts, block.offsets).T
    return (positive * of_rows).sum(dim=1), of_rows.sum(dim=1)


def moderated_evidence(
    block: Block, scores: Tensor, intercept: Tensor, variance: Tensor, background: Tensor | None
) -> Tensor:
    """Log evidence (m_b, F, q) without class offsets, of scores (F, q, n_b), moderated by variances (F, R)."""
    F, q, _ = scores.shape
    weights = variance.T.to(block.features.dtype)
    v = torch.cat([chunk.square() @ weights for chunk in block.features.split(CHUNK_ROWS)]).double()  # (n, F)
    logits = (scores.double() + intercept[:, None]).permute(2, 0, 1) / torch.sqrt(1 + math.pi / 8 * v)[:, :, None]
    mask = None if background is None else background.repeat(F)
    return bag_evidence(logits.flatten(1), block.offsets, mask).log_evidence.view(-1, F, q)
