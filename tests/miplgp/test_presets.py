"""The paper's settings, as its section 4.1.3 and the released code give them."""

from __future__ import annotations

import pytest

from mipl.errors import ParameterError
from mipl.miplgp.estimator import MIPLGP, PAPER_SETTINGS


def test_the_paper_settings() -> None:
    assert list(PAPER_SETTINGS) == ["mnist", "fmnist", "newsgroups", "birdsong", "sival"]
    for dataset in PAPER_SETTINGS:
        model = MIPLGP.paper(dataset)
        assert model.max_iter == (500 if "mnist" in dataset else 50)
        assert model.nu == (0.5 if dataset == "newsgroups" else 2.5)
        assert (model.lengthscale, model.alpha_eps, model.n_samples, model.learning_rate) == (1.0, 1e-4, 512, 0.1)
        assert (model.sampling, model.engine) == ("joint", "exact")


def test_parameters_of_the_caller_take_precedence() -> None:
    model = MIPLGP.paper("newsgroups", nu=1.5, disambiguation="uniform")
    assert (model.nu, model.disambiguation, model.max_iter) == (1.5, "uniform", 50)


def test_a_data_set_that_the_paper_does_not_have_is_named() -> None:
    with pytest.raises(ParameterError, match=r"'cifar'.*mnist"):
        MIPLGP.paper("cifar")
