"""What the Gaussian process learners share: they find shifted instances, and no round lowers their bound."""

from __future__ import annotations

import numpy as np
import pytest
from shifted_bags import shifted_bags
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

import mipl
from mipl.bags import Bags
from mipl.mil import LMVGPMIL, VGPMIL, VWSGP
from mipl.mil.inducing import InducingPoints

GAUSSIAN = [VWSGP, VGPMIL, LMVGPMIL]


@pytest.mark.parametrize(
    ("learner", "shift", "least"),
    [
        (VGPMIL, 1.0, 0.93), (VGPMIL, 1.5, 0.98),
        (LMVGPMIL, 1.0, 0.92), (LMVGPMIL, 1.5, 0.98),
        (VWSGP, 1.0, 0.86), (VWSGP, 1.5, 0.94),
    ],
)  # fmt: skip
def test_shifted_instances_are_found(learner: type, shift: float, least: float) -> None:
    train, test = shifted_bags(shift, seed=0), shifted_bags(shift, seed=1)
    model = learner(n_inducing=50).fit(*train)
    assert roc_auc_score(test[1], model.decision_function(test[0])) >= least
    shifted = np.isin(np.arange(test[0].n_instances), test[0].offsets[:200])
    certain = shifted | test[0].spread(test[1] == 0)
    assert roc_auc_score(shifted[certain], model.predict_instances(test[0])[certain, 1]) > 0.95


@pytest.mark.parametrize("learner", GAUSSIAN)
def test_no_round_lowers_the_bound(learner: type) -> None:
    for shift in (0.0, 1.0):
        model = learner(n_inducing=30, tol=0.0).fit(*shifted_bags(shift, seed=2, n=40))
        assert len(model.bounds_) > 5
        assert np.diff(model.bounds_).min() > -1e-8 * np.abs(model.bounds_).max()


@pytest.mark.parametrize("learner", GAUSSIAN)
def test_bags_of_one_instance_give_plain_gaussian_process_classification(learner: type) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (1200, 2))
    y = (np.sin(2 * x[:, 0]) + 0.5 * rng.standard_normal(1200) > x[:, 1]).astype(np.int64)
    bags = Bags(x, np.arange(1201))
    model = learner(n_inducing=80, lengthscale=0.7).fit(bags[:300], y[:300])
    z = (x - x[:300].mean(axis=0)) / x[:300].std(axis=0)
    reference = GaussianProcessClassifier(RBF(0.7), optimizer=None).fit(z[:300], y[:300])
    assert model.score(bags[300:], y[300:]) == pytest.approx(reference.score(z[300:], y[300:]), abs=0.02)


@pytest.mark.parametrize("learner", GAUSSIAN)
def test_bags_with_a_chosen_digit_are_told_from_the_others(learner: type) -> None:
    data = mipl.load("digits", r=0, seed=0)
    for digit in (0, 1, 2, 3):  # the images of 0, 2, 4 and 6
        y = (data.labels == digit).astype(np.int64)
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        odds = cross_val_predict(learner(n_inducing=100), data.bags, y, cv=folds, method="decision_function")
        assert roc_auc_score(y, odds) > 0.95


@pytest.mark.parametrize("learner", GAUSSIAN)
def test_copies_of_a_bag_count_as_bags_of_their_own(learner: type) -> None:
    bags, y = shifted_bags(1.0, seed=4, n=15)
    copies = np.stack([1 - y, y], axis=1)
    copies[3], copies[20] = (2, 1), (0, 3)
    literal = Bags.concatenate([bags[[i] * count] for i, row in enumerate(copies) for count in row if count])
    labels = np.concatenate([np.repeat([0, 1], row) for row in copies])
    front_end = InducingPoints(n_inducing=20).fit(bags, copies > 0)
    counted, repeated = learner(max_iter=6, tol=0.0), learner(max_iter=6, tol=0.0)
    counted._fit(front_end.transform(bags), bags, copies)
    repeated._fit(front_end.transform(literal), literal, np.eye(2, dtype=np.int64)[labels])
    assert np.allclose(counted.bounds_, repeated.bounds_)
    assert np.allclose(counted.mean_, repeated.mean_, atol=1e-6)


@pytest.mark.parametrize("learner", [VGPMIL, LMVGPMIL])
def test_rounds_are_shown_where_that_is_wanted(learner: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mipl.progress.sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("rich.progress.track", lambda items, title, **_: shown.append(title) or items)
    shown: list[str] = []
    for verbose in (False, True):
        learner(n_inducing=10, verbose=verbose).fit(*shifted_bags(1.0, seed=2, n=20))
    assert shown == [learner.name]
