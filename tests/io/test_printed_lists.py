"""Lists that pandas printed into a table of text are read as lists."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mipl
from mipl.errors import DataError

VECTORS = np.random.default_rng(0).normal(size=(4, 3)).round(4)


@pytest.mark.parametrize("printed", [list, np.array], ids=["python", "numpy"])
def test_an_embedding_per_row_is_read(tmp_path: Path, printed):
    frame = pd.DataFrame(
        {
            "bag_id": ["a", "a", "b", "b"],
            "candidates": ["x|y", "x|y", "y", "y"],
            "vector": [printed(v) for v in VECTORS],
        }
    )
    frame["vector"] = [printed(v.tolist()) for v in VECTORS]
    frame.to_csv(tmp_path / "x.csv", index=False)
    ds = mipl.load(tmp_path / "x.csv")
    np.testing.assert_allclose(ds.bags.instances, VECTORS, rtol=1e-6)
    assert ds.bags.sizes.tolist() == [2, 2]


def test_a_bag_per_row_is_read(tmp_path: Path):
    frame = pd.DataFrame({"bag_id": ["a", "b"], "candidates": ["x|y", "y"]})
    frame["instances"] = [VECTORS[:3].tolist(), VECTORS[3:].tolist()]
    frame.to_csv(tmp_path / "x.csv", index=False)
    ds = mipl.load(tmp_path / "x.csv")
    np.testing.assert_allclose(ds.bags.instances, VECTORS, rtol=1e-6)
    assert ds.bags.sizes.tolist() == [3, 1]


def test_numbers_of_candidates_that_numpy_printed_are_read_with_their_labels(tmp_path: Path):
    frame = pd.DataFrame({"bag_id": ["a", "b"], "label": [0, 2], "x": [1.0, 2.0]})
    frame["candidates"] = [np.array([0, 2]), np.array([1, 2])]
    frame.to_csv(tmp_path / "x.csv", index=False)
    ds = mipl.load(tmp_path / "x.csv")
    assert ds.candidate_sets() == [[0, 2], [1, 2]]
    assert ds.label_names() == [0, 2]


def test_lists_that_were_shortened_are_refused(tmp_path: Path):
    (tmp_path / "x.csv").write_text("bag_id,candidates,v\na,x|y,[1. 2. ... 3.]\nb,y,[1. 2. ... 3.]\n")
    with pytest.raises(DataError, match="column 'v' were shortened"):
        mipl.load(tmp_path / "x.csv")
