"""mipl methods: the registry, printed."""

from __future__ import annotations

import json

import mipl


def test_all_methods_are_listed_with_their_parameters(run):
    listed = json.loads(run("methods", "--json").stdout)
    assert [entry["name"] for entry in listed] == list(mipl.methods())
    assert all(entry["parameters"] == list(mipl.methods()[entry["name"]].parameters()) for entry in listed)


def test_every_method_says_in_one_line_what_it_does_and_variants_what_they_change(run):
    told = run("methods").stdout
    for name, method in mipl.methods().items():
        assert f"{name} " in told
        assert method.summary in told
    assert "With disambiguation='uniform'." in told
