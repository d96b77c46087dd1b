"""Mean and MaxMin embeddings, and the adapter that carries partial-label learners to bags."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import mipl
from mipl.checks import check_mipl_estimator, small_problem
from mipl.errors import DataError
from mipl.pll import SURE
from mipl.pll.embedding import EmbeddedPLL, embed_bags

EMBEDDED = [name for name, cls in mipl.methods().items() if issubclass(cls, EmbeddedPLL)]


def test_the_six_methods_are_in_the_registry():
    assert set(EMBEDDED) == {"PL-kNN", "CLPL", "LSB-CMM", "SURE", "GM-PLL", "PL-AGGD"}


@given(st.lists(st.integers(1, 6), min_size=1, max_size=8), st.integers(0, 2**31))
def test_embeddings_agree_with_numpy_bag_by_bag(sizes, seed):
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(size=(size, 3)).astype(np.float32) for size in sizes]
    bags = mipl.Bags.from_list(arrays)
    mean = [a.mean(axis=0, dtype=np.float64) for a in arrays]
    maxmin = [np.concatenate([a.max(axis=0), a.min(axis=0)]) for a in arrays]
    np.testing.assert_allclose(embed_bags(bags, "mean"), mean, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(embed_bags(bags, "maxmin"), maxmin)


def test_the_order_of_instances_leaves_no_trace():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(50, 20)).astype(np.float32) for _ in range(20)]
    turned = [rng.permutation(a) for a in arrays]
    for scheme in ("mean", "maxmin"):
        first, second = (embed_bags(mipl.Bags.from_list(a), scheme) for a in (arrays, turned))
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", EMBEDDED)
def test_maxmin_keeps_the_contract_too(name):
    check_mipl_estimator(mipl.make(name, embed="maxmin"))


@pytest.mark.parametrize("name", EMBEDDED)
def test_parameters_of_the_learner_are_parameters_of_the_bag_estimator(name):
    cls = mipl.methods()[name]
    own, learners = inspect.signature(cls).parameters, inspect.signature(cls.learner).parameters
    assert list(own) == ["embed", *learners]
    assert all(own[key].default == parameter.default for key, parameter in learners.items())
    assert repr(cls()) == f"{cls.__name__}()"
    changed = cls(embed="maxmin")
    assert repr(clone(changed)) == f"{cls.__name__}(embed='maxmin')"


def test_the_bag_estimator_is_the_learner_on_embedded_bags():
    bags, candidates, _ = small_problem()
    embedded = embed_bags(bags, "maxmin")
    model = mipl.make("SURE", embed="maxmin", lam=0.5).fit(bags, candidates)
    learner = SURE(lam=0.5).fit(embedded, candidates)
    np.testing.assert_array_equal(model.predict_proba(bags), learner.predict_proba(embedded))
    np.testing.assert_array_equal(model.resolve(bags, candidates), learner.resolve(embedded, candidates))


def test_unknown_names_are_refused():
    with pytest.raises(DataError, match="unknown embedding 'median'; use 'mean' or 'maxmin'"):
        mipl.make("SURE", embed="median").fit(*small_problem()[:2])
    with pytest.raises(DataError, match="SURE has no parameter 'k'"):
        mipl.make("SURE", k=3)
    with pytest.raises(TypeError, match="SUREBags has no parameter 'k'"):
        mipl.methods()["SURE"](k=3)
