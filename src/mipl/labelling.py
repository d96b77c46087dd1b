r"""Which bags a person should label next: those whose answer is expected to tell most about the labels of all bags.

An answer about bag b resolves b itself, which is worth its entropy :math:`H(p_b)`. It also tells about other bags that
are alike: if knowing that b is, or is not, of class c moves the log odds of bag :math:`b'` with the correlation
:math:`\rho_c(b, b')`, then of the uncertainty :math:`\tau_{b'c} = p_{b'c} (1 - p_{b'c})` about class c in
:math:`b'` the share :math:`\rho_c^2` is at stake. The expected gain in nats, to second order in the correlations, is

.. math:: G(b) = H(p_b) + \gamma \sum_c \tau_{bc} \sum_{b' \ne b} \tau_{b'c}\, \rho_c(b, b')^2 .

With two classes and :math:`\gamma = 4` the second term is, to that order, the mutual information of two labels that are
equally open and correlated by :math:`\rho`.

Bags are taken one after the other, each by the gain that is left after those before it: its answer takes the direction
of b out of the similarities, :math:`K_c \leftarrow K_c - k_{cb} k_{cb}^\top / (K_{c,bb} + \sigma^2)`, so
that the next bag is not one of the same kind. No true label is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["DECIDED", "ClassSimilarity", "LabelOrder", "entropies", "order_to_label", "undecided"]

Floats = NDArray[np.float64]

#: The weight of what an answer tells about other bags.
GAMMA = 4.0
#: What an answer leaves open about the instances of its own bag, in units of a similarity of one.
NOISE = 0.25
#: Bags that are taken one after the other; those beyond follow by the gain that is left then.
PICKS = 100
#: Bags with less entropy than this, in nats, have nothing left to tell.
DECIDED = 1e-6


class ClassSimilarity(NamedTuple):
    """How alike bags are as far as one class is concerned.

    Attributes
    ----------
    bags : (k,) int, positions of the bags for which the class is open
    values : (k, k), correlations, with ones on the diagonal
    """

    bags: NDArray[np.int64]
    values: Floats


class LabelOrder(NamedTuple):
    """The order in which to label m bags.

    Attributes
    ----------
    rank : (m,) int, 0 for the bag to label first
    own : (m,), nats that the answer is worth for the bag itself
    others : (m,), nats that it is expected to be worth for other bags when its turn comes
    """

    rank: NDArray[np.int64]
    own: Floats
    others: Floats

    def select(self, bags: NDArray[np.int64]) -> LabelOrder:
        """The order of some of the bags (k,); ranks stay those among all."""
        return LabelOrder(self.rank[bags], self.own[bags], self.others[bags])


def entropies(posterior: Floats) -> Floats:
    """The entropy (m,) in nats of probabilities (m, q)."""
    entropy: Floats = -np.sum(posterior * np.log(np.where(posterior > 0, posterior, 1.0)), axis=1)
    return entropy


def undecided(posterior: Floats, most: int) -> NDArray[np.int64]:
    """The bags (k,) whose label is open, at most so many, the least certain ones, in their order."""
    entropy = entropies(posterior)
    found = np.argsort(-entropy, kind="stable")[:most]
    return np.sort(found[entropy[found] > DECIDED])


def order_to_label(posterior: Floats, similarities: Sequence[ClassSimilarity] = (), picks: int = PICKS) -> LabelOrder:
    """Order bags by what an answer about them is expected to tell.

    Parameters
    ----------
    posterior : (m, q)
        Probabilities of the labels.
    similarities : sequence of q ClassSimilarity, default=()
        How alike bags are for each class. Without them the order is by entropy.
    picks : int, default=100
        How many bags are taken one after the other.

    Examples
    --------
    Of three bags that are equally open, the last two are alike: an answer about one of these tells about both, and once
    one of them is labelled, the other has less to tell than the first bag.

    >>> alike = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    >>> found = order_to_label(np.full((3, 2), 0.5), [ClassSimilarity(np.arange(3), alike)] * 2)
    >>> found.rank.tolist(), found.others.round(2).tolist()
    ([1, 0, 2], [0.0, 0.5, 0.0])
    """
    own = entropies(posterior)
    left = own.copy()
    tau = posterior * (1 - posterior)
    alike = [ClassSimilarity(bags, np.array(values)) for bags, values in similarities]
    parts = np.zeros((len(alike), len(posterior)))
    for c, similarity in enumerate(alike):
        parts[c] = _gain(similarity, tau[:, c])
    others = parts.sum(axis=0)
    order: list[int] = []
    for _ in range(min(picks, int(np.sum(own > DECIDED))) if alike else 0):
        total = left + parts.sum(axis=0)
        total[order] = -np.inf
        b = int(np.argmax(total))
        others[b] = parts[:, b].sum()
        order.append(b)
        for c, (bags, values) in enumerate(alike):
            found = np.flatnonzero(bags == b)
            if len(found):
                j = int(found[0])
                values -= np.outer(values[:, j], values[j] / (values[j, j] + NOISE))
                tau[b, c] = 0.0
                parts[c] = _gain(alike[c], tau[:, c])
        left[b] = 0.0
    rest = left + parts.sum(axis=0)
    last = np.setdiff1d(np.arange(len(own)), order)
    others[last] = parts.sum(axis=0)[last]
    order += last[np.argsort(-rest[last], kind="stable")].tolist()
    rank = np.empty(len(own), dtype=np.int64)
    rank[order] = np.arange(len(own))
    return LabelOrder(rank, own, others)


def _gain(similarity: ClassSimilarity, tau: Floats) -> Floats:
    """What an answer tells (m,) about one class in all other bags."""
    bags, values = similarity
    gain = np.zeros(len(tau))
    of = tau[bags]
    squares = values * values
    gain[bags] = GAMMA * of * (squares @ of - np.diagonal(squares) * of)
    return gain
