"""BagTransformer: any transformer of rows, as a step of a pipeline of bags."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import check_is_fitted

from mipl.arrays import as_array
from mipl.bags import Bags, as_bags
from mipl.candidates import bag_name
from mipl.dataset import MIPLDataset
from mipl.errors import DataError, ParameterError
from mipl.instances import as_instances, check_finite
from mipl.parameters import check_parameters

__all__ = ["BagTransformer"]


class BagTransformer(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg, misc]
    """A scikit-learn transformer that works on the instances of bags.

    All instances are the rows that the transformer learns from and transforms; bags, candidates, labels and ids stay as
    they are. So an ordinary scikit-learn pipeline puts scaling, a reduction of dimension or pretrained embeddings in
    front of any method: ``make_pipeline(BagTransformer(StandardScaler()), BagGP())``. What comes out of the
    transformer is what the method sees; where it has the same columns (by `get_feature_names_out`), images stay images.

    Parameters
    ----------
    transformer : scikit-learn transformer
        It is cloned, not changed; it gets the instances (n, d), images flattened, and no labels. One that changes the
        number of rows, or that learns from labels, is refused. A function is put in by
        ``FunctionTransformer(function)``.

    Attributes
    ----------
    transformer_ : transformer
        The fitted transformer.
    n_features_in_ : int
        Features of an instance before the transformation.
    feature_names_in_ : (d,) str
        Only where the bags that it was fitted on had feature names.
    instance_shape_ : tuple of int
        The shape of an instance before the transformation.

    Examples
    --------
    >>> import mipl
    >>> from sklearn.preprocessing import StandardScaler
    >>> ds = mipl.load("digits")
    >>> scaled = BagTransformer(StandardScaler()).fit_transform(ds)
    >>> scaled.bags, scaled.bags.instances.std().round(1)
    (Bags(150 bags, 1125 instances, 8x8), np.float32(1.0))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"transformer": [HasMethods(["fit", "transform"])]}

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, bags: Any, candidates: Any = None) -> Self:
        """Fit the transformer to all instances.

        Parameters
        ----------
        bags : MIPLDataset, Bags, list of (n_i, d) arrays, or 3-D array
            m bags.
        candidates : ignored, default=None
            Here for pipelines: a transformer of instances does not learn from labels of bags.
        """
        check_parameters(self)
        found = _bags_of(bags)
        self.__dict__.pop("feature_names_in_", None)
        self.transformer_ = _fitted(self.transformer, found.instances)
        self.n_features_in_ = found.n_features
        self.instance_shape_ = found.instance_shape
        if found.feature_names is not None:
            self.feature_names_in_ = np.array(found.feature_names)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, and transform the same bags.

        Parameters
        ----------
        X : MIPLDataset, Bags, list of (n_i, d) arrays, or 3-D array
            m bags.
        y : ignored, default=None
            As in `fit`.
        **fit_params
            There are none.
        """
        # Not the transformer's own fit_transform: PCA's differs from its transform in the last digits, and a bag must
        # be the same bag in training and when it is asked about again.
        return self.fit(X, y, **fit_params).transform(X)

    def transform(self, bags: Any) -> Any:
        """The same bags with transformed instances; a data set gives a data set, everything else a `Bags`.

        Parameters
        ----------
        bags : MIPLDataset, Bags, list of (n_i, d) arrays, or 3-D array
            m bags with the features that it was fitted with; columns are matched by name where both sides have names.
        """
        check_is_fitted(self, "transformer_")
        found = self._matched(_bags_of(bags))
        ids = bags.bag_ids if isinstance(bags, MIPLDataset) else None
        rows = self._rows(found.instances)
        if rows.ndim != 2 or len(rows) != found.n_instances:
            raise self._other_rows(found, rows, ids)
        instances = as_instances(rows)
        shape, names = self._columns(instances.shape[1])
        check_finite(instances, found.offsets, names, ids)
        transformed = Bags(instances, found.offsets, shape, names)
        return bags.with_bags(transformed) if isinstance(bags, MIPLDataset) else transformed

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the features that come out, as the transformer gives them.

        Parameters
        ----------
        input_features : (d,) str, default=None
            The names of those that go in; None takes `feature_names_in_`, else ``x0``, ``x1``, ...
        """
        check_is_fitted(self, "transformer_")
        if not hasattr(self.transformer_, "get_feature_names_out"):
            raise AttributeError(
                f"{_name(self.transformer)} has no get_feature_names_out: it does not name its features"
            )
        if input_features is None:
            counted = [f"x{j}" for j in range(self.n_features_in_)]
            input_features = getattr(self, "feature_names_in_", counted)
        names: NDArray[Any] = self.transformer_.get_feature_names_out(np.asarray(input_features, dtype=object))
        return names

    # ---------------------------------------------------------------- columns and rows

    def _matched(self, bags: Bags) -> Bags:
        owner = "the transformer"
        expected = getattr(self, "feature_names_in_", None)
        if expected is not None and bags.feature_names is not None:
            bags = bags.match_features(expected.tolist(), owner)
        if bags.n_features != self.n_features_in_:
            raise DataError(f"the bags have {bags.n_features} features, {owner} was fitted with {self.n_features_in_}")
        return bags.with_instance_shape(tuple(self.instance_shape_), owner)

    def _rows(self, instances: NDArray[np.float32]) -> NDArray[Any]:
        return as_array(self.transformer_.transform(instances), f"what {_name(self.transformer)} returns")

    def _columns(self, width: int) -> tuple[tuple[int, ...] | None, list[str] | None]:
        """Shape and names of what comes out; None where instances are just (d,), and where nobody names features."""
        try:
            counted = [f"x{j}" for j in range(self.n_features_in_)]
            same = list(self.get_feature_names_out(counted)) == counted
            names = list(map(str, self.get_feature_names_out())) if hasattr(self, "feature_names_in_") else None
        except (AttributeError, ValueError):  # a transformer without names, or inside one
            same, names = False, None
        if names is not None and (len(names) != width or len(set(names)) != width):
            names = None
        return tuple(self.instance_shape_) if same else None, names

    def _other_rows(self, bags: Bags, rows: NDArray[Any], ids: NDArray[Any] | None) -> DataError:
        """The error for a transformer that does not give one row per instance; it names the first such bag."""
        who = _name(self.transformer)
        for i, bag in enumerate(bags):
            shape = self._rows(bag).shape
            if len(shape) != 2 or shape[0] != len(bag):
                return DataError(
                    f"{who} turns the {len(bag)} instances of {bag_name(i, ids)} into an array of shape {shape}; a "
                    "transformer of instances gives one row for each of them"
                )
        return DataError(f"{who} turns {bags.n_instances} instances into an array of shape {rows.shape}; it must not")


def _fitted(transformer: Any, instances: NDArray[np.float32]) -> Any:
    """A clone that was fitted to instances; one that learns from labels of its rows is refused, as nobody has these."""
    if isinstance(transformer, type):
        raise ParameterError(f"transformer is the class {transformer.__name__}; pass {transformer.__name__}()")
    supervised = ParameterError(
        f"{_name(transformer)} learns from a label per instance, and bags have none; use a transformer that needs no "
        "labels, such as StandardScaler or PCA"
    )
    if _needs_labels(transformer):
        raise supervised
    try:
        return clone(transformer).fit(instances)
    except ValueError as error:
        if "requires y" in str(error):  # scikit-learn's words for what its tags do not tell, as of selectors
            raise supervised from error
        raise


def _needs_labels(transformer: Any) -> bool:
    try:
        return bool(get_tags(transformer).target_tags.required)
    except (AttributeError, TypeError, ValueError):  # a class without scikit-learn's tags
        y = inspect.signature(transformer.fit).parameters.get("y")
        return y is not None and y.default is inspect.Parameter.empty


def _name(transformer: Any) -> str:
    return type(transformer).__name__


def _bags_of(bags: Any) -> Bags:
    return bags.bags if isinstance(bags, MIPLDataset) else as_bags(bags)
