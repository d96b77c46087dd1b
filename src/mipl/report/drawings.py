"""What an instance is drawn as: an image, words, or a profile of its features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mipl.plotting.instances import is_image, is_text
from mipl.report.images import Images
from mipl.report.profiles import Profiles
from mipl.report.words import Words

if TYPE_CHECKING:
    from mipl.resolution import Resolution

__all__ = ["Drawing", "drawing_of", "typical_instances"]


class Drawing(Protocol):
    """Turns instances into what the page's script draws."""

    kind: str

    def sheet(self, rows: NDArray[np.int64], label: NDArray[np.int64], second: NDArray[np.int64]) -> Any:
        """The instances `rows` (k,) as one JSON value; `label` and `second` (k,) are the classes of their bags.

        The class `second` is -1 where a bag has no second label.
        """
        ...

    def legend(self) -> dict[str, Any]:
        """What all sheets share."""
        ...


def drawing_of(resolution: Resolution, n_instances: int, budget: int) -> Drawing:
    """How the instances of this resolution are drawn.

    Parameters
    ----------
    resolution : Resolution
        The answers and their bags.
    n_instances : int
        How many instances ask to be drawn.
    budget : int
        Bytes for all of them: images become coarser before they become fewer.
    """
    bags = resolution.bags
    if is_image(bags.instance_shape):
        return Images(bags, n_instances, budget)
    typical = typical_instances(resolution)
    return Words(bags, typical) if is_text(bags) else Profiles(bags, typical)


def typical_instances(resolution: Resolution) -> NDArray[np.floating[Any]]:
    """The typical instance (q, d) of each class: the mean of those behind its label, weighted by the bags' probability.

    For a class that no bag has, for the background class, and where instances were not judged, it is the mean over all
    instances, weighted by how probable the class is for their bag.
    """
    bags = resolution.bags
    weights = bags.spread(resolution.posterior.astype(np.float32))
    typical: NDArray[np.floating[Any]] = weights.T @ bags.instances / np.maximum(weights.sum(axis=0), 1e-12)[:, None]
    if resolution.instance_probabilities is None:
        return typical
    shows = ~resolution.is_background
    behind = bags.instances[resolution.offsets[:-1] + np.where(shows, resolution.instance, 0)]
    own = np.where(resolution.classes == resolution.labels[:, None], (shows * resolution.probability)[:, None], 0)
    totals = own.sum(axis=0)
    known = totals > 0
    typical[known] = (own.T.astype(np.float32) @ behind)[known] / totals[known, None]
    return typical
