"""Bad values name their place in every format, and missing ones can be dropped or filled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from io_support import same_folder

import mipl
from mipl.errors import DataError


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "bag_id": ["a", "a", "b", "b", "c"],
            "candidates": ["x|y", "x|y", "x", "x", "y"],
            "width": [1.0, 2.0, 3.0, 4.0, 5.0],
            "height": [1.5, 2.5, 3.5, 4.5, 6.5],
        }
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.nan, "the value is missing; fill it, or pass missing='drop'"),
        (np.inf, "the value is inf; replace it"),
        (1e300, "the value is 1e\\+300, beyond the 3.4e\\+38 that float32 holds"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_a_bad_value_is_named_by_bag_column_and_line(tmp_path: Path, value, words, suffix):
    data = frame()
    data.loc[3, "height"] = value
    path = tmp_path / f"x{suffix}"
    if suffix == ".jsonl":
        rows = [
            f'{{"bag_id": "{r.bag_id}", "candidates": ["x", "y"], "width": 1, "height": {r.height}}}'
            for r in data.itertuples()
        ]
        path.write_text("\n".join(rows).replace("nan", "NaN").replace("inf", "Infinity"))
    else:
        (data.to_csv if suffix == ".csv" else data.to_parquet)(path, index=False)
    line = "line 5, " if suffix == ".csv" else ""
    with pytest.raises(DataError, match=f"{line}bag 'b', instance 1, column 'height': {words}"):
        mipl.load(path)


def test_a_text_among_numbers_is_named_and_a_column_of_text_is_left_out(tmp_path: Path):
    text = frame().to_csv(index=False).replace("4.5", "4.5 cm")
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(DataError, match=r"line 5, bag 'b', instance 1, column 'height': '4\.5 cm' is not a number"):
        mipl.load(tmp_path / "x.csv")
    assert mipl.load(tmp_path / "x.csv", missing="drop").bags.sizes.tolist() == [2, 1, 1]


@given(holes=st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["width", "height"])), min_size=1, max_size=4))
@same_folder
def test_missing_values_are_dropped_or_filled_as_pandas_would(tmp_path: Path, holes):
    data = frame()
    for row, column in holes:
        data.loc[row, column] = np.nan
    data.to_csv(tmp_path / "x.csv", index=False)
    kept = data.dropna()
    if len(kept):
        ds = mipl.load(tmp_path / "x.csv", missing="drop") if kept["candidates"].nunique() > 1 else None
        if ds is not None:
            np.testing.assert_array_equal(ds.bags.instances, kept[["width", "height"]].astype(np.float32))
            assert ds.bag_ids.tolist() == kept["bag_id"].unique().tolist()
    filled = data.fillna(data[["width", "height"]].mean())
    if filled[["width", "height"]].notna().all(axis=None):
        ds = mipl.load(tmp_path / "x.csv", missing="mean")
        np.testing.assert_allclose(ds.bags.instances, filled[["width", "height"]], rtol=1e-6)


def test_rows_of_a_bag_that_disagree_are_named(tmp_path: Path):
    (tmp_path / "x.csv").write_text("bag_id,candidates,w\na,x|y,1\nb,x,2\na,y,3\n")
    with pytest.raises(DataError, match=r"line 4: column 'candidates' is 'y', but 'x\|y' in an earlier row of bag 'a'"):
        mipl.load(tmp_path / "x.csv")


def test_a_file_without_candidates_is_refused_unless_the_classes_are_given(tmp_path: Path):
    frame().drop(columns="candidates").to_csv(tmp_path / "x.csv", index=False)
    with pytest.raises(DataError, match=r"no column 'candidates'.*only predict and explain take bags without"):
        mipl.load(tmp_path / "x.csv")
    ds = mipl.load(tmp_path / "x.csv", unlabelled=["x", "y"])
    assert ds.candidates.all()
    assert ds.bag_ids.tolist() == ["a", "b", "c"]


def test_empty_lines_of_a_spreadsheet_are_no_bags(tmp_path: Path):
    (tmp_path / "x.csv").write_text("bag_id;candidates;w;;\n1;x|y;1,5;;\n1;;2,5;;\n2;x;3;;\n;;;;\n;;;;\n")
    ds = mipl.load(tmp_path / "x.csv")
    assert ds.bag_ids.tolist() == [1, 2]
    assert ds.bags.instances.tolist() == [[1.5], [2.5], [3.0]]
    (tmp_path / "y.csv").write_text("bag_id,candidates,w\n1,x|y,1\n,,2\n")
    with pytest.raises(DataError, match="line 3 has no bag_id, but a value in the column 'w'"):
        mipl.load(tmp_path / "y.csv")
