"""Platt scaling against scikit-learn's logistic regression."""

from __future__ import annotations

import pytest
import torch
from baggp_blocks import blocks_of, generator, make_block
from sklearn.linear_model import LogisticRegression

from mipl.baggp.blocks import Column
from mipl.baggp.platt import fit_platt


def test_it_equals_scikit_learns_logistic_regression_whatever_the_blocks() -> None:
    scores = torch.randn(400, 2, generator=generator(), dtype=torch.float64) * 3 + 1
    targets = torch.bernoulli(torch.sigmoid(scores - 2), generator=generator(1))
    blocks = blocks_of(make_block([150]), make_block([250]))
    parts = (Column.of([[part] for part in values.split([150, 250])]) for values in (scores, targets))
    fitted = fit_platt(blocks, *parts)
    for c in range(2):
        # The ridge is 1e-3 per sample on the standardised slope; scikit-learn's penalty is 1/C on the sum.
        mean, deviation = scores[:, c].mean(), scores[:, c].std(correction=0)
        x = (scores[:, c] - mean) / deviation
        reference = LogisticRegression(C=1 / (1e-3 * 400), tol=1e-10).fit(x[:, None], targets[:, c])
        assert (fitted.slope[c] * deviation).item() == pytest.approx(reference.coef_[0, 0], rel=1e-3)
        at_mean = (fitted.intercept[c] + fitted.slope[c] * mean).item()
        assert at_mean == pytest.approx(reference.intercept_[0], rel=1e-2)
