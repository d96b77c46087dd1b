"""The verdict: its words follow from probabilities and known labels that were put together by hand."""

from __future__ import annotations

import numpy as np
import pytest
from report_pages import made_up

from mipl import Resolution
from mipl.report.verdict import verdict_of


def two_classes(probability: list[float], wrong: int | None = None) -> Resolution:
    """Bags labelled "class 0" with these probabilities, of which the first `wrong` are truly "class 1"."""
    m = len(probability)
    truth = None if wrong is None else np.array(["class 1"] * wrong + ["class 0"] * (m - wrong), dtype=object)
    posterior = np.stack([probability, 1 - np.array(probability)], axis=1)
    return made_up(m, q=2, posterior=posterior, candidates=np.ones((m, 2), dtype=bool), truth=truth)


@pytest.mark.parametrize(
    ("probability", "headline"),
    [
        ([1.0, 0.95], "2 bags resolved: every answer is sure."),
        ([0.96, 0.7, 0.69], "3 bags resolved: 1 answer is sure, 1 is doubtful."),
        ([0.96, 0.99, 0.65, 0.6], "4 bags resolved: 2 answers are sure, 2 are doubtful."),
        ([0.8], "1 bag resolved: no answer is sure."),
    ],
)
def test_the_headline_counts_sure_and_doubtful_answers(probability, headline):
    assert verdict_of(two_classes(probability)).headline == headline


def test_the_expected_mistakes_are_the_missing_probability():
    said = verdict_of(two_classes([0.9] * 50)).expected.replace("\u00a0", " ")
    assert said == "By its own probabilities 90 % of the labels are right; about 5 of 50 would be wrong."
    assert "fewer than one of 50" in verdict_of(two_classes([0.999] * 50)).expected


# With 100 answers of 90 %, 5 to 15 mistakes are what chance gives in 95 of 100 cases (scipy.stats.binom).
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (10, "nothing here speaks against them"),
        (15, "nothing here speaks against them"),
        (20, "too optimistic"),
        (2, "more careful than they need to be"),
    ],
)
def test_known_labels_say_how_far_to_trust(wrong, words):
    trust = verdict_of(two_classes([0.9] * 100, wrong)).trust
    assert words in trust
    assert f"{100 - wrong}\u00a0% have the right one" in trust


def test_one_mistake_among_a_few_sure_answers_is_no_proof():
    assert "nothing here speaks against them" in verdict_of(two_classes([0.996] * 35, wrong=1)).trust


def test_without_labels_it_says_so():
    assert verdict_of(two_classes([0.9])).trust.startswith("No true label is known here")
