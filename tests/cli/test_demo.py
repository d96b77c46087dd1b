"""mipl demo: the numbers that it prints are those of the files that it writes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from matplotlib.image import imread

import mipl


def test_the_demo_tells_the_truth_about_what_it_found(run, rows, tmp_path):
    told = run("demo").stdout
    train, test = mipl.load("digits", r=1, seed=0).split(train_size=0.7, seed=0)
    found = rows("demo/resolved.csv")
    assert [row["bag_id"] for row in found] == train.bag_ids.astype(str).tolist()
    share = np.mean([row["label"] == name for row, name in zip(found, train.label_names(), strict=True)])
    model = mipl.load_model(tmp_path / "demo" / "model.mipl")
    assert model.classes_.tolist() == train.classes.tolist()
    accuracy = np.mean(model.predict(test) == np.array(test.label_names()))
    of_new, of_train = (re.search(rf"{words}.*?(\d\.\d+) +(\d\.\d+)", told) for words in ("new bags", "training bags"))
    assert [float(v) for v in of_new.groups()] == pytest.approx([accuracy, 1 / 5], abs=5e-4)
    assert [float(v) for v in of_train.groups()] == pytest.approx([share, 1 / 2], abs=5e-4)
    assert min(accuracy, share) > 0.9
    assert imread(tmp_path / "demo" / "resolved.png").std() > 0.05


def test_the_first_bags_are_printed_as_they_are_in_the_file(run, rows):
    told = run("demo", "--method", "PL-kNN", "--r", 2, "--out", "d").stdout
    lines = [line.split() for line in told.splitlines()]
    for row in rows("d/resolved.csv")[:8]:
        assert any(row["candidates"] in line and line[:2] == [row["bag_id"], row["label"]] for line in lines)
