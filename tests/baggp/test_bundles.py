"""However blocks are bundled, their sum is the same additions in the same order, and bundles take equally long."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from mipl.baggp.blocks import add_up, tree_sum
from mipl.baggp.bundles import add_pieces, cut, groups, pieces, sum_pieces
from mipl.baggp.constants import SUM_FAN_IN

lengths_of_runs = st.lists(st.integers(1, 4), min_size=1, max_size=40)


def split(values: list, lengths: list[int]) -> list[list]:
    each = iter(values)
    return [[next(each) for _ in range(n)] for n in lengths]


@given(lengths_of_runs, st.integers(0, 9), st.randoms(use_true_random=False))
def test_the_sum_of_pieces_has_the_bits_of_the_sum_by_the_tree(lengths, threads, random) -> None:
    n = sum(lengths)
    # Numbers of so different sizes that any other order of additions gives another sum.
    values = [
        (torch.tensor(random.uniform(-1, 1) * 10.0 ** random.randint(0, 15), dtype=torch.float64),) for _ in range(n)
    ]
    spans = cut([random.random() for _ in range(n)], lengths, threads)
    plan = pieces(lengths, spans)
    opens = [piece.opens for task in plan for piece in task]
    sums = []
    for (start, stop), task in zip(spans, plan, strict=True):
        sums += sum_pieces(values[start:stop], [piece.counts for piece in task])
    found = tree_sum([add_pieces(*group) for group in groups(opens, sums)])
    wanted = tree_sum([add_up(run) for run in split(values, lengths)])
    assert torch.equal(found[0], wanted[0])


@given(lengths_of_runs, st.integers(1, 9))
def test_bundles_are_consecutive_and_each_has_a_block_and_no_more_than_a_group(lengths, threads) -> None:
    spans = cut([1.0] * sum(lengths), lengths, threads)
    assert [i for start, stop in spans for i in range(start, stop)] == list(range(sum(lengths)))
    assert all(start < stop for start, stop in spans)
    assert len(spans) >= min(threads, sum(lengths))
    assert max(stop - start for start, stop in spans) <= 4 * SUM_FAN_IN


@given(st.integers(1, 60), st.integers(1, 9))
def test_what_is_not_dealt_out_in_whole_groups_is_cut_within_half_a_block_of_equal_shares(n_runs, threads) -> None:
    weights = [1.0] * (4 * n_runs - 4) + [0.15] * 4  # a last run that is short
    spans = cut(weights, [4] * n_runs, threads)
    rest = [sum(weights[start:stop]) for start, stop in spans[n_runs // SUM_FAN_IN // threads * threads :]]
    if len(rest) == threads and sum(rest) >= 2 * threads:
        assert max(rest) - sum(rest) / threads <= 1.0


def test_a_bundle_that_starts_a_group_returns_one_sum_for_all_its_whole_runs() -> None:
    first, second = pieces([2] * 10, [(0, 9), (9, 20)])
    assert [piece.counts for piece in first] == [[2, 2, 2, 2], [1]]
    assert [piece.counts for piece in second] == [[1], [2], [2], [2], [2, 2]]
