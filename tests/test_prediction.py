"""Predictions into a folder: one file per input, the same whatever was killed, and nothing done twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from bench_runs import PATIENCE, wait_for_end

import mipl
from mipl.cli import main
from mipl.errors import DataError, ParameterError
from mipl.io.options import Columns
from mipl.prediction import MANIFEST, Predicted, Reading, predict_to_folder

N_FILES = 5
NAMES = ["early/0.parquet", "early/1.parquet", "late/2.parquet", "late/3.parquet", "late/4.parquet"]
READING = Reading(Columns(), chunk=100)

#: `mipl predict` that dies in the middle of writing its third file.
KILLED = """
import os, signal
import mipl.prediction as prediction
from mipl.cli import main

write, files = prediction.write_tables, []

def write_and_die(chunks, path, raw):
    files.append(path)

    def some():
        for chunk in chunks:
            yield chunk
            if len(files) == 3:
                os.kill(os.getpid(), signal.SIGKILL)

    return write(some(), path, raw=raw)

prediction.write_tables = write_and_die
main()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model, and five files of bags in two folders."""
    ds = mipl.load("digits")
    mipl.make("PL-kNN").fit(ds).save(tmp_path / "m.mipl")
    for i in range(N_FILES):
        place = tmp_path / "in" / ("early" if i < 2 else "late")
        place.mkdir(parents=True, exist_ok=True)
        ds[30 * i : 30 * (i + 1)].save(place / f"{i}.parquet")
    return tmp_path


def contents(place: Path) -> dict[str, bytes]:
    """The answers below a folder, by name; hidden files are the program's own."""
    return {str(p.relative_to(place)): p.read_bytes() for p in place.rglob("*") if p.is_file() and p.name != MANIFEST}


def predict(folder: Path, out: str, **more: int):
    return predict_to_folder(folder / "m.mipl", [str(folder / "in")], folder / out, READING, **more)


def test_every_file_has_its_answers_under_its_name(folder: Path):
    done = predict(folder, "out")
    assert sorted(contents(folder / "out")) == NAMES
    model, ds = mipl.load_model(folder / "m.mipl"), mipl.load("digits")
    found = pd.concat([pd.read_parquet(each.output) for each in done])
    assert found.bag_id.tolist() == ds.bag_ids.tolist()
    assert found.predicted.tolist() == model.predict(ds).tolist()
    assert sum(each.right for each in done) / sum(each.known for each in done) == pytest.approx(model.score(ds))


def test_what_is_done_is_skipped_until_its_input_its_output_or_the_model_changes(folder: Path):
    predict(folder, "out")

    def predicted() -> list[str]:
        return [Path(each.source).stem for each in predict(folder, "out") if not each.skipped]

    assert predicted() == []
    first = folder / "in" / "early" / "0.parquet"
    mipl.load("digits")[:7].save(first)
    assert predicted() == ["0"]
    (folder / "out" / "late" / "3.parquet").unlink()
    assert predicted() == ["3"]
    (folder / "out" / "late" / "4.parquet").write_bytes(b"")
    assert predicted() == ["4"]
    with (folder / "out" / MANIFEST).open("a") as file:
        file.write('{"output": "early/0.par')  # as a killed run leaves it
    mipl.make("PL-kNN", n_neighbors=3).fit(mipl.load("digits")).save(folder / "m.mipl")
    assert predicted() == list("01234")
    assert predicted() == []


def test_the_content_of_files_decides_whether_anything_has_changed(tmp_path: Path):
    model, table, out = tmp_path / "m.mipl", tmp_path / "t.csv", tmp_path / "out"
    source, answer = tmp_path / "x.csv", out / "x.csv"
    near, far = [[0.0, 0.0]], [[9.0, 9.0]]
    mipl.make("PL-kNN", n_neighbors=1).fit(mipl.Bags.from_list([near, far]), [["ant"], ["bee"]]).save(model)
    source.write_text("bag_id,u,v\n1,0,0\n2,9,9\n")
    table.write_text("bag_id,candidates,label\n1,ant|bee,ant\n2,ant|bee,bee\n")

    def predict() -> Predicted:
        return predict_to_folder(model, [str(source)], out, Reading(Columns(table=table)))[0]

    def rewrite(file: Path, content: str) -> None:
        """Give a file other content, of the same size and time."""
        before = file.stat()
        file.write_text(content)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert file.stat().st_size == before.st_size

    assert not predict().skipped
    for file in (model, table, source, answer):
        os.utime(file)
    assert predict().skipped
    rewrite(source, "bag_id,u,v\n2,0,0\n1,9,9\n")
    assert not predict().skipped
    assert pd.read_csv(answer).predicted.tolist() == ["ant", "bee"]
    assert pd.read_csv(answer).bag_id.tolist() == [2, 1]
    rewrite(table, table.read_text().replace("1,ant|bee,ant", "1,ant|bee,bee"))
    assert predict().right == 1
    rewrite(answer, answer.read_text().replace("ant", "bee"))
    assert not predict().skipped
    assert pd.read_csv(answer).predicted.tolist() == ["ant", "bee"]
    assert predict().skipped


def test_a_run_that_was_killed_leaves_nothing_half_written_and_is_finished_by_the_next(folder: Path):
    words = ["predict", "m.mipl", "in", "--out", "out/", "--chunk", "100"]
    killed = subprocess.run([sys.executable, "-c", KILLED, *words], cwd=folder, capture_output=True, timeout=PATIENCE)
    assert killed.returncode == -signal.SIGKILL
    whole = predict(folder, "whole")
    answers = contents(folder / "whole")
    found = contents(folder / "out")
    half = [name for name in found if name.endswith(".tmp")]
    assert len(half) == 1
    assert {name: found[name] for name in found if name not in half} == {name: answers[name] for name in NAMES[:2]}
    finished = subprocess.run(
        [sys.executable, "-m", "mipl", *words], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert finished.stderr.count("unchanged, skipped") == 2
    assert "5 files, 2 of them kept from an earlier run" in finished.stderr
    assert contents(folder / "out") == answers
    assert len(whole) == N_FILES


def children(process: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_the_processes_of_a_killed_run_end_with_it_and_two_give_the_answers_of_one(folder: Path):
    words = [sys.executable, "-m", "mipl", "predict", "m.mipl", "in", "--out", "out/", "--chunk", "100", "--jobs", "2"]
    run = subprocess.Popen(words, cwd=folder, stderr=subprocess.DEVNULL)
    while not (folder / "out" / MANIFEST).exists() and run.poll() is None:
        time.sleep(0.001)
    workers = children(run.pid) if run.poll() is None else []
    run.kill()
    run.wait()
    wait_for_end(workers, f"the processes {workers} go on without their parent")
    subprocess.run(words, cwd=folder, check=True, capture_output=True, timeout=PATIENCE)
    predict(folder, "one")
    assert contents(folder / "out") == contents(folder / "one")


def test_a_file_that_cannot_be_read_does_not_stop_the_others(folder: Path):
    (folder / "in" / "early" / "0.parquet").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"1 of 5 files could not be predicted: .*0.parquet is damaged"):
        predict(folder, "out")
    assert len(contents(folder / "out")) == 4


def test_answers_never_take_the_place_of_their_input_or_of_each_other(folder: Path):
    with pytest.raises(ParameterError, match="reads it"):
        predict(folder, "in")
    mipl.load("digits")[:9].save(folder / "in" / "early" / "0.feather")
    with pytest.raises(DataError, match="would both be written to"):
        predict(folder, "out")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        # the answers of d/x.csv would be d/a/x.csv, which is to be read
        ("{m} d/x.csv d/a/x.csv --out d/a", "cannot write d/a/x.csv: this command reads it"),
        ("{m} e/x.tsv --out e", "e/x.csv exists and is no answer of an earlier run"),
        ("{m} d/x.csv --out linked/", "linked/x.csv exists and is no answer"),
        ("{m} d/x.csv --out to-x", "a link leads from to-x/x.csv out of to-x"),
        ("{m} d/x.csv d/a/x.csv --out to-d", "a link leads from to-d/a/x.csv out of to-d"),
        ("d/m.csv d/a/x.csv --out d", "d/x.csv exists"),
        ("d/m.csv d/a/m.csv d/a/x.csv --out new/../d", "cannot write new/../d/m.csv: this command reads it as d/m.csv"),
        ("{m} d/x.csv --table e/x.csv --out e", "cannot write e/x.csv: this command reads it"),
        ("{m} - --out new/", "standard input need a name"),
    ],
)
def test_nothing_is_written_over_in_a_folder_or_outside_of_it(tmp_path: Path, monkeypatch, capsys, words, told):
    monkeypatch.chdir(tmp_path)
    mipl.make("PL-kNN").fit(mipl.Bags.from_list([[[0.0]], [[9.0]]]), [["ant"], ["bee"]]).save("m.mipl")
    for file in ("d/x.csv", "d/a/x.csv", "d/a/m.csv", "e/x.tsv", "e/x.csv", "to-x/y.csv", "to-d/y.csv", "new/y.csv"):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text("bag_id,u\n1,0\n")
    Path("d/m.csv").write_bytes(Path("m.mipl").read_bytes())
    Path("linked").symlink_to("e")
    Path("to-x/x.csv").symlink_to("../e/x.tsv")
    Path("to-d/a").symlink_to("../d/a")
    before = contents(tmp_path)
    monkeypatch.setattr(sys, "argv", ["mipl", "predict", *words.replace("{m}", "m.mipl").split()])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert told in capsys.readouterr().err
    assert contents(tmp_path) == before
    assert not list(tmp_path.rglob(MANIFEST))


def test_answers_stay_in_their_folder_wherever_their_files_lie(tmp_path: Path, monkeypatch):
    (tmp_path / "work" / "local").mkdir(parents=True)
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    mipl.make("PL-kNN").fit(mipl.Bags.from_list([[[0.0]], [[9.0]]]), [["ant"], ["bee"]]).save("../m.mipl")
    for file in ("../data/x.csv", "local/y.csv", "data.csv"):
        Path(file).write_text("bag_id,u\n1,0\n")
    predict_to_folder(Path("../m.mipl"), ["../data/x.csv", "local/y.csv"], Path("answers"), READING)
    assert sorted(contents(Path("answers"))) == ["data/x.csv", "work/local/y.csv"]
    assert Path("../data/x.csv").read_text() == "bag_id,u\n1,0\n"


def test_the_command_line_tells_what_it_did_as_json(folder: Path):
    words = [sys.executable, "-m", "mipl", "predict", "m.mipl", "in", "--out", "out/", "--json"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True, timeout=PATIENCE)
    found = json.loads(done.stdout)
    assert [each["bags"] for each in found] == [30] * N_FILES
    assert os.path.samefile(folder / found[0]["output"], folder / "out" / "early" / "0.parquet")


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"output": "early/0.parquet", "key": "x", "answers": "y", "done": null}',
        b'{"output": ["early/0.parquet"], "key": "x", "answers": "y", "done": {}}',
    ],
)
def test_where_the_list_of_what_is_done_is_damaged_answers_are_as_any_other_files(folder: Path, line: bytes):
    predict(folder, "out")
    (folder / "out" / MANIFEST).write_bytes(line)
    before = contents(folder / "out")
    with pytest.raises(ParameterError, match="exists and is no answer of an earlier run; move it away"):
        predict(folder, "out")
    assert contents(folder / "out") == before
    for name in before:
        (folder / "out" / name).unlink()
    assert not any(done.skipped for done in predict(folder, "out"))
    assert all(done.skipped for done in predict(folder, "out"))


@pytest.mark.parametrize("change", [None, {"x": 1}, {"bags": "many"}])
def test_an_entry_of_the_list_that_says_something_odd_is_predicted_again(folder: Path, change: dict | None):
    predict(folder, "out")
    file = folder / "out" / MANIFEST
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    odd = [{**entry, "done": change and {**entry.get("done", {}), **change}} for entry in entries]
    file.write_text("".join(json.dumps(entry) + "\n" for entry in odd))
    assert [done.bags for done in predict(folder, "out")] == [30] * N_FILES


def test_answers_that_lie_among_the_data_are_not_taken_for_data(folder: Path):
    first = predict(folder, "in/answers")
    assert [done.bags for done in first] == [30] * N_FILES
    (folder / "in" / "answers" / "early" / "0.parquet").unlink()
    again = predict(folder, "in/answers")
    assert [Path(done.source).name for done in again] == [f"{i}.parquet" for i in range(N_FILES)]
    assert [done.skipped for done in again] == [False, True, True, True, True]
    with pytest.raises(DataError, match="answers of an earlier run"):
        predict_to_folder(folder / "m.mipl", [str(folder / "in" / "answers")], folder / "in" / "answers", READING)


def test_a_list_of_what_is_done_hides_no_file_outside_of_its_folder(folder: Path):
    (folder / "out").mkdir()
    (folder / "out" / MANIFEST).write_text(json.dumps({"output": "../in/early/0.parquet"}) + "\n")
    assert len(predict(folder, "out")) == N_FILES


def test_a_file_whose_name_is_not_utf_8_is_predicted(folder: Path):
    name = os.fsdecode(b"\xff\xfe.csv")
    (folder / "odd").mkdir()
    mipl.load("digits")[:9].save(folder / "odd" / name)
    done = predict_to_folder(folder / "m.mipl", [str(folder / "odd")], folder / "out", READING)
    assert [each.bags for each in done] == [9]
    assert (folder / "out" / name).is_file()
