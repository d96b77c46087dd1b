"""MIPLGP: Gaussian processes on instances, with candidate labels that are disambiguated as they are learned."""

from __future__ import annotations

import copy
import inspect
import warnings
from typing import Any, Self

import numpy as np
import torch
from gpytorch.kernels import Kernel
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from mipl.bags import Bags
from mipl.base import MIPLClassifier
from mipl.candidates import augment_candidates
from mipl.errors import DataError
from mipl.gp.dirichlet import dirichlet_targets
from mipl.gp.exact import ExactGP
from mipl.gp.kernels import is_scaled_matern, scaled_matern
from mipl.gp.landmarks import median_distance
from mipl.gp.montecarlo import class_probabilities, standard_normal_points
from mipl.gp.posterior import Posterior
from mipl.miplgp.disambiguation import Disambiguation, initial_weights
from mipl.miplgp.disambiguation import disambiguation as find_disambiguation
from mipl.progress import track

__all__ = ["MIPLGP", "MIPLGPNaive", "MIPLGPUniform"]

#: The paper's settings that differ between data sets; the length scale starts at 1 everywhere.
_PAPER: dict[str, dict[str, Any]] = {
    "mnist": {"n_iter": 500},
    "fmnist": {"n_iter": 500},
    "newsgroups": {"n_iter": 50, "nu": 0.5},
    "birdsong": {"n_iter": 50},
    "sival": {"n_iter": 50},
}
# Steps over which the loss must stand still for an early stop.
_PATIENCE = 10
# Up to this many training instances, threads wait for each other longer than they work.
_ONE_THREAD = 2000


class MIPLGP(MIPLClassifier):
    r"""Multi-instance partial-label learning with Gaussian processes.

    Every instance inherits the candidate set of its bag, augmented by a negative class. Weights
    :math:`w_{jc}` over the candidates become targets and noises in log space (`mipl.gp.dirichlet`), on which q + 1
    Gaussian processes with one shared Matérn kernel are trained by Adam on the exact evidence (`mipl.gp.exact`); after
    each step the weights are computed anew. A bag is given the class of the largest entry among the class
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
    (``"classes"``); the paper's text normalises and then drops it (``"augmented"``).

    Parameters
    ----------
    augment : bool
        Add the negative class. False is the paper's MIPLGP-naive.
    disambiguation : {"released", "softmax", "bag", "uniform"}
    normalize_over : {"classes", "augmented"}
    alpha_eps : float
        Dirichlet parameter of a label without weight.
    kernel : gpytorch.kernels.Kernel, optional
        Any GPyTorch kernel; it is copied. Models with a kernel of your own cannot be saved. Default: a Matérn kernel
        with an output scale, described by the next three parameters.
    nu : {0.5, 1.5, 2.5}
        Smoothness of the Matérn kernel.
    length_scale : float or "median"
        Start value; "median" is the median distance of training instances.
    output_scale, extra_noise : float
        Start values of the kernel's scale and of each class's learned noise; GPyTorch's by default.
    n_iter : int
        Steps of Adam, with cosine annealing of the learning rate.
    lr : float
        Learning rate at the start.
    tol : float
        Stop early when the loss varied by less than `tol` times its value in the last 10 steps; 0 never does.
    n_samples : int
        Monte Carlo points of a prediction; a power of two is best.
    variance_rank : int, optional
        Rank of the Lanczos approximation of the posterior variance, as in the release. None computes it exactly, with
        a Cholesky factor for each class in every prediction. Up to `cholesky_size` instances it is always exact.
    cholesky_size : int
        Up to this many training instances, solve by Cholesky factors in float64; above, by conjugate gradients.
    preconditioner_size, n_probes, max_cg_iter : int
        Rank of the preconditioner, random vectors a class for the log determinant and its gradient (three keep the
        error of the gradient below one percent from about 1,000 instances on), and bound of the iterations.
    cg_tol : float
        Relative residual at which conjugate gradients stop, averaged over classes and right-hand sides; the
        final solve, which prediction rests on, goes a hundred times further.
    memory_budget : float
        Bytes for halves of n x n matrices. Distances, kernel matrix and its derivative are kept if they fit, else the
        kernel matrix alone; what does not fit is computed again by tiles when needed.
    batch_size : int
        Instances that prediction handles at once.
    device : str
        "cpu" or a PyTorch GPU device.
    random_state : int
        Seed of probes and Monte Carlo points.
    verbose : bool
        Show a progress bar.

    Attributes
    ----------
    weights_ : (n, q + 1)
        Weights of the last disambiguation, (n, q) without augmentation.
    mean_, noise_ : (q + 1,), (n, q + 1)
        Constant means, and noise variances that prediction conditions on, the learned part included.
    length_scale_, output_scale_ : float
        Of the default kernel.
    kernel_state_ : dict
        All parameters of the kernel.
    loss_curve_ : (n_iter_,)
        Mean negative log evidence an instance and class.
    cg_iterations_, cg_residuals_ : (n_iter_ + 1,)
        Of every step and of the final solve; zeros where Cholesky factors were used.
    n_iter_ : int

    References
    ----------
    W. Tang, W. Zhang, M.-L. Zhang. Multi-instance partial-label learning: towards exploiting dual inexact supervision.
    Science China Information Sciences 67(3), 2024.

    Examples
    --------
    >>> import mipl
    >>> train, test = mipl.load("digits", r=1, seed=0).split(seed=0)
    >>> model = MIPLGP(n_iter=5).fit(train.bags, train.candidates)
    >>> model.weights_.shape == (train.bags.n_instances, 6)
    True
    """

    name = "MIPLGP"
    citation = "Tang, Zhang & Zhang, Science China Information Sciences 2024"

    def __init__(
        self,
        *,
        augment: bool = True,
        disambiguation: str = "released",
        normalize_over: str = "classes",
        alpha_eps: float = 1e-4,
        kernel: Kernel | None = None,
        nu: float = 2.5,
        length_scale: float | str = "median",
        output_scale: float = 0.6931,
        extra_noise: float = 0.6931,
        n_iter: int = 50,
        lr: float = 0.1,
        tol: float = 0.0,
        n_samples: int = 512,
        variance_rank: int | None = 100,
        cholesky_size: int = 500,
        preconditioner_size: int = 100,
        n_probes: int = 3,
        max_cg_iter: int = 200,
        cg_tol: float = 0.01,
        memory_budget: float = 6 * 2**30,
        batch_size: int = 2048,
        device: str = "cpu",
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        self.augment = augment
        self.disambiguation = disambiguation
        self.normalize_over = normalize_over
        self.alpha_eps = alpha_eps
        self.kernel = kernel
        self.nu = nu
        self.length_scale = length_scale
        self.output_scale = output_scale
        self.extra_noise = extra_noise
        self.n_iter = n_iter
        self.lr = lr
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
        """Build the estimator with the paper's settings for mnist, fmnist, newsgroups, birdsong or sival.

        >>> MIPLGP.paper("newsgroups").nu
        0.5
        """
        if dataset not in _PAPER:
            raise DataError(f"the paper has no settings for {dataset!r}; it has them for {', '.join(_PAPER)}")
        return cls(**({"length_scale": 1.0} | _PAPER[dataset] | params))

    # ---------------------------------------------------------------- learning

    def _fit(self, bags: Bags, candidates: NDArray[np.bool_]) -> None:
        rule = self._check_parameters()
        mask = augment_candidates(candidates) if self.augment else candidates
        with threadpool_limits(1 if bags.n_instances <= _ONE_THREAD else None):
            self._learn(bags, mask, rule)

    def _learn(self, bags: Bags, mask: NDArray[np.bool_], rule: Disambiguation) -> None:
        gp = self._engine(bags.instances, mask.shape[1])
        optimizer = torch.optim.Adam(gp.parameters(), lr=self.lr)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=self.n_iter)
        weights = initial_weights(bags, mask)
        initial = targets, noise = dirichlet_targets(weights, self.alpha_eps)
        losses: list[float] = []
        iterations: list[int] = []
        residuals: list[float] = []
        for _ in track(range(self.n_iter), self.name, verbose=self.verbose):
            evidence = gp.evidence(targets, noise, warm=True)
            losses.append(evidence.loss)
            iterations.append(evidence.iterations)
            residuals.append(evidence.residual)
            if rule.step is not None:
                prior_mean = gp.mean.detach().cpu().numpy()
                weights = rule.step(prior_mean, evidence.posterior_mean, bags, mask)
                targets, new_noise = dirichlet_targets(weights, self.alpha_eps)
                noise = new_noise if rule.updates_noise else noise
            optimizer.step()
            schedule.step()
            if self.tol > 0 and len(losses) > _PATIENCE and np.ptp(losses[-_PATIENCE:]) < self.tol * abs(losses[-1]):
                break
        conditioned = (targets, noise) if rule.predicts_with_last else initial
        self.solution_, last_iterations, last_residual = gp.condition(*conditioned, tol=self.cg_tol / 100)
        self._warn_of_residuals(residuals, last_residual)
        self._keep(gp, bags.instances, conditioned[1])
        self.weights_ = weights
        self.loss_curve_ = np.array(losses)
        self.cg_iterations_ = np.array([*iterations, last_iterations])
        self.cg_residuals_ = np.array([*residuals, last_residual])
        self.n_iter_ = len(losses)

    def _check_parameters(self) -> Disambiguation:
        if self.normalize_over not in ("classes", "augmented"):
            raise DataError(f"normalize_over is {self.normalize_over!r}; use 'classes' or 'augmented'")
        if self.nu not in (0.5, 1.5, 2.5):
            raise DataError(f"nu is {self.nu}; the Matérn kernel takes 0.5, 1.5 or 2.5")
        if self.n_iter < 1 or self.alpha_eps <= 0:
            raise DataError(f"n_iter={self.n_iter} must be at least 1 and alpha_eps={self.alpha_eps} positive")
        if self.disambiguation == "bag" and not self.augment:
            raise DataError('disambiguation="bag" needs the negative class; pass augment=True')
        return find_disambiguation(self.disambiguation)

    def _engine(self, X: NDArray[np.float32], n_classes: int) -> ExactGP:
        return ExactGP(
            X,
            self._start_kernel(X),
            n_classes,
            extra_noise=self.extra_noise,
            cholesky_size=self.cholesky_size,
            preconditioner_size=self.preconditioner_size,
            n_probes=self.n_probes,
            cg_tol=self.cg_tol,
            max_cg_iter=self.max_cg_iter,
            memory_budget=self.memory_budget,
            seed=self.random_state,
            device=self.device,
        )

    def _start_kernel(self, X: NDArray[np.float32]) -> Kernel:
        if self.kernel is not None:
            return copy.deepcopy(self.kernel)
        if self.length_scale == "median":
            length = median_distance(torch.from_numpy(X), torch.Generator().manual_seed(self.random_state))
        else:
            length = float(self.length_scale)
        return scaled_matern(self.nu, length, self.output_scale)

    def _keep(self, gp: ExactGP, X: NDArray[np.float32], noise: NDArray[np.float64]) -> None:
        """Store what prediction needs, as arrays."""
        self.instances_ = X
        self.kernel_state_ = {name: value.cpu().numpy() for name, value in gp.kernel.state_dict().items()}
        self.mean_ = gp.mean.detach().cpu().numpy()
        self.noise_ = noise + gp.extra_noise.detach().cpu().numpy()
        if is_scaled_matern(gp.kernel):
            self.length_scale_ = gp.kernel.base_kernel.lengthscale.item()
            self.output_scale_ = gp.kernel.outputscale.item()
        self.inverse_root_ = None
        if self.variance_rank is not None and not gp.direct:
            self.inverse_root_ = gp.inverse_root(noise, self.variance_rank)

    def _warn_of_residuals(self, residuals: list[float], last: float) -> None:
        # linear_operator tests "less than"; the float32 mean may round up to the bound.
        short = sum(r > 1.001 * self.cg_tol for r in residuals)
        if short:
            warnings.warn(
                f"conjugate gradients stopped at a relative residual of {max(residuals):.2g}, "
                f"above cg_tol={self.cg_tol}, in {short} of {len(residuals)} steps; "
                f"raise max_cg_iter (now {self.max_cg_iter}) or preconditioner_size (now {self.preconditioner_size})",
                ConvergenceWarning,
                stacklevel=5,
            )
        elif last > self.cg_tol:
            warnings.warn(
                f"the final solve stopped at a relative residual of {last:.2g}, above cg_tol={self.cg_tol}; "
                f"raise max_cg_iter (now {self.max_cg_iter})",
                ConvergenceWarning,
                stacklevel=5,
            )

    # ---------------------------------------------------------------- prediction

    def predict(self, bags: Any, *, batch_size: int | None = None) -> NDArray[Any]:
        """The most probable label (m,) of each bag; `batch_size` overrides the parameter of that name."""
        bags = self._check_bags(bags)
        return self.classes_[np.argmax(self._bag_scores(bags, batch_size or self.batch_size), axis=1)]

    def _predict_proba(self, bags: Bags) -> NDArray[np.float64]:
        """Largest probability of each class among the bag's instances, normalised; its argmax is the paper's rule."""
        scores = self._bag_scores(bags, self.batch_size)
        return scores / scores.sum(axis=1, keepdims=True)

    def _predict_instances(self, bags: Bags) -> NDArray[np.float64]:
        proba = class_probabilities(*self._moments(bags, self.batch_size), self._normal_points())
        return proba if self.augment else np.concatenate([proba, np.zeros((len(proba), 1))], axis=1)

    def _bag_scores(self, bags: Bags, batch_size: int) -> NDArray[np.float64]:
        """Maximum over instances of the class probabilities (m, q) (Eq. 12)."""
        q = len(self.classes_)
        used = q if self.normalize_over == "classes" else len(self.mean_)
        mean, variance = self._moments(bags, batch_size)
        proba = class_probabilities(mean[:, :used], variance[:, :used], self._normal_points()[:, :used])
        return bags.max(proba[:, :q])

    def _moments(self, bags: Bags, batch_size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        kernel = copy.deepcopy(self.kernel) if self.kernel is not None else scaled_matern(self.nu, 1.0, 1.0)
        kernel.double().load_state_dict({name: torch.tensor(value) for name, value in self.kernel_state_.items()})
        posterior = Posterior(
            kernel,
            self.instances_,
            self.mean_,
            self.solution_,
            self.noise_,
            self.inverse_root_,
            device=self.device,
            dtype=torch.float64 if len(self.instances_) <= self.cholesky_size else torch.float32,
        )
        with threadpool_limits(1 if len(self.instances_) <= _ONE_THREAD else None):
            return posterior.moments(bags.instances, batch_size)

    def _normal_points(self) -> NDArray[np.float64]:
        return standard_normal_points(self.n_samples, len(self.mean_), self.random_state)


def _with_default(cls: type[MIPLGP], parameter: str, value: Any) -> type[MIPLGP]:
    """Give the constructor of a variant another default, visible to scikit-learn's inspection."""
    signature = inspect.signature(MIPLGP.__init__)

    def __init__(self: MIPLGP, **params: Any) -> None:  # noqa: N807
        MIPLGP.__init__(self, **({parameter: value} | params))

    parameters = [p.replace(default=value) if p.name == parameter else p for p in signature.parameters.values()]
    __init__.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    cls.__init__ = __init__  # type: ignore[method-assign]
    return cls


class MIPLGPUniform(MIPLGP):
    """The paper's MIPLGP-uniform: `MIPLGP` with equal weights on all candidates throughout."""

    name = "MIPLGP-uniform"


class MIPLGPNaive(MIPLGP):
    """The paper's MIPLGP-naive: `MIPLGP` without the negative class."""

    name = "MIPLGP-naive"


_with_default(MIPLGPUniform, "disambiguation", "uniform")
_with_default(MIPLGPNaive, "augment", False)
