"""Learning from features: both experts, how they are stacked, and the posterior of the training bags."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from mipl.baggp.candidate_noise import expected_noise, fit_candidate_noise, trusted_sets
from mipl.baggp.cross_fit import read_held_out, regress_without_folds
from mipl.baggp.extrapolation import extrapolate, groups_are_many
from mipl.baggp.likelihood import Problem, fit_bag_likelihoods
from mipl.baggp.low_rank import LowRank
from mipl.baggp.model import BagModel
from mipl.baggp.regression import fit_bag_regression
from mipl.baggp.stacking import blend, default_stacking, fit_stacking, label_free, score_ratio
from mipl.baggp.votes import Belief, are_votes, fit_belief, label_log_prior
from mipl.progress import SILENT, Phases
from mipl.supervision import Supervision

__all__ = ["Learned", "learn"]


class Learned(NamedTuple):
    """What was learned from features.

    Attributes
    ----------
    model : BagModel
    posterior : (m, q), of the training bags' labels
    belief : Belief, how far votes and odds are believed
    candidate_noise : float, the share of candidate sets that lack their label, as given or as estimated
    label_free : mean and standard error of the label-free score of held-out bags, None without cross-fitting
    """

    model: BagModel
    posterior: Tensor
    belief: Belief
    candidate_noise: float
    label_free: tuple[float | None, float | None] = (None, None)


def learn(
    data: LowRank,
    supervision: Supervision,
    kappa: float | None,
    background: Tensor | None,
    candidate_noise: float | str,
    *,
    cross_fit: bool,
    joined: bool,
    progress: Phases = SILENT,
) -> Learned:
    """Fit both experts to features, and stack them.

    Parameters
    ----------
    data : LowRank
        Features of the bags.
    supervision : Supervision
        What is known of the labels, of the bags in the order of the blocks.
    kappa : float or None
        How readily a bag takes more than one instance for positive.
    background : (q,) bool or None
        The class that no instance carries.
    candidate_noise : float or "auto"
        The share of candidate sets that lack their label.
    cross_fit : bool
        Fit both anew without each fold of the blocks.
    joined : bool
        Join the blocks for each fit, which pays where they are small.
    progress : Phases, default=SILENT
        Told what is being done.
    """
    blocks = data.blocks.joined() if joined else data.blocks
    device = data.spectrum.device
    known, weights = supervision.candidates, supervision.weights
    noise = expected_noise() if isinstance(candidate_noise, str) else float(candidate_noise)
    log_prior = torch.tensor(label_log_prior(known, None, Belief(), noise), device=device)
    regression = fit_bag_regression(blocks, data.spectrum, log_prior, background, progress=progress)
    if candidate_noise == "auto":  # votes tell themselves how far they are right
        doubted = known if weights is None else known | are_votes(weights)[:, None]
        noise = fit_candidate_noise(regression.log_evidence, doubted, blocks.weight)
    belief = Belief()
    if weights is not None:
        belief = fit_belief(regression.log_evidence, weights, noise, blocks.weight)
    if belief != Belief() or candidate_noise == "auto":
        log_prior = torch.tensor(label_log_prior(known, weights, belief, noise), device=device)
        regression = fit_bag_regression(blocks, data.spectrum, log_prior, background, progress=progress)
    sets = torch.tensor(known, device=device)
    candidates = trusted_sets(log_prior, sets, regression.posterior) > -torch.inf
    problems, folds = [Problem(data.spectrum, regression.posterior, candidates)], []
    if cross_fit:
        variance = regression.signal_variance
        folds = regress_without_folds(data, log_prior, sets, variance, background, joined, progress)
        problems += [fold.problem for fold in folds]
    likelihood, *without = fit_bag_likelihoods(blocks, problems, kappa, background, progress=progress)
    model = BagModel(regression.expert, likelihood.expert, default_stacking())
    if not cross_fit:
        return Learned(model, regression.posterior, belief, noise)
    held_out = read_held_out(data, folds, without)
    progress("stacking")
    fitted = fit_stacking(*held_out, log_prior, blocks.weight)
    unseen = fitted.probabilities(*held_out)
    if weights is not None and belief != Belief():
        belief = fit_belief(torch.log(unseen), weights, noise, blocks.weight)
        log_prior = torch.tensor(label_log_prior(known, weights, belief, noise), device=device)
    seen = blocks.cat(BagModel.read, blocks.features, model=model._replace(stacking=fitted))
    posterior = blend(unseen, seen, log_prior, blocks.weight)
    score = label_free(unseen, log_prior, blocks.weight)
    stacking = fitted
    if groups_are_many(supervision.groups):
        ratio = score_ratio(unseen, seen, log_prior, blocks.weight)
        others = [(each.log_evidence, fold.inside) for each, fold in zip(without, folds, strict=True)]
        stacking = extrapolate(fitted, held_out, ratio, likelihood.log_evidence, others, log_prior, blocks.weight)
    return Learned(model._replace(stacking=stacking), posterior, belief, noise, score)
