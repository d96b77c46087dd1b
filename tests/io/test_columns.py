"""Columns by name: what the user says, other spellings, near misses, and columns that are no features."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from io_support import same_folder

import mipl
from mipl.errors import DataError, ParameterError
from mipl.io.columns import non_feature
from mipl.io.options import Columns


def frame(m: int = 6) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "Recording": np.repeat([f"r{i}" for i in range(m)], 3),
            "Species": np.repeat(["owl|wren", "owl", "wren"] * (m // 3), 3),
            "syllable": [f"s{k}" for k in range(3 * m)],
            "width": rng.normal(size=3 * m),
            "height": rng.normal(size=3 * m),
            "comment": "loud",
        }
    )


MAPPING = {"bag": "Recording", "candidates": "Species"}


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".feather", ".jsonl", ".xlsx"])
def test_the_same_mapping_reads_every_format_that_pandas_writes(tmp_path: Path, suffix: str):
    path = tmp_path / f"birds{suffix}"
    data = frame()
    if suffix == ".xlsx":
        pytest.importorskip("openpyxl", reason="Excel files need openpyxl")
    {
        ".csv": lambda: data.to_csv(path),
        ".tsv": lambda: data.to_csv(path, sep="\t", index=False),
        ".parquet": lambda: data.to_parquet(path),
        ".feather": lambda: data.to_feather(path),
        ".jsonl": lambda: data.to_json(path, orient="records", lines=True, double_precision=15),
        ".xlsx": lambda: data.to_excel(path),
    }[suffix]()
    ds = mipl.load(path, **MAPPING)
    assert ds.bags.feature_names == ("width", "height")
    np.testing.assert_allclose(ds.bags.instances, data[["width", "height"]], rtol=1e-6)
    assert ds.bag_ids.tolist() == data["Recording"].unique().tolist()
    assert ds.candidate_sets()[:2] == [["owl", "wren"], ["owl"]]


def test_a_near_miss_is_answered_with_the_right_name(tmp_path: Path):
    frame().to_csv(tmp_path / "x.csv", index=False)
    with pytest.raises(DataError, match=r"no column 'recordings'; did you mean 'Recording'\?"):
        mipl.load(tmp_path / "x.csv", bag="recordings", candidates="Species")
    with pytest.raises(
        DataError, match=r"no column 'bag_id' and no column 'candidates'.*--bag 'Recording' --candidates 'Species'"
    ):
        mipl.load(tmp_path / "x.csv")
    with pytest.raises(DataError, match=r"did you mean 'width'\?"):
        mipl.load(tmp_path / "x.csv", **MAPPING, features=["widht"])


@pytest.mark.parametrize("name", ["Bag ID", "bagID", "bag", "BAG_ID"])
def test_other_spellings_of_the_usual_names_are_understood(tmp_path: Path, name: str):
    data = frame().rename(columns={"Recording": name, "Species": "Candidates"})
    data.to_csv(tmp_path / "x.csv", index=False)
    assert mipl.load(tmp_path / "x.csv").bag_ids[0] == "r0"


def test_a_remark_says_what_was_taken_and_what_was_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    data = frame()
    data["speaker_id"] = 3
    data.to_csv(tmp_path / "x.csv")
    with caplog.at_level(logging.INFO, logger="mipl"):
        mipl.load(tmp_path / "x.csv", **MAPPING, label=None)
    told = caplog.messages[0]
    assert "bags by 'Recording'; candidates 'Species'; 2 features 'width', 'height'" in told
    for words in ("'' (a running index)", "'speaker_id' (an id by its name)", "'comment' (text)"):
        assert words in told


def test_features_and_ignored_columns_are_names_or_patterns_in_the_users_order(tmp_path: Path):
    data = frame()
    data["mfcc_1"], data["mfcc_2"], data["speaker_id"] = 1.0, np.arange(18) * 2.0, 5.0
    data.to_csv(tmp_path / "x.csv", index=False)

    def names(**options: object) -> tuple[str, ...]:
        return mipl.load(tmp_path / "x.csv", **MAPPING, **options).bags.feature_names

    assert names(features=["height", "mfcc_*"]) == ("height", "mfcc_1", "mfcc_2")
    assert names(features="width, speaker_id") == ("width", "speaker_id")
    assert names(ignore="mfcc_?") == ("width", "height")


def test_an_instance_keeps_the_name_that_the_user_gave_it(tmp_path: Path):
    frame().to_parquet(tmp_path / "x.parquet")
    from mipl.loading import load_with_ids

    loaded = load_with_ids(tmp_path / "x.parquet", Columns(**MAPPING, instance_id="syllable"))
    assert loaded.instance_ids.tolist() == frame()["syllable"].tolist()


@given(n=st.integers(2, 30), start=st.integers(0, 1), name=st.sampled_from(["", "Unnamed: 0", "index", "id", "row"]))
def test_a_running_number_under_an_index_like_name_is_no_feature(n: int, start: int, name: str):
    assert non_feature(name, np.arange(start, start + n, dtype=float)) is not None


@given(values=st.lists(st.floats(-5, 5), min_size=10, max_size=30))
def test_ordinary_numbers_under_an_ordinary_name_are_a_feature(values: list[float]):
    column = np.array([0.5, *values])
    assert non_feature("width", column) is None


@pytest.mark.parametrize(
    "options", [{"missing": "zero"}, {"decimal": ";"}, {"sep": "ab"}, {"sep": ""}, {"candidates_sep": ""}]
)
def test_an_option_that_means_nothing_is_refused(options: dict[str, str]):
    with pytest.raises(ParameterError, match=next(iter(options))):
        Columns(**options)


def test_options_of_columns_do_not_apply_to_arrays_and_names(tmp_path: Path):
    path = mipl.load("digits").save(tmp_path / "x.npz")
    with pytest.raises(DataError, match="do not apply"):
        mipl.load(path, bag="b")
    with pytest.raises(DataError, match="for files"):
        mipl.load("digits", bag="b")
    with pytest.raises(DataError, match="files have no option 'r'"):
        mipl.load(tmp_path / "x.csv", r=1)


@given(
    sep=st.sampled_from([",", ";", "\t"]),
    decimal=st.sampled_from([".", ","]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "latin-1", "utf-16"]),
    values=st.lists(st.floats(-1e6, 1e6, width=32), min_size=2, max_size=12),
)
@same_folder
def test_separator_decimal_mark_and_encoding_are_detected(tmp_path: Path, sep, decimal, encoding, values):
    data = pd.DataFrame({"bag_id": "é", "candidates": "ä|ö", "Länge": [1.5, *values], "n": 2.25})
    data.to_csv(tmp_path / "x.csv", sep=sep, decimal=decimal, encoding=encoding, index=False)
    ds = mipl.load(tmp_path / "x.csv")
    assert ds.bags.feature_names == ("Länge", "n")
    assert ds.bag_ids.tolist() == ["é"]
    assert ds.classes.tolist() == ["ä", "ö"]
    np.testing.assert_array_equal(ds.bags.instances[:, 0], np.array([1.5, *values], dtype=np.float32))


def test_every_column_that_is_not_found_gets_its_nearest_name(tmp_path: Path):
    path = tmp_path / "x.csv"
    path.write_text("Recording,Canditates,width\na,owl|wren,1.5\nb,owl,2.5\n")
    with pytest.raises(DataError, match=r"did you mean 'Canditates'\? .*--bag NAME --candidates 'Canditates'"):
        mipl.load(path)


def test_the_remark_says_how_many_features_are_in_lists(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    lists = pd.DataFrame({"image": ["a", "a", "b"], "candidates": ["x|y", "x|y", "y"], "embedding": [[1.0] * 5] * 3})
    lists.to_parquet(tmp_path / "x.parquet")
    with caplog.at_level(logging.INFO, "mipl"):
        mipl.load(tmp_path / "x.parquet", bag="image")
    assert "5 features in the lists 'embedding'" in caplog.text


def test_a_title_above_the_names_of_the_columns_is_told(tmp_path: Path):
    path = tmp_path / "x.csv"
    path.write_text("My birds of 2024,,\nbag_id,candidates,width\na,owl|wren,1.5\nb,owl,2.5\n")
    with pytest.raises(DataError, match="remove a title above them"):
        mipl.load(path)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_ignored_column_is_no_feature_even_where_a_pattern_of_features_has_it(tmp_path: Path, suffix: str):
    path = tmp_path / f"x{suffix}"
    data = pd.DataFrame({"bag_id": [1, 1, 2], "candidates": ["a|b", "a|b", "b"], "m1": [1.5, 2, 3], "m2": [4.5, 5, 6]})
    data.to_csv(path, index=False) if suffix == ".csv" else data.to_parquet(path)
    assert mipl.load(path, features="m*", ignore="m1").bags.feature_names == ("m2",)
    if suffix == ".parquet":
        assert mipl.scan(path, features="m*", ignore="m1").to_dataset().bags.feature_names == ("m2",)
