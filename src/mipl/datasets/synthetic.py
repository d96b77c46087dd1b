"""make_bags: Gaussian classes in bags, for tests and scaling runs."""

from __future__ import annotations

import numpy as np

from mipl.bags import Bags
from mipl.dataset import MIPLDataset
from mipl.datasets.synthesis.build import from_bags
from mipl.datasets.synthesis.layout import lay_out
from mipl.errors import DataError

__all__ = ["make_bags"]


def make_bags(
    *,
    n_bags: int = 100,
    n_classes: int = 5,
    n_features: int = 10,
    separation: float = 4.0,
    sizes: tuple[int, int] = (5, 15),
    mean_size: float | None = None,
    positive: float = 0.2,
    r: int = 1,
    seed: int = 0,
) -> MIPLDataset:
    """Draw bags of Gaussian instances: one unit normal cloud for each class and one for the negatives.

    The centre of each class lies at distance `separation` from the origin, where the negatives are, in a direction
    drawn at random; two classes are about ``sqrt(2) * separation`` apart in many dimensions.

    Parameters
    ----------
    n_bags : int, default=100
        A multiple of `n_classes`; every class gets equally many bags.
    n_classes : int, default=5
        Classes beside the negatives.
    n_features : int, default=10
        Dimensions of the Gaussians.
    separation : float, default=4.0
        0 makes all instances alike; from about 4 on, an oracle that knows the centres makes few mistakes.
    sizes, mean_size, positive, r, seed
        As in `mipl.datasets.from_instances`.

    Examples
    --------
    >>> ds = make_bags(n_bags=20, n_classes=4, n_features=3, r=2)
    >>> len(ds), ds.bags.n_features, ds.candidates.sum(axis=1).max()
    (20, 3, np.int64(3))
    """
    if n_features < 1:
        raise DataError(f"n_features={n_features}; an instance has at least one feature")
    if separation < 0:
        raise DataError(f"separation={separation}; a distance is not negative")
    plan = lay_out(n_bags, n_classes, sizes, mean_size, positive, seed)
    kind = np.where(plan.positive, np.repeat(plan.labels, np.diff(plan.offsets)), n_classes)
    rng = np.random.default_rng(seed)
    centres = np.zeros((n_classes + 1, n_features), dtype=np.float32)
    directions = rng.standard_normal((n_classes, n_features))
    centres[:-1] = separation * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    instances = rng.standard_normal((len(kind), n_features), dtype=np.float32)
    instances += centres[kind]
    return from_bags(
        Bags(instances, plan.offsets),
        plan.labels,
        r,
        seed=seed,
        classes=range(n_classes),
        instance_labels=kind,
        name="gaussians",
        description=f"Gaussian classes at distance {separation:g} from the negatives.",
    )
