"""What notebooks show: valid, small, escaped, and true."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

import mipl
from mipl import MIPLDataset
from mipl.checks import small_dataset

EVIL = "<script>alert('x')</script>"


class Parsed(HTMLParser):
    """The tags and the rows of cells of a piece of HTML; tags that are not closed are an error."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.rows: list[list[str]] = []
        self.text = ""
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not [name for name, _ in attrs if name.startswith("on") or name in ("src", "href")]
        self.open.append(tag)
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def evil() -> MIPLDataset:
    return MIPLDataset(
        mipl.Bags.from_list([np.zeros((2, 2)), np.ones((3, 2))], feature_names=[EVIL, "b & c"]),
        [{EVIL: 3, "x": 1}, {"x": 1}],
        labels=[EVIL, None],
        bag_ids=[EVIL, "second"],
        name=EVIL,
    )


@pytest.mark.filterwarnings("ignore:PL-kNN uses candidate sets only")
def test_what_data_say_is_text_and_never_markup():
    ds = evil()
    resolution = mipl.resolve(ds, mipl.make("PL-kNN", n_neighbors=1))
    for shown in (ds.bags, ds, resolution):
        found = Parsed(shown._repr_html_())
        assert found.tags == {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td"} & found.tags
        assert any(EVIL in cell or EVIL[:19] in cell for row in found.rows for cell in row)


def test_bags_show_their_sizes_and_their_first_instances():
    bags = small_dataset().bags
    found = Parsed(bags._repr_html_())
    assert found.rows[0] == ["bag", "instances", "width", "height", "weight", "age"]
    assert len(found.rows) == 1 + 5
    for i, row in enumerate(found.rows[1:]):
        assert row == [str(i), str(len(bags[i])), *(f"{value:.4g}" for value in bags[i][0].tolist())]
    assert "24 bags, 73 instances of 4 features" in found.text
    assert "first 5 of 24 bags" in found.text
    assert "150 bags, 1,125 instances of 8 × 8" in Parsed(mipl.load("digits").bags._repr_html_()).text


def test_a_data_set_shows_candidates_weights_and_labels():
    found = Parsed(evil()._repr_html_())
    assert found.rows[0] == ["bag", "instances", "candidates", "label"]
    assert found.rows[2] == ["second", "3", "x: 1", ""]
    plain = Parsed(small_dataset()._repr_html_())
    sets = small_dataset().candidate_sets()
    assert [row[2] for row in plain.rows[1:]] == [", ".join(names) for names in sets[:5]]
    assert "first" not in found.text  # both bags are there


def test_a_resolution_shows_what_its_table_has():
    resolution = mipl.resolve(mipl.load("digits"), mipl.make("PL-kNN"))
    found = Parsed(resolution._repr_html_())
    for shown, row in zip(found.rows[1:], resolution.rows(), strict=False):
        assert shown[:2] == [str(row["bag_id"]), row["label"]]
        assert float(shown[2]) == pytest.approx(row["probability"], abs=5e-4)
        assert shown[3:] == [
            row["second_label"],
            f"{row['second_probability']:.3f}",
            str(row["instance"]),
            row["truth"],
        ]
    assert resolution.verdict in found.text


def test_large_data_and_long_names_stay_small():
    names = [f"class number {i} with a very long name " * 5 for i in range(200)]
    bags = np.zeros((1000, 2, 500))
    ds = MIPLDataset(bags, np.ones((1000, 200), dtype=bool), classes=names)
    for shown in (ds, ds.bags):
        assert len(shown._repr_html_()) < 8000
