"""Cross-fitting: what the experts say of every training bag when they were fitted without its fold.

The bag regression leaves a bag's own vote out exactly, but in its rounds a bag's candidates travel through other bags
and come back to it, and the bag likelihood has seen them outright. So both are fitted anew without each fold in turn,
and read the bags of the fold as they would read new bags. The regressions are fitted one by one; the likelihoods share
their passes over the blocks with that of all bags (`mipl.baggp.likelihood`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mipl.baggp.blocks import Blocks, Place
from mipl.baggp.candidate_noise import trusted_sets
from mipl.baggp.constants import EVEN_FOLDS, MIN_FOLD_BAGS, SIGNAL_VARIANCES, TWO_FOLDS_INSTANCES
from mipl.baggp.likelihood import BagLikelihood, Problem
from mipl.baggp.low_rank import LowRank, gram_matrix
from mipl.baggp.model import Expert
from mipl.baggp.regression import fit_bag_regression, own_votes_of_parts
from mipl.progress import SILENT, Phases
from mipl.supervision import Supervision

__all__ = ["Fold", "HeldOut", "assign_folds", "half_folds", "read_held_out", "regress_without_folds"]


class HeldOut(NamedTuple):
    """Log evidence (m, q) of both experts, class offsets included, each bag read by experts fitted without it."""

    regression: Tensor
    likelihood: Tensor


def half_folds(n: int, supervision: Supervision, cross_fit: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The half-folds (m,) of bags with n instances; all zero where there are too few bags or groups to fold.

    There are two folds for very many instances, and no more than groups. Where all bags are of one group, how far
    others differ from it cannot be known; folds of its bags still tell how much the model knows of the group.
    """
    m, groups, weight = len(supervision), supervision.groups, supervision.sample_weight
    if groups is not None and (groups == groups[0]).all():
        groups = None
    count = m if weight is None else max(m, int(weight.sum()))
    n_groups = m if groups is None else len(np.unique(groups))
    wanted = min(cross_fit, 2) if n > TWO_FOLDS_INSTANCES else cross_fit
    n_folds = min(wanted, count // MIN_FOLD_BAGS, n_groups)
    if n_folds < 2:
        return np.zeros(m, dtype=np.int64)
    return assign_folds(m, min(2 * n_folds, n_groups), rng, groups, weight)


def assign_folds(
    m: int,
    n_folds: int,
    random_state: np.random.Generator,
    groups: NDArray[np.int64] | None = None,
    weight: NDArray[np.float64] | None = None,
) -> NDArray[np.int64]:
    """A random fold (m,) for each of m bags, of equal sizes; bags of one group share a fold.

    Groups are dealt out from the largest, each to the fold that has the fewest bags so far, counted by their weights
    (m,).
    """
    if groups is None:
        folds = np.empty(m, dtype=np.int64)
        folds[random_state.permutation(m)] = np.arange(m) % n_folds
        return folds
    names, index = np.unique(groups, return_inverse=True)
    sizes = np.bincount(index, weight)
    fold_of_group, filled = np.empty(len(names), dtype=np.int64), np.zeros(n_folds, dtype=sizes.dtype)
    for g in np.argsort(-sizes, kind="stable"):
        fold_of_group[g] = np.argmin(filled)
        filled[fold_of_group[g]] += sizes[g]
    return fold_of_group[index]


class Fold(NamedTuple):
    """What is held out together, and what was learned without it.

    Attributes
    ----------
    held_out : the half-folds
    regression : Expert, of the other bags
    problem : Problem, of the bag likelihood of the other bags
    """

    held_out: list[int]
    regression: Expert
    problem: Problem

    @property
    def inside(self) -> Tensor:
        """The bags (m,) that were not held out."""
        assert self.problem.inside is not None
        return self.problem.inside


def regress_without_folds(
    data: LowRank,
    log_prior: Tensor,
    sets: Tensor,
    signal_variance: float,
    background: Tensor | None = None,
    joined: bool = False,
    progress: Phases = SILENT,
) -> list[Fold]:
    """Fit the bag regression without each fold; bags are in the order of the blocks.

    Blocks have half-folds. Two of them are held out at a time; one, where the regression took the smaller variance,
    because instances say little there: the more bags, the better, and a fit to three quarters of them would be so much
    worse than that to all bags that the latter would be trusted too little.

    The variance of the regression function is that of the fit to all bags. The Gram matrix of a part of the bags is not
    diagonal as that of all bags is: the regression solves with it as it is, but leaves a bag's own vote out by that of
    all bags (`mipl.baggp.leave_out`), which equally large folds share; the likelihood takes its diagonal. With `joined`
    the blocks of each fit are joined first.
    """
    order = np.argsort(data.blocks.bags)
    at_a_time = 1 if signal_variance == SIGNAL_VARIANCES[0] else 2
    folds = data.blocks.folds
    held_out = [folds[start : start + at_a_time] for start in range(0, len(folds), at_a_time)]
    shared = None
    if not joined and _are_even(data.blocks, held_out):
        share = 1 - 1 / len(held_out)
        shared = own_votes_of_parts(data.blocks, data.spectrum, log_prior, signal_variance, share)

    def without(i: int, place: Place) -> Fold:
        watch = progress.within(f"fold {i + 1} of {len(held_out)}")
        blocks = replace(data.blocks, place=place)
        kept = blocks.without(held_out[i])
        own = torch.diag(data.spectrum) - gram_matrix(blocks.only(held_out[i]))
        if joined:
            kept = kept.joined()
        rows = torch.from_numpy(_positions(order, kept)).to(log_prior.device)
        if shared is None:
            part = float(own.diagonal().sum() / data.spectrum.sum())
            votes = own_votes_of_parts(kept, data.spectrum, log_prior[rows], signal_variance, part)
        else:
            votes = shared.of(lambda column: replace(blocks, features=column).without(held_out[i]).features)
        found = fit_bag_regression(kept, own, log_prior[rows], background, [signal_variance], watch, votes)
        prior, candidates, inside = torch.zeros_like(log_prior), sets.clone(), torch.zeros_like(sets[:, 0])
        prior[rows], inside[rows] = found.posterior, True
        candidates[rows] = trusted_sets(log_prior[rows], sets[rows], found.posterior) > -torch.inf
        problem = Problem(own.diagonal().clamp(min=0), prior, candidates, inside)
        return Fold(held_out[i], found.expert, problem)

    return data.blocks.place.concurrently([partial(without, i) for i in range(len(held_out))])


def read_held_out(data: LowRank, folds: Sequence[Fold], likelihoods: Sequence[BagLikelihood]) -> HeldOut:
    """What the experts of each fold say of the bags of the fold, all in the order of the blocks."""
    order = np.argsort(data.blocks.bags)
    result = HeldOut(*(torch.empty_like(folds[0].problem.prior) for _ in HeldOut._fields))
    for fold, likelihood in zip(folds, likelihoods, strict=True):
        left_out = data.blocks.only(fold.held_out)
        rows = _positions(order, left_out)
        result.regression[rows] = left_out.cat(Expert.read, left_out.features, expert=fold.regression)
        result.likelihood[rows] = likelihood.log_evidence[rows]
    return result


def _are_even(blocks: Blocks, held_out: Sequence[Sequence[int]]) -> bool:
    """Whether about as many bags, by weight, are held out each time."""
    weight = np.ones(len(blocks.bags)) if blocks.all_weights is None else blocks.all_weights.cpu().numpy()
    bags = [sum(weight[part.bags].sum() for run in blocks.only(folds).parts for part in run) for folds in held_out]
    return bool(np.ptp(bags) <= EVEN_FOLDS * np.mean(bags))


def _positions(order: NDArray[np.int64], part: Blocks) -> NDArray[np.int64]:
    """Where the bags of some blocks are among those of all blocks; `order` sorts the latter."""
    return order[part.bags]
