"""MIPLGP: Gaussian processes on instances, with candidate labels that are disambiguated as they are learned."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from gpytorch.kernels import Kernel
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, Options, StrOptions

from mipl.baggp.sources import InFiles, InMemory, Training
from mipl.bags import Bags
from mipl.cluster_classifier import ClusterClassifier
from mipl.compute import in_own_thread, limit_torch, seed_of, torch_device
from mipl.errors import DataError, ParameterError
from mipl.gp.kernels import is_scaled_matern, scaled_matern
from mipl.gp.matern import NUS
from mipl.gp.posterior import Posterior, PosteriorState
from mipl.miplgp.disambiguation import DISAMBIGUATIONS
from mipl.miplgp.in_blocks import BlockLearner, place_for
from mipl.miplgp.learning import ArrayLearner, Learner, learn
from mipl.miplgp.processes import augmented, build_engine, choose_engine
from mipl.miplgp.sampling import sampled_probabilities
from mipl.streams import BagStream
from mipl.supervision import warn_sets_only

__all__ = ["MIPLGP"]

# Up to this many training instances, threads wait for each other longer than they work.
_ONE_THREAD = 2000
_IN_BLOCKS = 'use engine="low-rank"'

# The text gives each instance its own variance, but the published figures come from code that draws all test instances
# jointly, and fit that rule: see docs/miplgp.md.
_SHARED = {"lengthscale": 1.0, "sampling": "joint"}
#: Data set -> parameters of `MIPLGP` in the paper where these differ from the defaults.
PAPER_SETTINGS: dict[str, dict[str, Any]] = {
    "mnist": {**_SHARED, "max_iter": 500},
    "fmnist": {**_SHARED, "max_iter": 500},
    "newsgroups": {**_SHARED, "max_iter": 50, "nu": 0.5},
    "birdsong": {**_SHARED, "max_iter": 50},
    "sival": {**_SHARED, "max_iter": 50},
}


class MIPLGP(ClusterClassifier):
    r"""Multi-instance partial-label learning with Gaussian processes.

    Every instance inherits the candidate set of its bag, augmented by a negative class. Weights
    :math:`w_{jc}` over the candidates become targets and noises in log space (`mipl.gp.dirichlet`), on which q + 1
    Gaussian processes with one shared Matérn kernel are trained by Adam on the evidence (`mipl.gp.exact`); after each
    step the weights are computed anew. A bag is given the class of the largest entry among the class
    probabilities of its instances.

    The authors' released code differs from the equations they print, and the figures in their tables come from the
    code. `disambiguation` offers both:

    - ``"released"`` reproduces the tables. The weights are a softmax over the candidates of the processes' constant
      *prior* means, so all instances with one candidate set share their weights; only the targets of the loss
      follow them, while the noises, and all that prediction conditions on, stay at the uniform weights of the start.
      The weights thus act on the hyper-parameters only.
    - ``"softmax"`` is the printed Eq. 3: a softmax over the candidates of the *posterior* mean at each instance.
      Targets and noises follow, and prediction conditions on the last ones. It reinforces itself: where most
      instances are negative, the negative class takes all the weight after enough steps.
    - ``"bag"`` replaces Eq. 3 by the exact posterior of the instances' labels given that one candidate of the bag is
      true, at least one instance carries it and all others are negative (`mipl.bag_posterior`).
    - ``"uniform"`` keeps the weights of the start, the paper's MIPLGP-uniform.

    Likewise `normalize_over`: the release drops the negative class and then normalises each sample
    (``"classes"``); the paper's text normalises and then drops it (``"augmented"``). And `sampling`, the latent values
    whose softmax is averaged:

    - ``"marginal"`` is the text's rule, Eq. 11: each instance is drawn with its own posterior variance.
    - ``"joint"`` is the release's: all instances of a call are drawn together. For more than 800 of them GPyTorch
      samples through a covariance of rank 100, and most of the variance is lost. The paper's MIPLGP
      rows fit this rule. An answer for a bag then depends on the other bags of the call.
    - ``"mean"`` draws nothing and takes the posterior mean.

    A bag of weight w (`sample_weight`) counts as w bags with these instances: the noises of its instances are divided
    by w, and the evidence is that of all copies (`mipl.gp.exact`). It is exactly what a fit to the bag given w times
    finds, but for what is drawn at random: the probes of conjugate gradients, and the start of the landmarks where
    there are fewer of these than distinct instances.

    Parameters
    ----------
    augment : bool, default=True
        Add the negative class. False is the paper's MIPLGP-naive.
    disambiguation : {"released", "softmax", "bag", "uniform"}, default="released"
        How the weights over candidates are computed, see above. "bag" needs the negative class.
    normalize_over : {"classes", "augmented"}, default="classes"
        The classes over which a bag's class probabilities are normalised, see above.
    sampling : {"marginal", "joint", "mean"}, default="marginal"
        How latent values are drawn in prediction, see above.
    engine : {"exact", "low-rank", "auto"}, default="exact"
        Whether the processes have the kernel itself, at a cost that grows with n^2, or its Nyström approximation by
        landmarks, at a cost that grows with n, which needs the default kernel and alone learns from a `mipl.Scan` or on
        a cluster. "auto" takes "exact" for up to 25,000 distinct instances, and with a kernel of your own, and
        "low-rank" otherwise. `engine_` is the one that was taken.
    n_landmarks : int, default=500
        Landmarks of the low-rank engine, found by k-means; fewer where there are fewer distinct instances.
    alpha_eps : float, default=1e-4
        Dirichlet parameter of a label without weight.
    kernel : gpytorch.kernels.Kernel, default=None
        Any GPyTorch kernel; it is copied. Models with a kernel of your own cannot be saved. By default a Matérn kernel
        with an outputscale, described by the next three parameters.
    nu : {0.5, 1.5, 2.5}, default=2.5
        Smoothness of the Matérn kernel.
    lengthscale : float or "median", default="median"
        Start value of the kernel's lengthscale; "median" is the median distance of training instances.
    outputscale : float, default=0.6931
        Start value of the kernel's outputscale; the default is GPyTorch's.
    extra_noise : float, default=0.6931
        Start value of each class's learned noise; the default is GPyTorch's.
    max_iter : int, default=50
        Steps of Adam, with cosine annealing of the learning rate.
    learning_rate : float, default=0.1
        Learning rate at the start.
    tol : float, default=0.0
        Stop early when the loss varied by less than `tol` times its value in the last 10 steps; 0 never does.
    n_samples : int, default=512
        Monte Carlo points of a prediction; a power of two is best.
    variance_rank : int or None, default=100
        Rank of the Lanczos approximation of the posterior variance, at least 2, as in the release. None computes it
        exactly, with a Cholesky factor per class in every prediction, as is done up to `cholesky_size` instances.
    cholesky_size : int, default=500
        Up to this many distinct instances, the exact engine solves by Cholesky factors in float64; above, by conjugate
        gradients. This and the parameters of conjugate gradients below do nothing for the low-rank engine.
    preconditioner_size : int or "auto", default="auto"
        Rank of the preconditioner of conjugate gradients; "auto" takes an 80th of the instances, from 100 to 300.
    n_probes : int, default=3
        Random vectors per class for the log determinant and its gradient; three keep the error of the gradient below
        one percent from about 1,000 instances on.
    max_cg_iter : int, default=200
        Bound of the iterations of conjugate gradients in one step.
    cg_tol : float, default=0.01
        Relative residual at which conjugate gradients stop, averaged over classes and right-hand sides; the final
        solve, which prediction uses, goes a hundred times further.
    memory_budget : float, default=6 * 2**30
        Bytes for halves of n x n matrices. Distances, kernel matrix and its derivative are kept if they fit, else the
        kernel matrix alone; what does not fit is computed again by tiles when needed. It also bounds the kernel matrix
        of the instances that are drawn jointly. The low-rank engine keeps 4 M bytes per instance in memory if all fit,
        else in a scratch file in `TMPDIR`.
    batch_size : int, default=2048
        Instances that prediction handles at once.
    device : str, default="cpu"
        "cpu" or the name of a PyTorch GPU device.
    random_state : int, RandomState instance or None, default=0
        Seed of probes, landmarks and Monte Carlo points.
    verbose : bool, default=False
        Show a progress bar, and say which engine "auto" took.

    Attributes
    ----------
    weights_ : (n, q + 1) array
        Weights of the last disambiguation, (n, q) without augmentation; None after a fit to a scan.
    mean_ : (q + 1,) array
        Constant means of the processes.
    noise_ : (n, q + 1) array
        Noise variances that prediction conditions on, the learned part included, divided by the bags' weights; with
        merged instances, of these; None after a fit to a scan.
    solution_ : (n, q + 1) array
        Solutions of the systems, which predict the posterior mean.
    inverse_root_ : (q + 1, n, k) array or None
        Roots of the inverses, which predict the posterior variance; None where this is computed exactly.
    prior_root_ : (M, M) array or None
        Root of the inverse of the landmarks' kernel matrix; None with the exact engine.
    instances_ : (n, d) array
        The training instances; equal ones merged where a tenth or more are repeats (`mipl.gp.repeats`). With the
        low-rank engine the M landmarks. `solution_` and `inverse_root_` have a row for each of these.
    engine_ : {"exact", "low-rank"}
        The engine that was taken.
    kernel_state_ : dict of str to array
        All parameters of the kernel.
    lengthscale_, outputscale_ : float
        Of the default kernel, as learned.
    loss_curve_ : (n_iter,) array
        Mean negative log evidence per instance and class, in every step.
    cg_iterations_, cg_residuals_ : (n_iter + 1,) arrays
        Of every step and of the final solve; zeros where Cholesky factors were used, as the low-rank engine does.
    n_iter_ : int
        Steps that were taken.
    seed_ : int
        The seed that `random_state` gave.

    References
    ----------
    W. Tang, W. Zhang, M.-L. Zhang. Multi-instance partial-label learning: towards exploiting dual inexact supervision.
    Science China Information Sciences 67(3), 2024.

    Examples
    --------
    >>> import mipl
    >>> train, test = mipl.load("digits", r=1, seed=0).split(seed=0)
    >>> model = MIPLGP(max_iter=5).fit(train.bags, train.candidates)
    >>> model.weights_.shape == (train.bags.n_instances, 6)
    True
    """

    name = "MIPLGP"
    citation = "Tang, Zhang & Zhang, Science China Information Sciences 2024"
    supports_sample_weight = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "augment": ["boolean"],
        "disambiguation": [StrOptions(set(DISAMBIGUATIONS))],
        "normalize_over": [StrOptions({"classes", "augmented"})],
        "sampling": [StrOptions({"marginal", "joint", "mean"})],
        "engine": [StrOptions({"exact", "low-rank", "auto"})],
        "n_landmarks": [Interval(Integral, 1, None, closed="left")],
        "alpha_eps": [Interval(Real, 0, None, closed="neither")],
        "kernel": [Kernel, None],
        "nu": [Options(Real, set(NUS))],
        "lengthscale": [Interval(Real, 0, None, closed="neither"), StrOptions({"median"})],
        "outputscale": [Interval(Real, 0, None, closed="neither")],
        "extra_noise": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "variance_rank": [Interval(Integral, 2, None, closed="left"), None],
        "cholesky_size": [Interval(Integral, 0, None, closed="left")],
        "preconditioner_size": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "n_probes": [Interval(Integral, 1, None, closed="left")],
        "max_cg_iter": [Interval(Integral, 1, None, closed="left")],
        "cg_tol": [Interval(Real, 0, None, closed="neither")],
        "memory_budget": [Interval(Real, 0, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "device": [str],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        augment: bool = True,
        disambiguation: str = "released",
        normalize_over: str = "classes",
        sampling: str = "marginal",
        engine: str = "exact",
        n_landmarks: int = 500,
        alpha_eps: float = 1e-4,
        kernel: Kernel | None = None,
        nu: float = 2.5,
        lengthscale: float | str = "median",
        outputscale: float = 0.6931,
        extra_noise: float = 0.6931,
        max_iter: int = 50,
        learning_rate: float = 0.1,
        tol: float = 0.0,
        n_samples: int = 512,
        variance_rank: int | None = 100,
        cholesky_size: int = 500,
        preconditioner_size: int | Literal["auto"] = "auto",
        n_probes: int = 3,
        max_cg_iter: int = 200,
        cg_tol: float = 0.01,
        memory_budget: float = 6 * 2**30,
        batch_size: int = 2048,
        device: str = "cpu",
        random_state: int | np.random.RandomState | None = 0,
        verbose: bool = False,
    ) -> None:
        self.augment = augment
        self.disambiguation = disambiguation
        self.normalize_over = normalize_over
        self.sampling = sampling
        self.engine = engine
        self.n_landmarks = n_landmarks
        self.alpha_eps = alpha_eps
        self.kernel = kernel
        self.nu = nu
        self.lengthscale = lengthscale
        self.outputscale = outputscale
        self.extra_noise = extra_noise
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.tol = tol
        self.n_samples = n_samples
        self.variance_rank = variance_rank
        self.cholesky_size = cholesky_size
        self.preconditioner_size = preconditioner_size
        self.n_probes = n_probes
        self.max_cg_iter = max_cg_iter
        self.cg_tol = cg_tol
        self.memory_budget = memory_budget
        self.batch_size = batch_size
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, dataset: str, **params: Any) -> Self:
        """Build the estimator with the paper's settings for one of its data sets.

        Parameters
        ----------
        dataset : {"mnist", "fmnist", "newsgroups", "birdsong", "sival"}
            The data set.
        **params
            Parameters of the constructor that take precedence over the paper's.

        Examples
        --------
        >>> MIPLGP.paper("newsgroups").nu
        0.5
        """
        if dataset not in PAPER_SETTINGS:
            known = ", ".join(PAPER_SETTINGS)
            raise ParameterError(f"the paper has no settings for {dataset!r}; it has them for {known}")
        return cls(**(PAPER_SETTINGS[dataset] | params))

    # ---------------------------------------------------------------- learning

    def _fit(self, bags: Bags, candidates: NDArray[np.bool_]) -> None:
        self._fit_bags(bags, candidates, None)

    def _fit_weighted(self, bags: Bags, candidates: NDArray[np.bool_], sample_weight: NDArray[np.float64]) -> None:
        self._fit_bags(bags, candidates, sample_weight)

    def _fit_bags(self, bags: Bags, candidates: NDArray[np.bool_], sample_weight: NDArray[np.float64] | None) -> None:
        mask = augmented(self, candidates)
        engine = choose_engine(self, bags.instances, on_cluster=self._client is not None)
        if engine == "low-rank":
            self._fit_in_blocks(InMemory(bags), mask, sample_weight, keep_rows=True)
            return
        if self._client is not None:
            raise ParameterError(f'engine="{engine}" cannot be fitted on a cluster; {_IN_BLOCKS}')
        weights = None if sample_weight is None else bags.spread(sample_weight)
        self.seed_ = seed_of(self.random_state)
        with limit_torch(one_thread=bags.n_instances <= _ONE_THREAD):
            processes = build_engine(self, bags.instances, mask.shape[1], self.seed_, weights)
            self._learn(engine, ArrayLearner(processes, bags, mask, self.disambiguation, self.alpha_eps))

    def _fit_stream(self, bags: BagStream) -> None:
        if not self.fits_in_blocks:
            raise DataError(
                f'{self.name} with engine="{self.engine}" needs all bags in memory and cannot be fitted on a scan; '
                f"{_IN_BLOCKS}, or fit it on some of the bags: fit(scan.sample(n))"
            )
        supervision = self._known(bags.supervision(), self._fit_depth)
        if supervision.weights is not None:
            warn_sets_only(self.name, stacklevel=self._fit_depth)
        self._fit_in_blocks(InFiles(bags), augmented(self, supervision.candidates), None, keep_rows=False)

    @property
    def fits_in_blocks(self) -> bool:
        """Whether bags may be in files or on a cluster: with the low-rank engine."""
        return self.engine in ("low-rank", "auto")

    def _fit_in_blocks(
        self,
        training: Training,
        mask: NDArray[np.bool_],
        sample_weight: NDArray[np.float64] | None,
        *,
        keep_rows: bool,
    ) -> None:
        seed = seed_of(self.random_state)
        with place_for(self, training, self._client, _ONE_THREAD) as place:

            def fit() -> None:
                self._learn("low-rank", BlockLearner(self, training, mask, sample_weight, seed, place, keep_rows))

            in_own_thread(fit, place.stop)
        self.seed_ = seed

    def _learn(self, engine: str, learner: Learner) -> None:
        """Train the processes and disambiguate the candidates in turn, then condition them for prediction."""
        conditioned, steps = learn(learner, self)
        residuals = [step.residual for step in steps]
        self._warn_of_residuals(residuals, conditioned.residual)
        self.engine_ = engine
        self._keep(conditioned.posterior)
        self.weights_ = learner.weights()
        self.loss_curve_ = np.array([step.loss for step in steps])
        self.cg_iterations_ = np.array([*(step.iterations for step in steps), conditioned.iterations])
        self.cg_residuals_ = np.array([*residuals, conditioned.residual])
        self.n_iter_ = len(steps)

    def _warn_of_residuals(self, residuals: list[float], last: float) -> None:
        """Warn where the residuals of the steps, or that of the final solve, are above `cg_tol`."""
        short = sum(residual > self.cg_tol for residual in residuals)
        if short:
            warnings.warn(
                f"conjugate gradients stopped at a relative residual of {max(residuals):.2g}, above "
                f"cg_tol={self.cg_tol}, in {short} of {len(residuals)} steps; raise max_cg_iter (now "
                f"{self.max_cg_iter}) or preconditioner_size (now {self.preconditioner_size})",
                ConvergenceWarning,
                stacklevel=2,
            )
        elif last > self.cg_tol:
            warnings.warn(
                f"the final solve stopped at a relative residual of {last:.2g}, above cg_tol={self.cg_tol}; "
                f"raise max_cg_iter (now {self.max_cg_iter})",
                ConvergenceWarning,
                stacklevel=2,
            )

    # ---------------------------------------------------------------- what is kept, and prediction

    def _keep(self, posterior: Posterior) -> None:
        for name, value in posterior.state._asdict().items():
            setattr(self, f"{name}_", value)
        if is_scaled_matern(posterior.kernel):
            self.lengthscale_ = posterior.kernel.base_kernel.lengthscale.item()
            self.outputscale_ = posterior.kernel.outputscale.item()

    def _posterior(self) -> Posterior:
        state = PosteriorState(**{name: getattr(self, f"{name}_") for name in PosteriorState._fields})
        # Only the kernel's form matters here; its parameters are part of the state.
        kernel = self.kernel if self.kernel is not None else scaled_matern(self.nu, 1.0, 1.0)
        return Posterior(kernel, state, device=torch_device(self.device))

    def _probabilities(self, bags: Bags, n_classes: int) -> NDArray[np.float64]:
        """Class probabilities (n, n_classes) of the instances of bags, normalised over the first `n_classes`."""
        with limit_torch(one_thread=len(self.instances_) <= _ONE_THREAD):
            return sampled_probabilities(
                self._posterior(),
                bags.instances,
                self.sampling,
                n_classes=n_classes,
                n_samples=self.n_samples,
                batch_size=self.batch_size,
                memory_budget=self.memory_budget,
                seed=self.seed_,
            )

    def _predict_proba(self, bags: Bags) -> NDArray[np.float64]:
        """Largest probability of each class among the bag's instances, normalised; its argmax is Eq. 12."""
        q = len(self.classes_)
        proba = self._probabilities(bags, q if self.normalize_over == "classes" else len(self.mean_))
        largest = bags.max(proba[:, :q])
        shares: NDArray[np.float64] = largest / largest.sum(axis=1, keepdims=True)
        return shares

    def _predict_instances(self, bags: Bags) -> NDArray[np.float64]:
        proba = self._probabilities(bags, len(self.mean_))
        return proba if self.augment else np.concatenate([proba, np.zeros((len(proba), 1))], axis=1)
