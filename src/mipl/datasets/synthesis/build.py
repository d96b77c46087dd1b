"""Labelled instances into bags, and labelled bags into bags with candidate sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mipl.bags import Bags, as_bags
from mipl.candidates import parse_candidates, parse_labels
from mipl.dataset import MIPLDataset
from mipl.datasets.synthesis.layout import add_false_positives, lay_out
from mipl.datasets.synthesis.randomness import deal
from mipl.errors import DataError

__all__ = ["from_bags", "from_instances"]


def from_instances(
    X: ArrayLike,
    y: ArrayLike,
    targets: Sequence[Any],
    reserved: Sequence[Any],
    *,
    n_bags: int,
    sizes: tuple[int, int],
    mean_size: float | None = None,
    positive: float = 0.08,
    r: int = 1,
    seed: int = 0,
    groups: ArrayLike | None = None,
    instance_shape: Sequence[int] | None = None,
    name: str = "",
    description: str = "",
) -> MIPLDataset:
    """Turn any labelled instances into a MIPL data set, as the MIPLGP paper does (section 4.1.1).

    A bag of class c holds positive instances of c only, and negative instances that come from all reserved classes
    alike. Every class gets equally many bags. An instance is used again only after all others of its kind have been
    used (see `mipl.datasets.synthesis.randomness.deal`), and never twice in one bag unless its
    class has fewer instances than twice the positives of a bag.

    Parameters
    ----------
    X : array (n, d)
        The instances; rows whose label is neither in `targets` nor in `reserved` are left out.
    y : array (n,)
        Their labels, integers or strings.
    targets : sequence of q labels
        The classes of the data set, in this order.
    reserved : sequence of labels
        Where negative instances come from.
    n_bags : int
        A multiple of q.
    sizes : (int, int)
        The smallest and the largest bag.
    mean_size : float, default=None
        Default: midway between the two.
    positive : float, default=0.08
        The share of positive instances; a bag has at least one.
    r : int, default=1
        The number of false positive labels a bag, 0 to q - 1.
    seed : int, default=0
        The same seed gives the same bags everywhere. The bags do not depend on r, and the candidates at r + 1 contain
        those at r.
    groups : int array (n,), default=None
        A group for each instance, for example its recording. A bag takes all its instances from one group, every group
        gets equally many bags of each class, and `MIPLDataset.split` then keeps groups apart: no instance is on both
        sides.
    instance_shape, name, description
        As in `Bags` and `MIPLDataset`.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.random.default_rng(0).random((90, 4)), np.repeat(["owl", "wren", "wind"], 30)
    >>> ds = from_instances(X, y, ["owl", "wren"], ["wind"], n_bags=6, sizes=(3, 7), positive=0.4)
    >>> ds.summary()["positive"], np.bincount(ds.labels)
    (40.0, array([3, 3]))
    """
    instances, labels = np.asarray(X), np.asarray(y)
    if instances.ndim != 2 or labels.shape != (len(instances),):
        raise DataError(
            f"X must be (n, d) with one label a row, got X of shape {instances.shape} and y of shape {labels.shape}"
        )
    both = set(targets) & set(reserved)
    if both:
        raise DataError(f"{sorted(both)} is both a target and a reserved class")
    pools = [
        *(_rows_of(labels, [target], "target") for target in targets),
        _rows_of(labels, reserved, "reserved class"),
    ]
    plan = lay_out(n_bags, len(targets), sizes, mean_size, positive, seed)
    bag = np.repeat(np.arange(n_bags), np.diff(plan.offsets))
    kind = np.where(plan.positive, plan.labels[bag], len(targets))
    if groups is None:
        rows, bag_groups = _fill(kind, bag, pools, seed, ""), None
    else:
        group_of_row = np.asarray(groups)
        if group_of_row.shape != labels.shape:
            raise DataError(f"groups must hold one group a row ({len(labels)}), got shape {group_of_row.shape}")
        bag_groups = _spread_evenly(plan.labels, np.unique(group_of_row))
        rows = np.empty(len(kind), dtype=np.int64)
        for group in np.unique(bag_groups):
            slots = np.flatnonzero(bag_groups[bag] == group)
            decks = [pool[group_of_row[pool] == group] for pool in pools]
            rows[slots] = _fill(kind[slots], bag[slots], decks, seed, f", group {group}")
    return from_bags(
        Bags(instances[rows], plan.offsets, instance_shape),
        [targets[c] for c in plan.labels],
        r,
        seed=seed,
        classes=targets,
        instance_labels=kind,
        name=name,
        description=description,
        groups=bag_groups,
    )


def from_bags(
    bags: Any,
    labels: Any,
    r: int = 1,
    *,
    seed: int = 0,
    classes: Sequence[Any] | None = None,
    instance_labels: NDArray[np.int64] | None = None,
    bag_ids: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    name: str = "",
    description: str = "",
) -> MIPLDataset:
    """Add r false positive labels to every bag of a multi-class MIL data set.

    Parameters
    ----------
    bags : Bags, list of (n_i, d) arrays, or 3-D array
    labels : (m,) labels
        The true label of each bag, an integer or string.
    r : int, default=1
        The number of false positive labels a bag, 0 to q - 1, drawn uniformly from the other classes.
    seed : int, default=0
        The same seed gives the same candidates everywhere; those at r + 1 contain those at r.
    classes : (q,) labels, default=None
        Default: the labels that occur, sorted.
    instance_labels, bag_ids, groups, name, description
        As in `MIPLDataset`.

    Examples
    --------
    >>> import numpy as np
    >>> ds = from_bags(np.zeros((4, 5, 2)), ["a", "b", "c", "a"], r=2)
    >>> ds.candidates.sum(axis=1), ds.labels
    (array([3, 3, 3, 3]), array([0, 1, 2, 0]))
    """
    checked = as_bags(bags)
    if classes is None:
        classes = parse_candidates(labels, n_bags=len(checked))[1].tolist()
    names = np.asarray(classes)
    index = parse_labels(labels, names)
    if (index < 0).any():
        raise DataError(f"bag {np.flatnonzero(index < 0)[0]} has no label; false positives need a true label to add to")
    return MIPLDataset(
        bags=checked,
        candidates=add_false_positives(index, len(names), r, seed),
        labels=names[index],
        classes=names,
        instance_labels=instance_labels,
        bag_ids=bag_ids,
        name=name,
        description=description,
        groups=groups,
    )


def _fill(
    kind: NDArray[np.int64], bag: NDArray[np.int64], decks: Sequence[NDArray[np.int64]], seed: int, where: str
) -> NDArray[np.int64]:
    """Give every slot (n,) a row of the deck of its kind; one deck is dealt to the bags one after the other."""
    rows = np.empty(len(kind), dtype=np.int64)
    for k in np.unique(kind):
        slots = np.flatnonzero(kind == k)
        if not len(decks[k]):
            what = "negative" if k == len(decks) - 1 else f"class {k}"
            remedy = "use fewer groups" if where else "name the reserved classes"
            raise DataError(f"no instance is {what}{where}; {remedy}")
        hand = int(np.bincount(bag[slots]).max())
        rows[slots] = deal(seed, f"instances of kind {k}{where}", decks[k], len(slots), hand)
    return rows


def _spread_evenly(labels: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the bags of each class to the groups in turn (m,)."""
    order = np.argsort(labels, kind="stable")
    counts = np.bincount(labels)
    turn = np.empty(len(labels), dtype=np.int64)
    turn[order] = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    return groups[turn % len(groups)]


def _rows_of(y: NDArray[Any], labels: Sequence[Any], what: str) -> NDArray[np.int64]:
    """The rows whose label is one of `labels`, each of which must occur."""
    for label in labels:
        if not (y == label).any():
            raise DataError(f"no instance has the label {label!r} of a {what}; the labels are {np.unique(y).tolist()}")
    return np.flatnonzero(np.isin(y, np.asarray(labels)))
