import re

import pytest
from bench_results import BEST, SAME, WORSE, made, record

import mipl
from mipl.bench.analysis import Results, published
from mipl.bench.output import render, status
from mipl.bench.output.tables import (
    accuracy_table,
    cost_table,
    default_kind,
    scores_table,
    table_of,
    win_tie_loss_table,
)
from mipl.bench.suite import MethodEntry, Suite, load_suite
from mipl.errors import ParameterError


def entries(results, method, r):
    table = accuracy_table(results)
    row = {BEST: 0, SAME: 3, WORSE: 6}[method] + r - 1
    return table.rows[row].entries


def test_markers_and_bold_follow_the_tests_and_the_means():
    results = made()
    best, same, worse = (entries(results, method, 1)[-1] for method in (BEST, SAME, WORSE))
    assert (best.value, best.std, best.bold, best.marker) == (pytest.approx(0.8), pytest.approx(0), True, "")
    assert (same.value, same.bold, same.marker) == (pytest.approx(0.8), True, "")
    assert (worse.value, worse.bold, worse.marker) == (pytest.approx(0.685), False, "win")
    swapped = made(reference=WORSE)
    assert entries(swapped, BEST, 2)[-1].marker == "loss"


def test_files_beside_data_sets_of_one_r_need_no_rows_of_dashes(tmp_path):
    file = mipl.load("digits")[:20].save(tmp_path / "mine.npz")
    one, two = (made(datasets=["digits", file], r=r) for r in ([1], [1, 2]))
    table = accuracy_table(one)
    assert table.header == ["Algorithm", "digits", "mine"]
    assert len(table.rows) == 3 + 2  # a row per method, and the headings of two groups
    assert all(entry.value is not None for row in table.rows for entry in row.entries)
    assert "--" not in render(table, "latex")
    table = accuracy_table(two)
    figures = [[bool(entry.value) for entry in row.entries[2:]] for row in table.rows if not row.is_heading]
    assert figures == [[True, False], [True, False], [False, True]] * 3
    assert "no finished split" not in render(table, "text")


def test_missing_and_unequal_splits_are_handled_and_said():
    results = made(
        lambda place: (
            (place.method == WORSE and place.r == 1 and place.split > 0)
            or (place.method == WORSE and place.r == 2)
            or (place.method == SAME and place.split == 3)
        )
    )
    one, none, three = entries(results, WORSE, 1)[-1], entries(results, WORSE, 2)[-1], entries(results, SAME, 1)[-1]
    assert (one.value, one.count, one.marker) == (pytest.approx(0.7), 1, "untested")
    assert none.value is None
    assert (three.value, three.count, three.marker) == (pytest.approx(0.8), 3, "")
    text = render(accuracy_table(results), "text")
    for figure in ("0.700 (1)?", "–", "0.800±0.000 (3)"):
        assert figure in text
    for note in (
        "fewer than 4",
        "fewer than three splits in common",
        "no finished split",
        "9 of 24 cells have not been run",
    ):
        assert note in text
    counts = win_tie_loss_table(results)
    assert counts.rows[-1].entries[-1].value == (0, 2, 0)
    assert counts.notes[0] == "Not counted, with fewer than three splits in common: 1."


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.01234, "0.0123"), (64.83, "64.8"), (999.6, "1000"), (3452.4, "3452")]
)
def test_costs_have_three_digits_and_never_a_power_of_ten(seconds, shown):
    chosen = made().suite
    results = Results(chosen, [record(cell, 0.8, fit_seconds=seconds) for cell in chosen.cells().values()])
    assert shown in render(cost_table(results), "text").split()


def test_win_tie_loss_counts_are_by_r_and_in_total_with_groups_joined():
    table = win_tie_loss_table(made())
    assert table.header == ["Against", "r=1", "r=2", "In total"]
    assert [[e.value for e in row.entries] for row in table.rows] == [
        ["PL-kNN", (1, 1, 0), (1, 1, 0), (2, 2, 0)],
        ["In total", (1, 1, 0), (1, 1, 0), (2, 2, 0)],
    ]


def test_the_papers_own_counts_stand_beside_ours():
    suite = load_suite("paper-pll")
    six = [m.name for m in suite.methods if m.group]
    table = win_tie_loss_table(Results(suite.select(methods=["MIPLGP", *six]), []))
    assert table.header[-2:] == ["In total", "published"]
    assert table.rows[-1].entries[-1].value == (179, 1, 0)  # the paper's Table 3
    assert "published" not in win_tie_loss_table(Results(suite.select(reference=six[0]), [])).header


def test_the_total_beside_the_papers_leaves_out_methods_that_the_paper_does_not_have():
    suite = load_suite("paper-mil").select(splits=3)
    results = Results(suite, [record(cell, 0.8) for cell in suite.cells().values()])
    rows = {str(row.entries[0].value): [e.value for e in row.entries[1:]] for row in win_tie_loss_table(results).rows}
    paper = ["VWSGP", "VGPMIL", "LM-VGPMIL", "MIVAE"]
    assert list(rows)[:6] == [*paper, "In total", "Without published counts"]
    assert rows["In total"] == [(0, 20, 0), (19, 1, 0)]
    assert rows["VWSGP (any candidate)"] == rows["BagGP"] == [(0, 5, 0), ""]
    lines = render(win_tie_loss_table(results), "text").splitlines()
    total = next(i for i, line in enumerate(lines) if line.startswith("In total"))
    assert set(lines[total - 1]) == set(lines[total + 1]) == {"-"}


def test_published_figures_stand_below_ours_where_the_protocol_is_the_same(monkeypatch):
    monkeypatch.setitem(published(0.5), ("PL-kNN", "Mean", "digits", 1), published(0.5)["PL-kNN", "Mean", "mnist", 1])
    rows = accuracy_table(made(), with_published=True).rows
    (theirs,) = [row.entries for row in rows if "published" in str(row.entries[0].value)]
    assert (theirs[1].value, theirs[2].value, theirs[2].std) == ("1", 0.397, 0.021)
    above = rows[[row.entries for row in rows].index(theirs) - 1].entries
    assert [e.value for e in above] == ["PL-kNN", "1", pytest.approx(0.8)]
    assert len(accuracy_table(made()).rows) == len(rows) - 1


def test_unconfirmed_figures_are_marked_and_absent_methods_have_their_published_rows():
    absent = [MethodEntry("FastMIPL", label="FastMIPL")]
    chosen = Suite(
        methods=[{"method": "PL-kNN", "label": "MIPLGP"}], datasets=["mnist", "sival"], train_size=0.7, absent=absent
    )
    text = render(accuracy_table(Results(chosen, []), with_published=True), "text")
    assert re.search(r"published +0\.949† +0\.669\n", text)
    assert re.search(r"Published only\n-+\nFastMIPL +0\.999 +0\.779\n", text)
    assert "†: as recalled, unconfirmed." in text


# -------------------------------------------------------------------- scores


def scored():
    """One method on two data sets; the second has no instance labels, and one of its splits no log loss."""
    datasets = [{"load": "digits", "label": "first*"}, {"load": "digits", "label": "second", "options": {"seed": 1}}]
    names = ["accuracy", "log_loss", "instance_ap", "ece"]
    chosen = Suite(methods=["PL-kNN"], datasets=datasets, splits=2, scores=names, name="scored")
    records = []
    for place, cell in chosen.cells().items():
        scores = {"instance_ap": 0.5 if place.dataset == "first*" else float("nan")}
        if place.dataset == "first*" or place.split == 0:
            scores["log_loss"] = 1.0 + place.split
        records.append(record(cell, 0.6 + 0.2 * place.split, scores, fit_cpu_seconds=3.0))
    return Results(chosen, records)


def test_the_table_of_scores_has_means_the_worst_split_and_processor_time():
    table = scores_table(scored())
    assert table.header == ["data", "splits", "accuracy", "worst", "ECE", "log loss", "AP", "CPU s"]
    first, second = ([e.value for e in row.entries] for row in table.rows)
    assert first == ["first*", 2, pytest.approx(0.7), 0.6, None, 1.5, 0.5, 3.0]
    assert table.rows[0].entries[2].std == pytest.approx(0.2 / 2**0.5)
    # not defined is left empty, one split of two is said
    assert second == ["second", 2, pytest.approx(0.7), 0.6, None, 1.0, "", 3.0]
    assert table.rows[1].entries[5].count == 1
    text = render(table, "text")
    for words in (
        "1.000 (1)",
        "–: not computed.",
        "Empty: not defined",
        "AP: average precision",
        "splits that have the score",
    ):
        assert words in text
    assert r"| first\* |" in render(table, "markdown")


def test_a_suite_of_one_method_is_shown_by_its_scores_and_one_of_several_by_accuracy():
    assert [default_kind(r) for r in (scored(), made())] == ["scores", "accuracy"]
    with pytest.raises(ParameterError, match="unknown kind 'speed'"):
        table_of(made(), "speed")


def test_a_status_says_which_results_lack_a_score_and_how_to_get_it():
    text = status(scored())
    assert "log_loss (1)" in text
    assert "ece (4)" in text
    assert "instance_ap" not in text
    assert "--missing-scores" in text
    assert "--missing-scores" not in status(made())


def test_a_caption_says_how_bags_were_drawn_and_split():
    assert "2 random 50/50 splits." in scores_table(scored()).caption
    chosen = Suite(methods=["PL-kNN"], datasets=["digits"], splits=2, draw="per-split", train_size=0.7)
    assert "2 random 70/30 splits of bags drawn anew." in scores_table(Results(chosen, [])).caption


def test_a_status_calls_what_failed_by_the_names_of_tables():
    chosen = made().suite
    failed = [record(cell, None, error="ValueError: no") for cell in chosen.cells().values()]
    text = status(Results(chosen, failed))
    assert "failed: digits r=1 split 0 PL-kNN (MaxMin) and 7 more: ValueError: no" in text
    assert "embed=" not in text
