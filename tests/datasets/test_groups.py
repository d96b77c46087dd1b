"""Groups: bags that share a source stay on one side of a split, through building, selection and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mipl
from mipl import DataError
from mipl.datasets import from_bags, from_instances
from mipl.datasets.synthesis.grouping import group_sources


def grouped(n_bags: int = 24, n_groups: int = 4) -> mipl.MIPLDataset:
    return from_bags(
        np.arange(n_bags * 2.0).reshape(n_bags, 2, 1), np.arange(n_bags) % 3, groups=np.arange(n_bags) % n_groups
    )


@given(n_groups=st.integers(2, 8), share=st.floats(0.1, 0.9), seed=st.integers(0, 20))
def test_a_split_never_parts_a_group_and_comes_near_the_asked_size(n_groups: int, share: float, seed: int) -> None:
    ds = grouped(24, n_groups)
    train, test = ds.split(share, seed=seed)
    assert not set(train.groups) & set(test.groups)
    assert len(train) + len(test) == len(ds)
    assert abs(len(train) - 24 * share) <= np.bincount(ds.groups).max()


def test_different_seeds_give_different_groups_to_training() -> None:
    assert len({tuple(np.unique(grouped().split(0.5, seed=seed)[0].groups)) for seed in range(20)}) > 1


@pytest.mark.parametrize(
    ("groups", "call", "message"),
    [
        ([0, 0, 1, 1], lambda ds: ds.split(0.5, stratify=True), "split by group"),
        ([3, 3, 3, 3], lambda ds: ds.split(0.5), "all bags are of one group"),
        ([0, 1, 2], len, "4 integers"),
        ([0.5, 1, 2, 3], len, "4 integers"),
    ],
)
def test_groups_that_cannot_be_used_are_clear_errors(groups: list, call: object, message: str) -> None:
    with pytest.raises(mipl.MIPLError, match=message):
        call(from_bags(np.zeros((4, 1, 1)), ["a", "b", "a", "b"], groups=groups))


@pytest.mark.parametrize("suffix", [".parquet", ".npz", ".csv", ".mat"])
def test_groups_survive_every_file_format(suffix: str, tmp_path: Path) -> None:
    ds = grouped()[[5, 1, 2, 8]]
    back = mipl.load(ds.save(tmp_path / f"grouped{suffix}"))
    assert back.groups.tolist() == [1, 1, 2, 0]
    assert back.equals(ds)


def test_a_feature_named_group_in_a_csv_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("bag_id,candidates,group,f0\n1,a|b,0.5,1\n2,b,0.5,2\n")
    with pytest.raises(DataError, match="'group' must hold one integer a bag"):
        mipl.load(tmp_path / "x.csv")


def test_a_bag_draws_from_its_own_group_only() -> None:
    y = np.tile(["a", "b", "wind", "wind", "wind"], 40)
    source = np.repeat(np.arange(4), 50)
    X = np.arange(200.0)[:, None]
    ds = from_instances(X, y, ["a", "b"], ["wind"], n_bags=16, sizes=(4, 8), positive=0.3, groups=source)
    assert np.array_equal(source[ds.bags.instances[:, 0].astype(int)], ds.groups[ds.bags.bag_of_instance])
    assert (np.bincount(ds.groups * 2 + ds.labels) == 2).all()


def test_a_group_without_a_class_is_a_clear_error() -> None:
    y = np.array(["a", "b", "wind", "b", "wind", "wind"])
    with pytest.raises(DataError, match="no instance is class 0, group 1"):
        from_instances(np.zeros((6, 1)), y, ["a", "b"], ["wind"], n_bags=8, sizes=(2, 3), groups=[0, 0, 0, 1, 1, 1])


@given(seed=st.integers(0, 50), n_groups=st.integers(2, 5))
def test_sources_stay_whole_and_rare_kinds_reach_every_group(seed: int, n_groups: int) -> None:
    rng = np.random.default_rng(seed)
    sources = np.concatenate([np.arange(60), rng.integers(60, size=600)])
    kinds = np.where(sources < 6, np.append(np.zeros(60, int), rng.integers(3, size=600)), rng.integers(1, 3, size=660))
    groups = group_sources(sources, kinds, n_groups, seed)
    assert all(len(set(groups[sources == s])) == 1 for s in range(60))
    for kind in range(3):  # 0 occurs in six sources only
        assert len(set(groups[kinds == kind])) == n_groups
    # The rarest kind is placed first, where least of it is: no two groups differ by more than one source holds.
    spread = np.bincount(groups[kinds == 0], minlength=n_groups)
    assert spread.max() - spread.min() <= np.bincount(sources[kinds == 0]).max()
