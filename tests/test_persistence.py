"""Saved models: exact, whole, and unable to run code."""

from __future__ import annotations

import json
import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mipl
from mipl.bags import Bags
from mipl.base import MIPLClassifier
from mipl.checks import small_problem
from mipl.errors import DataError
from mipl.mil import VGPMIL
from mipl.mil.ovr import OneVsRest
from mipl.persistence import _decode, _digest, _encode
from mipl.pll import PLkNN
from mipl.pll.base import PLLClassifier
from mipl.pll.embedding import EmbeddedPLL


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    ds = mipl.load("digits", r=1)
    return mipl.make("PL-kNN").fit(ds.bags, ds.candidates, classes=ds.classes).save(tmp_path / "m.mipl")


def rewrite(path: Path, change_header=lambda h: h, **metadata: str) -> None:
    """Write a model file again with another header and a checksum that fits it: a skilled forger."""
    with safe_open(path, framework="numpy") as file:
        old = file.metadata()
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    header = json.dumps(change_header(json.loads(old["mipl_model"])))
    save_file(arrays, path, {**old, "mipl_model": header, "sha256": _digest(header, arrays), **metadata})


def test_another_process_gives_the_same_answers(saved, tmp_path):
    ds = mipl.load("digits", r=1)
    here = mipl.load_model(saved).predict_proba(ds.bags)
    program = (
        "import mipl, numpy, sys; ds = mipl.load('digits', r=1);"
        "numpy.save(sys.argv[2], mipl.load_model(sys.argv[1]).predict_proba(ds.bags))"
    )
    subprocess.run([sys.executable, "-c", program, str(saved), str(tmp_path / "p.npy")], check=True)
    assert np.array_equal(np.load(tmp_path / "p.npy"), here)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9, 0.9999])
def test_a_truncated_file_is_refused(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(DataError, match=r"m\.mipl is damaged or not a mipl model"):
        mipl.load_model(saved)


def test_a_changed_number_is_noticed(saved):
    content = bytearray(saved.read_bytes())
    content[-5] ^= 1
    saved.write_bytes(bytes(content))
    with pytest.raises(DataError, match="its checksum does not match"):
        mipl.load_model(saved)


def test_foreign_newer_and_missing_files_are_refused(saved, tmp_path):
    save_file({"x": np.ones(3)}, tmp_path / "x.safetensors")
    with pytest.raises(DataError, match="but not a mipl model"):
        mipl.load_model(tmp_path / "x.safetensors")
    rewrite(saved, mipl_format="99")
    with pytest.raises(DataError, match=r"has model format 99, .* upgrade mipl"):
        mipl.load_model(saved)
    with pytest.raises(DataError, match="no such model file"):
        mipl.load_model(tmp_path / "none.mipl")


def test_a_model_that_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        mipl.make("PL-kNN").save(tmp_path / "u.mipl")
    assert not list(tmp_path.iterdir())


class Trap:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (os.system, (f"touch {self.path}",))


def test_a_pickle_is_not_executed(tmp_path):
    path = tmp_path / "evil.mipl"
    path.write_bytes(pickle.dumps(Trap(tmp_path / "pwned")))
    with pytest.raises(DataError):
        mipl.load_model(path)
    # The same bytes behind a plausible safetensors length.
    body = pickle.dumps(Trap(tmp_path / "pwned"))
    path.write_bytes(struct.pack("<Q", len(body)) + body)
    with pytest.raises(DataError):
        mipl.load_model(path)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "subprocess:Popen",
        "builtins:eval",
        "mipl.persistence:load_model",
        "mipl.__main__:main",
        "sklearn.utils:Bunch",
        "sklearn.tests.test_base:MyEstimator",
        "mipl.pll.plknn:PLkNN.fit",
        "mipl.pll.plknn:",
        "mipl..pll:PLkNN",
        "mipl.\0:PLkNN",
        "nonsense",
    ],
)
def test_a_header_cannot_name_anything_but_an_estimator(saved, name):
    def forge(header):
        header["model"]["class"] = name
        return header

    rewrite(saved, forge)
    with pytest.raises(DataError, match="not an estimator of mipl or scikit-learn"):
        mipl.load_model(saved)


@pytest.mark.parametrize("name", ["sklearn.linear_model._logistic:LogisticRegression", "mipl.features:UnitRows"])
def test_a_file_that_holds_no_model_of_mipl_is_refused(saved, name):
    def forge(header):
        header["model"] = {"$": "estimator", "class": name, "state": {"classes_": [0, 1], "norm_": 1}}
        if name.startswith("sklearn"):
            header["model"]["state"]["save"] = 1
        return header

    rewrite(saved, forge)
    with pytest.raises(DataError, match="does not hold a mipl estimator"):
        mipl.load_model(saved)


def test_no_module_named_by_a_file_is_imported(saved, tmp_path, monkeypatch):
    (tmp_path / "trap_module.py").write_text(
        f"open({str(tmp_path / 'pwned')!r}, 'w')\nfrom mipl.pll.plknn import PLkNN\nclass Model(PLkNN): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def forge(header):
        header["model"]["class"] = "trap_module:Model"
        return header

    rewrite(saved, forge)
    with pytest.raises(DataError, match="if it is your own, import it before loading"):
        mipl.load_model(saved)
    assert not (tmp_path / "pwned").exists()


def test_a_model_of_numpy_is_loaded_without_torch(saved):
    program = "import mipl, sys; mipl.load_model(sys.argv[1]); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", program, str(saved)], check=True)


@pytest.mark.parametrize("attribute", ["__class__", "__dict__", "predict", "_cache", "x; y_"])
def test_a_header_cannot_set_what_fit_does_not(saved, attribute):
    def forge(header):
        header["model"]["state"][attribute] = 1
        return header

    rewrite(saved, forge)
    with pytest.raises(DataError, match="which no fit would"):
        mipl.load_model(saved)


@pytest.mark.parametrize("tree", [None, [], {}, {"$": "array", "name": "gone"}, {"$": "??"}, {"$": "estimator"}])
def test_a_nonsense_header_is_refused(saved, tree):
    rewrite(saved, lambda header: {**header, "model": tree})
    with pytest.raises(DataError, match=r"cannot read|does not hold a mipl estimator"):
        mipl.load_model(saved)


@pytest.mark.parametrize("dtype", ["F8_E4M3", "BF16", "F4"])
def test_numbers_of_a_type_that_numpy_lacks_are_refused(saved, dtype):
    with safe_open(saved, framework="numpy") as file:
        metadata = file.metadata()
    tensor = {"dtype": dtype, "shape": [4], "data_offsets": [0, 8 if dtype == "BF16" else 4]}
    header = json.dumps({"__metadata__": metadata, "x": tensor}).encode()
    saved.write_bytes(struct.pack("<Q", len(header)) + header + bytes(tensor["data_offsets"][1]))
    with pytest.raises(DataError, match="damaged or not a mipl model"):
        mipl.load_model(saved)


class OwnMethod(MIPLClassifier):
    """A user's method with a scikit-learn pipeline inside."""

    name = "own"

    def __init__(self, *, features=None) -> None:
        self.features = features

    def _fit(self, bags, candidates):
        self.features_ = make_pipeline(StandardScaler(), PCA(2)).fit(bags.instances)
        self.shares_ = candidates.mean(axis=0)

    def _predict_proba(self, bags):
        first = self.features_.transform(bags.instances)[bags.offsets[:-1], :1]
        shares = self.shares_ + 1e-3 * first**2
        return shares / shares.sum(axis=1, keepdims=True)


def test_a_users_own_method_with_a_pipeline_is_saved(tmp_path):
    ds = mipl.load("digits", r=1)
    model = OwnMethod().fit(ds.bags, ds.candidates)
    back = mipl.load_model(model.save(tmp_path / "own.mipl"))
    assert np.array_equal(back.predict_proba(ds.bags), model.predict_proba(ds.bags))


class HalfRange(TransformerMixin, BaseEstimator):
    """A user's transformer, which is no model of mipl."""

    def fit(self, X, y=None):
        self.top_ = np.abs(X).max(axis=0) + 1
        return self

    def transform(self, X):
        return X / self.top_


class WithTransformer(OwnMethod):
    def _fit(self, bags, candidates):
        self.features_ = self.features.fit(bags.instances)
        self.shares_ = candidates.mean(axis=0)


def test_a_users_own_transformer_inside_a_model_is_found(tmp_path):
    ds = mipl.load("digits", r=1)
    model = WithTransformer(features=HalfRange()).fit(ds)
    back = mipl.load_model(model.save(tmp_path / "own.mipl"))
    assert type(back.features) is HalfRange
    assert np.array_equal(back.predict_proba(ds), model.predict_proba(ds))


def test_a_class_that_was_defined_again_is_the_newest(tmp_path):
    def cell() -> type[MIPLClassifier]:
        class Own(OwnMethod):
            """A class of a notebook's cell."""

        return Own

    old, new = cell(), cell()
    path = old().fit(mipl.load("digits", r=1)).save(tmp_path / "m.mipl")
    assert type(mipl.load_model(path)) is new


class Popular(PLLClassifier):
    """A user's partial-label learner: the most frequent candidates of all."""

    _parameter_constraints = {"power": [float]}  # noqa: RUF012

    def __init__(self, *, power: float = 1.0) -> None:
        self.power = power

    def _fit(self, Z, candidates):
        self.shares_ = candidates.sum(axis=0) ** self.power

    def _predict_proba(self, Z):
        return np.repeat(self.shares_[None] / self.shares_.sum(), len(Z), axis=0)


def test_a_users_own_learner_in_a_wrapper_is_saved_and_loaded(tmp_path):
    bags, candidates, _ = small_problem()
    model = EmbeddedPLL(Popular(power=2.0)).fit(bags, candidates)
    back = mipl.load_model(model.save(tmp_path / "m.mipl"))
    assert type(back.learner) is Popular
    assert repr(back) == repr(model)
    assert np.array_equal(back.predict_proba(bags), model.predict_proba(bags))


def test_learners_of_plain_arrays_and_of_binary_bags_are_saved_on_their_own(tmp_path):
    bags, candidates, labels = small_problem()
    means = bags.mean(bags.instances)
    for model, X, y in ((PLkNN(), means, candidates), (VGPMIL(n_inducing=4), bags, labels == 0)):
        model.fit(X, y)
        back = mipl.load_model(model.save(tmp_path / "m.mipl"))
        assert type(back) is type(model)
        assert np.array_equal(back.predict_proba(X), model.predict_proba(X))
    wrapped = OneVsRest(VGPMIL(n_inducing=4)).fit(bags, candidates)
    assert repr(mipl.load_model(wrapped.save(tmp_path / "m.mipl"))) == repr(wrapped)


def test_what_needs_pickle_is_refused_by_name(tmp_path):
    ds = mipl.load("digits", r=1)
    with pytest.raises(DataError, match=r"OwnMethod\.features is a function, which cannot be saved without pickle"):
        OwnMethod(features=lambda x: x).fit(ds.bags, ds.candidates).save(tmp_path / "f.mipl")
    assert not list(tmp_path.iterdir())


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8"), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(st.text("ab$", max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(value=plain)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_plain_value_is_encoded_exactly(value):
    arrays: dict = {}
    tree = json.loads(json.dumps(_encode(value, arrays, "x")))
    assert _decode(tree, arrays) == value


@given(shape=st.lists(st.integers(0, 4), max_size=4), order=st.permutations(range(4)), kind=st.sampled_from("fdlB?"))
def test_arrays_keep_values_type_and_memory_order(shape, order, kind):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(kind)
    array = array.transpose([axis for axis in order if axis < len(shape)])
    arrays: dict = {}
    back = _decode(json.loads(json.dumps(_encode(array, arrays, "x"))), arrays)
    assert all(stored.flags.c_contiguous for stored in arrays.values())
    assert np.array_equal(back, array)
    assert back.dtype == array.dtype
    assert back.flags.c_contiguous >= array.flags.c_contiguous
    assert back.flags.f_contiguous >= array.flags.f_contiguous


def test_views_with_gaps_are_saved_whole():
    array = np.arange(24.0).reshape(4, 6)[::2, 1::2]
    arrays: dict = {}
    assert np.array_equal(_decode(_encode(array, arrays, "x"), arrays), array)


def test_names_bags_and_scalars_are_encoded_exactly():
    arrays: dict = {}
    value = {
        "s": np.array(["é", "b"]),
        "b": Bags.from_list([np.ones((2, 2, 3))]),
        "named": Bags.from_list([np.ones((2, 2))], feature_names=["width", "größe"]),
        "n": np.float32(0.1),
    }
    back = _decode(json.loads(json.dumps(_encode(value, arrays, "x"))), arrays)
    assert np.array_equal(back["s"], value["s"])
    assert back["s"].dtype == value["s"].dtype
    assert back["b"] == value["b"]
    assert back["named"] == value["named"]
    assert back["n"] == value["n"]
    assert back["n"].dtype == np.float32
