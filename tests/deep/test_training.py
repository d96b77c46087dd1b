"""The training loop against closed forms and against a plain loop over bags."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from mipl.bags import Bags
from mipl.checks import small_problem
from mipl.deep import DEMIPL, ELIMIPL, MIPLMA, ProMIPL
from mipl.deep.attention import Segments
from mipl.deep.network import BagNetwork, BagScores, Batch, Step, restrict, uniform_weights
from mipl.deep.training import Plan, train
from mipl.errors import ParameterError

CPU = torch.device("cpu")
SLOPE = 2.0


def plan(**changes) -> Plan:
    settings = {
        "max_epochs": 6,
        "batch_size": 4,
        "learning_rate": 0.01,
        "momentum": 0.0,
        "weight_decay": 0.0,
        "schedule": "constant",
        "per_bag": True,
    }
    return Plan(**{**settings, **changes})


class Slope(BagNetwork):
    """Its loss falls with a constant slope, and it always believes in the same labels."""

    def __init__(self, value: float = 0.0) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.tensor(value))
        self.seen: list[torch.Tensor] = []

    def loss(self, batch, noise):
        self.seen.append(batch.weights.clone())
        belief = restrict(torch.tensor([[0.5, 0.3, 0.2]]).expand(len(batch.weights), 3), batch.candidates)
        return Step(-SLOPE * self.value.expand(len(batch.weights)), belief)

    def scores(self, instances, segments, noise=None):
        return BagScores(torch.zeros(len(segments.sizes), 3), torch.ones(len(instances), 1))

    def probabilities(self, scores):
        return scores.softmax(dim=1)


def run(network: BagNetwork, settings: Plan, bags: Bags | None = None, candidates=None, seed: int = 0):
    if bags is None:
        bags, candidates, _ = small_problem()
    generator = torch.Generator().manual_seed(seed)
    return train(network, bags, candidates, settings, generator=generator, device=CPU)


@pytest.mark.parametrize("batch_size", [1, 4, 7, None])
def test_a_rate_per_bag_moves_as_far_in_mini_batches_as_bag_by_bag(batch_size):
    network = Slope()
    run(network, plan(batch_size=batch_size))
    assert network.value.item() == pytest.approx(6 * 24 * 0.01 * SLOPE, rel=1e-5)


def test_a_rate_per_step_does_not_depend_on_the_number_of_bags():
    network = Slope()
    run(network, plan(batch_size=7, per_bag=False))
    assert network.value.item() == pytest.approx(6 * 4 * 0.01 * SLOPE, rel=1e-5)


def test_label_weights_follow_the_recursion_and_the_loss_sees_them_before_the_move():
    network = Slope()
    bags, candidates, _ = small_problem()
    training = run(network, plan(batch_size=None), bags, candidates)
    mask = torch.tensor(candidates)
    belief = restrict(torch.tensor([[0.5, 0.3, 0.2]]).expand(len(mask), 3), mask)
    weights = uniform_weights(mask)
    for epoch in range(6):
        seen = network.seen[epoch]
        np.testing.assert_allclose(np.sort(seen, axis=0), np.sort(weights, axis=0), atol=1e-6)
        keep = (6 - epoch) / 6
        weights = keep * weights + (1 - keep) * belief
    np.testing.assert_allclose(training.weights, weights, atol=1e-6)


def test_the_cosine_schedule_is_torchs():
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    settings = plan(schedule="cosine", learning_rate=0.3, max_epochs=10)
    for epoch in range(10):
        assert settings.step_size(epoch, 1) == pytest.approx(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()


def test_one_bag_steps_equal_a_plain_loop_over_bags():
    bags, candidates, _ = small_problem()
    network = ELIMIPL.paper("sival", 3, dropout=0.0)._network((4,), 3, torch.Generator().manual_seed(1))
    plain = copy.deepcopy(network)
    settings = plan(batch_size=1, momentum=0.9, weight_decay=1e-4, schedule="cosine", max_epochs=3)
    training = run(network, settings, bags, candidates)

    generator = torch.Generator().manual_seed(0)
    torch.randint(2**62, (), generator=generator)  # the seed of the noise
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.01, momentum=0.9, nesterov=True, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)
    weights = candidates / candidates.sum(axis=1, keepdims=True)
    for epoch in range(3):
        for i in torch.randperm(len(bags), generator=generator).tolist():
            x, w = torch.tensor(bags[i]), torch.tensor(weights[i], dtype=torch.float32)
            h = plain.encoder(x)
            a = torch.softmax(plain.gate(h)[:, 0] / 128**0.5, dim=0)
            p = torch.softmax(torch.sigmoid(plain.classifier(a @ h)).clamp(1e-5, 1 - 1e-5), dim=0)
            inside = torch.tensor(candidates[i])
            loss = -(w * p.log()).sum() + 10 * p[inside].sum() - 10 * torch.log(1 - p[~inside]).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            believed = (p * inside / p[inside].sum()).detach().numpy()
            weights[i] = (3 - epoch) / 3 * weights[i] + epoch / 3 * believed
        scheduler.step()
    np.testing.assert_allclose(training.weights, weights, atol=2e-5)
    for own, other in zip(network.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(own, other, atol=2e-5, rtol=1e-4)


METHODS = [
    DEMIPL(hidden_sizes=(6,)),
    ELIMIPL(hidden_sizes=(6,)),
    MIPLMA(hidden_sizes=(6,), margin="closed-form"),
    ProMIPL(hidden_sizes=(6,)),
]


@pytest.mark.parametrize("estimator", METHODS, ids=lambda e: e.name)
def test_the_gradient_of_a_mini_batch_is_the_mean_of_its_bags_gradients(batch, single, network, estimator):
    net = network(estimator)
    parameters = list(net.parameters())
    together = torch.autograd.grad(net.loss(batch, None).loss.mean(), parameters)
    one_by_one = [torch.autograd.grad(net.loss(bag, None).loss.sum(), parameters) for bag in single]
    for gradient, *parts in zip(together, *one_by_one, strict=True):
        assert torch.isfinite(gradient).all()
        torch.testing.assert_close(gradient, sum(parts) / len(single))


def test_batches_hold_the_instances_of_their_bags():
    bags, candidates, _ = small_problem()
    seen: dict[int, torch.Tensor] = {}

    class Recorder(Slope):
        def loss(self, batch: Batch, noise):
            assert isinstance(batch.segments, Segments)
            for i, rows in enumerate(batch.instances.split(batch.segments.sizes.tolist())):
                seen[len(seen)] = rows
                assert (batch.segments.bag == i).sum() == len(rows)
            return super().loss(batch, noise)

    run(Recorder(), plan(max_epochs=1), bags, candidates)
    expected = sorted(bag.tobytes() for bag in bags)
    assert sorted(rows.numpy().tobytes() for rows in seen.values()) == expected


def test_a_loss_that_is_not_finite_ends_the_training_with_advice():
    with pytest.raises(ParameterError, match="lower the learning_rate"):
        run(Slope(float("nan")), plan())
