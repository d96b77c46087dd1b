"""All features divided by one power of two, where they are very large or very small."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin

__all__ = ["CommonScale"]

#: Largest sizes of features that are left as they are: those of pixels in [0, 1] and up to 16 bits.
_USUAL = (2.0**-4, 2.0**16)
#: Values beyond this are cut off: their squares are still numbers in single precision.
_MOST = np.float32(2.0**60)


class CommonScale(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Bring features of unusual size to a size near one, all by the same power of two, which leaves their digits alone.

    Features are left as they are if the largest is between 1/16 and 65,536. Values are cut off at 2**60, some 1e18
    times the largest of the training instances.

    Attributes
    ----------
    exponent_ : int
        Of the power of two by which features are multiplied.

    Examples
    --------
    >>> CommonScale().fit([[2e30, -4e30]]).transform([[2e30, -4e30]]).round(2)
    array([[ 0.39, -0.79]], dtype=float32)
    """

    def fit(self, X: ArrayLike, y: None = None) -> Self:
        """Learn the size of features (n, d)."""
        rows = np.asarray(X, dtype=np.float32)
        largest = max(abs(float(rows.min())), abs(float(rows.max())))
        usual = largest == 0 or _USUAL[0] <= largest <= _USUAL[1]
        self.exponent_ = 0 if usual else -int(np.frexp(largest)[1])
        self.n_features_in_ = rows.shape[1]
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Features (n, d) at the common scale."""
        rows = np.asarray(X, dtype=np.float32)
        if self.exponent_:
            with np.errstate(over="ignore", under="ignore"):
                rows = np.ldexp(rows, np.int32(self.exponent_))
        return np.clip(rows, -_MOST, _MOST)
