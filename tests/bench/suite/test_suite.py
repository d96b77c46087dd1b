import textwrap

import numpy as np
import pytest
from mipl.bench.code_version import code_version
from mipl.bench.worker import run_cell

import mipl
from mipl.bench import Suite, load_suite, suite_names
from mipl.datasets import min_max
from mipl.errors import DataError
from mipl.pll.plknn import PLkNNBags

TOML = """
datasets = ["digits", { load = "digits", label = "other digits", r = [4], options = { seed = 1 } }]
r = [1, 2]
splits = 2
reference = "one"
[[methods]]
method = ["PL-kNN"]
group = "MaxMin"
params = { embed = "maxmin" }
[[methods]]
method = "PL-kNN"
label = "one"
params = { k = 1 }
on.digits = { k = 3 }
"""


def test_the_suites_of_the_paper_and_a_quick_one_come_with_the_package():
    assert {"paper-pll", "paper-mil", "paper-prior", "quick"} <= set(suite_names())


def test_a_toml_suite_expands_to_every_combination(tmp_path):
    (tmp_path / "mine.toml").write_text(TOML)
    suite = load_suite(tmp_path / "mine.toml")
    cells = suite.cells()
    assert suite.name == "mine"
    assert len(cells) == (2 + 1) * 2 * 2
    assert cells["digits", 1, 0, "PL-kNN (MaxMin)"].params == {"embed": "maxmin"}
    assert cells["digits", 1, 0, "one"].params == {"k": 3}
    assert cells["other digits", 4, 1, "one"].options == {"seed": 1}
    assert len({cell.key for cell in cells.values()}) == len(cells)


def test_a_yaml_suite_is_the_same_as_a_toml_suite(tmp_path):
    yaml = pytest.importorskip("yaml")
    import tomllib

    (tmp_path / "a.toml").write_text(TOML)
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(tomllib.loads(TOML)))
    a, b = load_suite(tmp_path / "a.toml"), load_suite(tmp_path / "a.yaml")
    assert [c.key for c in a.cells().values()] == [c.key for c in b.cells().values()]


def test_an_estimator_in_a_python_list_is_the_same_cell_as_its_import_path():
    suite = Suite(methods=[PLkNNBags(k=3)], datasets=["digits"], splits=1)
    same = Suite(methods=[{"method": "mipl.pll.plknn:PLkNNBags", "params": {"k": 3}}], datasets=["digits"], splits=1)
    (a,), (b,) = suite.cells().values(), same.cells().values()
    assert a.key == b.key


def test_a_changed_file_is_another_data_set(tmp_path):
    file = tmp_path / "bags.npz"
    keys = set()
    for value in (0.0, 1.0):
        mipl.MIPLDataset([np.full((2, 3), value)] * 4, [{0, 1}] * 4, labels=[0, 1, 0, 1]).save(file)
        keys |= {cell.key for cell in Suite(methods=["PL-kNN"], datasets=[file], splits=1).cells().values()}
    assert len(keys) == 2


def test_files_with_different_r_share_a_column(tmp_path):
    files = []
    for r in (1, 2):
        files.append(tmp_path / f"bags{r}.npz")
        mipl.MIPLDataset([np.zeros((2, 3))] * 4, [{0, r}] * 4, classes=[0, 1, 2]).save(files[-1])
    entries = [{"load": file, "label": "mine", "r": r} for r, file in enumerate(files, start=1)]
    suite = Suite(methods=["PL-kNN"], datasets=entries, splits=1)
    assert {place[:2]: cell.dataset for place, cell in suite.cells().items()} == {
        ("mine", 1): str(files[0]),
        ("mine", 2): str(files[1]),
    }
    assert suite.dataset_labels == ["mine"]
    assert list(suite.select(r=[2]).cells()) == [("mine", 2, 0, "PL-kNN")]
    with pytest.raises(DataError, match="has no r 3"):
        suite.select(r=[3])


def test_selecting_keeps_the_cells_of_the_selection(tmp_path):
    (tmp_path / "mine.toml").write_text(TOML)
    suite = load_suite(tmp_path / "mine.toml")
    part = suite.select(methods=["PL-kNN"], r=[2], splits=1)
    assert list(part.cells()) == [("digits", 2, 0, "PL-kNN (MaxMin)")]
    assert part.cells()["digits", 2, 0, "PL-kNN (MaxMin)"].key in {c.key for c in suite.cells().values()}
    assert part.reference == "PL-kNN (MaxMin)"


def test_what_this_installation_lacks_is_left_out_of_a_packaged_suite_and_said(monkeypatch):
    monkeypatch.setattr("mipl.registry._METHODS", {"PL-kNN": "mipl.pll.plknn:PLkNNBags"})
    said = []
    suite = load_suite("quick", said.append)
    assert {m.method for m in suite.methods} == {"PL-kNN"}
    assert "MIPLGP" in said[0]
    assert "takes its place" in said[1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('datasets = ["digits"]\nmethods = ["PL-kN"]', "unknown method 'PL-kN'"),
        ('datasets = ["digitz"]\nmethods = ["PL-kNN"]', "neither a data set"),
        ('datasets = ["digits"]\nmethods = ["PL-kNN"]\nsplit = 3', "no key 'split'"),
        ('datasets = ["digits"]\nmethods = ["PL-kNN", "PL-kNN"]', "occurs 2 times"),
        ('datasets = ["digits"]\nmethods = [{ name = "PL-kNN" }]', "no key 'name'"),
        ('datasets = ["digits"]\nmethods = ["PL-kNN"]\nreference = "SURE"', "none of the methods"),
        ('datasets = ["digits"]\nmethods = ["PL-kNN"]\ntrain_size = 70', "between 0 and 1"),
        ('datasets = ["digits"]\nmethods = []', "at least one method"),
        ("datasets = [", "not valid TOML"),
    ],
)
def test_a_wrong_suite_is_refused_with_the_reason(tmp_path, content, message):
    (tmp_path / "wrong.toml").write_text(content)
    with pytest.raises(DataError, match=message):
        load_suite(tmp_path / "wrong.toml")


def test_the_code_version_follows_imports_but_not_comments(tmp_path, monkeypatch):
    package = tmp_path / "made_up_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "unrelated.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)

    def version(method, helper):
        (package / "method.py").write_text(textwrap.dedent(method))
        (package / "helper.py").write_text(helper)
        for cached in ("code_version", "_digest", "_source_file"):
            getattr(__import__("mipl.bench.code_version", fromlist=[cached]), cached).cache_clear()
        return code_version("made_up_package.method")

    method = "def f():\n    from .helper import g\n    return g\n"
    base = version(method, "def g(): return 1\n")
    assert version(method, '"""Doc."""\n\ndef g():\n    """Doc."""\n    return 1  # one\n') == base
    assert version(method, "def g(): return 2\n") != base
    assert version(method.replace("return g", "return g()"), "def g(): return 1\n") != base
    (package / "unrelated.py").write_text("x = 2\n")
    assert version(method, "def g(): return 1\n") == base


def test_min_max_scaling_is_fitted_on_the_training_bags_and_belongs_to_the_cell():
    spec = {"load": "digits", "scale": "min-max"}
    (scaled,) = Suite(methods=["SURE"], datasets=[spec], splits=1).cells().values()
    (raw,) = Suite(methods=["SURE"], datasets=["digits"], splits=1).cells().values()
    train, test = min_max(*mipl.load("digits", r=1).split(0.5, seed=0))
    model = mipl.make("SURE").fit(train.bags, train.candidates)
    assert run_cell(scaled).accuracy == model.score(test.bags, test.labels)
    assert scaled.key != raw.key
    with pytest.raises(DataError, match="use 'min-max'"):
        Suite(methods=["SURE"], datasets=[{"load": "digits", "scale": "unit"}])
