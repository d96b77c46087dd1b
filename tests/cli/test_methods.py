"""mipl methods: the registry, printed."""

from __future__ import annotations

import json

import mipl


def test_all_methods_are_listed_with_their_parameters(run):
    listed = json.loads(run("methods", "--json").stdout)
    assert [entry["name"] for entry in listed] == list(mipl.methods())
    assert all(entry["parameters"] == mipl.make(entry["name"])._get_param_names() for entry in listed)
    assert "PL-kNN" in run("methods").stdout
