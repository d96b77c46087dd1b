"""BagGP: exact bag-level inference on a low-rank Gaussian process."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from threadpoolctl import threadpool_limits
from torch import Tensor

from mipl.bag_posterior import bag_evidence, instance_posterior
from mipl.baggp.likelihood import fit_bag_likelihood, moderate
from mipl.baggp.low_rank import low_rank
from mipl.baggp.regression import fit_bag_regression
from mipl.baggp.stacking import Trust, trust_by_held_out
from mipl.bags import Bags
from mipl.base import MIPLClassifier
from mipl.errors import DataError
from mipl.features.auto import choose_features
from mipl.gp.landmarks import kmeans_landmarks, median_distance
from mipl.gp.nystrom import KernelMap, LandmarkKernel, principal_map

__all__ = ["BagGP"]

#: Up to this many training instances, threads wait for each other longer than they work.
_ONE_THREAD = 20_000
#: Instances whose features are held at a time in a prediction.
_BLOCK_ROWS = 4096


class BagGP(MIPLClassifier):
    r"""Bag-level Gaussian process: who carries the label is summed out, not guessed.

    Exactly one candidate label of a bag is true; at least one instance carries it and all others are negative. BagGP
    gives every instance a probability of each label from its place in feature space and sums over all ways in which
    the bag's instances could carry each label, so that one convincing instance can decide, and forty unconvincing ones
    do not add up to a decision by chance. Two models share that sum and the same low-rank Gaussian process features:

    1. *bag regression* spreads each bag's label information over feature space and reads every bag with its own vote
       left out, exactly; where only false labels support a label, the support does not survive. It is cautious;
    2. *bag likelihood* starts from that answer, as its prior, and sharpens it to the most probable instance classifier
       given all candidate sets; where it has seen little, its logits are moderated.

    With instance logits :math:`g_{jc}` (label c against negative) the evidence of label c in bag b is

    .. math::
        l_{bc} = \log\Big(\prod_{j \in b} (1 + e^{g_{jc}}) - 1\Big), \qquad
        \hat p_b = (1 - \epsilon)\, \mathrm{softmax}_c\big(w_1 (l^{(1)}_{bc} + o^{(1)}_c)
        + w_2 (l^{(2)}_{bc} + o^{(2)}_c)\big) + \epsilon / q,

    with class offsets o that softly expect equally frequent classes (`mipl.baggp.class_offsets`), and weights w and a
    share :math:`\epsilon` of bags like no other that make the probabilities of held-out candidate sets as large as
    they can be (`mipl.baggp.stacking`). Instances are judged by the logits of both models, with the same weights. No
    true label is used anywhere and nothing needs to be tuned.
    Formulas of the parts: `mipl.bag_posterior`, `mipl.baggp.regression`, `mipl.baggp.likelihood`.

    Parameters
    ----------
    features : "auto" or scikit-learn transformer
        From raw instances to the space of the kernel; "auto" decides by the instances alone, see
        `mipl.features.choose_features`.
    n_landmarks : int
        Points at which the process is tied down; time grows with their square, accuracy slowly.
    rank : int
        Principal features of the landmarks' that are kept; memory is n * rank single-precision numbers.
    lengthscale : float
        Length scale of the Matern-5/2 kernel, in multiples of the median distance between instances.
    kappa : float, optional
        How readily a bag takes more than one instance for positive; default :math:`\sqrt q`.
    random_state : int
        Seed of landmarks and filters.
    device : str
        Where torch computes: "cpu", "cuda", ...

    Attributes
    ----------
    features_ : the fitted front end
    landmarks_ : (M, d)
    lengthscale_ : float
    feature_map_ : (M, R)
        Features of an instance: its kernel with the landmarks @ feature_map.
    coef_, intercept_ : (2, R, q), (2, q)
        Instance logits of bag regression and of bag likelihood: features @ coef + intercept.
    weight_variance_ : (R,)
        Posterior variance of the second one's coefficients, by which its logits are moderated.
    class_offset_ : (2, q)
        Added to the log evidence of the two models.
    posterior_ : (m, q)
        Posterior of the training bags' labels, each bag judged without its own vote.
    weights_, strange_ : (2,), float
        Weights of the two models in the bags' log odds, and the share of bags of which they know nothing.

    Examples
    --------
    >>> import mipl
    >>> train, test = mipl.load("digits", r=1, seed=0).split(0.5, seed=0)
    >>> model = mipl.BagGP(n_landmarks=200).fit(train.bags, train.candidates)
    >>> model.score(test.bags, test.labels) > 0.9
    True
    """

    name = "BagGP"
    citation = "this library"

    def __init__(
        self,
        *,
        features: str | BaseEstimator = "auto",
        n_landmarks: int = 2000,
        rank: int = 1000,
        lengthscale: float = 1.0,
        kappa: float | None = None,
        random_state: int = 0,
        device: str = "cpu",
    ) -> None:
        self.features = features
        self.n_landmarks = n_landmarks
        self.rank = rank
        self.lengthscale = lengthscale
        self.kappa = kappa
        self.random_state = random_state
        self.device = device

    def _fit(self, bags: Bags, candidates: NDArray[np.bool_]) -> None:
        self._check_params()
        with threadpool_limits(1 if bags.n_instances <= _ONE_THREAD else None):
            self._learn(bags, candidates)

    def _learn(self, bags: Bags, candidates: NDArray[np.bool_]) -> None:
        self.features_ = self._front_end(bags)
        # In random order every shard, and every part of one, is a random sample of the bags.
        order = np.random.default_rng(self.random_state).permutation(len(bags))
        bags, candidates = bags[order], candidates[order]
        X = self._tensor(self.features_.fit_transform(bags.instances))
        generator = torch.Generator().manual_seed(self.random_state)
        self.lengthscale_ = self.lengthscale * median_distance(X, generator)
        landmarks, counts = kmeans_landmarks(X, self.n_landmarks, generator)
        kernel_map = principal_map(landmarks, counts, self.lengthscale_, self.rank)
        shards, eigenvalues, kernel_map = low_rank(X, bags.offsets, candidates, kernel_map)

        regression = fit_bag_regression(shards, eigenvalues)
        prior = regression.posterior
        trust = trust_by_held_out(shards, eigenvalues, prior, regression.log_evidence, self.kappa)
        likelihood = fit_bag_likelihood(shards, eigenvalues, prior, self.kappa)

        self.weights_, self.strange_ = trust.weights, trust.strange
        self.landmarks_ = landmarks.cpu().numpy()
        self.feature_map_ = kernel_map.T.cpu().numpy()
        self.coef_ = _numpy(torch.stack([regression.coef * regression.slope, likelihood.coef]))
        self.intercept_ = _numpy(torch.stack([regression.intercept, likelihood.intercept]))
        self.class_offset_ = _numpy(torch.stack([regression.offset, likelihood.offset]))
        self.weight_variance_ = _numpy(likelihood.variance)
        self.posterior_ = _numpy(regression.posterior)[np.argsort(order)]

    def _check_params(self) -> None:
        if isinstance(self.features, str) and self.features != "auto":
            raise DataError(f"features={self.features!r} is not known; use 'auto' or pass a transformer")
        for name in ("n_landmarks", "rank", "lengthscale"):
            if getattr(self, name) <= 0:
                raise DataError(f"{name}={getattr(self, name)} is not positive")

    def _front_end(self, bags: Bags) -> BaseEstimator:
        if isinstance(self.features, str):
            return choose_features(bags, self.random_state, self.device)
        return clone(self.features)

    def _tensor(self, X: Any) -> Tensor:
        return torch.tensor(np.asarray(X, dtype=np.float32), device=self.device)

    # ---------------------------------------------------------------- prediction

    def _judge(self, bags: Bags) -> _Judgement:
        """What both models say together of instances and of bags."""
        X = self._tensor(self.features_.transform(bags.instances))
        by_regression, by_likelihood = self._logits(X)
        offsets = torch.tensor(bags.offsets, device=X.device)
        first, second = torch.tensor(self.class_offset_, device=X.device)
        cautious = bag_evidence(by_regression, offsets).log_evidence + first
        sharp = bag_evidence(by_likelihood, offsets).log_evidence + second
        probabilities = Trust(self.weights_, self.strange_).probabilities(cautious, sharp)
        w1, w2 = self.weights_.tolist()
        return _Judgement(w1 * by_regression + w2 * by_likelihood, probabilities, offsets)

    def _logits(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Instance logits (n, q) of both models, for rows (n, d) in the space of the kernel."""
        kernel = LandmarkKernel(torch.tensor(self.landmarks_, device=X.device), self.lengthscale_)
        kernel_map = KernelMap(kernel, torch.tensor(self.feature_map_, device=X.device))
        coef = torch.cat(list(torch.tensor(self.coef_, device=X.device)), dim=1).to(X.dtype)
        intercept = torch.tensor(self.intercept_, device=X.device).flatten()
        variance = torch.tensor(self.weight_variance_, device=X.device)
        blocks = []
        for rows in X.split(_BLOCK_ROWS):
            features = kernel_map(rows)
            by_regression, mode = ((features @ coef).double() + intercept).chunk(2, dim=1)
            blocks.append((by_regression, moderate(mode, features, variance)))
        first, second = zip(*blocks, strict=True)
        return torch.cat(first), torch.cat(second)

    def _predict_proba(self, bags: Bags) -> NDArray[np.floating[Any]]:
        return _numpy(self._judge(bags).probabilities)

    def _resolve(self, bags: Bags, candidates: NDArray[np.bool_]) -> NDArray[np.floating[Any]]:
        probabilities = _numpy(self._judge(bags).probabilities) * candidates
        return probabilities / probabilities.sum(axis=1, keepdims=True)

    def _predict_instances(self, bags: Bags) -> NDArray[np.floating[Any]]:
        judged = self._judge(bags)
        evidence = bag_evidence(judged.logits, judged.offsets)
        carries = instance_posterior(judged.logits, evidence, judged.probabilities, judged.offsets)
        negative = (1 - carries.sum(dim=1, keepdim=True)).clamp(min=0)
        return _numpy(torch.cat([carries, negative], dim=1))


class _Judgement(NamedTuple):
    logits: Tensor  # (n, q), of instances against negative
    probabilities: Tensor  # (m, q), of the bags' labels
    offsets: Tensor


def _numpy(tensor: Tensor) -> NDArray[np.float64]:
    return tensor.double().cpu().numpy()
