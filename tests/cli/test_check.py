"""mipl check: problems, verdict and exit code."""

from __future__ import annotations

import json


def test_a_usable_file_ends_with_code_0_and_a_verdict(run, animals):
    done = run("check", "train.csv")
    assert done.stdout.splitlines()[-1] == "36 bags, 108 instances, 3 classes: usable (no problems)"
    told = json.loads(run("check", "train.csv", "--json").stdout)
    assert told["usable"] is True
    assert told["summary"]["candidate_of"] == {"ant": 12, "bee": 12, "cat": 12}


def test_problems_that_stop_a_fit_end_with_code_1(run, tmp_path):
    (tmp_path / "x.csv").write_text("rec;species;w\n1;owl, wren;1,5\n1;;\n2;wren;2,5\n3;owl;3,5\n")
    assert "--bag 'rec' --candidates 'species' --candidates-sep ','" in run("check", "x.csv", code=1).stdout
    told = run("check", "x.csv", "--bag", "rec", "--candidates", "species", code=1).stdout
    assert "error: x.csv: line 3, bag 1, instance 1, column 'w': the value is missing" in told
    assert "--candidates-sep ','" in told
    words = ("--bag", "rec", "--candidates", "species", "--candidates-sep", ",", "--missing", "drop")
    assert "3 classes" not in run("check", "x.csv", *words).stdout
    report = json.loads(run("check", "x.csv", *words[:4], "--json", code=1).stdout)
    assert {"kind", "severity", "where", "message", "remedy"} == set(report["problems"][0])
