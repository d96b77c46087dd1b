"""MNIST-MIPL: bags of handwritten digits."""

from __future__ import annotations

import numpy as np

from mipl.dataset import MIPLDataset
from mipl.datasets.sources.images import ImageSource, load_images
from mipl.datasets.synthesis.build import from_instances

__all__ = ["build"]

SOURCE = ImageSource(
    name="mnist",
    npz_sha256="bf4a7c2e5eef761751686f283905d8e52682fc81224562acc67ad2f8de8ed1cf",
    idx_sha256=(
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    mirrors=(
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist",
    ),
    openml="mnist_784",
    content_sha256="c2069063c1105f2bf96266aef1ff68c6e13bdda7a54e37bf19c16f1db24efc83",
)


def build(*, r: int = 1, seed: int = 0) -> MIPLDataset:
    """500 bags of 35 to 48 handwritten digits (28 x 28 pixels), 8 % of them positive.

    The classes are 0, 2, 4, 6, 8 and the negatives 1, 3, 5, 7, 9. Every image is used at most once. Pixels are divided
    by 255, to [0, 1].

    Parameters
    ----------
    r : int, default=1
        False positive labels a bag, 0 to 4.
    seed : int, default=0
        The same seed gives the same bags everywhere.
    """
    X, y = load_images(SOURCE)
    return from_instances(
        np.divide(X, 255, dtype=np.float32),
        y.astype(str),
        targets=("0", "2", "4", "6", "8"),
        reserved=("1", "3", "5", "7", "9"),
        n_bags=500,
        sizes=(35, 48),
        mean_size=20664 / 500,
        positive=0.08,
        r=r,
        seed=seed,
        instance_shape=(28, 28),
        name="mnist",
        description="MNIST (LeCun et al. 1998), all 70,000 digits; pixels divided by 255, nothing fitted.",
    )
