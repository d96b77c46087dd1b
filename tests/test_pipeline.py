"""Pipelines of bags: every method behind a transformer answers as on bags that were transformed by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import pipeline as of_sklearn
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, train_test_split
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import mipl
from mipl import Bags, BagTransformer
from mipl.checks import small_dataset
from mipl.errors import DataError, ParameterError

#: What makes a fit quick, for the methods that have it.
QUICK = {"max_epochs": 2, "max_iter": 5, "n_landmarks": 30, "cross_fit": 2}


class Sharpened(TransformerMixin, BaseEstimator):
    """Somebody's own transformer: what it learns are arrays and numbers."""

    def __init__(self, power: float = 2) -> None:
        self.power = power

    def fit(self, X: np.ndarray, y: None = None) -> Sharpened:
        self.scale_ = np.abs(X).max(axis=0)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        return (X / self.scale_) ** self.power


def quick(name: str) -> mipl.MIPLClassifier:
    known = mipl.methods()[name].parameters()
    return mipl.make(name, **{key: value for key, value in QUICK.items() if key in known})


def knn(transformer: object = None, **params: object) -> mipl.BagPipeline:
    return mipl.make_pipeline(BagTransformer(transformer or StandardScaler()), mipl.make("PL-kNN", **params))


@pytest.mark.parametrize("name", mipl.methods())
def test_every_method_answers_as_on_bags_transformed_by_hand(name: str, tmp_path: Path):
    ds = small_dataset()
    scaled = StandardScaler().fit(ds.bags.instances).transform(ds.bags.instances)
    by_hand = ds.with_bags(Bags(scaled, ds.bags.offsets, feature_names=ds.bags.feature_names))
    expected = quick(name).fit(by_hand)
    piped = clone(mipl.make_pipeline(BagTransformer(StandardScaler()), quick(name))).fit(ds)

    for method in ("predict", "predict_proba", "predict_instances", "resolve"):
        assert np.array_equal(getattr(piped, method)(ds), getattr(expected, method)(by_hand)), method
    assert piped.score(ds) == expected.score(by_hand)
    assert mipl.label_free_score(piped, ds) == mipl.label_free_score(expected, by_hand)
    assert piped.classes_.tolist() == ds.classes.tolist()

    resolved = mipl.resolve(ds, piped)
    assert np.array_equal(resolved.posterior, expected.resolve(by_hand))
    assert resolved.bags == ds.bags  # pictures show the instances as they are, not as the method sees them
    assert resolved.method == expected.name
    assert np.array_equal(mipl.explain(piped, ds).posterior, expected.predict_proba(by_hand))

    loaded = mipl.load_model(piped.save(tmp_path / "pipeline.mipl"))
    for method in ("predict_proba", "predict_instances", "resolve"):
        assert np.array_equal(getattr(loaded, method)(ds), getattr(piped, method)(ds)), method


def test_scikit_learns_own_pipeline_is_taken_too():
    ds = small_dataset()
    plain = of_sklearn.make_pipeline(BagTransformer(StandardScaler()), mipl.make("PL-kNN"))
    resolved = mipl.resolve(ds, plain)  # fits it
    assert np.array_equal(resolved.posterior, knn().fit(ds).resolve(ds))
    assert np.array_equal(mipl.explain(plain, ds.bags).posterior, plain.predict_proba(ds.bags))
    by_parts = of_sklearn.make_pipeline(BagTransformer(StandardScaler()), mipl.make("PL-kNN"))
    by_parts.fit(ds.bags, ds.candidate_sets())
    assert by_parts.score(ds.bags, ds.label_names()) == plain.score(ds)


def test_pipelines_may_be_nested():
    ds = small_dataset()
    inner = mipl.make_pipeline(BagTransformer(PCA(2)), mipl.make("PL-kNN"))
    outer = mipl.make_pipeline(BagTransformer(StandardScaler()), inner).fit(ds)
    flat = mipl.make_pipeline(BagTransformer(StandardScaler()), BagTransformer(PCA(2)), mipl.make("PL-kNN")).fit(ds)
    assert np.array_equal(outer.predict_instances(ds), flat.predict_instances(ds))
    assert np.array_equal(mipl.resolve(ds, outer).posterior, flat.resolve(ds))


def test_baggp_knows_its_training_bags_behind_a_projection():
    ds = small_dataset()
    model = mipl.make_pipeline(BagTransformer(PCA(2)), mipl.BagGP(n_landmarks=30)).fit(ds)
    assert np.array_equal(model.resolve(ds), model[-1].posterior_)


@pytest.mark.parametrize("whole", [True, False], ids=["data set", "bags and candidates"])
def test_a_search_tunes_steps_without_labels(whole: bool):
    ds = mipl.load("digits")[:60]
    grid = {"bagtransformer__transformer": [PCA(2), PCA(20)], "embeddedpll__learner__n_neighbors": [3, 20]}
    data = (ds,) if whole else (ds.bags, ds.candidates)
    search = GridSearchCV(knn(PCA(2)), grid, scoring=mipl.label_free_score, cv=3, error_score="raise").fit(*data)
    assert len(search.cv_results_["params"]) == 4
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = clone(knn(PCA(2))).set_params(**search.best_params_)
    folds = cross_val_score(best, *data, scoring=mipl.label_free_score, cv=3, error_score="raise")
    assert search.best_score_ == pytest.approx(folds.mean())


def test_a_data_set_is_split_and_scored_by_scikit_learn():
    ds = mipl.load("digits")
    train, test = train_test_split(ds, random_state=0)
    assert sorted([*train.bag_ids, *test.bag_ids]) == sorted(ds.bag_ids)
    assert test.label_names() == [ds.label_names()[i] for i in test.bag_ids]
    scores = cross_val_score(knn(), ds, cv=3, error_score="raise")
    order = np.array_split(np.arange(len(ds)), 3)
    by_hand = [knn().fit(ds[np.setdiff1d(np.arange(len(ds)), fold)]).score(ds[fold]) for fold in order]
    assert scores.tolist() == by_hand


def test_a_function_cannot_be_saved_but_a_class_can(tmp_path: Path):
    ds = small_dataset()
    model = knn(FunctionTransformer(np.abs)).fit(ds)
    assert model.predict(ds).shape == (len(ds),)
    with pytest.raises(DataError, match=r"transformer\.func is a function.* transformer class of your own"):
        model.save(tmp_path / "model.mipl")
    model = knn(Sharpened(power=3)).fit(ds)
    loaded = mipl.load_model(model.save(tmp_path / "model.mipl"))
    assert np.array_equal(loaded.predict_proba(ds), model.predict_proba(ds))


@pytest.mark.parametrize(
    "transformer",
    [
        make_column_transformer((StandardScaler(), [0, 2]), remainder="passthrough"),  # holds slices
        OneHotEncoder(handle_unknown="ignore"),  # holds a number type
        SimpleImputer(),  # holds a dtype
        of_sklearn.make_pipeline(StandardScaler(), PCA(2)),
    ],
    ids=lambda transformer: type(transformer).__name__,
)
def test_what_scikit_learns_transformers_hold_is_saved(transformer: BaseEstimator, tmp_path: Path):
    ds = small_dataset()
    model = knn(transformer).fit(ds)
    loaded = mipl.load_model(model.save(tmp_path / "model.mipl"))
    assert loaded[0].transform(ds).equals(model[0].transform(ds))
    assert repr(loaded) == repr(model)


def test_what_is_no_model_is_refused():
    ds = small_dataset()
    with pytest.raises(NotFittedError):
        knn().predict_instances(ds)
    with pytest.raises(NotFittedError):
        mipl.explain(knn(), ds)
    scaler = of_sklearn.make_pipeline(StandardScaler(), PCA(2))
    with pytest.raises(ParameterError, match="model must be an estimator such as BagGP"):
        mipl.explain(scaler, ds)


@pytest.mark.parametrize("pipeline", [mipl.make_pipeline, of_sklearn.make_pipeline])
def test_a_transformer_that_is_not_made_for_bags_is_told_what_to_wrap_it_in(pipeline: Callable[..., Any]):
    ds = small_dataset()
    equal = Bags.from_array(np.ones((24, 3, 4)))  # these would be an array, but not one of samples
    for given in ((ds,), (ds.bags, ds.candidates), (equal, ds.candidates)):
        with pytest.raises(DataError, match=r"mipl\.BagTransformer\(transformer\)"):
            pipeline(StandardScaler(), mipl.make("PL-kNN")).fit(*given)


def test_splitters_that_need_labels_are_told_so_by_a_data_set():
    ds = small_dataset()
    with pytest.raises(DataError, match=r"as by StratifiedKFold, pass these: split\(ds, ds.labels\)"):
        next(StratifiedKFold(2).split(ds, ds))
    folds = list(StratifiedKFold(2).split(ds, ds.labels))
    assert [np.bincount(ds.labels[test]).tolist() for _, test in folds] == [[4, 4, 4], [4, 4, 4]]
    assert len(cross_val_score(mipl.make("PL-kNN"), ds, cv=folds)) == 2
