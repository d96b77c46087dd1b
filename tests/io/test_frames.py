"""A table in memory is read as the same table in a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import mipl
from mipl.checks import small_dataset
from mipl.errors import DataError


def birds() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "Unnamed: 0": [0, 1, 2, 3],
            "Recording": ["R1", "R2", "R1", "R3"],
            "Species": ["owl|wren", "wren", None, "owl:2|wren:1"],
            "Length": [1.5, 3.5, 1.75, 1.25],
            "Pitch": [2.25, 4.5, 2.5, 2.75],
            "Remark": ["", "loud", None, "x"],
        }
    )


def test_a_frame_is_read_as_its_file_is(tmp_path: Path):
    frame = birds()
    frame.to_csv(tmp_path / "birds.csv", index=False)
    of_file = mipl.load(tmp_path / "birds.csv", bag="Recording", candidates="Species")
    for table in (frame, pa.Table.from_pandas(frame)):
        assert mipl.load(table, bag="Recording", candidates="Species").equals(of_file)
    assert of_file.bags.feature_names == ("Length", "Pitch")


def test_a_data_set_comes_back_from_its_frame():
    ds = small_dataset()
    back = mipl.load(ds.to_frame())
    assert sorted(back.classes) == sorted(ds.classes)
    assert back.candidate_sets() == [sorted(names) for names in ds.candidate_sets()]
    assert back.label_names() == ds.label_names()
    assert back.bags == ds.bags
    assert back.bag_ids.tolist() == ds.bag_ids.tolist()


def test_cells_may_hold_sets_weights_and_vectors():
    frame = pd.DataFrame(
        {
            "bag_id": ["a", "b", "b", "c"],
            "candidates": [{1: 2.0, 2: 1.0}, {1, 2}, None, {2}],
            "embedding": [np.array([0.0, 1.0]), np.array([2.0, 3.0]), [4, 5], [6, 7]],
        }
    )
    ds = mipl.load(frame)
    assert ds.classes.tolist() == [1, 2]
    assert ds.candidate_weights.tolist() == [[2, 1], [0.5, 0.5], [0, 0.5]]
    assert ds.bags.instances.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    frame["candidates"] = [{"x", "y"}, {"y"}, {"y"}, frozenset({"x"})]
    assert mipl.load(frame).candidate_sets() == [["x", "y"], ["y"], ["x"]]


def test_an_image_may_be_a_cell():
    frame = pd.DataFrame({"bag_id": [1, 1, 2], "candidates": ["a|b", "a|b", "b"]})
    frame["image"] = [np.full((4, 4), float(i)) for i in range(3)]
    ds = mipl.load(frame)
    assert ds.bags.instance_shape == (4, 4)
    assert ds.bags.instances[:, 0].tolist() == [0, 1, 2]


def test_colour_images_of_either_layout_are_the_same(tmp_path: Path):
    frame = pd.DataFrame({"bag_id": [1, 1, 2], "candidates": ["a|b", "a|b", "b"]})
    images = np.random.default_rng(0).random((3, 8, 6, 3)).astype(np.float32)
    frame["image"] = list(images)
    last = mipl.load(frame)
    frame["image"] = list(np.moveaxis(images, -1, 1))
    assert last.bags.instance_shape == (8, 6, 3)
    assert mipl.load(frame).equals(last)
    frame.assign(image=[image.tolist() for image in frame["image"]]).to_parquet(tmp_path / "images.parquet")
    assert mipl.load(tmp_path / "images.parquet").equals(last)


def test_bags_may_be_the_index():
    frame = birds().set_index("Recording")
    assert mipl.load(frame, bag="Recording", candidates="Species").bag_ids.tolist() == ["R1", "R2", "R3"]


def test_options_and_errors_are_those_of_files():
    frame = birds()
    frame.loc[2, "Pitch"] = np.nan
    with pytest.raises(
        DataError, match=r"bag 'R1', instance 1, column 'Pitch': the value is missing; fill it, or pass"
    ):
        mipl.load(frame, bag="Recording", candidates="Species")
    assert mipl.load(frame, bag="Recording", candidates="Species", missing="drop").bags.sizes.tolist() == [1, 1, 1]
    with pytest.raises(DataError, match=r"the table has no column 'Recordin'; did you mean 'Recording'"):
        mipl.load(frame, bag="Recordin", candidates="Species")
    with pytest.raises(DataError, match="tables have no option 'seed'"):
        mipl.load(frame, bag="Recording", candidates="Species", seed=1)


def test_a_frame_can_be_checked():
    frame = birds()
    report = mipl.check(frame, bag="Recording", candidates="Species")
    assert report.usable
    assert any("Unnamed: 0" in remark for remark in report.remarks)
    frame["Pitch"] = np.nan
    assert not mipl.check(frame, bag="Recording", candidates="Species", features=["Length", "Pitch"]).usable


def test_frames_of_polars_are_read_as_those_of_pandas_are():
    polars = pytest.importorskip("polars")
    frame = birds()
    wanted = mipl.load(frame, bag="Recording", candidates="Species")
    assert mipl.load(polars.from_pandas(frame), bag="Recording", candidates="Species").equals(wanted)
    with pytest.raises(DataError, match=r"not a LazyFrame; pass frame\.collect\(\)"):
        mipl.load(polars.from_pandas(frame).lazy(), bag="Recording", candidates="Species")


def test_columns_of_lists_of_polars_are_bags_instances_and_candidates():
    polars = pytest.importorskip("polars")
    ds = small_dataset()
    columns = {
        "bag_id": ds.bag_ids,
        "instances": [bag.tolist() for bag in ds.bags],
        "candidates": [list(map(str, names)) for names in ds.candidate_sets()],
    }
    found = mipl.load(polars.DataFrame(columns))
    np.testing.assert_array_equal(found.bags.instances, ds.bags.instances)
    np.testing.assert_array_equal(found.bags.offsets, ds.bags.offsets)
    assert found.candidate_sets() == [sorted(map(str, names)) for names in ds.candidate_sets()]


def test_columns_and_lists_of_frames_of_polars_go_into_a_method():
    polars = pytest.importorskip("polars")
    ds = small_dataset()
    model, same = mipl.make("PL-kNN"), mipl.make("PL-kNN")
    weight = np.arange(len(ds)) + 1.0
    model.fit(
        [polars.DataFrame(bag, schema=ds.bags.feature_names) for bag in ds.bags],
        ds.candidates,
        sample_weight=polars.Series(weight),
    )
    same.fit(ds.bags, ds.candidates, sample_weight=weight)
    np.testing.assert_array_equal(model.predict_proba(ds.bags), same.predict_proba(ds.bags))
    assert model.score(ds.bags, polars.Series(ds.labels)) == same.score(ds.bags, ds.labels)


def test_a_data_set_of_hugging_face_is_read_as_it_is(tmp_path):
    datasets = pytest.importorskip("datasets", reason="needs Hugging Face's datasets")
    names = ["cat", "dog", "owl"]
    label = datasets.ClassLabel(names=names)
    features = datasets.Features(
        {
            "image": datasets.Value("string"),
            "vector": datasets.Sequence(datasets.Value("float32"), length=2),
            "tags": datasets.Sequence(label),
        }
    )
    columns = {"image": ["a", "a", "b"], "vector": [[1, 2], [3, 4], [5, 6]], "tags": [[0, 1], [0, 1], [2]]}
    data = datasets.Dataset.from_dict(columns, features=features)
    ds = mipl.load(data, bag="image", candidates="tags")
    assert ds.candidate_sets() == [["cat", "dog"], ["owl"]]
    assert ds.bags.instances.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert mipl.load(data.select([2]), bag="image", candidates="tags", unlabelled=names).bag_ids.tolist() == ["b"]
    with pytest.raises(DataError, match="choose one part of it"):
        mipl.load(datasets.DatasetDict({"train": data}), bag="image")


def test_a_table_takes_a_background_class():
    frame = pd.DataFrame({"bag_id": ["a", "b"], "candidates": ["owl|silence", "owl"], "x": [1.0, 2.0]})
    assert mipl.load(frame, background="silence").background == "silence"


@pytest.mark.parametrize("source", [3, {"a": 1}.items(), [object()]])
def test_what_is_no_data_is_refused_in_our_words(source):
    with pytest.raises(DataError, match="cannot load data from a"):
        mipl.load(source)
