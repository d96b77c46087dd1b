"""Resolution: every answer against numbers that were worked out by hand, and by a loop over bags."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mipl
from mipl import Bags, DataError, ParameterError, Resolution, UnavailableError
from mipl.labelling import LabelOrder

NAMES = ("ant", "bee", "cat")


def by_hand(**changes: Any) -> Resolution:
    """Three bags of 2, 1 and 3 instances; the second has one candidate, the third one of probability zero."""
    parts: dict[str, Any] = {
        "classes": np.array(NAMES),
        "bags": Bags(np.arange(12).reshape(6, 2), [0, 2, 3, 6]),
        "bag_ids": np.array(["x", "y", "z"]),
        "posterior": np.array([[0.25, 0.75, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]),
        "instance_probabilities": np.array(
            [
                [0.9, 0.1, 0.0, 0.0],
                [0.1, 0.6, 0.1, 0.2],
                [0.2, 0.2, 0.5, 0.1],
                [0.8, 0.1, 0.1, 0.0],
                [0.1, 0.4, 0.2, 0.3],
                [0.1, 0.4, 0.5, 0.0],
            ]
        ),
        "candidates": np.array([[True, True, False], [False, False, True], [False, True, True]]),
        "truth": np.array(["ant", None, "bee"], dtype=object),
        "method": "hand",
        "seconds": 1.5,
    }
    return Resolution(**parts | changes)


def test_labels_and_their_runners_up():
    found = by_hand()
    assert found.labels.tolist() == ["bee", "cat", "bee"]
    assert found.probability.tolist() == [0.75, 1.0, 1.0]
    assert found.second_label.tolist() == ["ant", None, "cat"]
    assert found.second_probability.tolist() == [0.25, 0.0, 0.0]
    assert found.margin.tolist() == [0.5, 1.0, 1.0]


def test_the_instance_is_the_first_of_the_most_probable_ones_of_the_label():
    assert by_hand().instance.tolist() == [1, 0, 1]


def test_no_instance_is_behind_the_background_class(tmp_path: Path):
    found = by_hand(background="bee", instance_ids=np.array(list("abcdef")))
    assert found.instance.tolist() == [-1, 0, -1]
    rows = found.rows()
    assert [row["instance"] for row in rows] == [None, 0, None]
    assert [row["instance_id"] for row in rows] == [None, "c", None]
    frame = found.to_frame()
    assert (str(frame["instance"].dtype), frame["instance"].isna().tolist()) == ("Int64", [True, False, True])
    with found.save(tmp_path / "x.csv").open() as file:
        cells = [(row["instance"], row["instance_id"]) for row in csv.DictReader(file)]
    assert cells == [("", ""), ("0", "c"), ("", "")]
    assert "-1" not in found._repr_html_()
    assert found[[1, 2]].instance.tolist() == [0, -1]
    with pytest.raises(DataError, match="the background class 'dog' is not among the classes"):
        by_hand(background="dog")


def test_among_all_classes_every_bag_has_a_second_label():
    found = by_hand(candidates=None)
    assert found.second_label.tolist() == ["ant", "ant", "ant"]
    assert found.labels.tolist() == ["bee", "cat", "bee"]


def test_a_label_that_is_no_candidate_is_taken_where_the_model_gives_it_most_and_marked_for_review():
    posterior = np.array([[0.1, 0.1, 0.8], [0.0, 0.0, 1.0], [0.2, 0.75, 0.05]])
    found = by_hand(posterior=posterior)
    assert found.labels.tolist() == ["cat", "cat", "bee"]
    assert found.second_label.tolist() == ["ant", None, "ant"]
    assert found.outside.tolist() == pytest.approx([0.8, 0.0, 0.2])
    assert found.review.tolist() == [True, False, False]
    assert [row["outside"] for row in found.rows()] == pytest.approx([0.8, 0.0, 0.2])
    assert "or not among its candidates (1)." in found.verdict
    assert found[1:].review.tolist() == [False, False]


def test_nothing_is_said_of_labels_outside_where_the_model_rules_them_out():
    assert not by_hand().outside.any()
    assert "outside" not in by_hand().columns()
    assert not by_hand(candidates=None).outside.any()


def test_accuracy_counts_bags_whose_truth_is_known():
    assert by_hand().accuracy == 0.5
    assert by_hand(truth=None).accuracy is None
    assert by_hand(truth=np.array([None] * 3)).accuracy is None
    # A class that the model does not have is never right.
    assert by_hand(truth=np.array(["dog", "cat", "bee"], dtype=object)).accuracy == pytest.approx(2 / 3)


def test_integer_class_names_stay_integers():
    found = by_hand(classes=np.array([3, 6, 9]), truth=np.array([6, None, 3], dtype=object))
    assert found.labels.tolist() == [6, 9, 6]
    assert found.accuracy == 0.5
    assert json.loads(json.dumps(found.rows()))[0]["label"] == 6


@given(st.data())
def test_selected_bags_keep_their_answers(data: st.DataObject):
    m = data.draw(st.integers(1, 6))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 4, m))])
    n = int(offsets[-1])
    found = Resolution(
        classes=np.array(NAMES),
        bags=Bags(rng.random((n, 2)), offsets),
        bag_ids=np.arange(m) + 100,
        posterior=rng.dirichlet(np.ones(3), m),
        instance_probabilities=rng.integers(0, 3, (n, 4)) / 4,  # with ties
        truth=rng.choice(np.array([*NAMES, None], dtype=object), m),
    )
    key = data.draw(
        st.one_of(
            st.lists(st.integers(0, m - 1), min_size=1, max_size=5).map(np.array),
            st.integers(0, m - 1),
            st.integers(0, m - 1).map(lambda start: slice(start, None)),
        )
    )
    chosen = np.atleast_1d(np.arange(m)[key]).tolist()
    part = found[key]
    assert len(part) == len(chosen)
    for k, i in enumerate(chosen):
        c = int(np.argmax(found.posterior[i]))
        inside = found.instance_probabilities[offsets[i] : offsets[i + 1], c]
        assert part.rows()[k] == found.rows()[i]
        assert (part.labels[k], part.instance[k]) == (NAMES[c], np.argmax(inside))
        assert np.array_equal(part.bags[k], found.bags[i])
        assert part.bag_ids[k] == found.bag_ids[i] == 100 + i


def test_a_resolution_does_not_change():
    found = by_hand()
    with pytest.raises(FrozenInstanceError):
        found.method = "other"
    with pytest.raises(ValueError, match="read-only"):
        found.posterior[0, 0] = 1
    found.labels[0] = "cat"  # what is worked out is the caller's own
    assert found.labels[0] == "bee"


@pytest.mark.parametrize(
    ("name", "shape"), [("posterior", (3, 2)), ("candidates", (2, 3)), ("instance_probabilities", (6, 3))]
)
def test_parts_that_do_not_belong_together_are_refused(name: str, shape: tuple[int, ...]):
    with pytest.raises(DataError, match=f"{name} has shape"):
        by_hand(**{name: np.zeros(shape)})


def test_what_was_not_asked_for_is_not_made_up():
    found = by_hand(instance_probabilities=None)
    with pytest.raises(DataError, match="instances=True"):
        _ = found.instance
    assert "instance" not in found.rows()[0]


def test_rows_say_what_is_known():
    assert by_hand().rows()[0] == {
        "bag_id": "x",
        "label": "bee",
        "probability": 0.75,
        "second_label": "ant",
        "second_probability": 0.25,
        "review": False,
        "instance": 1,
        "candidates": ["ant", "bee"],
        "truth": "ant",
        "p(ant)": 0.25,
        "p(bee)": 0.75,
        "p(cat)": 0.0,
    }
    among_all = by_hand(candidates=None, truth=None).rows()[0]
    assert among_all["predicted"] == "bee"
    assert not {"label", "candidates", "truth"} & set(among_all)


def test_every_file_format_holds_the_same_answers(tmp_path: Path):
    found = by_hand()
    with found.save(tmp_path / "x.csv").open(newline="") as file:
        from_csv = list(csv.DictReader(file))
    from_json = [json.loads(line) for line in found.save(tmp_path / "x.jsonl").read_text().splitlines()]
    from_parquet = pd.read_parquet(found.save(tmp_path / "x.parquet"))
    assert from_json == found.rows()
    assert from_parquet["label"].tolist() == [row["label"] for row in from_csv] == found.labels.tolist()
    assert from_parquet["candidates"].map(list).tolist() == [row["candidates"] for row in from_json]
    assert [row["candidates"] for row in from_csv] == ["ant|bee", "cat", "bee|cat"]
    assert np.array_equal(from_parquet[[f"p({name})" for name in NAMES]].to_numpy(), found.posterior)
    with pytest.raises(DataError, match=r"one of \.csv, \.jsonl, \.parquet, \.xlsx"):
        found.save(tmp_path / "x.xls")


def test_the_frame_has_full_precision():
    frame = by_hand(posterior=np.array([[1 / 3, 2 / 3, 0], [0, 0, 1], [0, 1, 0]])).to_frame()
    assert frame["probability"][0] == 2 / 3
    assert frame["truth"].isna().tolist() == [False, True, False]
    assert frame["candidates"][0] == ["ant", "bee"]


def test_without_pandas_the_frame_says_what_to_do(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UnavailableError, match="pip install pandas"):
        by_hand().to_frame()


def test_the_summary_and_the_name_tell_what_it_is():
    assert by_hand().summary() == {
        "method": "hand",
        "bags": 3,
        "instances": 6,
        "classes": 3,
        "candidates": pytest.approx(5 / 3),
        "probability": pytest.approx(2.75 / 3),
        "margin": pytest.approx(2.5 / 3),
        "review": 0,
        "accuracy": 0.5,
        "seconds": 1.5,
    }
    assert repr(by_hand()) == "Resolution(3 bags, 3 classes, by hand among the candidates)"
    assert by_hand().version == mipl.__version__


def test_the_verdict_says_whether_the_instances_tell_anything_and_how_many_bags_to_look_at() -> None:
    posterior = np.array([[0.9, 0.1], [0.6, 0.4], [0.55, 0.45]])
    found = Resolution(
        classes=np.array(["owl", "wren"]),
        bags=Bags.from_list([np.zeros((1, 2))] * 3),
        bag_ids=np.arange(3),
        posterior=posterior,
    )
    assert found.review.tolist() == [False, True, True]
    assert [row["review"] for row in found.rows()] == [False, True, True]
    assert found.verdict.startswith("2 of 3 bags deserve a second look: their label")
    assert found[:2].verdict.startswith("1 of 2 bags deserves a second look: its label")
    assert "tell something" in replace(found, label_free=(0.5, 0.1)).verdict
    assert "NOT found" in replace(found, label_free=(0.1, 0.1)).verdict
    assert "NOT found" in replace(found, label_free=(-0.5, 0.1)).verdict
    assert "2 times as probable as by chance (+0.69 ± 0.10" in replace(found, label_free=(np.log(2), 0.1)).verdict
    assert "just as probable as by chance (+0.00 ± 0.10" in replace(found, label_free=(-0.001, 0.1)).verdict


# -------------------------------------------------------------------- what to label next


def test_the_bags_to_label_next_come_by_entropy_where_the_method_tells_no_more():
    posterior = np.array([[0.25, 0.75, 0.0], [0.0, 0.0, 1.0], [0.5, 0.5, 0.0]])
    found = by_hand(posterior=posterior, candidates=None).next_to_label(5)
    assert [row["bag_id"] for row in found] == ["z", "x"]  # y is certain
    assert found[0]["gain"] == pytest.approx(np.log(2), abs=1e-6)
    assert found[1] == {
        "bag_id": "x",
        "gain": pytest.approx(-0.25 * np.log(0.25) - 0.75 * np.log(0.75), abs=1e-6),
        "others": None,
        "label": "bee",
        "probability": 0.75,
        "second_label": "ant",
        "second_probability": 0.25,
    }


def test_the_bags_to_label_next_come_in_the_order_of_the_method_also_of_some_bags():
    posterior = np.array([[0.25, 0.75, 0.0], [0.4, 0.6, 0.0], [0.5, 0.5, 0.0]])
    order = LabelOrder(np.array([0, 2, 1]), np.array([0.5, 0.6, 0.7]), np.array([1.0, 0.0, 0.25]))
    found = by_hand(posterior=posterior, candidates=None, label_order=order)
    assert [(row["bag_id"], row["gain"], row["others"]) for row in found.next_to_label(2)] == [
        ("x", 1.5, 1.0),
        ("z", 0.95, 0.25),
    ]
    assert [row["bag_id"] for row in found[[1, 2]].next_to_label()] == ["z", "y"]


@pytest.mark.parametrize("k", [-1, 2.5, "3", True, None])
def test_how_many_bags_to_label_is_a_number_from_zero_up(k: Any):
    assert by_hand().next_to_label(0) == []
    with pytest.raises(ParameterError, match=r"next_to_label\(.*\): k is .* an integer from 0 up"):
        by_hand().next_to_label(k)
