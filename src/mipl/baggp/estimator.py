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

from mipl.baggp.blocks import Blocks, Place
from mipl.baggp.constants import (
    JOINED_INSTANCES,
    LABELLING_BAGS,
    ONE_THREAD_INSTANCES,
    PREDICTION_ROWS,
    SAMPLE_INSTANCES,
)
from mipl.baggp.cross_fit import choose_folds
from mipl.baggp.digests import bag_digests, canonical_order, with_candidates
from mipl.baggp.labelling import class_similarities
from mipl.baggp.learning import learn
from mipl.baggp.low_rank import low_rank, rank_of
from mipl.baggp.metric import learn_metric
from mipl.baggp.model import Answer, BagModel, Expert, Stacking
from mipl.baggp.on_dask import OnDask
from mipl.baggp.places import Local
from mipl.baggp.prediction import PREDICTS_FROM, Halves, Ready, bounded_tensor, instance_logits
from mipl.baggp.scratch import Scratch
from mipl.baggp.sources import InFiles, InMemory, Training, ready
from mipl.baggp.votes import Belief, label_log_prior
from mipl.bags import Bags
from mipl.base import restrict_to_candidates
from mipl.certainty import level_for
from mipl.cluster_classifier import ClusterClassifier
from mipl.compute import free_memory, in_own_thread, limit_torch, seed_of, shared_by, torch_device
from mipl.features.auto import choose_features
from mipl.features.linear_map import LinearMap
from mipl.gp.landmarks import kmeans_landmarks, median_distance
from mipl.gp.nystrom import principal_map
from mipl.labelling import LabelOrder, order_to_label, undecided
from mipl.progress import Phases, show_phases
from mipl.streams import BagStream
from mipl.supervision import Supervision

__all__ = ["BagGP"]


class BagGP(ClusterClassifier):
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

    Before that, small fits to two halves of the bags tell along which directions of feature space the labels change.
    With 200 bags or more and up to 150 features, these become a linear map at the end of the front end, if held-out
    candidate sets are clearly more probable with it (`mipl.baggp.metric`).

    The formulas of both experts' common part are in `mipl.bag_posterior` and `mipl.baggp.model`. The weights of the
    two experts in the answer, and the rate of outlying bags of which neither knows anything, are fitted to candidate
    sets of bags that the experts have not seen (`mipl.baggp.cross_fit`, `mipl.baggp.stacking`). No true label is used
    anywhere and nothing needs to be tuned. The order of the bags and of their instances has no say: a fit takes them in
    the order of their digests. Votes on the candidates count as far as people are found to be right, and other weights
    are prior odds (`mipl.baggp.votes`); a bag of a background class holds no positive instance at all; groups of bags
    are held out together. With `candidate_noise` the truth may be missing from a set (`mipl.baggp.candidate_noise`).

    A bag of weight w (`sample_weight`) counts as w bags in every sum: in the Gram matrix, in the likelihood, in class
    offsets, stacking and `label_free_score_`. With whole numbers the answers are those of a fit to copies of
    the bags that share a group, but for rounding and for what is drawn at random: the start of the landmarks where
    there are fewer of these than distinct instances, and the rows whose median distance is taken from 1,500 instances
    on. The front end does not see weights.

    `resolve` answers for bags that the model was fitted on with `posterior_`, and for others with their probabilities
    among the candidates, times the votes on these to the power `vote_strength_` (1 where the training bags had none).
    With `candidate_noise` labels off the set get a share too.

    Parameters
    ----------
    features : "auto" or scikit-learn transformer, default="auto"
        From raw instances to the space of the kernel; "auto" decides by the instances alone, see
        `mipl.features.choose_features`.
    n_landmarks : int, default=2000
        Points M at which the process is represented; time grows with n * M * `rank` and M^3, accuracy slowly.
    rank : int, default=1000
        Principal features of the landmarks that are kept; memory is n * rank single-precision numbers. Where there are
        fewer distinct instances than `n_landmarks`, fewer features are kept in proportion, but not fewer than 200.
    lengthscale : float, default=1.0
        Length scale of the Matérn-5/2 kernel, in multiples of the median distance between instances.
    kappa : float, default=None
        How readily a bag takes more than one instance for positive; None stands for :math:`\sqrt q`.
    cross_fit : int, default=4
        Folds in which both experts are fitted anew without the bags of the fold, for the stacking and the posterior of
        the training bags. From 200,000 instances on two folds are used. 0 saves the time, about that of the fit itself,
        and gives probabilities that are not calibrated.
    memory_budget : float, default=None
        Bytes of features that may be kept in memory, at 4 * rank per instance; where they are more, they are kept in a
        scratch file in the folder for temporary files. None stands for half of the memory that is free.
    candidate_noise : float in [0, 1) or "auto", default=0.0
        The share of candidate sets that lack the true label, among sets of two or more labels; a single label is
        certain. Votes are no sets: how far people are right tells how often nobody names the truth. "auto" estimates
        it from the sets and the instances alone, at the price of a second bag regression.
    random_state : int, RandomState or None, default=0
        Seed of landmarks, filters and folds.
    device : str, default="cpu"
        Where torch computes: "cpu", "cuda", ...
    verbose : bool or int, default=False
        Show on a terminal or in a notebook what the fit is doing and how far it is, wherever the bags are.

    Attributes
    ----------
    features_ : transformer
        The fitted front end; where a metric was learned, a pipeline that ends in its `mipl.features.LinearMap`.
    landmarks_ : (M, d) array
    lengthscale_ : float
        The length scale in units of the front end's features.
    feature_map_ : (M, R) array
        Features of an instance: its kernel with the landmarks @ feature_map.
    coef_, intercept_ : (2, R, q), (2, q) arrays
        Instance logits of bag regression and of bag likelihood: features @ coef + intercept. Here and in
        `class_offset_` q counts the classes that are `possible_`.
    coef_variance_ : (R,) array
        Posterior variance of the second one's coefficients, by which its logits are moderated.
    class_offset_ : (2, q) array
        Added to the log evidence of the two experts.
    stacking_weights_ : (2,) array
        Weights of the two experts in the bags' log odds.
    outlier_rate_ : float
        The share of bags of which neither expert knows anything.
    vote_reliability_ : float or None
        The share of the votes that are right, as estimated without labels; None where there were none. Votes are
        weights that are whole numbers, see `mipl.baggp.votes`.
    vote_correlation_ : float or None
        The correlation of the errors that people make on the same bag: 0 where they err independently, so that the odds
        grow with every vote, and more where the tenth vote says less than the first.
    vote_strength_ : float or None
        How far odds are believed, which are weights that are no whole numbers: their logarithms are multiplied by it.
        None where there were none.
    candidate_noise_ : float
        The share of candidate sets that lack the true label, as given or as estimated.
    background_ : int or None
        The column of the background class.
    posterior_ : (m, q) array
        Posterior of the training bags' labels: a geometric mean of what models fitted without the bag say of it and
        what the model fitted to all bags says, which is as accurate as the latter and nearly as honest as the former.
        Bags of weight zero are left out.
    outside_ : (m,) array
        Posterior probability that the true label of a training bag is missing from its set, or was named by nobody who
        voted; zero without votes and `candidate_noise`.
    bag_digests_ : (m,) array
        By which `resolve` knows the training bags.
    coverage_levels_ : (99,) array or None
        How much probability plausible labels (`predict_set`) must hold together for the true one to be among them in 1
        to 99 % of new bags, by held-out candidate sets. None without cross-fitting.
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
    supports_sample_weight = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "features": [StrOptions({"auto"}), HasMethods(["fit", "transform"])],
        "n_landmarks": [Interval(Integral, 1, None, closed="left")],
        "rank": [Interval(Integral, 1, None, closed="left")],
        "lengthscale": [Interval(Real, 0, None, closed="neither")],
        "kappa": [Interval(Real, 0, None, closed="neither"), None],
        "cross_fit": [Interval(Integral, 0, None, closed="left")],
        "memory_budget": [Interval(Real, 0, None, closed="left"), None],
        "candidate_noise": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="left")],
        "random_state": ["random_state"],
        "device": [str],
        "verbose": ["verbose"],
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
        memory_budget: float | None = None,
        candidate_noise: float | str = 0.0,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "cpu",
        verbose: bool | int = False,
    ) -> None:
        self.features = features
        self.n_landmarks = n_landmarks
        self.rank = rank
        self.lengthscale = lengthscale
        self.kappa = kappa
        self.cross_fit = cross_fit
        self.memory_budget = memory_budget
        self.candidate_noise = candidate_noise
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    # ---------------------------------------------------------------- learning

    def _fit(self, bags: Bags, candidates: NDArray[np.bool_]) -> None:
        self._fit_supervised(bags, Supervision(candidates))

    def _fit_supervised(self, bags: Bags, supervision: Supervision) -> None:
        self._fit_anywhere(InMemory(bags), supervision)

    def _fit_stream(self, bags: BagStream) -> None:
        supervision = self._known(bags.supervision(), self._fit_depth)
        few = bags.n_instances <= SAMPLE_INSTANCES
        self._fit_anywhere(InMemory(bags.to_dataset().bags) if few else InFiles(bags), supervision)

    def _fit_anywhere(self, training: Training, supervision: Supervision) -> None:
        seed = seed_of(self.random_state)
        with show_phases(self.name, verbose=bool(self.verbose)) as progress, self._place(training) as place:
            progress("digests of the bags")
            known = supervision.of_classes(self._columns)
            self.bag_digests_ = with_candidates(training.digests(), known.candidates)
            order, known = canonical_order(self.bag_digests_, known, seed)
            arranged = training.arranged(order)
            posterior = in_own_thread(lambda: self._learn(arranged, known, seed, place, progress), place.stop)
        self.posterior_ = self._sound(self._of_all_classes(posterior[np.argsort(order)]))
        self.outside_ = np.where(supervision.candidates, 0.0, self.posterior_).sum(axis=1)

    def _place(self, training: Training) -> Local | OnDask:
        """The cluster, or this process, with a scratch file where the features are larger than memory may hold."""
        if self._client is not None:
            return OnDask(self._client, torch.get_num_threads())
        n_threads = 1 if training.n_instances < ONE_THREAD_INSTANCES else torch.get_num_threads()
        needed = 4 * self.rank * (training.n_instances + training.n_bags)
        budget = free_memory() / 2 if self.memory_budget is None else self.memory_budget
        return Local(n_threads, Scratch() if needed > budget else None)

    def _learn(
        self, training: Training, supervision: Supervision, seed: int, place: Place, progress: Phases
    ) -> NDArray[np.float64]:
        """Learn, and return the posterior (m, q) of the training bags."""
        m, n = training.n_bags, training.n_instances
        rng = np.random.default_rng(seed)
        folds = choose_folds(n, supervision, self.cross_fit, rng)
        # Blocks have bags of one fold, so that fits without it leave them out; small ones would take longer than that.
        parts = training.divide(np.zeros_like(folds) if n <= JOINED_INSTANCES else folds)

        # Front end, length scale and landmarks need no more than a sample of many bags.
        chosen = None if n <= SAMPLE_INSTANCES else np.sort(rng.choice(m, m * SAMPLE_INSTANCES // n + 1, replace=False))
        progress("front end")
        sample = training.take(chosen)
        self.features_ = self._front_end(sample, seed)
        with shared_by(place.each):
            X = self._tensor(self.features_.fit_transform(sample.instances))
        weight = row_weight = None
        if supervision.sample_weight is not None:
            weight = torch.tensor(supervision.sample_weight, device=X.device)
            of_sample = supervision.sample_weight if chosen is None else supervision.sample_weight[chosen]
            row_weight = torch.tensor(sample.spread(of_sample), device=X.device)
        progress("metric")
        some = slice(None) if chosen is None else chosen
        metric = learn_metric(
            X,
            sample.offsets,
            supervision[some],
            folds[some] % 2,
            place,
            seed,
            self.lengthscale,
            self.kappa,
            self._background_mask(),
            self.candidate_noise,
        )
        if metric is not None:
            from sklearn.pipeline import make_pipeline  # takes a tenth of a second

            last = LinearMap(metric.float().cpu().numpy())
            X = self._tensor(last.fit_transform(X.cpu().numpy()))
            self.features_ = make_pipeline(self.features_, last)
        progress("landmarks")
        generator = torch.Generator().manual_seed(seed)
        self.lengthscale_ = self.lengthscale * median_distance(X, generator, weights=row_weight)
        landmarks, counts = kmeans_landmarks(X, self.n_landmarks, generator, weights=row_weight, mapping=place.each)
        rank = rank_of(len(landmarks), self.n_landmarks, self.rank)
        kernel_map = principal_map(landmarks, counts, self.lengthscale_, rank)
        if chosen is None:
            rows, front_end = ready(X, sample.offsets, parts), None
        else:
            rows, front_end = training.sources(parts), self.features_
        del X, sample
        data = low_rank(Blocks(place, rows, parts, weight), kernel_map, front_end, progress)

        order = data.blocks.bags
        found = learn(
            data,
            supervision[order],
            self.kappa,
            self._background_mask(),
            self.candidate_noise,
            folds[order],
            progress,
        )
        self.landmarks_ = landmarks.cpu().numpy()
        self.feature_map_ = data.kernel_map.T.cpu().numpy()
        self._keep(found.model)
        self.vote_reliability_, self.vote_correlation_, self.vote_strength_ = found.belief
        self.candidate_noise_ = found.candidate_noise
        self.label_free_score_, self.label_free_error_ = found.label_free
        self.coverage_levels_ = found.levels
        return _numpy(found.posterior)[np.argsort(order)]

    @property
    def _columns(self) -> NDArray[np.int64]:
        """The classes (k,) that are learned: those that are possible, but all where a single one is."""
        possible = self._possible_classes
        return np.flatnonzero(possible | (possible.sum() < 2))

    def _of_all_classes(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values (m, k) of the classes that are learned as (m, q), zero for the others."""
        wide = np.zeros((len(values), len(self.classes_)))
        wide[:, self._columns] = values
        return wide

    def _background_mask(self) -> Tensor | None:
        """The background class as a mask (k,) of the classes that are learned."""
        if self.background_ is None:
            return None
        return torch.from_numpy(self._columns == self.background_).to(torch_device(self.device))

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
        return self._ready().model

    def _ready(self) -> Ready:
        """What predictions are made with, built at the first one and kept until an attribute is assigned anew.

        Threads may build it at the same time; they build the same. It is neither saved nor pickled nor copied.
        """
        source = tuple(getattr(self, name) for name in PREDICTS_FROM)
        ready: Ready | None = vars(self).get("_kept")
        if ready is None or not ready.is_of(source):
            features = Halves.of(self._tensor(self.landmarks_), self.lengthscale_, self._tensor(self.feature_map_))
            ready = Ready(source, self._build_model(), features)
            self._kept = ready
        return ready

    def _build_model(self) -> BagModel:
        device = torch_device(self.device)
        variances = (None, torch.tensor(self.coef_variance_, device=device))
        arrays = (torch.tensor(a, device=device) for a in (self.coef_, self.intercept_, self.class_offset_))
        background = self._background_mask()
        regression, likelihood = (
            Expert(coef.float(), intercept, offset, background, variance)
            for coef, intercept, offset, variance in zip(*arrays, variances, strict=True)
        )
        return BagModel(regression, likelihood, Stacking(self.stacking_weights_, self.outlier_rate_))

    def _forget(self) -> None:
        super()._forget()
        self.__dict__.pop("_kept", None)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_kept"}

    def _tensor(self, X: Any) -> Tensor:
        return bounded_tensor(X, torch_device(self.device), self.features)

    # ---------------------------------------------------------------- prediction

    def _answer(self, bags: Bags, model: BagModel) -> tuple[Answer, Tensor]:
        """What both experts say together of instances and of bags, and the bags' offsets as a tensor."""
        n_threads = torch.get_num_threads()
        with limit_torch(one_thread=True):
            X = self._tensor(self.features_.transform(bags.instances))
            logits = instance_logits(model, self._ready().features, X, n_threads)
            offsets = torch.tensor(bags.offsets, device=X.device)
            return model.answer(logits, offsets), offsets

    def _predict_proba(self, bags: Bags) -> NDArray[np.floating[Any]]:
        return self._of_all_classes(_numpy(self._answer(bags, self._model())[0].probabilities))

    def _level(self, coverage: float) -> float:
        return coverage if self.coverage_levels_ is None else level_for(self.coverage_levels_, coverage)

    def _resolve(
        self, bags: Bags, candidates: NDArray[np.bool_], votes: NDArray[np.float64] | None = None
    ) -> NDArray[np.floating[Any]]:
        if self.bag_digests_ is None:
            return self._among(bags, candidates, votes)
        digests, copy_of = np.unique(self.bag_digests_, return_inverse=True)
        posterior = np.zeros((len(digests), self.posterior_.shape[1]))
        np.add.at(posterior, copy_of, self.posterior_)
        posterior /= np.bincount(copy_of)[:, None]  # of equal bags the mean, whichever of them comes first
        given = bag_digests(bags, candidates[:, self._columns])
        place = np.minimum(np.searchsorted(digests, given), len(digests) - 1)
        trained = digests[place] == given
        if trained.all():
            return posterior[place]
        return np.where(trained[:, None], posterior[place], self._among(bags, candidates, votes))

    _resolve_votes = _resolve

    def _among(
        self, bags: Bags, candidates: NDArray[np.bool_], votes: NDArray[np.float64] | None
    ) -> NDArray[np.floating[Any]]:
        """Posterior (m, q) of the labels of bags that were not trained on, given their candidate sets or votes."""
        columns = self._columns
        belief = Belief(self.vote_reliability_, self.vote_correlation_, self.vote_strength_)
        weights = None if votes is None else votes[:, columns]
        log_prior = label_log_prior(candidates[:, columns], weights, belief, self.candidate_noise_)
        proba = self._predict_proba(bags)[:, columns]
        posterior = restrict_to_candidates(proba * np.exp(log_prior), log_prior > -np.inf)
        return self._of_all_classes(np.asarray(posterior, dtype=np.float64))

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
        features = torch.cat([self._ready().features(rows) for rows in X.split(PREDICTION_ROWS)])
        variance = torch.tensor(self.coef_variance_, device=X.device)
        background = self._background_mask()
        posterior = posterior[:, self._columns]  # the others have nothing to tell
        alike = class_similarities(features, answer.logits, offsets, variance, posterior[chosen], background)
        return order_to_label(posterior, [each._replace(bags=chosen[each.bags]) for each in alike])

    def _predict_instances(self, bags: Bags) -> NDArray[np.floating[Any]]:
        model = self._model()
        answer = self._answer(bags, model)
        with limit_torch(one_thread=True):
            found = _numpy(model.instance_probabilities(*answer))
        return np.column_stack([self._of_all_classes(found[:, :-1]), found[:, -1]])


def _numpy(tensor: Tensor) -> NDArray[np.float64]:
    return tensor.double().cpu().numpy()
