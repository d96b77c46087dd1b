"""MATLAB files: the layout in which MIPL data sets and their splits are published."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from io_support import load_or_refuse, same_folder
from scipy.io import savemat
from scipy.sparse import csc_array

import mipl
from mipl.errors import DataError
from mipl.io.arrays import read_split


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
    load_or_refuse(path)


def test_sparse_matrices_are_read_and_other_formats_are_told(tmp_path):
    cells = np.empty((2, 3), dtype=object)
    cells[0] = [csc_array(np.eye(2, 3)), np.array([[1, 3]]), np.array([[3]])]
    cells[1] = [np.ones((4, 3)), np.array([[2, 3]]), np.array([[2]])]
    savemat(tmp_path / "s.mat", {"data": cells})
    assert mipl.load(tmp_path / "s.mat").bags[0].tolist() == np.eye(2, 3).tolist()
    header = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    (tmp_path / "h.mat").write_bytes(header.ljust(600, b"\0"))
    with pytest.raises(DataError, match=r"h\.mat is a MATLAB 7\.3 \(HDF5\) file; save it again"):
        mipl.load(tmp_path / "h.mat")
