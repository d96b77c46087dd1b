"""The page: what a reader finds in it is what the resolution says."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from report_pages import Page, made_up

import mipl
from mipl import DataError
from mipl.labelling import LabelOrder
from mipl.report.page import data_key, render_page


@pytest.fixture(scope="module")
def digits() -> mipl.Resolution:
    return mipl.resolve(mipl.load("digits", r=2, seed=0), mipl.make("PL-kNN"))


def test_the_rows_are_the_answers_doubtful_ones_first(digits):
    data = Page(render_page(digits)).data
    order = [digits.bag_ids.astype(str).tolist().index(row[0]) for row in data["rows"]]
    assert sorted(order) == list(range(len(digits)))
    assert (np.diff(digits.margin[order]) >= 0).all()
    for i, (_, size, truth, ranked, probabilities) in zip(order, data["rows"], strict=True):
        assert size == digits.bags.sizes[i]
        assert data["names"][truth] == digits.truth[i]
        assert [data["names"][c] for c in ranked[:2]] == [digits.labels[i], digits.second_label[i]]
        assert set(ranked) == set(np.flatnonzero(digits.candidates[i]).tolist())
        assert np.allclose(np.array(probabilities) / 10_000, digits.posterior[i][ranked], atol=5e-5)


def test_a_label_that_is_no_candidate_is_offered_first(digits):
    posterior = digits.posterior.copy()
    off = int(np.flatnonzero(~digits.candidates[0])[0])
    posterior[0] = np.where(np.arange(len(digits.classes)) == off, 0.6, 0.4 * posterior[0])
    data = Page(render_page(replace(digits, posterior=posterior)[:1])).data
    assert data["rows"][0][3] == [off, *np.argsort(-digits.posterior[0], kind="stable")[: len(data["rows"][0][3]) - 1]]
    assert len(data["rows"][0][3]) == digits.candidates[0].sum() + 1


def test_the_figures_are_those_of_the_resolution(digits):
    text = Page(render_page(digits, title="my digits")).text
    assert "my digits" in text
    assert f"instances {digits.bags.n_instances:,}" in text
    assert f"{100 * digits.accuracy:.1f}".removesuffix(".0") + " % of 150 known labels are right" in text
    for c, name in enumerate(digits.classes):
        share = f"{100 * digits.posterior.mean(axis=0)[c]:.1f}".removesuffix(".0")
        assert re.search(rf"\b{name} [\d.]+ % {re.escape(share)} %", text)


def test_the_bags_to_look_at_next_have_the_smallest_margins(digits):
    text = Page(render_page(digits)).text
    found = re.findall(r"Bag (\d+)", text[text.index("What to look at next") :])
    nearest = digits.bag_ids[np.argsort(digits.margin, kind="stable")[:8]]
    assert found[:8] == nearest.astype(str).tolist()


def test_the_bags_to_look_at_next_are_those_that_teach_most_where_the_method_tells():
    rank = np.random.default_rng(1).permutation(40)
    page = Page(render_page(made_up(label_order=LabelOrder(rank, np.ones(40), np.ones(40)))))
    found = re.findall(r"Bag bag-(\d+)", page.text[page.text.index("What to look at next") :])
    assert found[:8] == np.argsort(rank)[:8].astype(str).tolist()
    opened = [int(a["data-row"]) for tag, a in page.tags if a.get("data-action") == "open"]
    assert [page.data["rows"][row][0] for row in opened[:8]] == [f"bag-{i}" for i in found[:8]]


def test_one_file_needs_nothing_else(tmp_path):
    page = tmp_path / "page.html"
    assert made_up().report(page, title="x") == page
    read = Page(page.read_text(encoding="utf-8"))
    loaded = [attributes for tag, attributes in read.tags for name in ("src", "href") if name in attributes]
    assert [each["href"] for each in loaded] == ["#mipl-bags"]
    policy = next(a["content"] for t, a in read.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")


def test_the_structure_is_one_that_a_screen_reader_can_follow():
    read = Page(render_page(made_up(truth=np.array(["class 0"] * 40, dtype=object))))
    ids = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {a["aria-labelledby"] for _, a in read.tags if "aria-labelledby" in a} <= set(ids)
    assert [tag for tag, _ in read.tags if tag in ("h1", "main")] == ["h1", "main"]
    assert ("html", {"lang": "en"}) in read.tags
    drawings = [attributes for tag, attributes in read.tags if tag == "svg"]
    assert drawings
    assert all(attributes["role"] == "img" and attributes["aria-label"] for attributes in drawings)


def test_bags_without_candidates_are_labelled_among_all_classes():
    found = made_up(q=12, candidates=None)
    read = Page(render_page(found))
    assert "40 bags labelled" in read.text
    assert "by candidates" not in read.text
    for row in read.data["rows"]:
        i = int(row[0].removeprefix("bag-"))
        assert len(row[3]) == len(row[4]) == np.clip(np.sum(found.posterior[i] >= 0.005), 4, 8)
    assert read.data["classes"] == 12


def test_bags_whose_instances_were_not_judged_are_drawn_without_evidence():
    read = Page(render_page(made_up(instance_probabilities=None)))
    assert read.data["details"]["0"][2:] == [[0, 1, 2, 3, 4], None, None]
    assert "Bars below an instance" not in read.text


def test_instances_have_the_ids_that_the_user_gave_them():
    found = made_up(m=2, size=3, instance_ids=np.array(["s1", "s2", "</script>", "7", "8", "9"]))
    details = Page(render_page(found)).data["details"]
    shown = {name for row in details.values() for name in row[2]}
    assert shown == {"s1", "s2", "</script>", "7", "8", "9"}


def test_a_true_label_that_the_model_does_not_know_is_shown_by_name():
    truth = np.array([None] * 40, dtype=object)
    truth[7] = "unheard of"
    data = Page(render_page(made_up(truth=truth))).data
    row = next(row for row in data["rows"] if row[0] == "bag-7")
    assert data["names"][row[2]] == "unheard of"


def test_how_it_was_made_has_versions_parameters_and_what_the_caller_says():
    notes = {"parameters": {"k": 5, "embed": "maxmin"}, "command": "mipl resolve 'my file.csv'"}
    text = Page(render_page(made_up(version="9.9"), notes=notes)).text
    made = text[text.index("How it was made") :]
    for said in ("made up", "k=5, embed='maxmin'", "mipl resolve 'my file.csv'", "mipl 9.9", f"numpy {np.__version__}"):
        assert said in made


def test_earlier_decisions_are_in_the_page_and_bags_left_out_are_listed():
    read = Page(render_page(made_up(), decisions={"bag-1": "class 0", "gone": None}))
    assert read.data["decided"] == [["bag-1", "class 0"], ["gone", None]]
    assert "none of their candidates is right: gone ." in read.text


def test_a_verdict_of_somebody_who_knows_takes_the_place_of_the_counts():
    assert "Trust me." in Page(render_page(made_up(), verdict="Trust me.")).text


def test_decisions_belong_to_the_bags_their_ids_and_the_classes():
    found = made_up()
    others = [made_up(seed=1), made_up(bag_ids=np.arange(40)), made_up(classes=np.array(list("abcd")))]
    assert data_key(found) == data_key(made_up(candidates=None, method="another"))
    assert len({data_key(each) for each in [found, *others]}) == 4


def test_only_html_is_written(tmp_path: Path):
    with pytest.raises(DataError, match=r"its suffix must be one of \.html"):
        made_up().report(tmp_path / "page.pdf")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("q", "words"), [(13, "1 more class, "), (14, "2 more classes, ")])
def test_classes_beyond_the_first_twelve_are_counted(q, words):
    assert words in Page(render_page(made_up(60, q=q))).text


def test_the_words_say_that_no_instance_shows_the_background(digits):
    assert "background" not in Page(render_page(digits)).text
    page = Page(render_page(replace(digits, background=digits.classes[0].item())))
    assert "No instance shows 0 , the background class: it has neither bars nor a frame." in page.text
    assert page.data["background"] == "0"
