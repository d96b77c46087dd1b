"""BagGP: exact bag-level inference on a low-rank Gaussian process."""

from mipl.baggp.estimator import BagGP

__all__ = ["BagGP"]
