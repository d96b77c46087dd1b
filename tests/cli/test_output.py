"""Printed tables: numbers, lists and unknown values as a person reads them."""

from __future__ import annotations

import re

from mipl.cli.output import SUMMARY_COLUMNS, print_table


def test_a_table_shows_every_kind_of_value(capsys):
    print_table("title", ("name", "x"), [("[bold]", 0.12345), ("big", 12345.678), ("many", 1234567)])
    print_table("", ("kind", "value"), [("unknown", None), ("list", ["a", "b"])])
    told = capsys.readouterr().out
    for words in ("title", "[bold] 0.123", "big 12,345.7", "many 1,234,567", "unknown –", "list a|b"):
        assert words in " ".join(told.split())


def test_headings_break_between_words_and_not_within(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    print_table("", SUMMARY_COLUMNS, [("latin1", 60, 277, 7, 3, 5, 6, 2.033, None)])
    told = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert max(map(len, told.splitlines())) == 80
    assert set(" ".join(SUMMARY_COLUMNS).split()) <= set(told.split())
