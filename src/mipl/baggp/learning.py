"""Learning from features: both experts, how they are stacked, and the posterior of the training bags."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mipl.bag_posterior import label_posterior, set_log_likelihood
from mipl.baggp.candidate_noise import expected_noise, fit_candidate_noise, trusted_sets
from mipl.baggp.constants import PRIOR_SCALE, PRIOR_TEMPER, SIGNAL_VARIANCES
from mipl.baggp.cross_fit import Fits, fits_of
from mipl.baggp.likelihood import fit_bag_likelihoods
from mipl.baggp.low_rank import LowRank
from mipl.baggp.model import BagModel
from mipl.baggp.regression import BagRegressions, fit_bag_regressions
from mipl.baggp.stacking import blend, default_stacking, fit_stacking, label_free
from mipl.baggp.votes import Belief, are_votes, fit_belief, label_log_prior
from mipl.baggp.weights import weighted_mean
from mipl.certainty import levels_of_coverage
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
    levels : (99,), of `mipl.certainty.levels_of_coverage`, None without cross-fitting
    """

    model: BagModel
    posterior: Tensor
    belief: Belief
    candidate_noise: float
    label_free: tuple[float | None, float | None] = (None, None)
    levels: NDArray[np.float64] | None = None


def learn(
    data: LowRank,
    supervision: Supervision,
    kappa: float | None,
    background: Tensor | None,
    candidate_noise: float | str,
    folds: NDArray[np.int64],
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
    folds : (m,)
        Without which both are fitted too, of the bags in the order of the blocks; all zero for none.
    progress : Phases, default=SILENT
        Told what is being done.
    """
    fits, weight = fits_of(data, folds), data.blocks.weight
    known, weights = supervision.candidates, supervision.weights
    noise = expected_noise() if isinstance(candidate_noise, str) else float(candidate_noise)

    def regress(weights: NDArray[np.float64] | None, belief: Belief) -> tuple[Tensor, BagRegressions]:
        log_prior = torch.tensor(label_log_prior(known, weights, belief, noise), device=data.spectrum.device)
        return log_prior, _best_regressions(fits, log_prior, background, progress)

    log_prior, regressions = regress(None, Belief())
    unseen, belief = fits.held_out(regressions.log_evidence), Belief()
    if candidate_noise == "auto":  # votes tell themselves how far they are right
        doubted = known if weights is None else known | are_votes(weights)[:, None]
        noise = fit_candidate_noise(unseen, doubted, weight)
    if weights is not None:
        belief = fit_belief(unseen, weights, noise, weight)
    if belief != Belief() or candidate_noise == "auto":
        log_prior, regressions = regress(weights, belief)

    prior = label_posterior(PRIOR_TEMPER * regressions.log_evidence, log_prior[:, None])
    sets = torch.tensor(known, device=log_prior.device)
    candidates = trusted_sets(log_prior, sets, prior)
    diagonals = torch.stack([gram if gram.ndim == 1 else gram.diagonal() for gram in fits.grams]).clamp(min=0)
    likelihoods = fit_bag_likelihoods(
        fits.blocks, fits.W, diagonals, prior, candidates, kappa, background, progress=progress
    )
    model = BagModel(regressions.experts[0], likelihoods.experts[0], default_stacking())
    if fits.fold is None:
        return Learned(model, prior[:, 0], belief, noise)
    progress("stacking")
    held_out = fits.held_out(regressions.log_evidence), fits.held_out(likelihoods.log_evidence)
    model = model._replace(stacking=fit_stacking(*held_out, log_prior, weight))
    unseen = model.stacking.probabilities(*held_out)
    seen = fits.blocks.cat(BagModel.read, fits.blocks.features, model=model)
    posterior = blend(unseen, seen, log_prior, weight)
    known_of = label_posterior(torch.log(unseen), log_prior)
    levels = levels_of_coverage(
        unseen.cpu().numpy(), known_of.cpu().numpy(), None if weight is None else weight.cpu().numpy()
    )
    return Learned(model, posterior, belief, noise, label_free(unseen, log_prior, weight), levels)


def _best_regressions(fits: Fits, log_prior: Tensor, background: Tensor | None, progress: Phases) -> BagRegressions:
    """Regressions at the variance under which the candidate sets of held-out bags are most probable.

    With their own votes left out, bags do not do for that: in the rounds these come back through other bags.
    """

    def at(some: Fits, variance: float) -> BagRegressions:
        given = some.blocks, some.W, some.grams, some.spectrum
        return fit_bag_regressions(*given, log_prior, variance, background, progress)

    def score(found: BagRegressions) -> float:
        evidence = others.held_out(found.log_evidence)
        return float(weighted_mean(set_log_likelihood(PRIOR_SCALE * evidence, log_prior), fits.blocks.weight))

    others = fits if fits.fold is None else fits.others()
    tried = {variance: at(others, variance) for variance in SIGNAL_VARIANCES}
    best = max(tried, key=lambda variance: score(tried[variance]))
    if others is fits:
        return tried[best]
    first = at(fits.first(), best)
    evidence = torch.cat([first.log_evidence, tried[best].log_evidence], dim=1)
    return BagRegressions(first.experts + tried[best].experts, evidence)
