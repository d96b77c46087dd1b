"""One way to check the parameters of every method: scikit-learn's constraints, in this library's errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.utils._param_validation import InvalidParameterError, validate_parameter_constraints

from mipl.errors import ParameterError

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["check_parameters"]


def check_parameters(estimator: BaseEstimator) -> None:
    """Check the parameters of an estimator against its `_parameter_constraints`.

    Parameters
    ----------
    estimator : BaseEstimator
        Its table is scikit-learn's: name -> list of what is allowed (`Interval`, `StrOptions`, `HasMethods`, a type,
        None, "boolean", "random_state"). Every parameter of the constructor has an entry, which
        `mipl.checks.check_mipl_estimator` demands.

    Raises
    ------
    ParameterError
        For the first parameter that is none of these.
    """
    try:
        validate_parameter_constraints(
            estimator._parameter_constraints,
            estimator.get_params(deep=False),
            caller_name=type(estimator).__name__,
        )
    except InvalidParameterError as error:
        raise ParameterError(str(error)) from None
