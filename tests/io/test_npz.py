"""NPZ files hold plain arrays under the names of the data set's parts."""

from __future__ import annotations

import numpy as np
import pytest

import mipl
from mipl.errors import DataError


def named(names: list[str]) -> mipl.MIPLDataset:
    bags = mipl.Bags(np.eye(4, 2, dtype=np.float32), [0, 1, 4], feature_names=names)
    return mipl.MIPLDataset(bags, [{"a", "b"}, {"b"}])


def test_numpy_alone_reads_the_arrays(tmp_path):
    path = named(["width", "height"]).save(tmp_path / "x.npz")
    with np.load(path, allow_pickle=False) as file:
        assert file["feature_names"].tolist() == ["width", "height"]
        assert file["candidates"].tolist() == [[True, True], [False, True]]
        np.testing.assert_array_equal(np.diff(file["offsets"]), [1, 3])


def test_a_feature_name_that_numpy_would_shorten_is_refused(tmp_path):
    with pytest.raises(DataError, match="zero character"):
        named(["width", "height\0"]).save(tmp_path / "x.npz")
    assert list(tmp_path.iterdir()) == []
