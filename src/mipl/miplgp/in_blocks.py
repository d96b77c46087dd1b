"""MIPLGP on the low-rank engine, whose evidence is a sum over blocks of bags: in memory, out of core or on a cluster.

A block keeps the distances of its instances to the landmarks, in the place of BagGP's features (`mipl.baggp.blocks`),
and the weights of their candidates. A step is two sums, and a disambiguation a function of each block, so it does not
matter where the blocks are.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mipl.baggp.blocks import Block, Blocks, Place, divide
from mipl.baggp.on_dask import OnDask
from mipl.baggp.places import Local
from mipl.baggp.scratch import Scratch
from mipl.baggp.sources import Source, Training, ready
from mipl.candidates import uniform_weights
from mipl.compute import torch_device
from mipl.gp.dirichlet import dirichlet_targets
from mipl.gp.exact import Conditioned
from mipl.gp.low_rank import LowRankEngine, LowRankEvidence, landmark_distances
from mipl.gp.low_rank_sums import (
    NoiseLevels,
    Present,
    RowBlock,
    RowGroup,
    RowSum,
    noise_levels,
    posterior_means,
    row_groups,
)
from mipl.miplgp.disambiguation import DISAMBIGUATIONS, Segments
from mipl.miplgp.learning import Step
from mipl.miplgp.processes import start_kernel

if TYPE_CHECKING:
    from mipl.miplgp.estimator import MIPLGP

__all__ = ["BlockLearner", "place_for"]

#: Instances above which landmarks and lengthscale come from a random sample of that many.
SAMPLE_INSTANCES = 200_000
#: Instances of a block: from the first number on, and as many as make this many distances. A sixteenth of all instances
#: lies between, so that several threads or workers have something to do.
LEAST_INSTANCES, BLOCK_DISTANCES, N_BLOCKS = 4096, 1 << 23, 16


def place_for(settings: MIPLGP, training: Training, client: Any, one_thread: int) -> Local | OnDask:
    """Where the blocks of a fit are: on the client's cluster, or in this process.

    Distances that are larger than `memory_budget` lie in a scratch file. Up to `one_thread` instances there is one
    thread.
    """
    if client is not None:
        return OnDask(client, torch.get_num_threads())
    n_threads = 1 if training.n_instances <= one_thread else torch.get_num_threads()
    needed = 4.0 * settings.n_landmarks * training.n_instances
    return Local(n_threads, Scratch() if needed > settings.memory_budget else None)


class _Weights(NamedTuple):
    """The candidates of a block's bags (m_b, C), the weights and noises of its instances (n_b, C), and their groups."""

    candidates: NDArray[np.bool_]
    weights: NDArray[np.float64]
    noise: NDArray[np.float64]
    groups: list[RowGroup]


class BlockLearner:
    """The low-rank engine on blocks of bags.

    Parameters
    ----------
    settings : MIPLGP
        The parameters.
    training : Training
        The bags.
    candidates : (m, C) bool
        Their candidates.
    sample_weight : (m,) array or None
        How often each bag counts; None for once.
    seed : int
        Seed of the sample, the landmarks and the lengthscale.
    place : Place
        Where the blocks are.
    keep_rows : bool
        Whether weights and noises of all instances are asked for in the end.
    """

    def __init__(
        self,
        settings: MIPLGP,
        training: Training,
        candidates: NDArray[np.bool_],
        sample_weight: NDArray[np.float64] | None,
        seed: int,
        place: Place,
        keep_rows: bool,
    ) -> None:
        self._rule, self._keep_rows = DISAMBIGUATIONS[settings.disambiguation], keep_rows
        self._alpha_eps, self._name = settings.alpha_eps, settings.disambiguation
        m, n, C = training.n_bags, training.n_instances, candidates.shape[1]
        rng = np.random.default_rng([seed, 4])
        chosen = None if n <= SAMPLE_INSTANCES else np.sort(rng.choice(m, m * SAMPLE_INSTANCES // n + 1, replace=False))
        sample = training.take(chosen)
        X = torch.tensor(sample.instances, dtype=torch.float32, device=torch_device(settings.device))
        weight = row_weight = None
        if sample_weight is not None:
            weight = torch.tensor(sample_weight, device=X.device)
            row_weight = torch.tensor(
                sample.spread(sample_weight if chosen is None else sample_weight[chosen]), device=X.device
            )
        self._engine = LowRankEngine(
            X,
            start_kernel(settings, X.cpu(), seed, None if row_weight is None else row_weight.cpu()),
            C,
            n_landmarks=settings.n_landmarks,
            extra_noise=settings.extra_noise,
            seed=seed,
            weights=row_weight,
        )
        landmarks = self._engine.landmarks
        most = max(LEAST_INSTANCES, min(n // N_BLOCKS, BLOCK_DISTANCES // len(landmarks)))
        parts = divide(n, np.zeros(m, dtype=np.int64), most)
        rows = Blocks(
            place, training.sources(parts) if chosen is not None else ready(X, sample.offsets, parts), parts, weight
        )
        del X, sample
        columns = [rows.features] if weight is None else [rows.features, rows.rows(weight)]
        self._blocks = Blocks(place, rows.map(_block, *columns, landmarks=landmarks), parts, weight)
        of_bags = uniform_weights(candidates)
        noise = dirichlet_targets(of_bags, self._alpha_eps)[1]
        self._known = self._first_known = noise_levels(noise)
        given = (self._blocks.rows(torch.from_numpy(values)) for values in (candidates, of_bags, noise))
        self._weights = self._initial = self._blocks.map(_start, self._blocks.features, *given, known=self._known)
        self._last: LowRankEvidence | None = None

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """Everything that is learned; `evidence` sets the gradients."""
        return self._engine.parameters()

    def evidence(self) -> Step:
        """Evaluate the mean negative log evidence."""
        self._last = self._engine.evidence(partial(self._total, self._weights), self._known)
        return Step(self._last.loss)

    def disambiguate(self) -> None:
        """Compute the weights of the candidates anew, at the parameters of the last evaluation."""
        assert self._last is not None
        if self._rule.step is None:
            return
        if self._rule.updates_noise:
            self._known = self._known.by_row()
        self._weights = self._blocks.map(
            _disambiguate,
            self._blocks.features,
            self._weights,
            name=self._name,
            alpha_eps=self._alpha_eps,
            at=self._last.at,
            coefficients=self._last.coefficients if self._rule.reads_posterior else None,
            known=self._known,
        )

    def condition(self) -> Conditioned:
        """The posterior that prediction uses."""
        last = self._rule.predicts_with_last
        weights, known = (self._weights, self._known) if last else (self._initial, self._first_known)
        noise = None
        if self._keep_rows:
            noise = self._fetch(_conditioned_noise, self._blocks.features, weights, extra=self._extra_noise())
        return self._engine.condition(partial(self._total, weights), known, noise)

    def weights(self) -> NDArray[np.float64] | None:
        """The weights (n, C) of the instances; None where they are too many to be kept."""
        return self._fetch(_weights_of, self._weights) if self._keep_rows else None

    def _extra_noise(self) -> NDArray[np.float64]:
        return self._engine.extra_noise.detach().cpu().numpy()

    def _total(self, weights: Any, function: RowSum, **shared: Any) -> tuple[Tensor, ...]:
        return self._blocks.total(
            _of_rows, self._blocks.features, weights, summed=function, alpha_eps=self._alpha_eps, **shared
        )

    def _fetch(self, function: Any, *columns: Any, **shared: Any) -> NDArray[np.float64]:
        return np.concatenate(self._blocks.place.fetch(self._blocks.map(function, *columns, **shared)))


# -------------------------------------------------------------------- functions of a block


def _block(source: Source, weight: Tensor | None = None, *, landmarks: Tensor) -> Block:
    X, offsets = source.read()
    rows = X.to(landmarks) if isinstance(X, Tensor) else torch.tensor(X, dtype=landmarks.dtype, device=landmarks.device)
    near = landmark_distances(rows, landmarks)
    return Block(near, near.new_empty(len(offsets) - 1, 0), offsets, weight)


def _start(block: Block, candidates: Tensor, weights: Tensor, noise: Tensor, known: NoiseLevels) -> _Weights:
    bags = Segments(block.offsets.cpu().numpy())
    spread = bags.spread(noise.numpy())
    return _Weights(candidates.numpy(), bags.spread(weights.numpy()), spread, row_groups(spread, known))


def _rows(block: Block, state: _Weights, alpha_eps: float) -> RowBlock:
    device = block.features.device
    targets = torch.tensor(dirichlet_targets(state.weights, alpha_eps)[0], device=device)
    noise = torch.tensor(state.noise, device=device)
    return RowBlock(block.features, targets, noise, state.groups, block.row_weight)


def _of_rows(block: Block, state: _Weights, summed: RowSum, alpha_eps: float, **shared: Any) -> tuple[Tensor, ...]:
    return summed(_rows(block, state, alpha_eps), **shared)


def _disambiguate(
    block: Block,
    state: _Weights,
    name: str,
    alpha_eps: float,
    at: Present,
    coefficients: Tensor | None,
    known: NoiseLevels,
) -> _Weights:
    rule = DISAMBIGUATIONS[name]
    assert rule.step is not None
    posterior = None if coefficients is None else posterior_means(_rows(block, state, alpha_eps), at, coefficients)
    bags = Segments(block.offsets.cpu().numpy())
    weights = rule.step(at.mean.cpu().numpy(), posterior, bags, state.candidates)
    if not rule.updates_noise:
        return state._replace(weights=weights)
    noise = dirichlet_targets(weights, alpha_eps)[1]
    return state._replace(weights=weights, noise=noise, groups=row_groups(noise, known))


def _weights_of(state: _Weights) -> NDArray[np.float64]:
    return state.weights


def _conditioned_noise(block: Block, state: _Weights, extra: NDArray[np.float64]) -> NDArray[np.float64]:
    """Noises with their learned part, divided by the weights of the instances."""
    total = state.noise + extra
    return total if block.row_weight is None else total / block.row_weight.cpu().numpy()[:, None]
