"""The size of a page, and what is left out to keep it."""

from __future__ import annotations

import numpy as np
import pytest
from report_pages import Page, made_up

from mipl.report.evidence import evidence_of
from mipl.report.page import render_page


# Random pixels are the worst case: they cannot be packed.
@pytest.mark.parametrize(("m", "size", "limit"), [(1_000, 10, 3e6), (20_000, 3, 8e6)])
def test_pages_of_images_keep_their_size_and_say_what_they_leave_out(m, size, limit):
    html = render_page(made_up(m, q=10, size=size, shape=(28, 28)))
    assert 0.5 * limit < len(html.encode()) < limit
    read = Page(html)
    assert len(read.data["rows"]) == m
    n_drawn = len(read.data["details"])
    assert n_drawn < m
    assert f"the instances of {n_drawn:,} bags are drawn" in read.text
    assert "in 16 shades of grey" in read.text


def test_a_small_page_leaves_nothing_out():
    read = Page(render_page(made_up(300, shape=(28, 28))))
    assert len(read.data["details"]) == 300
    assert "are drawn" not in read.text
    assert "shades" not in read.text


def test_a_list_that_would_be_too_long_has_the_most_doubtful_bags():
    found = made_up(20_000, size=1, shape=(1,), bag_ids=np.array([f"{i:0400d}" for i in range(20_000)]))
    html = render_page(found)
    assert len(html) < 8e6
    read = Page(html)
    k = len(read.data["rows"])
    assert k < 20_000
    assert f"The list has the {k:,} most doubtful of 20,000 bags" in read.text
    nearest = np.argsort(found.margin, kind="stable")[:k]
    assert [row[0] for row in read.data["rows"]] == found.bag_ids[nearest].tolist()


def test_doubtful_bags_are_drawn_and_a_sample_of_the_others():
    found = made_up(4_000, size=2, shape=(12, 12))
    drawn = np.array(sorted(evidence_of(found, np.arange(4_000), 60_000).details))
    assert 100 < len(drawn) < 1_000
    from_the_top = np.flatnonzero(np.diff(drawn) > 1)[0] + 1
    assert 0.7 < from_the_top / len(drawn) < 0.9
    assert drawn[-1] > 3_000
