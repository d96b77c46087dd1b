"""mipl explain: the label of each bag among all classes, and the instance that it comes from."""

from __future__ import annotations

import csv
import json

import numpy as np


def test_the_instance_behind_each_label_is_named(run, animals, rows, tmp_path):
    run("fit", "train.csv", "-m", "PL-kNN", "--out", "m.mipl")
    with (tmp_path / "mixed.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["bag_id", "candidates", "length", "width"])
        # Two cats and a bee: the bag looks like cat on average, and the bee is not behind that.
        writer.writerows([["x", "ant|bee", v, v] for v in (10, 20, 20.1)])
        writer.writerows([["y", "ant|bee", v, v] for v in (0, 0.1)])
    run("explain", "m.mipl", "mixed.csv", "--out", "answers.csv")
    found = rows("answers.csv")
    assert [row["predicted"] for row in found] == ["cat", "ant"]
    assert found[0]["instance"] in "12"
    assert np.isclose(sum(float(found[0][f"p({name})"]) for name in ("ant", "bee", "cat")), 1, atol=1e-5)
    told = json.loads(run("explain", "m.mipl", "mixed.csv", "--json").stdout)
    assert [row["instance"] for row in told] == [int(row["instance"]) for row in found]


def test_a_large_file_is_explained_in_chunks_with_the_same_answers(run, animals, tmp_path, monkeypatch):
    run("fit", "train.csv", "-m", "PL-kNN", "--out", "m.mipl")
    lines = (tmp_path / "new.csv").read_text().splitlines()
    names = ["note", *(f"s{i}" for i in range(1, len(lines)))]
    (tmp_path / "named.csv").write_text("".join(f"{a},{b}\n" for a, b in zip(lines, names, strict=True)))
    words = ("explain", "m.mipl", "named.csv", "--instance-id", "note")
    run(*words, "--out", "whole.csv", "--instances", "whole-instances.csv")
    monkeypatch.setattr("mipl.scanning.chunks._CHUNK_BYTES", 200)
    done = run(*words, "--out", "parts.csv", "--instances", "parts-instances.csv")
    assert (tmp_path / "parts.csv").read_text() == (tmp_path / "whole.csv").read_text()
    assert (tmp_path / "parts-instances.csv").read_text() == (tmp_path / "whole-instances.csv").read_text()
    assert "4 bags, written to parts.csv" in done.stderr
    assert "accuracy against the file's labels: 1.000" in done.stderr
