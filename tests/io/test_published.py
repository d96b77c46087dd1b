"""Files that the authors published are told from others by their content."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

import mipl
from mipl.io import arrays


def published_layout(path: Path) -> Path:
    cells = np.empty((2, 3), dtype=object)
    for i in range(2):
        cells[i] = [np.full((2, 3), float(i)), np.array([[1, 2]]), np.array([[i + 1]])]
    savemat(path, {"data": cells})
    return path


def test_the_id_of_a_file_is_the_one_that_git_gives_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"hello\n")
    assert arrays.git_blob(tmp_path / "a.txt") == "ce013625030ba8dba906f756967f9e9ca394464a"  # git hash-object


def test_a_data_set_says_whether_its_file_is_the_authors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = published_layout(tmp_path / "MNIST_MIPL_r1.mat")
    assert mipl.load(path).description.startswith("Not one of the authors'")
    monkeypatch.setattr(arrays, "AUTHORS_MNIST", ("00000000", arrays.git_blob(path)[:8]))
    assert mipl.load(path).description.startswith("One of the MNIST-MIPL files that the authors")


def test_a_file_that_mipl_wrote_keeps_its_own_description(tmp_path: Path) -> None:
    ds = mipl.load("digits", r=1)
    assert mipl.load(ds.save(tmp_path / "x.mat")).description == ds.description
