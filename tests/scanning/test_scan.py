"""A scan is the data set that mipl.load reads, whatever the files, and its chunks are that data set in order."""

from __future__ import annotations

import pickle
import threading
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from io_support import datasets, same_folder

import mipl
from mipl.dataset import MIPLDataset
from mipl.errors import DataError, ParameterError
from mipl.io.parquet import to_table
from mipl.scanning.files import ParquetRows

few = settings(same_folder, max_examples=25)


class Drawn(NamedTuple):
    sizes: list[int]
    cuts: list[int]
    row_groups: int
    suffix: str


@st.composite
def layouts(draw: st.DrawFn) -> Drawn:
    """Bags of 1 to 5 instances, rows at which files end (some files empty), the rows of a row group, and a format."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=2, max_size=12))
    cuts = sorted(draw(st.lists(st.integers(0, len(sizes)), max_size=3)))
    return Drawn(sizes, cuts, draw(st.integers(1, 7)), draw(st.sampled_from([".parquet", ".feather"])))


def long_table(sizes: list[int]) -> pa.Table:
    rng = np.random.default_rng(len(sizes))
    n, m = sum(sizes), len(sizes)
    owner = np.repeat(np.arange(m), sizes)
    frame = {
        "bag_id": [f"b{i}" for i in owner],
        "candidates": [["x", "y", "z"][: 1 + i % 3] for i in owner],
        "label": ["x" if i % 2 else None for i in owner],
        "group": [f"g{i % 2}" for i in owner],
        "year": owner // 3 + 2000,
        "width": rng.normal(size=n),
        "height": rng.normal(size=n).astype(np.float32),
    }
    return pa.table({**frame, "label": pa.array(frame["label"], pa.string())})


def nested_table(sizes: list[int]) -> pa.Table:
    rows = long_table(sizes)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    first = rows.take(starts[:-1])
    values = np.stack([rows["width"].to_numpy(), rows["height"].to_numpy()], axis=1)
    instances = [values[a:b].tolist() for a, b in pairwise(starts.tolist())]
    group = pa.array(np.arange(len(sizes)) % 2)
    kept = first.drop_columns(["width", "height"]).set_column(3, "group", group)
    return kept.append_column("instances", pa.array(instances, pa.list_(pa.list_(pa.float64(), 2))))


def write(table: pa.Table, path: Path, row_groups: int) -> None:
    if path.suffix == ".feather":
        with path.open("wb") as file:
            pyarrow.feather.write_feather(table, file, chunksize=row_groups)
    else:
        pq.write_table(table, path, row_group_size=row_groups)


def folder_of(base: Path, table: pa.Table, rows: list[int], drawn: Drawn) -> Path:
    """Write the table in files that end at `rows`, into a fresh folder."""
    folder = base / f"in{len(list(base.iterdir()))}"
    folder.mkdir()
    edges = [0, *rows, table.num_rows]
    for i, (a, b) in enumerate(pairwise(edges)):
        write(table.slice(a, b - a), folder / f"part-{i:02}{drawn.suffix}", drawn.row_groups)
    return folder


def filled(folder: Path) -> list[Path]:
    """The files with rows, as mipl.load refuses empty ones."""
    read = {".parquet": pq.read_table, ".feather": pyarrow.feather.read_table}
    return [path for path in sorted(folder.iterdir()) if read[path.suffix](path).num_rows]


def joined(parts: list[MIPLDataset]) -> MIPLDataset:
    """Chunks as one data set, put together here by hand."""
    first = parts[0]

    def stacked(name: str) -> object:
        values = [getattr(part, name) for part in parts]
        return None if any(value is None for value in values) else np.concatenate(values)

    known = any(part.labels is not None for part in parts)
    labels = [name for part in parts for name in part.label_names() or [None] * len(part)]
    return MIPLDataset(
        mipl.Bags.concatenate([part.bags for part in parts]),
        stacked("candidates"),
        labels=labels if known else None,
        classes=first.classes,
        instance_labels=stacked("instance_labels"),
        bag_ids=stacked("bag_ids"),
        groups=stacked("groups"),
        candidate_weights=stacked("candidate_weights"),
        background=first.background,
    )


@given(drawn=layouts(), most=st.integers(1, 20), nested=st.booleans())
@few
def test_scan_and_its_chunks_and_blocks_are_what_load_reads(tmp_path: Path, drawn: Drawn, most: int, nested: bool):
    table = nested_table(drawn.sizes) if nested else long_table(drawn.sizes)
    starts = np.concatenate([[0], np.cumsum(drawn.sizes)])
    rows = drawn.cuts if nested else starts[drawn.cuts].tolist()
    folder = folder_of(tmp_path, table, rows, drawn)
    # In a file with one row per instance, year is a number and would be a feature.
    given = {"ignore": "year"}
    write(table, tmp_path / f"whole{drawn.suffix}", 100)
    whole = mipl.load(tmp_path / f"whole{drawn.suffix}", **given)
    scan = mipl.scan(folder, **given)
    assert scan.to_dataset().equals(whole)
    assert (len(scan), scan.n_instances, scan.classes.tolist()) == (
        len(whole),
        whole.bags.n_instances,
        whole.classes.tolist(),
    )
    assert (scan.bag_ids.tolist(), scan.feature_names) == (whole.bag_ids.tolist(), whole.bags.feature_names)

    chunks = list(scan.chunks(max_instances=most))
    assert joined(chunks).equals(whole)
    for chunk, after in zip(chunks, [*chunks[1:], None], strict=True):
        assert chunk.bags.n_instances <= most or len(chunk) == 1
        assert after is None or chunk.bags.n_instances + after.bags.sizes[0] > most  # and no smaller than need be
    assert mipl.Bags.concatenate(list(scan.bag_chunks(max_instances=most))) == whole.bags

    blocks = scan.blocks(most)
    assert [(block.start, block.stop) for block in blocks] == [
        (a, b) for a, b in zip([0, *[x.stop for x in blocks[:-1]]], [x.stop for x in blocks], strict=True)
    ]
    last_first = [pickle.loads(pickle.dumps(block)).read() for block in blocks[::-1]]
    assert joined(last_first[::-1]).equals(whole)
    assert [len(part) for part in last_first[::-1]] == [block.n_bags for block in blocks]
    known = scan.supervision()
    np.testing.assert_array_equal(known.candidates, whole.candidates)
    np.testing.assert_array_equal(known.groups, whole.groups)


@given(dataset=datasets(more=True), cut=st.integers(0, 5), most=st.integers(1, 9), rows=st.integers(1, 4))
@few
def test_files_that_mipl_wrote_are_scanned_as_they_are_loaded(tmp_path: Path, dataset, cut, most, rows):
    folder = tmp_path / f"in{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    cut = min(cut, len(dataset) - 1)
    for i, part in enumerate([dataset[:cut], dataset[cut:]] if cut else [dataset]):
        pq.write_table(to_table(part), folder / f"{i}.parquet", row_group_size=rows)
    scan = mipl.scan(folder)
    assert scan.to_dataset().equals(mipl.load(folder))
    assert joined(list(scan.chunks(max_instances=most))).equals(mipl.load(folder))


@given(drawn=layouts(), cuts=st.lists(st.integers(0, 60), max_size=4))
@few
def test_a_bag_that_goes_on_in_the_next_row_group_or_file_is_one_bag(tmp_path: Path, drawn: Drawn, cuts: list[int]):
    table = long_table(drawn.sizes)
    folder = folder_of(tmp_path, table, sorted(min(c, table.num_rows) for c in cuts), drawn)
    write(table, tmp_path / f"whole{drawn.suffix}", 100)
    whole = mipl.load(tmp_path / f"whole{drawn.suffix}", ignore="year")
    scan = mipl.scan(folder, ignore="year")
    assert scan.to_dataset().equals(whole)
    assert joined(list(scan.chunks(max_instances=4))).equals(whole)
    assert joined([block.read() for block in scan.blocks(4)]).equals(whole)
    chosen = scan.sample(3)
    position = {name: i for i, name in enumerate(whole.bag_ids.tolist())}
    assert chosen.equals(whole[[position[name] for name in chosen.bag_ids.tolist()]])


@given(drawn=layouts(), n=st.integers(1, 14), seed=st.integers(0, 9), order=st.randoms(use_true_random=False))
@few
def test_sample_and_split_depend_on_ids_and_seed_alone(tmp_path: Path, drawn: Drawn, n, seed, order):
    table = nested_table(drawn.sizes)
    shuffled = list(range(table.num_rows))
    order.shuffle(shuffled)
    one = mipl.scan(folder_of(tmp_path, table, drawn.cuts, drawn))
    other = mipl.scan(folder_of(tmp_path, table.take(shuffled), [], drawn))
    assert one.sample(n, seed).equals(other.sample(n, seed))
    assert len(one.sample(n, seed)) == min(n, len(drawn.sizes))
    assert one.sample(n, seed).bag_ids.tolist() == one.sample(len(drawn.sizes), seed).bag_ids.tolist()[:n]


def many(tmp_path: Path, m: int = 400, grouped: bool = False) -> Path:
    table = nested_table([1 + i % 3 for i in range(m)])
    table = table.set_column(3, "group", pa.array(np.arange(m) // 4)) if grouped else table.drop_columns("group")
    pq.write_table(table.slice(0, m // 2), tmp_path / "1.parquet", row_group_size=50)
    pq.write_table(table.slice(m // 2), tmp_path / "2.parquet", row_group_size=70)
    return tmp_path


def test_the_two_sides_of_a_split_are_all_bags_and_stay_when_files_change_their_order(tmp_path: Path):
    folder = many(tmp_path)
    train, test = mipl.scan(folder).split(0.7, seed=3)
    assert sorted([*train.bag_ids, *test.bag_ids]) == sorted(mipl.scan(folder).bag_ids)
    assert abs(len(train) - 280) < 4 * np.sqrt(400 * 0.7 * 0.3)
    turned, _ = mipl.scan([folder / "2.parquet", folder / "1.parquet"]).split(0.7, seed=3)
    assert set(turned.bag_ids) == set(train.bag_ids)
    assert set(mipl.scan(folder).split(0.7, seed=4)[0].bag_ids) != set(train.bag_ids)
    assert train.n_instances == train.to_dataset().bags.n_instances
    first, second = train.split(0.5, seed=3)  # a split of a split is a new draw
    assert len(first) + len(second) == len(train)
    assert abs(len(first) - len(train) / 2) < 4 * np.sqrt(len(train)) / 2
    assert joined([block.read() for block in train.blocks(50)]).equals(train.to_dataset())
    assert [block.n_bags for block in train.blocks(50)] == [len(block.read()) for block in train.blocks(50)]


def test_bags_of_one_group_lie_on_one_side(tmp_path: Path):
    train, test = mipl.scan(many(tmp_path, grouped=True)).split(0.5)
    left, right = set(train.to_dataset().groups.tolist()), set(test.to_dataset().groups.tolist())
    assert len(left | right) == 100
    assert not left & right


def test_a_sample_is_uniform(tmp_path: Path):
    scan = mipl.scan(many(tmp_path, 200))
    counts = pd.Series([name for seed in range(60) for name in scan.sample(50, seed).bag_ids.tolist()]).value_counts()
    # 60 draws with probability 1/4 each: 15 on average with a standard deviation of 3.35.
    assert (len(counts), counts.mean()) == (200, 15)
    assert 2.5 < counts.std() < 4.2


def test_conditions_on_columns_of_bags_keep_what_pandas_keeps(tmp_path: Path):
    scan = mipl.scan(many(tmp_path))
    frame = pd.read_parquet(tmp_path)
    found = scan.filter(pc.field("year") > 2050).filter(pc.field("label") == "x")
    wanted = frame[(frame.year > 2050) & (frame.label == "x")]
    assert found.bag_ids.tolist() == wanted.bag_id.tolist()
    assert found.to_dataset().bag_ids.tolist() == wanted.bag_id.tolist()
    assert found.classes.tolist() == ["x", "y", "z"]
    with pytest.raises(DataError, match=r"cannot be applied .*'bag_id', 'candidates'"):
        len(scan.filter(pc.field("month") > 3))
    nothing = scan.filter(pc.field("year") > 9999)
    assert (len(nothing), list(nothing.chunks()), nothing.blocks(5)) == (0, [], [])
    for read in (nothing.to_dataset, nothing.supervision, lambda: nothing.sample(2)):
        with pytest.raises(DataError, match="no bags"):
            read()
    with pytest.raises(ParameterError, match="pyarrow expression"):
        scan.filter(lambda chunk: True)


def test_row_groups_that_a_filter_rules_out_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    scan = mipl.scan(many(tmp_path)).filter(pc.field("year") == 2000)
    read = []
    batches = ParquetRows._batches
    monkeypatch.setattr(
        ParquetRows, "_batches", lambda self, group, *rest: read.append(group) or batches(self, group, *rest)
    )
    assert len(scan) == 3
    assert read == [0]


def test_a_condition_that_cuts_through_a_bag_is_refused(tmp_path: Path):
    table = long_table([3, 2]).append_column("syllable", pa.array([0, 1, 2, 0, 1]))
    pq.write_table(table, tmp_path / "x.parquet")
    scan = mipl.scan(tmp_path / "x.parquet", ignore=["year", "syllable"])
    with pytest.raises(DataError, match="some rows of bag 'b0' and not for others"):
        len(scan.filter(pc.field("syllable") > 0))
    assert scan.filter(pc.field("year") == 2000).bag_ids.tolist() == ["b0", "b1"]


@pytest.mark.parametrize("nested", [True, False])
def test_selected_features_are_those_of_the_loaded_bags(tmp_path: Path, nested: bool):
    ds = MIPLDataset(
        mipl.Bags(np.arange(12.0).reshape(4, 3), [0, 1, 4], feature_names=["a", "b", "c"]), [["x"], ["x", "y"]]
    )
    if nested:
        ds.save(tmp_path / "x.parquet")
    else:
        ds.save(tmp_path / "x.csv")
        pq.write_table(pa.Table.from_pandas(pd.read_csv(tmp_path / "x.csv")), tmp_path / "x.parquet")
    scan = mipl.scan(tmp_path / "x.parquet").select(["c", "a"])
    assert scan.to_dataset().bags == ds.bags.select_features(["c", "a"])
    assert next(scan.bag_chunks()).feature_names == scan.feature_names == ("c", "a")
    assert scan.select("a").n_features == 1
    with pytest.raises(DataError, match="no column 'd'"):
        scan.select("d")


def test_features_are_matched_by_name_in_every_file(tmp_path: Path):
    table = long_table([2, 2]).drop_columns(["year", "group"])
    pq.write_table(table.slice(0, 2), tmp_path / "1.parquet")
    pq.write_table(table.slice(2).select(table.column_names[::-1]), tmp_path / "2.parquet")
    parts = list(mipl.scan(tmp_path).chunks(max_instances=2))
    assert [part.bags.feature_names for part in parts] == [("width", "height")] * 2
    assert joined(parts).equals(mipl.load(tmp_path))
    pq.write_table(table.slice(2).rename_columns({"width": "breadth"}), tmp_path / "2.parquet")
    with pytest.raises(DataError, match=r"2.parquet has no column 'width'"):
        list(mipl.scan(tmp_path).chunks())


def test_partitions_are_columns_for_filters_and_roles(tmp_path: Path):
    table = nested_table([1, 2, 1, 3, 2, 2]).drop_columns("label").append_column("site", pa.array(["a", "b"] * 3))
    pa.dataset.write_dataset(
        table, tmp_path / "d", format="parquet", partitioning=["year", "site"], partitioning_flavor="hive"
    )
    found = mipl.scan(tmp_path / "d")
    assert found.to_dataset().equals(mipl.load(tmp_path / "d"))
    by_dataset = mipl.scan(pa.dataset.dataset(tmp_path / "d", partitioning="hive"))
    for scan in (found, by_dataset):
        kept = scan.filter((pc.field("site") == "b") & (pc.field("year") == 2001))
        assert sorted(kept.bag_ids) == ["b3", "b5"]
    with pytest.raises(DataError, match="filter the scan"):
        mipl.scan(pa.dataset.dataset(tmp_path / "d", partitioning="hive").filter(pc.field("year") > 0))
    by_folder = mipl.scan(tmp_path / "d", candidates="site").to_dataset()
    assert by_folder.candidate_sets() == [["a"] if int(name[1:]) % 2 == 0 else ["b"] for name in by_folder.bag_ids]


def test_a_bag_that_comes_again_is_named_with_the_line_that_sorts(tmp_path: Path):
    table = long_table([2, 2, 2])
    pq.write_table(table.take([0, 2, 3, 1]), tmp_path / "1.parquet")
    pq.write_table(table.slice(4), tmp_path / "2.parquet")
    match = r"'b0' comes again later in .*1.parquet; .*DuckDB: COPY .* ORDER BY bag_id.*pyarrow: .*sort_by\('bag_id'\)"
    with pytest.raises(DataError, match=match):
        len(mipl.scan(tmp_path))
    pq.write_table(table.slice(0, 4), tmp_path / "1.parquet")
    pq.write_table(table.take([4, 5, 1]), tmp_path / "2.parquet")
    with pytest.raises(DataError, match=r"'b0' of .*1.parquet comes again in .*2.parquet"):
        next(mipl.scan(tmp_path).chunks())
    nested = nested_table([1, 1])
    pq.write_table(nested, tmp_path / "1.parquet")
    pq.write_table(nested, tmp_path / "2.parquet")
    with pytest.raises(DataError, match=r"'b0' of .* comes again in .*; with one row per bag, ids must be unique"):
        len(mipl.scan(tmp_path))


def test_errors_name_file_bag_and_column(tmp_path: Path):
    table = long_table([2, 2]).drop_columns(["year"])
    bad = table.slice(2).set_column(5, "height", pa.array([1.0, None], pa.float32()))
    pq.write_table(table.slice(0, 2), tmp_path / "1.parquet")
    pq.write_table(bad, tmp_path / "2.parquet")
    with pytest.raises(DataError, match=r"2.parquet: bag 'b1', instance 1, column 'height': the value is missing"):
        list(mipl.scan(tmp_path).chunks())
    assert mipl.scan(tmp_path, missing="drop").to_dataset().bags.sizes.tolist() == [2, 1]
    with pytest.raises(DataError, match="cannot be had in a scan"):
        mipl.scan(tmp_path, missing="mean")
    (tmp_path / "x.csv").write_text("bag_id,candidates,w\na,x,1\n")
    with pytest.raises(DataError, match=r"x.csv: a scan reads .parquet.*mipl.load\(.*\).save"):
        mipl.scan(tmp_path / "x.csv")
    (tmp_path / "y.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(DataError, match=r"y.parquet is damaged or not a Parquet file"):
        mipl.scan(tmp_path / "y.parquet")
    pq.write_table(table.slice(0, 0), tmp_path / "y.parquet")
    with pytest.raises(DataError, match="the data set is empty"):
        mipl.scan(tmp_path / "y.parquet")


def test_a_file_that_has_changed_is_an_error(tmp_path: Path):
    folder = many(tmp_path)
    scan = mipl.scan(folder)
    block = scan.blocks(100)[-1]
    copied = pickle.loads(pickle.dumps(scan))
    pq.write_table(nested_table([1, 2]), folder / "2.parquet")
    for read in (lambda: list(scan.chunks()), block.read, lambda: len(copied)):
        with pytest.raises(DataError, match=r"2.parquet has changed since the scan was made"):
            read()


def test_a_scan_pickles_small_and_reads_the_same(tmp_path: Path):
    pq.write_table(nested_table([1]), tmp_path / "x.parquet")
    (tmp_path / "in").mkdir()
    for i in range(1000):
        (tmp_path / "in" / f"part-{i:04}.parquet").write_bytes((tmp_path / "x.parquet").read_bytes())
    large = mipl.scan(tmp_path / "in").filter(pc.field("year") < 2020).split(0.5)[0]
    packed = pickle.dumps(large)
    assert len(packed) < 10_000
    assert pickle.loads(packed).files == large.files

    (tmp_path / "few").mkdir()
    half = mipl.scan(many(tmp_path / "few")).filter(pc.field("year") > 2010).split(0.5)[0]
    assert pickle.loads(pickle.dumps(half)).to_dataset().equals(half.to_dataset())
    assert len(pickle.dumps(half.blocks(30)[0])) < 5_000


def test_two_threads_read_one_scan(tmp_path: Path):
    scan = mipl.scan(many(tmp_path))
    whole, found = mipl.load(tmp_path), []

    def read() -> None:
        found.append(joined(list(scan.chunks(max_instances=37))))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.equals(whole) for each in found] == [True] * 4


def test_weights_in_one_chunk_are_weights_in_all(tmp_path: Path):
    table = long_table([1, 1, 1]).drop_columns(["year", "candidates"])
    pq.write_table(table.append_column("candidates", pa.array(["x|y", "y", "x:3|y:1"])), tmp_path / "x.parquet")
    parts = list(mipl.scan(tmp_path).chunks(max_instances=1))
    assert joined(parts).equals(mipl.load(tmp_path / "x.parquet"))
    assert parts[0].candidate_weights.tolist() == [[0.5, 0.5]]


def test_bags_without_candidates_are_read_for_predictions(tmp_path: Path):
    table = long_table([2, 1, 3]).drop_columns(["year", "candidates"])
    pq.write_table(table, tmp_path / "x.parquet")
    scan = mipl.scan(tmp_path)
    assert [len(bags) for bags in scan.bag_chunks(max_instances=3)] == [2, 1]
    assert [len(block.read_bags()) for block in scan.blocks(3)] == [2, 1]
    with pytest.raises(DataError, match="no column 'candidates'"):
        next(scan.chunks())
    known = mipl.scan(tmp_path, unlabelled=["w", "x"])
    assert known.to_dataset().equals(mipl.load(tmp_path, unlabelled=["w", "x"]))


def test_construction_reads_no_features_beyond_the_first_rows(tmp_path: Path):
    """Damage behind the first rows is not noticed until the features are read."""
    ds = MIPLDataset(
        mipl.Bags(np.random.default_rng(0).random((4000, 50)), np.arange(4001)), [["x"], ["x", "y"]] * 2000
    )
    path = tmp_path / "x.parquet"
    pq.write_table(to_table(ds), path, row_group_size=1000, compression="zstd")
    content = bytearray(path.read_bytes())
    column = pq.ParquetFile(path).metadata.row_group(3).column(1)
    start = column.data_page_offset + 100
    content[start : start + 2000] = bytes(2000)
    path.write_bytes(content)
    scan = mipl.scan(path)
    assert (len(scan), scan.n_instances, scan.classes.tolist()) == (4000, 4000, ["x", "y"])
    assert len(scan.supervision()) == 4000
    with pytest.raises(DataError, match="damaged"):
        list(scan.chunks())


def test_the_sizes_are_shown_as_far_as_footers_tell_them(tmp_path: Path):
    folder = many(tmp_path)
    assert repr(mipl.scan(folder)) == "Scan(2 files, 400 bags, 799 instances, 2)"
    train, _ = mipl.scan(folder).split()
    assert repr(train) == "Scan(2 files, selected, 2)"
    m = len(train)
    assert repr(train) == f"Scan(2 files, {m} bags, selected, 2)"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda scan: scan.chunks(max_bytes=1, max_instances=1),
        lambda scan: scan.chunks(max_instances=0),
        lambda scan: scan.blocks(0.5),
        lambda scan: scan.sample(0),
        lambda scan: scan.split(1.0),
        lambda scan: scan.split(seed=-1),
    ],
)
def test_arguments_that_make_no_sense_are_refused(tmp_path: Path, wrong):
    scan = mipl.scan(many(tmp_path, 8))
    with pytest.raises(ParameterError):
        wrong(scan)
