"""Whether conjugate gradients went as far as they were asked to, in words."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal, Protocol

from sklearn.exceptions import ConvergenceWarning

__all__ = ["warn_of_residuals"]


class Settings(Protocol):
    """The parameters of conjugate gradients."""

    cg_tol: float
    max_cg_iter: int
    preconditioner_size: int | Literal["auto"]


def warn_of_residuals(settings: Settings, residuals: Sequence[float], last: float) -> None:
    """Warn where the residuals of the steps, or the last one, are above `cg_tol`."""
    # linear_operator tests "less than"; the float32 mean may round up to the bound.
    short = sum(r > 1.001 * settings.cg_tol for r in residuals)
    if short:
        warnings.warn(
            f"conjugate gradients stopped at a relative residual of {max(residuals):.2g}, above "
            f"cg_tol={settings.cg_tol}, in {short} of {len(residuals)} steps; raise max_cg_iter (now "
            f"{settings.max_cg_iter}) or preconditioner_size (now {settings.preconditioner_size})",
            ConvergenceWarning,
            stacklevel=10,
        )
    elif last > settings.cg_tol:
        warnings.warn(
            f"the final solve stopped at a relative residual of {last:.2g}, above cg_tol={settings.cg_tol}; "
            f"raise max_cg_iter (now {settings.max_cg_iter})",
            ConvergenceWarning,
            stacklevel=10,
        )
