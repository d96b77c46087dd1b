from collections import Counter

import pytest

from mipl.bench.analysis import published


def test_published_markers_add_up_to_the_papers_win_tie_loss_table():
    pll = {"PL-kNN", "CLPL", "LSB-CMM", "SURE", "GM-PLL", "PL-AGGD"}
    counts = {r: Counter() for r in (1, 2, 3)}
    for (method, group, _, r), figure in published(0.5).items():
        if method in pll:
            assert group in ("Mean", "MaxMin")
            counts[r][figure.outcome] += 1
    assert counts == {1: Counter(win=60), 2: Counter(win=60), 3: Counter(win=59, tie=1)}


def test_published_variants_lose_as_often_as_the_paper_says():
    for method, share in (("MIPLGP-uniform", 0.86667), ("MIPLGP-naive", 0.93333)):
        outcomes = [f.outcome for (m, *_), f in published(0.5).items() if m == method]
        assert len(outcomes) == 15
        assert outcomes.count("win") / 15 == pytest.approx(share, abs=1e-5)


def test_published_figures_cover_the_tables_and_mark_what_is_unconfirmed():
    paper = published(0.5)
    assert len(paper) == 3 * 15 + 12 * 15 + 4 * 5
    assert paper["MIVAE", "", "fmnist", 1].std == 0.213
    assert all(figure.confirmed for figure in paper.values())
    later = published(0.7)
    assert later["FastMIPL", "", "mnist", 1].mean == 0.999
    assert not any(f.confirmed for (m, *_), f in later.items() if m == "DEMIPL")
    assert all(f.confirmed != f.source.endswith("as recalled, unconfirmed") for f in later.values())
