"""Printed tables: numbers, lists and unknown values as a person reads them."""

from __future__ import annotations

from mipl.cli.output import print_table


def test_a_table_shows_every_kind_of_value(capsys):
    print_table("title", ("name", "x"), [("[bold]", 0.12345), ("big", 12345.678), ("many", 1234567)])
    print_table("", ("kind", "value"), [("unknown", None), ("list", ["a", "b"])])
    told = capsys.readouterr().out
    for words in ("title", "[bold] 0.123", "big 12,345.7", "many 1,234,567", "unknown –", "list a|b"):
        assert words in " ".join(told.split())
