"""BagTransformer: rows of instances through any transformer of scikit-learn, bags untouched."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, MinMaxScaler, StandardScaler

import mipl
from mipl import Bags, BagTransformer, DataError, MIPLDataset, ParameterError
from mipl.checks import small_dataset


def test_instances_are_what_the_transformer_makes_of_all_rows():
    ds = small_dataset()
    bags = BagTransformer(PCA(2)).fit_transform(ds.bags)
    projected = PCA(2).fit(ds.bags.instances).transform(ds.bags.instances)
    assert np.array_equal(bags.instances, projected.astype(np.float32))
    assert np.array_equal(bags.offsets, ds.bags.offsets)


def test_a_data_set_keeps_all_but_its_instances():
    rng = np.random.default_rng(0)
    ds = MIPLDataset(
        [rng.normal(size=(2, 3)), rng.normal(size=(4, 3))],
        [{"owl": 3, "wren": 1}, {"wren": 1}],
        labels=["owl", "wren"],
        instance_labels=[0, 1, 2, 1, -1, -1],
        bag_ids=["a", "b"],
        name="birds",
        groups=[4, 5],
        background="wren",
    )
    scaled = BagTransformer(StandardScaler()).fit_transform(ds)
    assert np.abs(scaled.bags.instances.mean(axis=0)).max() < 1e-6
    assert ds.with_bags(scaled.bags).equals(scaled)
    assert scaled.with_bags(ds.bags).equals(ds)
    assert scaled.name == "birds"
    with pytest.raises(DataError, match="other sizes"):
        ds.with_bags(scaled.bags[:1])


def test_bags_of_any_form_are_taken():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(3, 2)) for _ in range(4)]
    expected = BagTransformer(MinMaxScaler()).fit_transform(Bags.from_list(arrays))
    assert BagTransformer(MinMaxScaler()).fit_transform(arrays) == expected
    assert BagTransformer(MinMaxScaler()).fit_transform(np.stack(arrays)) == expected


def test_names_are_those_of_the_transformer():
    ds = small_dataset()
    fitted = BagTransformer(StandardScaler()).fit(ds)
    assert fitted.transform(ds).bags.feature_names == ds.bags.feature_names
    assert BagTransformer(PCA(2)).fit_transform(ds).bags.feature_names == ("pca0", "pca1")
    chosen = BagTransformer(VarianceThreshold(0.5)).fit(ds)
    kept = chosen.transform(ds).bags.feature_names
    assert chosen.get_feature_names_out().tolist() == list(kept)
    assert kept == tuple(
        name for name, v in zip(ds.bags.feature_names, ds.bags.instances.var(axis=0), strict=True) if v > 0.5
    )
    plain = Bags(ds.bags.instances, ds.bags.offsets)
    assert BagTransformer(PCA(2)).fit_transform(plain).feature_names is None
    function = BagTransformer(FunctionTransformer(np.abs)).fit(ds)
    assert function.transform(ds).bags.feature_names is None
    with pytest.raises(AttributeError, match="FunctionTransformer has no get_feature_names_out"):
        function.get_feature_names_out()


def test_columns_are_matched_by_name():
    ds = small_dataset()
    fitted = BagTransformer(StandardScaler()).fit(ds)
    turned = ds.bags.select_features(ds.bags.feature_names[::-1])
    assert fitted.transform(turned) == fitted.transform(ds.bags)
    with pytest.raises(DataError, match=r"the transformer has the feature 'age', the bags have not"):
        fitted.transform(ds.bags.select_features(ds.bags.feature_names[:3]))
    with pytest.raises(DataError, match=r"the bags have 5 features, the transformer was fitted with 4"):
        fitted.transform([np.zeros((2, 5))])


@pytest.mark.parametrize(
    ("transformer", "shape"),
    [
        (StandardScaler(), (8, 8)),
        (make_pipeline(StandardScaler(), MinMaxScaler()), (8, 8)),
        (PCA(64), (64,)),
        (PCA(5), (5,)),
    ],
    ids=lambda value: str(value) if isinstance(value, tuple) else type(value).__name__,
)
def test_images_stay_images_where_columns_stay_columns(transformer: BaseEstimator, shape: tuple[int, ...]):
    bags = mipl.load("digits").bags
    assert BagTransformer(transformer).fit_transform(bags).instance_shape == shape


def test_sparse_output_becomes_dense():
    ds = small_dataset()
    transformer = KBinsDiscretizer(3, encode="onehot", quantile_method="averaged_inverted_cdf")
    assert sparse.issparse(transformer.fit_transform(ds.bags.instances))
    found = BagTransformer(transformer).fit_transform(ds).bags
    assert np.array_equal(found.instances, transformer.fit_transform(ds.bags.instances).toarray())


def test_pandas_output_changes_nothing():
    ds = small_dataset()
    expected = BagTransformer(PCA(2)).fit_transform(ds)
    with sklearn.config_context(transform_output="pandas"):
        assert BagTransformer(PCA(2)).fit_transform(ds).equals(expected)


@pytest.mark.parametrize(
    "transformer",
    [SelectKBest(), LinearDiscriminantAnalysis(), make_pipeline(StandardScaler(), SelectKBest())],
    ids=lambda t: type(t).__name__,
)
def test_supervised_transformers_are_refused_in_one_line(transformer: BaseEstimator):
    ds = small_dataset()
    with pytest.raises(ParameterError, match=r"learns from a label per instance, and bags have none") as caught:
        BagTransformer(transformer).fit(ds.bags, ds.candidates)
    assert "\n" not in str(caught.value)


class LabelHungry:
    """A transformer of somebody who does not use scikit-learn's classes."""

    def fit(self, X, y):
        return self

    def transform(self, X):
        return X

    def get_params(self, deep=True):
        return {}


def test_a_foreign_supervised_transformer_is_refused_too():
    with pytest.raises(ParameterError, match="LabelHungry learns from a label per instance"):
        BagTransformer(LabelHungry()).fit(small_dataset())


@pytest.mark.parametrize("nonsense", ["scaler", None, StandardScaler], ids=["text", "nothing", "a class"])
def test_what_is_no_transformer_is_refused(nonsense: object):
    with pytest.raises(ParameterError, match="transformer"):
        BagTransformer(nonsense).fit(small_dataset())


def test_a_transformer_that_changes_the_number_of_rows_is_refused_by_bag():
    ds = small_dataset()
    large = next(i for i, size in enumerate(ds.bags.sizes) if size == 5)
    cut = FunctionTransformer(lambda X: X[:4] if len(X) > 4 else X)
    message = rf"FunctionTransformer turns the 5 instances of bag '{ds.bag_ids[large]}' into an array of shape \(4, 4\)"
    with pytest.raises(DataError, match=message):
        BagTransformer(cut).fit_transform(ds)


def test_values_that_are_not_finite_name_the_bag():
    ds = small_dataset()
    with np.errstate(invalid="ignore"), pytest.raises(DataError, match=r"bag 'animal-\d+', instance \d+, feature \d"):
        BagTransformer(FunctionTransformer(np.sqrt)).fit_transform(ds)


def test_it_is_an_estimator_as_any_other():
    ds = small_dataset()
    scaler = StandardScaler()
    transformer = BagTransformer(scaler)
    with pytest.raises(NotFittedError):
        transformer.transform(ds)
    assert transformer.get_params()["transformer__with_mean"] is True
    copied = clone(transformer).set_params(transformer__with_mean=False)
    assert scaler.with_mean
    fitted = copied.fit(ds)
    assert not hasattr(copied.transformer, "mean_")
    assert pickle.loads(pickle.dumps(fitted)).transform(ds).equals(fitted.transform(ds))
    again = fitted.fit(Bags(ds.bags.instances, ds.bags.offsets))
    assert not hasattr(again, "feature_names_in_")
