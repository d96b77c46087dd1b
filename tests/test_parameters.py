"""The parameters of every method are checked by one table, in this library's errors."""

from __future__ import annotations

from numbers import Integral, Real

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from mipl.errors import ParameterError
from mipl.parameters import check_parameters


class Method(BaseEstimator):
    _parameter_constraints = {  # noqa: RUF012
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "lengthscale": [Interval(Real, 0, None, closed="neither"), None],
        "embed": [StrOptions({"mean", "maxmin"})],
        "random_state": ["random_state"],
    }

    def __init__(self, *, n_neighbors=10, lengthscale=None, embed="mean", random_state=0):
        self.n_neighbors = n_neighbors
        self.lengthscale = lengthscale
        self.embed = embed
        self.random_state = random_state


def test_what_is_allowed_passes():
    check_parameters(Method())
    check_parameters(Method(n_neighbors=1, lengthscale=0.1, embed="maxmin", random_state=None))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_neighbors": 0}, r"'n_neighbors' parameter of Method must be an int in the range \[1, inf\). Got 0"),
        ({"n_neighbors": "abc"}, "'n_neighbors' parameter of Method must be an int .* Got 'abc'"),
        ({"lengthscale": -1}, r"'lengthscale' parameter of Method must be a float in the range \(0.0, inf\) or None"),
        ({"lengthscale": float("nan")}, "'lengthscale' .* Got nan"),
        ({"lengthscale": float("inf")}, "'lengthscale' .* Got inf"),
        ({"embed": "median"}, "'embed' parameter of Method must be a str among {.*}. Got 'median'"),
        ({"random_state": -1}, "'random_state' parameter of Method must be"),
    ],
)
def test_what_is_not_is_named_with_what_it_may_be(params, message):
    with pytest.raises(ParameterError, match=message) as caught:
        check_parameters(Method(**params))
    assert caught.value.__cause__ is None
