"""FastMIPL's loss, its start, and what its switches do."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mipl.checks import small_problem
from mipl.deep import FastMIPL
from mipl.deep.class_weights import sample_weights
from mipl.deep.fastmipl import over_bags

TINY = {"hidden_sizes": (8,), "max_epochs": 5, "n_samples": 3}


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("renormalize", [True, False])
def test_loss_and_belief_equal_a_loop_over_bags_and_draws(batch, network, average, renormalize):
    estimator = FastMIPL(
        hidden_sizes=(3,), dropout=0.0, n_samples=2, average_samples=average, renormalize_weights=renormalize
    )
    net = network(estimator)
    with torch.no_grad():
        for parameter in (net.mean, net.factor):
            parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(4)))
    net.n_bags = 7
    step = net.loss(batch, torch.Generator().manual_seed(9))

    beta = sample_weights(net.mean, net.factor, 2, torch.Generator().manual_seed(9))
    h = net.encoder(batch.instances)
    z = torch.zeros(4, 4, 2, dtype=torch.float64)
    for c in range(4):
        for s in range(2):
            u, v = beta[c, :3, s], beta[c, 3:, s]
            scale = v.square().mean().sqrt()
            zeta = torch.stack(
                [torch.softmax(h[rows] @ u, dim=0) @ (h[rows] @ v / scale) for rows in _rows(batch.segments.bag)]
            )
            z[:, c, s] = scale * (zeta - zeta.mean()) / zeta.std()
    fit = -(batch.weights[:, :, None] * z).sum(dim=(1, 2)) / (2 if average else 1)
    torch.testing.assert_close(step.loss, fit + 0.1 * net.divergence() / 7)
    belief = z.softmax(dim=1).mean(dim=2) * batch.candidates
    torch.testing.assert_close(step.belief, belief / belief.sum(dim=1, keepdim=True) if renormalize else belief)


def _rows(bag):
    return [bag == i for i in range(int(bag.max()) + 1)]


def test_training_statistics_make_a_bags_answer_its_own_and_batch_statistics_do_not():
    bags, candidates, _ = small_problem()
    for scaling, alike in (("train", True), ("batch", False)):
        model = FastMIPL(score_scaling=scaling, **TINY).fit(bags, candidates)
        together = model.predict_proba(bags)
        alone = np.concatenate([model.predict_proba(bags[k : k + 1]) for k in range(len(bags))])
        assert np.allclose(together, alone, atol=1e-5) is alike


def test_with_batch_statistics_a_bag_alone_always_gets_the_first_class():
    bags, candidates, _ = small_problem()
    model = FastMIPL(score_scaling="batch", **TINY).fit(bags, candidates)
    assert {int(model.predict(bags[k : k + 1])[0]) for k in range(len(bags))} == {0}
    assert len(set(model.predict(bags))) > 1


def test_training_statistics_are_those_of_batch_scaling_on_the_training_bags():
    bags, candidates, _ = small_problem()
    by_train, by_batch = (FastMIPL(score_scaling=s, **TINY).fit(bags, candidates) for s in ("train", "batch"))
    np.testing.assert_allclose(by_train.predict_proba(bags), by_batch.predict_proba(bags), atol=1e-5)


def test_dropout_at_prediction_changes_answers_yet_repeats_them():
    bags, candidates, _ = small_problem()
    off, on = (FastMIPL(dropout_at_prediction=d, **TINY).fit(bags, candidates) for d in (False, True))
    assert np.array_equal(on.predict_proba(bags), on.predict_proba(bags))
    assert np.abs(on.predict_proba(bags) - off.predict_proba(bags)).max() > 1e-3


def test_the_start_from_the_own_encoder_knows_more_of_the_candidates_than_a_foreign_one():
    bags, candidates, _ = small_problem(m=60)
    mass = {}
    for own in (True, False):
        # A learning rate of next to nothing leaves the start as it is.
        model = FastMIPL(hidden_sizes=(64,), init_from_own_encoder=own, learning_rate=1e-9, max_epochs=1)
        proba = model.fit(bags, candidates).predict_proba(bags)
        mass[own] = np.log((proba * candidates).sum(axis=1)).mean()
    assert mass[True] > mass[False] + 0.05


def test_covariances_are_factorised_every_kl_refresh_steps(monkeypatch):
    import mipl.deep.fastmipl as module

    calls = []
    original = module.log_determinant
    monkeypatch.setattr(module, "log_determinant", lambda factor: calls.append(1) or original(factor))
    bags, candidates, _ = small_problem()
    FastMIPL(kl_refresh=4, batch_size=8, **TINY).fit(bags, candidates)  # 3 steps in each of 5 epochs
    assert len(calls) == 4


def test_a_lazy_factorisation_hardly_changes_the_fit():
    bags, candidates, _ = small_problem()
    exact, lazy = (
        FastMIPL(kl_refresh=k, hidden_sizes=(8,), max_epochs=30).fit(bags, candidates).predict_proba(bags)
        for k in (1, 10)
    )
    assert np.abs(exact - lazy).max() < 0.02


def test_the_fitted_state_leaves_out_what_only_training_needs():
    bags, candidates, _ = small_problem()
    state = FastMIPL(**TINY).fit(bags, candidates).state_
    assert "factor" not in state
    assert state["mean"].shape == (3, 16)


def test_scores_of_one_bag_have_deviation_one_and_equal_scores_do_not_divide_by_zero():
    mean, deviation = over_bags(torch.tensor([[2.0, 3.0]]))
    assert torch.equal(mean, torch.tensor([2.0, 3.0]))
    assert torch.equal(deviation, torch.ones(2))
    assert (over_bags(torch.ones(3, 2))[1] > 0).all()
