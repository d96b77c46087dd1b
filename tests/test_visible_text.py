"""Text of others is shown as text: nothing in it acts, nothing readable is lost."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from mipl.visible_text import shortened, visible

ANYTHING = st.text(st.characters(), max_size=30)  # surrogates and all categories included


@given(ANYTHING)
def test_no_control_or_direction_character_is_left(text):
    for character in visible(text):
        assert unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp")
        assert unicodedata.bidirectional(character) not in (
            "LRE",
            "RLE",
            "LRO",
            "RLO",
            "PDF",
            "LRI",
            "RLI",
            "FSI",
            "PDI",
        )


@given(st.text(st.characters(categories=["L", "M", "N", "P", "S", "Zs"])))
def test_what_can_be_seen_is_left_as_it_is(text):
    assert visible(text) == text


def test_sequences_of_terminals_are_spelled_out():
    assert visible("\x1b]0;title\x07") == r"\x1b]0;title\x07"
    assert visible("\x9b31m") == r"\x9b31m"
    assert visible("a\tb\r\nc") == r"a\tb\r\nc"
    assert visible("user\u202egnp.exe") == r"user\u202egnp.exe"
    assert visible("\ud800") == r"\ud800"
    assert visible("a\nb\x1b", keep="\n") == "a\nb\\x1b"


def test_joiners_inside_words_and_emoji_stay_and_alone_are_shown():
    assert visible("می\u200cخواهم") == "می\u200cخواهم"
    assert visible("👩\u200d🔬") == "👩\u200d🔬"
    assert visible("owl\u200d") == r"owl\u200d"
    assert visible("ow\u200bl") == r"ow\u200bl"


@given(ANYTHING, st.integers(2, 20))
def test_a_shortened_name_fits_and_keeps_its_beginning(text, most):
    short = shortened(text, most)
    assert len(short) <= most
    assert short == visible(text) or "…" in short
    assert visible(text).startswith(short.partition("…")[0]) or "…" in visible(text)
