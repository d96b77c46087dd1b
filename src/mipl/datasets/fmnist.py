"""FMNIST-MIPL: bags of pictures of clothing."""

from __future__ import annotations

import numpy as np

from mipl.dataset import MIPLDataset
from mipl.datasets.sources.images import ImageSource, load_images
from mipl.datasets.synthesis.build import from_instances

__all__ = ["build"]

SOURCE = ImageSource(
    name="fmnist",
    npz_sha256="24bc970a5d9977a712cec089e2b673270a7af07b2581d4536e25d3dcec0689b1",
    idx_sha256=(
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    mirrors=(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
    ),
    openml="Fashion-MNIST",
    content_sha256="2cbc59191665e1ba3f2494648f17edac5974f748ab89fb2ae05597d658161f54",
)

#: The name of each label 0..9.
NAMES = np.array(["T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"])


def build(*, r: int = 1, seed: int = 0) -> MIPLDataset:
    """500 bags of 36 to 48 pictures of clothing (28 x 28 pixels), 8 % of them positive.

    The classes are T-shirt, Trouser, Coat, Sneaker and Bag, the negatives Pullover, Dress, Sandal, Shirt and Ankle
    boot. Every image is used at most once. Pixels are divided by 255, to [0, 1].

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
        NAMES[y],
        targets=("T-shirt", "Trouser", "Coat", "Sneaker", "Bag"),
        reserved=("Pullover", "Dress", "Sandal", "Shirt", "Ankle boot"),
        n_bags=500,
        sizes=(36, 48),
        mean_size=20810 / 500,
        positive=0.08,
        r=r,
        seed=seed,
        instance_shape=(28, 28),
        name="fmnist",
        description="Fashion-MNIST (Xiao et al. 2017), all 70,000 pictures; pixels divided by 255, nothing fitted.",
    )
