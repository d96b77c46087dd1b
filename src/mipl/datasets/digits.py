"""Digits: the handwritten digits that come with scikit-learn, for demonstrations and tests without a download."""

from __future__ import annotations

from mipl.dataset import MIPLDataset
from mipl.datasets.synthesis.build import from_instances

__all__ = ["build"]


def build(*, r: int = 1, seed: int = 0) -> MIPLDataset:
    """150 bags of 5 to 10 handwritten digits (8 x 8 pixels), 7.5 on average, of which one fifth are positive.

    As for MNIST in the MIPLGP paper, the classes are 0, 2, 4, 6, 8 (30 bags each) and negatives are 1, 3, 5, 7, 9.
    All 1,125 instances are different images: 225 positive and 900 negative ones, of the 906 there are. Pixels are
    divided by 16, to [0, 1].

    Parameters
    ----------
    r : int, default=1
        False positive labels a bag, 0 to 4.
    seed : int, default=0
        The same seed gives the same bags everywhere.
    """
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return from_instances(
        X / 16,
        y.astype(str),
        targets=("0", "2", "4", "6", "8"),
        reserved=("1", "3", "5", "7", "9"),
        n_bags=150,
        sizes=(5, 10),
        positive=0.2,
        r=r,
        seed=seed,
        instance_shape=(8, 8),
        name="digits",
        description="Handwritten digits of scikit-learn (UCI, Alpaydin and Kaynak 1998), 8 x 8 pixels in [0, 1].",
    )
