"""BagGP: exact bag-level inference on a low-rank Gaussian process."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from torch import Tensor

from mipl.baggp.blocks import with_log_prior
from mipl.baggp.constants import (
    LABELLING_BAGS,
    MIN_FOLD_BAGS,
    ONE_THREAD_INSTANCES,
    PREDICTION_ROWS,
    TWO_FOLDS_INSTANCES,
)
from mipl.baggp.cross_fit import assign_folds, held_out_evidence
from mipl.baggp.digests import bag_digests
from mipl.baggp.labelling import class_similarities
from mipl.baggp.likelihood import fit_bag_likelihood
from mipl.baggp.low_rank import low_rank
from mipl.baggp.model import Answer, BagModel, Expert, Stacking
from mipl.baggp.regression import fit_bag_regression
from mipl.baggp.stacking import default_stacking, fit_stacking, label_free, training_posterior
from mipl.baggp.votes import fit_vote_strength, vote_log_prior
from mipl.bags import Bags
from mipl.base import MIPLClassifier
from mipl.compute import limit_threads, seed_of, torch_device
from mipl.errors import ParameterError
from mipl.features.auto import choose_features
from mipl.gp.landmarks import kmeans_landmarks, median_distance
from mipl.gp.nystrom import KernelMap, LandmarkKernel, principal_map
from mipl.labelling import LabelOrder, order_to_label, undecided
from mipl.supervision import Supervision

__all__ = ["BagGP"]


class BagGP(MIPLClassifier):
    r"""Bag-level Gaussian process: who carries the label is summed out, not guessed.

    Exactly one candidate label of a bag is true; at least one instance carries it and all others are negative. BagGP
    gives every instance a probability of each label from its place in feature space and sums over all ways in which
    the bag's instances could carry each label, so that one convincing instance can decide, and forty unconvincing ones
    do not add up to a decision by chance. Two models share that sum and the same low-rank Gaussian process features:

    1. *bag regression* (`mipl.baggp.regression`) spreads each bag's label information over feature space and reads
       every bag with its own vote left out, exactly; where only false labels support a label, the support does not
       survive. It is hard to mislead but not precise;
    2. *bag likelihood* (`mipl.baggp.likelihood`) starts from that answer, as its prior, and refines it to the most
       probable instance classifier given all candidate sets; where it has seen little, its logits are moderated.

    The formulas of both experts' common part are in `mipl.bag_posterior` and `mipl.baggp.model`. The weights of the
    two experts in the answer, and the rate of outlying bags of which neither knows anything, are fitted to candidate
    sets of bags that the experts have not seen (`mipl.baggp.cross_fit`, `mipl.baggp.stacking`). No true label is used
    anywhere and nothing needs to be tuned. Votes on the candidates are prior odds (`mipl.baggp.votes`); a bag of a
    background class holds no positive instance at all; groups of bags are held out together.

    `resolve` answers for bags that the model was fitted on with `posterior_`, and for others with their probabilities
    among the candidates.

    Parameters
    ----------
    features : "auto" or scikit-learn transformer, default="auto"
        From raw instances to the space of the kernel; "auto" decides by the instances alone, see
        `mipl.features.choose_features`.
    n_landmarks : int, default=2000
        Points at which the process is represented; time grows with their square, accuracy slowly.
    rank : int, default=1000
        Principal features of the landmarks that are kept; memory is n * rank single-precision numbers.
    lengthscale : float, default=1.0
        Length scale of the Matérn-5/2 kernel, in multiples of the median distance between instances.
    kappa : float, default=None
        How readily a bag takes more than one instance for positive; None stands for :math:`\sqrt q`.
    cross_fit : int, default=4
        Folds in which both experts are fitted anew without the bags of the fold, for the stacking and the posterior of
        the training bags. From 200,000 instances on two folds are used. 0 saves the time, more than that of the fit
        itself, and gives probabilities that are not calibrated.
    random_state : int, RandomState or None, default=0
        Seed of landmarks, filters and the order of bags.
    device : str, default="cpu"
        Where torch computes: "cpu", "cuda", ...

    Attributes
    ----------
    features_ : transformer
        The fitted front end.
    landmarks_ : (M, d) array
    lengthscale_ : float
        The length scale in units of the front end's features.
    feature_map_ : (M, R) array
        Features of an instance: its kernel with the landmarks @ feature_map.
    coef_, intercept_ : (2, R, q), (2, q) arrays
        Instance logits of bag regression and of bag likelihood: features @ coef + intercept.
    coef_variance_ : (R,) array
        Posterior variance of the second one's coefficients, by which its logits are moderated.
    class_offset_ : (2, q) array
        Added to the log evidence of the two experts.
    stacking_weights_ : (2,) array
        Weights of the two experts in the bags' log odds.
    outlier_rate_ : float
        The share of bags of which neither expert knows anything.
    vote_strength_ : float or None
        How far votes are believed: their logarithms are multiplied by it. None where there were none.
    background_ : int or None
        The column of the background class.
    posterior_ : (m, q) array
        Posterior of the training bags' labels: the geometric mean of what models fitted without the bag say of it and
        what the model fitted to all bags says, which is as accurate as the latter and nearly as honest as the former.
    bag_digests_ : (m,) array
        By which `resolve` knows the training bags.
    label_free_score_, label_free_error_ : float or None
        How much more probable the candidate sets of held-out bags are than by chance, in nats per bag, and its
        standard error; not clearly above zero where the instances were not found to say anything about the labels. None
        without cross-fitting.

    Examples
    --------
    >>> import mipl
    >>> train, test = mipl.load("digits", r=1, seed=0).split(0.5, seed=0)
    >>> model = mipl.BagGP(n_landmarks=200).fit(train)
    >>> model.score(test) > 0.9
    True
    """

    name = "BagGP"
    citation = "this library"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "features": [StrOptions({"auto"}), HasMethods(["fit", "transform"])],
        "n_landmarks": [Interval(Integral, 1, None, closed="left")],
        "rank": [Interval(Integral, 1, None, closed="left")],
        "lengthscale": [Interval(Real, 0, None, closed="neither")],
        "kappa": [Interval(Real, 0, None, closed="neither"), None],
        "cross_fit": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
        "device": [str],
    }

    def __init__(
        self,
        *,
        features: str | BaseEstimator = "auto",
        n_landmarks: int = 2000,
        rank: int = 1000,
        lengthscale: float = 1.0,
        kappa: float | None = None,
        cross_fit: int = 4,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "cpu",
    ) -> None:
        self.features = features
        self.n_landmarks = n_landmarks
        self.rank = rank
        self.lengthscale = lengthscale
        self.kappa = kappa
        self.cross_fit = cross_fit
        self.random_state = random_state
        self.device = device

    # ---------------------------------------------------------------- learning

    def _fit(self, bags: Bags, candidates: NDArray[np.bool_]) -> None:
        self._fit_supervised(bags, Supervision(candidates))

    def _fit_supervised(self, bags: Bags, supervision: Supervision) -> None:
        if supervision.sample_weight is not None:
            raise ParameterError("BagGP cannot weight bags; fit it without sample_weight")
        with limit_threads(bags.n_instances, one_thread_up_to=ONE_THREAD_INSTANCES):
            self._learn(bags, supervision, seed_of(self.random_state))
        self.bag_digests_ = bag_digests(bags, supervision.candidates)

    def _learn(self, bags: Bags, supervision: Supervision, seed: int) -> None:
        # In random order every block of bags, and every part of one, is a random sample.
        order = np.random.default_rng(seed).permutation(len(bags))
        self.features_ = self._front_end(bags, seed)
        bags, supervision = bags[order], supervision[order]
        X = self._tensor(self.features_.fit_transform(bags.instances))

        generator = torch.Generator().manual_seed(seed)
        self.lengthscale_ = self.lengthscale * median_distance(X, generator)
        landmarks, counts = kmeans_landmarks(X, self.n_landmarks, generator)
        kernel_map = principal_map(landmarks, counts, self.lengthscale_, self.rank)
        known = np.where(supervision.candidates, 0.0, -np.inf)
        blocks, eigenvalues, kernel_map = low_rank(X, bags.offsets, known, kernel_map)

        self.background_ = supervision.background
        background = self._background_mask(len(self.classes_))
        regression = fit_bag_regression(blocks, eigenvalues, background)
        self.vote_strength_ = None
        if supervision.weights is not None:
            self.vote_strength_ = fit_vote_strength(regression.log_evidence, supervision.weights)
            blocks = with_log_prior(blocks, vote_log_prior(supervision.weights, self.vote_strength_))
            regression = fit_bag_regression(blocks, eigenvalues, background)
        likelihood = fit_bag_likelihood(blocks, eigenvalues, regression.posterior, self.kappa, background)

        model = BagModel(regression.expert, likelihood, default_stacking())
        posterior = regression.posterior
        score: tuple[float | None, float | None] = (None, None)
        n_folds = self._n_folds(bags, supervision.groups)
        if n_folds >= 2:
            folds = assign_folds(len(bags), n_folds, supervision.groups)
            held_out = held_out_evidence(blocks, eigenvalues, folds, regression.signal_variance, self.kappa, background)
            log_prior = torch.cat([block.log_prior for block in blocks])
            model = model._replace(stacking=fit_stacking(*held_out, log_prior))
            posterior = training_posterior(model, blocks, held_out)
            score = label_free(model.stacking.probabilities(*held_out), log_prior)

        self.landmarks_ = landmarks.cpu().numpy()
        self.feature_map_ = kernel_map.T.cpu().numpy()
        self._keep(model)
        self.posterior_ = _numpy(posterior)[np.argsort(order)]
        self.label_free_score_, self.label_free_error_ = score

    def _background_mask(self, q: int) -> Tensor | None:
        """The background class as a mask (q,)."""
        if self.background_ is None:
            return None
        return (torch.arange(q) == self.background_).to(torch_device(self.device))

    def _n_folds(self, bags: Bags, groups: NDArray[np.int64] | None) -> int:
        """The folds of cross-fitting: two for very many instances, none of a few bags, no more than groups."""
        wanted = min(self.cross_fit, 2) if bags.n_instances > TWO_FOLDS_INSTANCES else self.cross_fit
        n_groups = len(bags) if groups is None else len(np.unique(groups))
        return min(wanted, len(bags) // MIN_FOLD_BAGS, n_groups)

    def _front_end(self, bags: Bags, seed: int) -> BaseEstimator:
        if isinstance(self.features, str):
            return choose_features(bags, seed, self.device)
        return clone(self.features)

    # ---------------------------------------------------------------- what is kept, as arrays

    def _keep(self, model: BagModel) -> None:
        experts = (model.regression, model.likelihood)
        self.coef_ = _numpy(torch.stack([expert.coef for expert in experts]))
        self.intercept_ = _numpy(torch.stack([expert.intercept for expert in experts]))
        self.class_offset_ = _numpy(torch.stack([expert.class_offset for expert in experts]))
        assert model.likelihood.variance is not None
        self.coef_variance_ = _numpy(model.likelihood.variance)
        self.stacking_weights_, self.outlier_rate_ = model.stacking

    def _model(self) -> BagModel:
        """What `_keep` kept, on the device."""
        device = torch_device(self.device)
        variances = (None, torch.tensor(self.coef_variance_, device=device))
        arrays = (torch.tensor(a, device=device) for a in (self.coef_, self.intercept_, self.class_offset_))
        background = self._background_mask(len(self.classes_))
        regression, likelihood = (
            Expert(coef, intercept, offset, background, variance)
            for coef, intercept, offset, variance in zip(*arrays, variances, strict=True)
        )
        return BagModel(regression, likelihood, Stacking(self.stacking_weights_, self.outlier_rate_))

    def _kernel_map(self) -> KernelMap:
        return KernelMap(
            LandmarkKernel(self._tensor(self.landmarks_), self.lengthscale_), self._tensor(self.feature_map_)
        )

    def _tensor(self, X: Any) -> Tensor:
        return torch.tensor(np.asarray(X, dtype=np.float32), device=torch_device(self.device))

    # ---------------------------------------------------------------- prediction

    def _answer(self, bags: Bags, model: BagModel) -> tuple[Answer, Tensor]:
        """What both experts say together of instances and of bags, and the bags' offsets as a tensor."""
        X = self._tensor(self.features_.transform(bags.instances))
        features = self._kernel_map()
        pieces = [model.logits(features(rows)) for rows in X.split(PREDICTION_ROWS)]
        first, second = (torch.cat(logits) for logits in zip(*pieces, strict=True))
        offsets = torch.tensor(bags.offsets, device=X.device)
        return model.answer((first, second), offsets), offsets

    def _predict_proba(self, bags: Bags) -> NDArray[np.floating[Any]]:
        return _numpy(self._answer(bags, self._model())[0].probabilities)

    def _resolve(self, bags: Bags, candidates: NDArray[np.bool_]) -> NDArray[np.floating[Any]]:
        if self.bag_digests_ is None:
            return super()._resolve(bags, candidates)
        place = {digest: i for i, digest in enumerate(self.bag_digests_.tolist())}
        trained = np.array([place.get(digest, -1) for digest in bag_digests(bags, candidates).tolist()])
        known = self.posterior_[trained]
        if (trained >= 0).all():
            return known
        return np.where((trained >= 0)[:, None], known, super()._resolve(bags, candidates))

    def label_order(self, bags: Any, posterior: NDArray[np.float64]) -> LabelOrder:
        """Order bags by what a person's answer would tell about the labels of all of them, see `mipl.labelling`.

        Parameters
        ----------
        bags : MIPLDataset, Bags, list of (n_i, d) arrays, or 3-D array
            m bags.
        posterior : (m, q) array
            Probabilities of their labels, such as `resolve` gives. Beyond 1,500 bags those that are nearly certain
            follow by their entropy.
        """
        checked = self._check_bags(bags)
        chosen = undecided(posterior, LABELLING_BAGS)
        if not len(chosen):
            return order_to_label(posterior)
        part = checked[chosen]
        answer, offsets = self._answer(part, self._model())
        X = self._tensor(self.features_.transform(part.instances))
        features = torch.cat([self._kernel_map()(rows) for rows in X.split(PREDICTION_ROWS)])
        variance = torch.tensor(self.coef_variance_, device=X.device)
        background = self._background_mask(len(self.classes_))
        alike = class_similarities(features, answer.logits, offsets, variance, posterior[chosen], background)
        return order_to_label(posterior, [each._replace(bags=chosen[each.bags]) for each in alike])

    def _predict_instances(self, bags: Bags) -> NDArray[np.floating[Any]]:
        model = self._model()
        return _numpy(model.instance_probabilities(*self._answer(bags, model)))


def _numpy(tensor: Tensor) -> NDArray[np.float64]:
    return tensor.double().cpu().numpy()
