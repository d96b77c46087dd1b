import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mipl.bench.store import Outcome, Record
from mipl.bench.store.csv_file import read_csv, write_csv
from mipl.bench.suite import Cell
from mipl.bench.suite.scores import SCORES
from mipl.errors import DataError

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=8)
scores = st.dictionaries(st.sampled_from(list(SCORES)), st.floats(0, 1) | st.just(math.nan))
cells = st.builds(
    Cell,
    dataset=texts,
    r=st.none() | st.integers(0, 9),
    method=texts.map(lambda text: f"mine:{text}"),
    split=st.integers(0, 99),
    train_size=st.floats(0.01, 0.99),
    options=st.dictionaries(texts, st.integers() | texts),
    params=st.dictionaries(texts, st.floats(allow_nan=False) | st.booleans() | st.none() | texts),
    code=texts,
)


@given(st.lists(st.tuples(cells, scores, st.none() | st.floats(0, 1e6), st.integers(0, 99)), max_size=4))
def test_what_is_written_is_read_back(tmp_path_factory, made):
    file = tmp_path_factory.mktemp("csv") / "results.csv"
    records = [Record(c, "done", run, 0.0, 5.0, Outcome(scores=s, fit_cpu_seconds=t)) for c, s, t, run in made]
    found = read_csv(write_csv(records, file))
    assert sorted(_content(r) for r in found) == sorted(_content(r) for r in records)
    again = file.with_name("again.csv")
    assert write_csv(found, again).read_bytes() == file.read_bytes()


def _content(record):
    cpu = record.outcome.fit_cpu_seconds
    scores = sorted((name, repr(value)) for name, value in record.outcome.scores.items())
    return record.cell.key, record.cell.code, record.run, str(scores), "" if cpu is None else f"{cpu:.6f}"


def test_only_scores_that_some_cell_has_get_a_column(tmp_path):
    records = [
        Record(Cell("digits", 1, "a:B", i), "done", 0, 0.0, 1.0, Outcome(scores=s))
        for i, s in enumerate([{"accuracy": 0.5}, {"accuracy": 0.25, "instance_ap": math.nan}])
    ]
    header, first, second = write_csv(records, tmp_path / "r.csv").read_text().splitlines()
    names = header.split(",")
    assert [name for name in names if name in SCORES] == ["accuracy", "instance_ap"]
    at = names.index("instance_ap")
    assert (first.split(",")[at], second.split(",")[at]) == ("", "nan")


@pytest.mark.parametrize(
    "content", ["a,b\n1,2\n", "", "dataset,options,scale,r,method,params,split,train_size,code,accuracy,f1\n"]
)
def test_a_file_of_other_columns_is_refused(tmp_path, content):
    (tmp_path / "r.csv").write_text(content)
    with pytest.raises(DataError, match="no export of results"):
        read_csv(tmp_path / "r.csv")
