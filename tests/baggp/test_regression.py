"""Bag regression, and that blocks do not matter."""

from __future__ import annotations

import numpy as np
import torch
from baggp_blocks import generator, log_prior, low_rank_of

from mipl.baggp.constants import STAGES
from mipl.baggp.likelihood import Problem, fit_bag_likelihoods
from mipl.baggp.places import Local
from mipl.baggp.regression import fit_bag_regression, own_votes_of_parts
from mipl.datasets.synthetic import make_bags
from mipl.gp.landmarks import kmeans_landmarks, median_distance
from mipl.gp.nystrom import principal_map


def test_bag_regression_resolves_candidates_that_the_bag_itself_does_not_decide() -> None:
    ds = make_bags(n_bags=150, n_classes=5, n_features=10, separation=5.0, r=1)
    X = torch.tensor(ds.bags.instances)
    kernel_map = principal_map(*kmeans_landmarks(X, 200, generator()), median_distance(X, generator()), rank=200)
    data = low_rank_of(X, ds.bags.offsets, kernel_map)
    posterior = fit_bag_regression(data.blocks, data.spectrum, log_prior(ds.candidates)).posterior
    assert (posterior[~torch.tensor(ds.candidates)] == 0).all()
    assert np.mean(posterior.argmax(dim=1).numpy() == ds.labels) > 0.95


def test_the_stages_do_not_depend_on_how_bags_are_cut_into_blocks() -> None:
    ds = make_bags(n_bags=60, n_classes=3, n_features=4, separation=5.0)
    X = torch.tensor(ds.bags.instances)
    kernel_map = principal_map(*kmeans_landmarks(X, 60, generator()), median_distance(X, generator()), rank=40)
    answers = []
    for rows in (10_000, 100):
        data = low_rank_of(X, ds.bags.offsets, kernel_map, instances=rows)
        regression = fit_bag_regression(data.blocks, data.spectrum, log_prior(ds.candidates))
        candidates = torch.tensor(ds.candidates)
        problem = Problem(data.spectrum, regression.posterior, candidates)
        (likelihood,) = fit_bag_likelihoods(data.blocks, [problem], stages=STAGES[:2])
        features = torch.cat([block.features for block in Local().fetch(data.blocks.features)])
        answers.append((regression.posterior, likelihood.expert.logits(features)))
    assert len(data.blocks.parts) > 4
    torch.testing.assert_close(answers[0][0], answers[1][0], atol=1e-4, rtol=0)
    torch.testing.assert_close(answers[0][1], answers[1][1], atol=0.05, rtol=0)


def test_a_gram_matrix_as_a_matrix_gives_the_answers_of_its_diagonal_from_the_first_round_on() -> None:
    ds = make_bags(n_bags=40, n_classes=4, n_features=6, separation=3.0, r=2)
    X = torch.tensor(ds.bags.instances).double()
    kernel_map = principal_map(*kmeans_landmarks(X, 40, generator()), median_distance(X, generator()), rank=30)
    data = low_rank_of(X, ds.bags.offsets, kernel_map)
    known, spectrum = log_prior(ds.candidates), data.spectrum
    expected = fit_bag_regression(data.blocks, spectrum, known, variances=[0.5]).log_evidence
    for votes in (None, own_votes_of_parts(data.blocks, spectrum, known, 0.5, share=1.0)):
        found = fit_bag_regression(data.blocks, torch.diag(spectrum), known, variances=[0.5], own_votes=votes)
        torch.testing.assert_close(found.log_evidence, expected, atol=1e-6, rtol=1e-6)
