import numpy as np
import pytest
from bench_methods import Tunable

import mipl
from mipl import registry
from mipl.bench import Suite, load_suite, suite_names
from mipl.bench.execution.worker import run_cell
from mipl.bench.suite.scores import DEFAULT_SCORES, SCORES
from mipl.datasets import min_max
from mipl.errors import DataError

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
params = { n_neighbors = 1 }
on.digits = { n_neighbors = 3 }
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
    assert cells["digits", 1, 0, "one"].params == {"n_neighbors": 3}
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
    suite = Suite(methods=[Tunable(depth=3)], datasets=["digits"], splits=1)
    same = Suite(methods=[{"method": "bench_methods:Tunable", "params": {"depth": 3}}], datasets=["digits"], splits=1)
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
    monkeypatch.setattr(registry, "_METHODS", {"PL-kNN": registry._METHODS["PL-kNN"]})
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
        ('datasets = ["digits"]\nmethods = [{ method = "PL-kNN", params = ["embed"] }]', r"'PL-kNN' are \['embed'\]"),
        ('datasets = ["digits"]\nmethods = [{ method = "PL-kNN", on = ["digits"] }]', "names and values"),
        ('datasets = ["digits"]\nmethods = [{ method = "PL-kNN", on = { digits = 5 } }]', "on 'digits' of the method"),
        ('datasets = [{ load = "digits", options = ["r"] }]\nmethods = ["PL-kNN"]', "options of the data set 'digits'"),
        ('datasets = ["digits"]', "needs a list of methods"),
        ('datasets = "digits"\nmethods = ["PL-kNN"]', "needs a list of datasets"),
        ('datasets = ["digits"]\nmethods = [["PL-kNN"]]', "not \\['PL-kNN'\\]"),
        ('datasets = ["digits"]\nmethods = [{ method = 3 }]', "not a suite"),
        ('datasets = ["digits"]\nmethods = ["PL-kNN"]\nsplits = 1000000000', "between 1 and 100,000"),
        ('datasets = ["digits"]\nmethods = ["PL-kNN"]\nfirst_split = 4294967296', "below 2"),
        ("datasets = " + "[" * 3000, "not a suite"),
        ("splits = " + "9" * 5000, "not a suite"),
        ('datasets = ["digits"]\nmethods = ["PL-kNN"]\nscores = ["f1"]', "unknown score 'f1'"),
        ('datasets = ["digits"]\nmethods = ["PL-kNN"]\ndraw = "twice"', "use 'once' or 'per-split'"),
        ('datasets = ["digits"]\nmethods = ["PL-kNN"]\nfirst_split = -1', "at least 0"),
        (
            'datasets = [{ load = "digits", options = { seed = 1 } }]\nmethods = ["PL-kNN"]\ndraw = "per-split"',
            "leave it out",
        ),
    ],
)
def test_a_wrong_suite_is_refused_with_the_reason(tmp_path, content, message):
    (tmp_path / "wrong.toml").write_text(content)
    with pytest.raises(DataError, match=message):
        load_suite(tmp_path / "wrong.toml")


def test_min_max_scaling_is_fitted_on_the_training_bags_and_belongs_to_the_cell():
    spec = {"load": "digits", "scale": "min-max"}
    (scaled,) = Suite(methods=["SURE"], datasets=[spec], splits=1).cells().values()
    (raw,) = Suite(methods=["SURE"], datasets=["digits"], splits=1).cells().values()
    train, test = min_max(*mipl.load("digits", r=1).split(0.5, seed=0))
    model = mipl.make("SURE").fit(train.bags, train.candidates)
    assert run_cell(scaled).scores["accuracy"] == model.score(test.bags, test.labels)
    assert scaled.key != raw.key
    with pytest.raises(DataError, match="use 'min-max' or 'z-scores'"):
        Suite(methods=["SURE"], datasets=[{"load": "digits", "scale": "unit"}])


# -------------------------------------------------------------------- scores, seeds and shares


def test_scores_do_not_belong_to_the_identity_of_a_cell_and_accuracy_is_always_among_them():
    suites = [Suite(methods=["PL-kNN"], datasets=["digits"], splits=1, **s) for s in ({}, {"scores": ["instance_ap"]})]
    assert set(suites[0].scores) == set(DEFAULT_SCORES)
    assert suites[1].scores == ("accuracy", "instance_ap")
    (a,), (b,) = (suite.cells().values() for suite in suites)
    assert a.key == b.key


def test_bags_drawn_per_split_are_other_cells_than_bags_drawn_once():
    common = {"methods": ["PL-kNN"], "datasets": ["digits"], "splits": 2}
    once, anew = (Suite(**common, draw=draw).cells() for draw in ("once", "per-split"))
    assert [cell.options for cell in once.values()] == [{}, {}]
    assert [cell.options for cell in anew.values()] == [{"seed": 0}, {"seed": 1}]
    assert not {c.key for c in once.values()} & {c.key for c in anew.values()}


def test_a_file_cannot_be_drawn_anew(tmp_path):
    mipl.MIPLDataset([np.zeros((2, 3))] * 4, [{0, 1}] * 4, labels=[0, 1, 0, 1]).save(tmp_path / "a.npz")
    with pytest.raises(DataError, match="draws bags anew"):
        Suite(methods=["PL-kNN"], datasets=[tmp_path / "a.npz"], draw="per-split")


def test_a_data_set_may_have_a_share_of_training_bags_of_its_own():
    datasets = [
        {"load": "digits", "label": "a", "train_size": 0.7},
        {"load": "digits", "label": "b", "train_size": 0.5},
        {"load": "digits", "label": "c"},
    ]
    suite = Suite(methods=["PL-kNN"], datasets=datasets, splits=1, train_size=0.6)
    assert [cell.train_size for cell in suite.cells().values()] == [0.7, 0.5, 0.6]
    part = suite.select(train_size=0.7)
    assert {place.dataset: cell.train_size for place, cell in part.cells().items()} == {"a": 0.7, "c": 0.7}
    with pytest.raises(DataError, match="no data set with train_size"):
        suite.select(datasets=["a", "b"], train_size=0.9)


def test_the_flagship_suite_has_the_seeds_shares_and_groups_of_its_protocol():
    suite = load_suite("flagship")
    cells = suite.cells()
    assert len(cells) == 13 * 3 * 5
    assert {cell.split for cell in cells.values()} == {30, 31, 32, 33, 34}
    assert all(cell.options["seed"] == cell.split for cell in cells.values())
    groups = {(cell.train_size, cell.options.get("groups")) for cell in cells.values() if cell.dataset == "birdsong"}
    assert groups == {(0.7, None), (0.7, 10), (0.5, None), (0.5, 10), (0.5, 2)}
    assert set(suite.scores) < set(SCORES)
