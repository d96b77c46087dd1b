"""Candidates apart from the instances: a table per bag, answers of a crowd, exports of Label Studio."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mipl
from mipl.errors import DataError
from mipl.io.side_table import Answer, votes_of


@pytest.fixture
def features(tmp_path: Path) -> Path:
    """Two instances each of the bags R1, R2, R3, without candidates."""
    path = tmp_path / "features.parquet"
    bags = np.repeat(["R1", "R2", "R3"], 2)
    pq.write_table(pa.table({"recording": bags, "pitch": np.arange(6.0), "length": np.arange(6.0)[::-1]}), path)
    return path


def task(number: int, bag: str, *answers: tuple[int, list[str]], **more: Any) -> dict[str, Any]:
    """A task of a full export with the annotations of several persons."""
    annotations = [
        {
            "id": 100 * number + i,
            "completed_by": person,
            "was_cancelled": False,
            "result": [{"from_name": "species", "to_name": "a", "type": "choices", "value": {"choices": choices}}],
        }
        for i, (person, choices) in enumerate(answers)
    ]
    return {"id": number, "data": {"recording": bag}, "annotations": annotations, "predictions": [], **more}


def written(tmp_path: Path, content: Any) -> Path:
    path = tmp_path / "export.json"
    path.write_text(json.dumps(content))
    return path


def votes(ds: mipl.MIPLDataset) -> dict[str, dict[str, float]]:
    """Bag id to the votes of its candidates."""
    assert ds.candidate_weights is not None
    return {
        bag: {name: weight for name, weight in zip(ds.classes.tolist(), row.tolist(), strict=True) if weight}
        for bag, row in zip(ds.bag_ids.tolist(), ds.candidate_weights, strict=True)
    }


def test_choices_of_annotators_are_votes_and_skipped_ones_do_not_count(tmp_path: Path, features: Path):
    skipped = task(2, "R2", (1, ["wren"]), (2, ["owl"]))
    skipped["annotations"][0]["was_cancelled"] = True
    export = [
        task(1, "R1", (1, ["owl"]), (2, ["owl"]), (3, ["wren"])),
        skipped,
        task(3, "R3", (1, ["wren", "jay"]), predictions=[{"result": [{"type": "choices", "value": {}}]}]),
    ]
    ds = mipl.load(features, bag="recording", table=written(tmp_path, export))
    assert votes(ds) == {"R1": {"owl": 2, "wren": 1}, "R2": {"owl": 1}, "R3": {"wren": 1, "jay": 1}}
    assert ds.bags.feature_names == ("pitch", "length")
    ds.save(tmp_path / "joined.parquet")
    assert mipl.load(tmp_path / "joined.parquet").equals(ds)


def test_a_person_who_answers_twice_has_one_vote_per_label(tmp_path: Path, features: Path):
    export = [task(1, "R1", (1, ["owl"]), (1, ["owl"]), (1, ["wren"])), task(2, "R2", (1, ["owl"]))]
    export[0]["annotations"][1]["completed_by"] = {"id": 1, "email": "ann@example.org"}
    ds = mipl.load(features, bag="recording", table=written(tmp_path, export))
    assert votes(ds)["R1"] == {"owl": 1, "wren": 1}
    assert ds.candidates[2].all()  # nobody said anything of R3


def test_the_short_forms_say_the_same_as_the_full_export(tmp_path: Path, features: Path):
    full = mipl.load(
        features,
        bag="recording",
        table=written(tmp_path, [task(1, "R1", (7, ["owl"]), (8, ["owl", "wren"])), task(2, "R2", (7, ["wren"]))]),
    )
    rows = [
        {"id": 1, "recording": "R1", "species": "owl", "annotator": 7, "annotation_id": 1},
        {"id": 1, "recording": "R1", "species": {"choices": ["owl", "wren"]}, "annotator": 8, "annotation_id": 2},
        {"id": 2, "recording": "R2", "species": "wren", "annotator": 7, "annotation_id": 3},
    ]
    short = mipl.load(features, bag="recording", candidates="species", table=written(tmp_path, rows))
    text = "recording,id,choice,annotator,lead_time\nR1,1,owl,7,1.5\n"
    text += 'R1,1,"{""choices"": [""owl"", ""wren""]}",8,2\nR2,2,wren,7,0.5\n'
    (tmp_path / "export.csv").write_text(text)
    assert short.equals(full)
    assert mipl.load(features, bag="recording", table=tmp_path / "export.csv").equals(full)


def test_uploads_are_known_by_the_name_of_their_file(tmp_path: Path, features: Path):
    export = [task(i, "") for i in (1, 2, 3)]
    for i, each in enumerate(export, start=1):
        each["data"] = {"audio": f"/data/upload/4/0a1b2c3d-R{i}.wav"}
        each["annotations"] = task(i, "", (1, [f"bird {i}"]))["annotations"]
    ds = mipl.load(features, bag="recording", table=written(tmp_path, export))
    assert votes(ds) == {f"R{i}": {f"bird {i}": 1} for i in (1, 2, 3)}


def test_a_crowd_table_has_one_row_per_answer(tmp_path: Path, features: Path):
    (tmp_path / "crowd.tsv").write_text("worker\ttask\tanswer\nw1\tR1\towl\nw2\tR1\twren\nw3\tR1\towl\nw1\tR2\twren\n")
    ds = mipl.load(features, bag="recording", table=tmp_path / "crowd.tsv")
    assert votes(ds)["R1"] == {"owl": 2, "wren": 1}
    assert mipl.check(features, bag="recording", table=tmp_path / "crowd.tsv").usable


def test_a_table_per_bag_gives_candidates_and_labels_to_any_file(tmp_path: Path, features: Path):
    (tmp_path / "names.csv").write_text("recording,what,truth\nR1,owl|wren,owl\nR3,wren,\nR2,owl,owl\n")
    ds = mipl.load(features, bag="recording", candidates="what", label="truth", table=tmp_path / "names.csv")
    assert ds.candidate_sets() == [["owl", "wren"], ["owl"], ["wren"]]
    assert ds.label_names() == ["owl", "owl", None]


def test_several_files_share_one_table(tmp_path: Path):
    for i in (1, 2):
        (tmp_path / f"part{i}.csv").write_text(f"bag_id,x\nb{i},1.5\nb{i},2.5\n")
    (tmp_path / "crowd").mkdir()
    (tmp_path / "crowd" / "c.csv").write_text("bag_id,worker,label\nb1,w,owl\nb2,w,wren\n")
    ds = mipl.load([tmp_path / "part1.csv", tmp_path / "part2.csv"], table=tmp_path / "crowd" / "c.csv")
    assert votes(ds) == {"b1": {"owl": 1}, "b2": {"wren": 1}}


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from(["owl", "wren"]))))
def test_votes_are_the_number_of_persons_per_bag_and_label(answers: list[tuple[str, str, str]]):
    found = votes_of("t", "bag_id", [Answer(bag, person, [label]) for bag, person, label in answers]).candidates
    expected = Counter((bag, label) for bag, _, label in set(answers))
    assert {(bag, label): n for bag, of_bag in found.items() for label, n in of_bag.items()} == dict(expected)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"id": 1}, "it must be a list of tasks"),
        ([1], "task 1 is not a JSON object"),
        ([{"id": 5, "data": [], "annotations": []}], "data of task 5 are not"),
        ([{"id": 5, "data": {"recording": "R1"}, "annotations": 3}], r"task 5 \(bag 'R1'\): its annotations"),
        ([task(5, "R1", (1, "owl"))], r"task 5 \(bag 'R1'\): a result of type 'choices' has no list"),  # type: ignore[arg-type]
        ([{**task(5, "R1"), "annotations": [{"result": "x"}]}], r"task 5 \(bag 'R1'\): an annotation is not"),
        ([task(5, "R1")], "no result of type 'choices'"),
        ([task(5, "Z9", (1, ["owl"]))], "no 'recording' names a bag of .*'Z9'.*'R1'"),
        ([{"recording": "R1", "species": [1.5], "annotator": 1}], "bag 'R1', answer 1: .* neither a label nor a list"),
        ([{"recording": "", "choice": "owl", "annotator": 1}], "answer 1 names no bag"),
    ],
)
def test_a_malformed_export_is_refused_by_the_name_of_its_task(
    tmp_path: Path, features: Path, content: Any, message: str
):
    column = "species" if isinstance(content, list) and "species" in str(content) else None
    with pytest.raises(DataError, match=message) as caught:
        mipl.load(features, bag="recording", candidates=column, table=written(tmp_path, content))
    assert "not JSON" not in str(caught.value)


def test_two_controls_need_the_name_of_the_one_that_counts(tmp_path: Path, features: Path):
    export = [task(1, "R1", (1, ["owl"]), (2, ["wren"]))]
    other = {"from_name": "quality", "type": "choices", "value": {"choices": ["bad"]}}
    export[0]["annotations"][0]["result"].append(other)
    path = written(tmp_path, export)
    with pytest.raises(DataError, match="2 controls, 'quality', 'species'; say which one"):
        mipl.load(features, bag="recording", table=path)
    assert votes(mipl.load(features, bag="recording", candidates="species", table=path))["R1"] == {"owl": 1, "wren": 1}
    with pytest.raises(DataError, match="no control 'colour'"):
        mipl.load(features, bag="recording", candidates="colour", table=path)


def test_a_bag_with_two_rows_and_no_worker_is_refused(tmp_path: Path, features: Path):
    (tmp_path / "names.csv").write_text("recording,candidates\nR1,owl\nR1,wren\n")
    with pytest.raises(DataError, match="the bag 'R1' has two rows"):
        mipl.load(features, bag="recording", table=tmp_path / "names.csv")
    with pytest.raises(DataError, match="no such file"):
        mipl.load(features, bag="recording", table=tmp_path / "lost.json")
    (tmp_path / "broken.json").write_text("[{")
    with pytest.raises(DataError, match="is not JSON"):
        mipl.load(features, bag="recording", table=tmp_path / "broken.json")


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".parquet"])
def test_the_column_that_names_the_images_is_found_in_any_table(tmp_path: Path, suffix):
    if suffix == ".xlsx":
        pytest.importorskip("openpyxl", reason="Excel files need openpyxl")
    import pandas as pd
    from PIL import Image

    folder = tmp_path / "photos"
    folder.mkdir()
    for name in ("a", "b"):
        Image.fromarray(np.zeros((8, 8), np.uint8)).save(folder / f"{name}.png")
    frame = pd.DataFrame({"Foto": ["a.png", "b.png"], "Tags": ["owl|wren", "owl"]})
    table = tmp_path / f"t{suffix}"
    {".csv": frame.to_csv, ".xlsx": frame.to_excel, ".parquet": frame.to_parquet}[suffix](table, index=False)
    ds = mipl.load(folder, table=table, patch=8)
    assert ds.candidate_sets() == [["owl", "wren"], ["owl"]]
    report = mipl.check(folder, table=table, patch=8)
    assert f"{table}: bags by 'Foto'; candidates 'Tags'" in report.remarks


def test_columns_of_a_side_table_that_nobody_can_find_are_told_together(tmp_path: Path, features: Path):
    (tmp_path / "t.csv").write_text("x,y,z\n1,2,3\n")
    with pytest.raises(DataError, match="no column 'bag_id' and no column 'candidates'"):
        mipl.load(features, bag="recording", table=tmp_path / "t.csv")
