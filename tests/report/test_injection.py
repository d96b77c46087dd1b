"""Names that look like HTML, scripts or markup are text, in the HTML and in the data of the script."""

from __future__ import annotations

import numpy as np
import pytest
from report_pages import Page, made_up

from mipl.report.budget import embedded_json
from mipl.report.page import render_page, write_page

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "<!--",
    "\"quoted\" & 'quoted'",
    "{{ 7 * 7 }} {% raw %}",
    "=cmd|' /C calc'!A0",
    "\u2028 line \u2029 separators",
    "[red]rich[/red] \x1b[31mred\x1b[0m",
    "rechts \u202e tfel",
    "x" * 5_000,
    "日本語 🦉",
    "${name}`",
]


@pytest.fixture(scope="module")
def html() -> str:
    q = len(HOSTILE)
    ids = np.array(HOSTILE + [f"bag {i}" for i in range(28)])
    truth = np.array(HOSTILE * 4, dtype=object)[:40]
    found = made_up(40, q=q, classes=np.array(HOSTILE), bag_ids=ids, truth=truth, method="<b>method</b>")
    decisions = {name: name for name in HOSTILE} | {"</script>": None}
    return render_page(found, title=HOSTILE[0], notes={"<i>": HOSTILE[1], "p": {"a": "<b>"}}, decisions=decisions)


def test_no_name_makes_a_tag(html):
    harmless = Page(render_page(made_up(40, q=len(HOSTILE), truth=np.array(["class 0", "class 1"] * 20, dtype=object))))
    read = Page(html)
    assert {tag for tag, _ in read.tags} <= {tag for tag, _ in harmless.tags}
    assert [tag for tag, _ in read.tags].count("script") == 2
    assert not any(name.startswith("on") for _, attributes in read.tags for name in attributes)


def test_names_are_shown_as_they_are(html):
    read = Page(html)
    assert read.data["names"] == HOSTILE
    assert {row[0] for row in read.data["rows"]} >= set(HOSTILE)
    for name in HOSTILE:
        assert " ".join(name.split()) in read.text
    assert read.text.count("<script>alert(1)</script>") >= 3


def test_the_data_cannot_end_their_element_or_begin_a_comment(html):
    start = html.index('class="mipl-data">') + len('class="mipl-data">')
    data = html[start : html.index("</script>", start)]
    assert not set(data) & set("<>&\u2028\u2029")
    assert data.isascii()
    assert embedded_json({"a": "\ud800"}) == '{"a":"\\ud800"}'


def test_half_a_character_is_no_reason_to_write_no_page(tmp_path):
    page = write_page(made_up(bag_ids=np.array([f"\ud800{i}" for i in range(40)])), tmp_path / "page.html")
    assert "Bag ?" in Page(page.read_text(encoding="utf-8")).text.replace("Bag ? ", "Bag ?")
