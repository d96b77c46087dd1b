"""One model serves fit and predict: answers by the formulas, in float64."""

from __future__ import annotations

import math

import numpy as np
import torch
from baggp_blocks import generator

import mipl
from mipl.baggp.model import BagModel, Expert, Stacking


def expert(seed: int, moderated: bool) -> Expert:
    g = generator(seed)
    coef, rest = torch.randn(5, 3, generator=g).double(), torch.randn(2, 3, generator=g).double()
    return Expert(coef, rest[0], rest[1], variance=torch.rand(5, generator=g).double() if moderated else None)


def test_the_answer_is_the_weighted_product_of_the_experts_with_a_share_of_outliers() -> None:
    features, offsets = torch.randn(9, 5, generator=generator()).double(), torch.tensor([0, 4, 9])
    model = BagModel(expert(1, False), expert(2, True), Stacking(np.array([0.3, 0.6]), 0.1))
    answer = model.answer(model.logits(features), offsets)
    g1 = features @ model.regression.coef + model.regression.intercept
    spread = features.square() @ model.likelihood.variance
    g2 = (features @ model.likelihood.coef + model.likelihood.intercept) / torch.sqrt(1 + math.pi * spread / 8)[:, None]
    for b, (low, high) in enumerate([(0, 4), (4, 9)]):
        l1, l2 = (torch.log((1 + torch.exp(g[low:high])).prod(dim=0) - 1) for g in (g1, g2))
        z = 0.3 * (l1 + model.regression.class_offset) + 0.6 * (l2 + model.likelihood.class_offset)
        torch.testing.assert_close(answer.probabilities[b], 0.9 * torch.softmax(z, dim=0) + 0.1 / 3)
    torch.testing.assert_close(answer.logits, (g1 + 2 * g2) / 3)
    instances = model.instance_probabilities(answer, offsets)
    torch.testing.assert_close(instances.sum(dim=1), torch.ones(9).double())


def test_what_a_fitted_estimator_keeps_gives_the_same_answers_on_its_training_features() -> None:
    ds = mipl.load("digits", r=1, seed=0)
    model = mipl.BagGP(n_landmarks=100, rank=50).fit(ds)
    features = model._ready().features(model._tensor(model.features_.transform(ds.bags.instances)))
    kept = model._model()
    answer = kept.answer(kept.logits(features), torch.tensor(ds.bags.offsets))
    np.testing.assert_allclose(model.predict_proba(ds), answer.probabilities, atol=1e-6)
