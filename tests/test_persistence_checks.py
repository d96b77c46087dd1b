"""A model that is handed out can answer; one whose arrays do not fit together is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from quick_methods import quick
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.preprocessing import OneHotEncoder, PowerTransformer, StandardScaler

import mipl
from mipl.base import MIPLClassifier
from mipl.checks import small_problem
from mipl.errors import DataError
from mipl.persistence import _digest


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    bags, candidates, _ = small_problem()
    return mipl.make("SURE").fit(bags, candidates).save(tmp_path / "m.mipl")


def parts(path: Path) -> tuple[dict, dict]:
    with safe_open(path, framework="numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return json.loads(file.metadata()["mipl_model"]), arrays


def sign(path: Path, header: dict, arrays: dict) -> None:
    text = json.dumps(header)
    save_file(arrays, path, {"mipl_format": "2", "mipl_model": text, "sha256": _digest(text, arrays)})


@pytest.mark.parametrize(
    "change",
    [
        lambda array: np.full_like(array, np.nan),
        lambda array: np.ascontiguousarray(array[:-1]),
        lambda array: array.astype(np.float16),
        lambda array: array.reshape(-1),
    ],
    ids=["nan", "shorter", "half precision", "flat"],
)
def test_an_array_that_is_not_as_the_header_says_is_refused_by_its_name(saved: Path, change):
    header, arrays = parts(saved)
    name = max(arrays, key=lambda each: arrays[each].size)
    sign(saved, header, {**arrays, name: change(arrays[name])})
    with pytest.raises(
        DataError, match=r"m\.mipl: the array .* (has the (shape|dtype)|has values that are not finite)"
    ):
        mipl.load_model(saved)


def test_a_forger_who_changes_the_header_too_is_refused_by_the_answers(saved: Path):
    header, arrays = parts(saved)

    def strip(node):
        if isinstance(node, dict):
            for key in ("shape", "dtype", "finite"):
                node.pop(key, None)
        for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            strip(value)

    strip(header["model"])
    used = [name for name in arrays if name.rpartition(".")[2] in ("samples_", "dual_coef_", "intercept_")]
    assert len(used) == 3
    for name in used:
        array = arrays[name]
        for bad in (np.full(array.shape, np.nan), np.ascontiguousarray(array[:-1])):
            sign(saved, header, {**arrays, name: bad})
            with pytest.raises(DataError, match=r"m\.mipl: (the model does not answer|.*not finite)"):
                mipl.load_model(saved)


@pytest.mark.parametrize(
    ("attribute", "value", "told"),
    [
        ("n_features_in_", 10**15, "n_features_in_"),
        ("n_features_in_", "4", "n_features_in_"),
        ("classes_", 3, "classes_|answer"),
        ("embed", "sideways", "embed"),
        ("embed", None, "embed"),
    ],
)
def test_an_odd_value_is_refused(saved: Path, attribute: str, value: object, told: str):
    header, arrays = parts(saved)
    header["model"]["state"][attribute] = value
    sign(saved, header, arrays)
    with pytest.raises(DataError, match=told):
        mipl.load_model(saved)


@pytest.mark.parametrize(
    ("attribute", "change", "told"),
    [
        (
            "coef_variance_",
            lambda a: np.where(np.arange(len(a)) == 7, np.inf, a),
            "coef_variance_ of the BagGP has val",
        ),
        ("posterior_", lambda a: a - 2 * (np.arange(len(a)) == 3)[:, None], "posterior_ of the BagGP has rows"),
        ("feature_ranges_", lambda a: a[:1], "feature_ranges_ are not the ranges of 4 features"),
        ("feature_ranges_", lambda a: a[:, :1], "feature_ranges_ are not the ranges of 4 features"),
    ],
)
def test_an_array_that_the_question_does_not_meet_is_refused(tmp_path: Path, attribute: str, change, told: str):
    bags, candidates, _ = small_problem()
    path = quick("BagGP").fit(bags, candidates).save(tmp_path / "m.mipl")
    header, arrays = parts(path)
    node = header["model"]["state"][attribute]
    arrays[node["name"]] = np.ascontiguousarray(change(arrays[node["name"]]))
    node.update(shape=list(arrays[node["name"]].shape), finite=False)
    sign(path, header, arrays)
    with pytest.raises(DataError, match=told):
        mipl.load_model(path)


def test_a_parameter_that_is_missing_is_named(saved: Path):
    header, arrays = parts(saved)
    del header["model"]["state"]["embed"]
    sign(saved, header, arrays)
    with pytest.raises(DataError, match="lacks its parameter 'embed'"):
        mipl.load_model(saved)


@pytest.mark.parametrize("transformer", [StandardScaler(), PowerTransformer("box-cox"), OneHotEncoder()], ids=str)
def test_models_whose_transformers_refuse_the_question_are_saved_and_loaded(tmp_path: Path, transformer):
    bags, candidates, _ = small_problem()
    positive = mipl.Bags(np.abs(bags.instances).round() + 1, bags.offsets)
    if isinstance(transformer, OneHotEncoder):
        transformer.set_params(sparse_output=False)
    model = mipl.make_pipeline(mipl.BagTransformer(transformer), mipl.make("PL-kNN")).fit(positive, candidates)
    path = model.save(tmp_path / "m.mipl")
    back = mipl.load_model(path)
    assert np.array_equal(back.predict_proba(positive), model.predict_proba(positive))


class Shy(MIPLClassifier):
    """A user's method that answers for its own bags only, and counts how often it is asked."""

    asked = 0

    def _fit(self, bags, candidates):
        self.shares_ = candidates.mean(axis=0) / candidates.mean(axis=0).sum()

    def _predict_proba(self, bags):
        type(self).asked += 1
        raise RuntimeError("not these bags")


def test_methods_of_users_are_not_asked(tmp_path: Path):
    bags, candidates, _ = small_problem()
    assert type(mipl.load_model(Shy().fit(bags, candidates).save(tmp_path / "m.mipl"))) is Shy
    assert Shy.asked == 0
