"""What belongs to the whole process stays as it was while threads save, load, fit and read."""

from __future__ import annotations

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from quick_methods import quick
from threadpoolctl import ThreadpoolController

import mipl
from mipl.bags import Bags
from mipl.gp import solvers
from mipl.gp.kernels import kernel_matrix, scaled_matern
from mipl.small_problems import small_dataset, small_problem


@pytest.fixture
def filters_set(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules of mipl that change the filters of warnings meanwhile."""
    found: list[str] = []
    enter = warnings.catch_warnings.__enter__

    def noted(self):
        found.append(sys._getframe(1).f_globals["__name__"])
        return enter(self)

    monkeypatch.setattr(warnings.catch_warnings, "__enter__", noted)
    return found


def of_mipl(found: list[str]) -> list[str]:
    return [name for name in found if name.partition(".")[0] == "mipl"]


def test_threads_that_save_and_load_leave_the_filters_of_warnings_alone(tmp_path: Path, filters_set: list[str]) -> None:
    data = small_dataset()
    X = Bags(data.bags.instances + 1e6, data.bags.offsets, feature_names=data.bags.feature_names)
    model = mipl.make("PL-kNN").fit(X, data.candidates)
    before = warnings.filters.copy()

    def save_and_load(i: int) -> None:
        mipl.load_model(model.save(tmp_path / f"{i}.mipl"))

    with warnings.catch_warnings(record=True) as told, ThreadPoolExecutor(8) as pool:
        warnings.simplefilter("always")
        list(pool.map(save_and_load, range(8)))
    assert told == []  # the bags that a model is asked about are nobody's
    assert of_mipl(filters_set) == []
    assert warnings.filters == before
    with pytest.warns(UserWarning, match="far outside"):
        model.predict(data.bags)


def test_solves_that_stop_early_are_told_by_their_residual_alone(filters_set: list[str]) -> None:
    X = torch.tensor(np.random.default_rng(0).normal(size=(60, 3)))
    K = kernel_matrix(scaled_matern(2.5, 1.0, 1.0).double(), X, 1e9)
    noise = torch.full((2, 60), 1e-6, dtype=X.dtype)
    rhs = torch.ones(2, 60, 1, dtype=X.dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del filters_set[:]
        preconditioner = solvers.Preconditioner(solvers.pivoted_cholesky(K, 1), noise)
        found = solvers.solve(K, noise, rhs, preconditioner, n_probes=0, tol=1e-12, max_iter=3)
    assert found.residual > 1e-12
    assert filters_set == []


def test_a_workbook_with_foreign_styles_is_read_without_a_word(
    tmp_path: Path, filters_set: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="Excel files need openpyxl")
    from mipl.cli import main

    load_workbook = openpyxl.load_workbook
    book = openpyxl.Workbook()
    for row in (["bag_id", "candidates", "width"], ["a", "x|y", 1.5], ["b", "x", 2.5]):
        book.active.append(row)
    book.save(tmp_path / "x.xlsx")

    def warning(*args, **keywords):
        warnings.warn_explicit("no default style", UserWarning, openpyxl.__file__, 1)
        return load_workbook(*args, **keywords)

    monkeypatch.setattr(openpyxl, "load_workbook", warning)
    with pytest.warns(UserWarning, match="no default style"):
        assert len(mipl.load(tmp_path / "x.xlsx")) == 2
    assert of_mipl(filters_set) == []
    monkeypatch.setattr(sys, "argv", ["mipl", "check", str(tmp_path / "x.xlsx")])
    with pytest.raises(SystemExit):
        main()
    assert "style" not in "".join(capsys.readouterr())


@pytest.mark.parametrize("name", mipl.methods())
def test_no_method_sets_the_number_of_blas_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limited: list[str] = []
    limit = ThreadpoolController.limit

    def noted(self, *, limits=None, user_api=None):
        if user_api != "openmp":
            limited.extend(each.filepath for each in self.lib_controllers if each.user_api == "blas")
        return limit(self, limits=limits, user_api=user_api)

    monkeypatch.setattr(ThreadpoolController, "limit", noted)
    bags, candidates, _ = small_problem(m=60)
    model = quick(name).fit(bags, candidates)
    model.predict_instances(bags)
    model.resolve(bags, candidates)
    assert limited == []
