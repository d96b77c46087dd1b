"""Which blocks a task of a cluster works on, and in which pieces it returns their sum.

A task costs scheduler, client and worker some milliseconds, whatever it does, so the blocks of up to eight runs are one
*bundle*, and all bundles should take equally long. Where whole groups of runs, which the tree of
`mipl.baggp.blocks.tree_sum` adds up, cannot be dealt out equally, bundles end within a group or within a run. Sums are
still the same additions in the same order: a task adds up what opens a group or a run, and returns what goes on with
one that it does not have the start of as it is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import accumulate, islice, pairwise
from typing import NamedTuple, TypeVar

from torch import Tensor

from mipl.baggp.blocks import add_up
from mipl.baggp.constants import SUM_FAN_IN

__all__ = ["Opens", "Piece", "add_pieces", "cut", "groups", "pieces", "sum_pieces"]

T = TypeVar("T")
Sums = tuple[Tensor, ...]


class Opens(IntEnum):
    """What a piece is the start of."""

    NOTHING = 0  #: one more block of the run before it
    RUN = 1  #: of a run, or the whole of it
    GROUP = 2  #: of a group of runs: some whole runs, or the start of the first


class Piece(NamedTuple):
    """A part of a sum.

    Attributes
    ----------
    opens : Opens
    counts : blocks of each of its runs
    """

    opens: Opens
    counts: list[int]


def cut(weights: Sequence[float], lengths: Sequence[int], threads: int) -> list[tuple[int, int]]:
    """Cut the blocks of all runs into bundles, each (start, stop), for so many threads.

    Every thread gets equally many whole groups of runs; what is left is cut into one bundle per thread.

    Parameters
    ----------
    weights : sequence of float
        What each block costs.
    lengths : sequence of int
        Blocks of each run.
    threads : int
        Threads of the cluster.

    Examples
    --------
    Five runs of two blocks, of which the last is small, and then seventeen:

    >>> cut([1.0] * 8 + [0.2] * 2, [2] * 5, 2)
    [(0, 4), (4, 10)]
    >>> cut([1.0] * 34, [2] * 17, 2)
    [(0, 16), (16, 32), (32, 33), (33, 34)]
    """
    threads = max(threads, 1)
    starts = [0, *accumulate(lengths)]
    whole = len(lengths) // SUM_FAN_IN // threads * threads
    spans = [(starts[g * SUM_FAN_IN], starts[(g + 1) * SUM_FAN_IN]) for g in range(whole)]
    first = starts[whole * SUM_FAN_IN]
    left = [0.0, *accumulate(weights[first:])]
    n_bundles, n_blocks = min(threads, len(left) - 1), len(left) - 1
    start = 0
    for k in range(1, n_bundles + 1):
        goal = left[-1] * k / n_bundles
        after = bisect_right(left, goal)
        near = after - 1 if after > n_blocks or goal - left[after - 1] <= left[after] - goal else after
        # Every bundle has a block, also those that follow.
        stop = n_blocks if k == n_bundles else min(max(near, start + 1), n_blocks - (n_bundles - k))
        spans.append((first + start, first + stop))
        start = stop
    return spans


def pieces(lengths: Sequence[int], spans: Sequence[tuple[int, int]]) -> list[list[Piece]]:
    """The pieces of a sum that the task of each span (start, stop) of blocks returns, `lengths` being those of runs.

    >>> [[(p.opens.name, p.counts) for p in task] for task in pieces([2, 2, 2], [(0, 3), (3, 6)])]
    [[('GROUP', [2]), ('RUN', [1])], [('NOTHING', [1]), ('RUN', [2])]]
    """
    starts = [0, *accumulate(lengths)]
    found = []
    for start, stop in spans:
        task: list[Piece] = []
        while start < stop:
            run = bisect_right(starts, start) - 1
            end = min(stop, starts[run + 1])
            if start > starts[run]:
                task += [Piece(Opens.NOTHING, [1])] * (end - start)
            elif run % SUM_FAN_IN == 0:
                task.append(Piece(Opens.GROUP, [end - start]))
            elif end == starts[run + 1] and task and task[-1].opens is Opens.GROUP:
                task[-1].counts.append(end - start)
            else:
                task.append(Piece(Opens.RUN, [end - start]))
            start = end
        found.append(task)
    return found


def sum_pieces(values: Iterable[Sums], counts: Iterable[Sequence[int]]) -> list[Sums]:
    """The sum of the values of each piece, given the blocks of its runs."""
    each = iter(values)
    return [add_up(add_up(islice(each, n)) for n in runs) for runs in counts]


def groups(opens: Sequence[Opens], values: Sequence[T]) -> Iterator[tuple[list[Opens], list[T]]]:
    """Pieces with their values, which are in order, group by group of runs."""
    starts = [i for i, each in enumerate(opens) if each is Opens.GROUP]
    for start, stop in pairwise([*starts, len(opens)]):
        yield list(opens[start:stop]), list(values[start:stop])


def add_pieces(opens: Sequence[Opens], values: Sequence[Sums]) -> Sums:
    """The sum of a group of runs from the values of its pieces in order."""
    starts = [i for i, each in enumerate(opens) if each is not Opens.NOTHING]
    return add_up(add_up(values[start:stop]) for start, stop in pairwise([*starts, len(values)]))
