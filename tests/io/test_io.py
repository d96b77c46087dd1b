"""Files: exact round trips, other people's readers, and damage."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.io import savemat

import mipl
from mipl.bags import Bags
from mipl.dataset import MIPLDataset
from mipl.errors import DataError
from mipl.io.mat import read_split

SUFFIXES = [".parquet", ".npz", ".csv", ".mat"]
same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
name_text = st.text(
    st.characters(codec="utf-8", exclude_characters='|"', exclude_categories=("Cc", "Zl", "Zp", "Zs", "Cs")),
    min_size=1,
    max_size=6,
)


@st.composite
def datasets(draw: st.DrawFn) -> MIPLDataset:
    q = draw(st.integers(2, 5))
    classes = draw(
        st.one_of(
            st.lists(st.integers(-3, 40), min_size=q, max_size=q, unique=True),
            st.lists(name_text, min_size=q, max_size=q, unique=True),
        )
    )
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    m, n = len(sizes), sum(sizes)
    shape = draw(st.sampled_from([(1,), (3,), (2, 2)]))
    any_float32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
    flat = draw(hnp.arrays(np.float32, (n, int(np.prod(shape))), elements=any_float32))
    mask = np.array([draw(st.lists(st.booleans(), min_size=q, max_size=q).filter(any)) for _ in range(m)])
    truth = [draw(st.sampled_from([*np.flatnonzero(row).tolist(), -1])) for row in mask]
    ids = draw(
        st.one_of(
            st.none(),
            st.lists(st.integers(-(2**60), 2**60), min_size=m, max_size=m, unique=True),
            st.lists(name_text, min_size=m, max_size=m, unique=True),
        )
    )
    return MIPLDataset(
        bags=Bags(flat, np.concatenate([[0], np.cumsum(sizes)]), shape),
        candidates=mask,
        labels=[classes[c] if c >= 0 else None for c in truth] if draw(st.booleans()) else None,
        classes=classes,
        instance_labels=draw(st.one_of(st.none(), hnp.arrays(np.int64, n, elements=st.integers(-1, q)))),
        bag_ids=ids,
        name=draw(st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=5)),
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(ds=datasets())
@same_folder
def test_what_is_saved_is_what_is_loaded(tmp_path: Path, suffix: str, ds: MIPLDataset):
    back = mipl.load(ds.save(tmp_path / f"x{suffix}"))
    assert back.equals(ds)
    assert back.classes.dtype.kind == ds.classes.dtype.kind
    if suffix != ".csv":
        assert back.name == ds.name


def test_plain_pandas_and_pyarrow_read_the_parquet_file(tmp_path):
    ds = mipl.load("digits", r=2)
    path = ds.save(tmp_path / "d.parquet")
    frame = pd.read_parquet(path)
    assert list(frame.columns) == ["bag_id", "instances", "candidates", "label", "instance_labels"]
    i = 17
    np.testing.assert_array_equal(np.stack(frame["instances"][i]), ds.bags[i])
    assert frame["candidates"][i].tolist() == ds.classes[ds.candidates[i]].tolist()
    assert frame["label"].tolist() == ds.classes[ds.labels].tolist()
    table = pq.read_table(path)
    assert table.num_rows == len(ds)
    assert str(table.schema.field("instances").type.value_type).startswith("fixed_size_list<")
    # And what pandas writes, without our metadata, is a data set too.
    frame.drop(columns="instance_labels").to_parquet(tmp_path / "p.parquet")
    back = mipl.load(tmp_path / "p.parquet")
    assert back.bags.instances.tobytes() == ds.bags.instances.tobytes()
    assert np.array_equal(back.candidates, ds.candidates)


def test_a_spreadsheet_with_scattered_rows_and_blanks_is_read(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("bag_id,label,candidates,width,height\nb,,owl | wren,1,2\na,owl,owl,3,4\nb,,,5,6\n")
    ds = mipl.load(path)
    assert ds.bag_ids.tolist() == ["b", "a"]
    assert [bag.tolist() for bag in ds.bags] == [[[1, 2], [5, 6]], [[3, 4]]]
    assert ds.classes.tolist() == ["owl", "wren"]
    assert ds.labels.tolist() == [-1, 0]


def test_the_published_matlab_layout_is_read(tmp_path):
    cells = np.empty((2, 3), dtype=object)
    cells[0] = [np.ones((2, 3)), np.array([[1, 3]], dtype=np.uint8), np.array([[3]], dtype=np.uint8)]
    cells[1] = [np.zeros((4, 3)), np.array([[2.0], [3.0]]), np.array([[2.0]])]
    savemat(tmp_path / "d.mat", {"data": cells})
    ds = mipl.load(tmp_path / "d.mat")
    assert ds.candidates.tolist() == [[True, False, True], [False, True, True]]
    assert ds.labels.tolist() == [2, 1]
    assert ds.bags.sizes.tolist() == [2, 4]
    wide = np.empty((2, 4), dtype=object)
    wide[:, :3] = cells
    wide[:, 3] = [np.array([[3, 4]]), np.array([[4, 2, 4, 4]])]
    savemat(tmp_path / "w.mat", {"data": wide})
    assert mipl.load(tmp_path / "w.mat").instance_labels.tolist() == [2, 3, 3, 1, 3, 3]


def test_a_published_split_counts_from_zero(tmp_path):
    savemat(tmp_path / "index1.mat", {"trainIndex": [[3, 1]], "testIndex": [[2]]})
    train, test = read_split(tmp_path / "index1.mat")
    assert (train.tolist(), test.tolist()) == ([2, 0], [1])
    savemat(tmp_path / "bad.mat", {"trainIndex": [[3, 1]], "testIndex": [[1]]})
    with pytest.raises(DataError, match="twice"):
        read_split(tmp_path / "bad.mat")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, suffix, monkeypatch):
    ds = mipl.load("digits", r=1)
    path = ds.save(tmp_path / f"x{suffix}")
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        ds[:5].save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_truncation_is_a_clear_error_or_a_whole_data_set(tmp_path, suffix):
    path = mipl.load("digits", r=1)[:4].save(tmp_path / f"x{suffix}")
    content = path.read_bytes()
    for end in np.linspace(0, len(content) - 1, 40).astype(int):
        path.write_bytes(content[:end])
        if suffix == ".csv":
            continue_or_refuse(path)  # a CSV cut at the end of a line is a smaller CSV
        else:
            with pytest.raises(DataError):
                mipl.load(path)


def continue_or_refuse(path: Path) -> None:
    try:
        ds = mipl.load(path)
    except DataError:
        return
    assert isinstance(ds, MIPLDataset)


cell = st.one_of(
    st.sampled_from(["", "a", "a|b", "1", "-2.5", "nan", "1e999", '"', "é", "#", "x y"]), st.text(max_size=4)
)


@given(
    header=st.lists(
        st.sampled_from(["bag_id", "candidates", "label", "instance_label", "f0", "f1", ""]), min_size=0, max_size=6
    ),
    rows=st.lists(st.lists(cell, max_size=6), max_size=5),
    mark=st.sampled_from(["", "# mipl {}\n", '# mipl {"classes": ["a", 1]}\n', "# mipl [\n", "\ufeff"]),
)
@same_folder
def test_any_text_as_csv_gives_a_data_set_or_a_clear_error(tmp_path, header, rows, mark):
    path = tmp_path / "fuzz.csv"
    path.write_text(mark + "\n".join(",".join(r) for r in [header, *rows]), encoding="utf-8", errors="replace")
    continue_or_refuse(path)


@given(content=st.binary(max_size=200))
@same_folder
def test_any_bytes_as_csv_give_a_data_set_or_a_clear_error(tmp_path, content):
    path = tmp_path / "fuzz.csv"
    path.write_bytes(b"bag_id,candidates,f0\n" + content)
    continue_or_refuse(path)


def mat_cells() -> st.SearchStrategy:
    numbers = hnp.arrays(
        st.sampled_from([np.float64, np.uint8, np.int32]),
        hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3),
    )
    return st.one_of(numbers, st.text("ab", max_size=3), st.floats())


@given(data=st.data())
@same_folder
def test_any_cell_matrix_gives_a_data_set_or_a_clear_error(tmp_path, data):
    shape = data.draw(st.tuples(st.integers(0, 3), st.integers(1, 5)))
    cells = np.empty(shape, dtype=object)
    for i in np.ndindex(shape):
        cells[i] = data.draw(mat_cells())
    path = tmp_path / "fuzz.mat"
    savemat(path, {"data": cells})
    continue_or_refuse(path)


@given(data=st.data())
@same_folder
def test_any_flipped_byte_in_a_mat_file_gives_a_data_set_or_a_clear_error(tmp_path, data):
    path = tmp_path / "flip.mat"
    if not path.exists():
        mipl.load("digits", r=1)[:3].save(path)
        (tmp_path / "whole").write_bytes(path.read_bytes())
    content = bytearray((tmp_path / "whole").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content))
    continue_or_refuse(path)
