"""Scores of fitted models: accuracy, log loss, calibration, positive instances found, and one that needs no label.

Arguments come in scikit-learn's order, the truth first. Labels are class indices (m,), probabilities (m, q).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mipl.candidates import parse_candidates
from mipl.dataset import MIPLDataset
from mipl.errors import DataError, ParameterError
from mipl.streams import BagStream
from mipl.supervision import check_sample_weight

__all__ = [
    "accuracy",
    "calibration_error",
    "chance_calibration_error",
    "instance_average_precision",
    "label_free_score",
    "log_loss",
]

#: Probabilities below this count as this: one certain error must not make a mean infinite.
_FLOOR = 1e-12


def accuracy(labels: ArrayLike, predicted: ArrayLike) -> float:
    """The share of bags whose predicted label is the true one.

    Parameters
    ----------
    labels : (m,) array
        True labels.
    predicted : (m,) array
        Predicted labels.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> accuracy([0, 1, 2, 1], [0, 1, 1, 1])
    0.75
    """
    truth, answer = np.asarray(labels), np.asarray(predicted)
    if truth.ndim != 1 or truth.shape != answer.shape or not len(truth):
        raise DataError(f"labels {truth.shape} and predictions {answer.shape} must be vectors with an entry per bag")
    return float(np.mean(truth == answer))


def log_loss(labels: ArrayLike, proba: ArrayLike) -> float:
    r"""The mean negative log probability of the true labels.

    .. math:: -\frac1m \sum_b \log \max(\hat p_b(y_b), 10^{-12})

    It is scikit-learn's `log_loss` but for the floor, which is there the rounding unit of the data type.

    Parameters
    ----------
    labels : (m,) array of int
        True classes, as columns of `proba`.
    proba : (m, q) array
        Class probabilities; rows sum to one.

    Returns
    -------
    float
        In nats per bag; 0 is the best, log(q) what equal probabilities give.

    Examples
    --------
    >>> round(log_loss([0, 1], [[1.0, 0.0], [0.5, 0.5]]), 4)
    0.3466
    """
    truth, p = _checked(labels, proba)
    likelihood = p[np.arange(len(p)), truth].astype(np.float64)  # half precision has no such floor
    return float(-np.mean(np.log(np.maximum(likelihood, _FLOOR))))


def calibration_error(labels: ArrayLike, proba: ArrayLike, n_bins: int = 10) -> float:
    r"""The expected calibration error (ECE) of the predicted class.

    Bags are put into bins :math:`B_k` of equal width by the probability :math:`\hat p_b` of their most probable class;

    .. math:: \mathrm{ECE} = \sum_k \frac{|B_k|}{m} \left| \mathrm{acc}(B_k) - \mathrm{conf}(B_k) \right|

    with the share of right predictions and the mean probability in each bin (C. Guo et al., ICML 2017).

    Parameters
    ----------
    labels : (m,) array of int
        True classes, as columns of `proba`.
    proba : (m, q) array
        Class probabilities; rows sum to one.
    n_bins : int, default=10
        Number of bins.

    Returns
    -------
    float
        Between 0 and 1; smaller is better. On few bags it cannot be zero, see `chance_calibration_error`.

    Examples
    --------
    >>> round(calibration_error([0, 0, 1, 1], [[0.75, 0.25]] * 4), 4)
    0.25
    """
    truth, p = _checked(labels, proba)
    _check_positive("n_bins", n_bins)
    return _calibration_error(truth, p, n_bins)


def chance_calibration_error(proba: ArrayLike, n_bins: int = 10, n_draws: int = 50) -> float:
    """The calibration error that a perfectly calibrated model with these probabilities would have.

    Labels are drawn from the probabilities themselves; what `calibration_error` finds then is due to the small number
    of bags alone. It is the floor to compare a measured error with.

    Parameters
    ----------
    proba : (m, q) array
        Class probabilities; rows sum to one.
    n_bins : int, default=10
        Number of bins, as in `calibration_error`.
    n_draws : int, default=50
        Sets of labels over which the error is averaged, drawn from a fixed seed.

    Returns
    -------
    float
        The mean error over the draws.

    Examples
    --------
    >>> chance_calibration_error([[1.0, 0.0], [0.0, 1.0]])
    0.0
    """
    p = _as_proba(proba)
    _check_positive("n_bins", n_bins)
    _check_positive("n_draws", n_draws)
    rng = np.random.default_rng(0)
    cumulative = p.cumsum(axis=1) / p.sum(axis=1, keepdims=True)
    drawn = [(cumulative < rng.random((len(p), 1))).sum(axis=1) for _ in range(n_draws)]
    return float(np.mean([_calibration_error(labels, p, n_bins) for labels in drawn]))


def instance_average_precision(instance_labels: ArrayLike, instance_proba: ArrayLike) -> float:
    """The average precision with which positive instances are found among all instances.

    Instances are ranked by the probability of carrying any of the q classes, one minus that of the negative class.
    Where a method knows no negatives, all rank alike, and the score is the share of positive instances.

    Parameters
    ----------
    instance_labels : (n,) array of int
        True class of each instance: 0 to q - 1, or q for a negative one; -1 where it is not known, which leaves the
        instance out.
    instance_proba : (n, q + 1) array
        Probabilities as `predict_instances` gives them, the last column for the negative class.

    Returns
    -------
    float
        Between 0 and 1; NaN where no known instance is positive.

    Examples
    --------
    >>> instance_average_precision([0, 2, 1], [[0.7, 0.1, 0.2], [0.1, 0.1, 0.8], [0.2, 0.3, 0.5]])
    1.0
    """
    from sklearn.metrics import average_precision_score

    truth, p = np.asarray(instance_labels), np.asarray(instance_proba)
    if p.ndim != 2 or truth.shape != (len(p),):
        raise DataError(f"instance labels {truth.shape} and probabilities {p.shape} must have a row per instance")
    known = truth >= 0
    positive = truth[known] < p.shape[1] - 1
    if not positive.any():
        return float("nan")
    return float(average_precision_score(positive, 1 - p[known, -1]))


def label_free_score(model: Any, bags: Any, candidates: Any = None, sample_weight: Any = None) -> float:
    r"""The held-out log likelihood of candidate sets, relative to chance.

    .. math:: \frac1m \sum_b \log \sum_{c \in S_b} \hat p_b(c) - \log \frac{|S_b|}{q}

    Where false candidates are drawn at random, a bag's true label is in its candidate set, and nothing else about the
    set depends on the bag; so the probability that a model gives to the *set* measures how well it knows the label.
    Zero is what equal probabilities score, the mean of :math:`\log(q / |S_b|)` is the best. The bags must not have been
    used in `fit`: it is a scorer for cross-validation (``GridSearchCV(model, grid, scoring=label_free_score)``).

    Parameters
    ----------
    model : estimator
        A fitted model with `predict_proba` and `classes_`: of bags, or as those of `mipl.pll` of plain samples.
    bags : MIPLDataset, Scan, or what the model's `predict_proba` takes
        m bags, or m samples (m, d), that `model` has not seen.
    candidates : (m, q) bool mask, or m collections of labels, default=None
        Candidate sets; None takes those of the data set.
    sample_weight : (m,) array, default=None
        How much each bag counts in the mean; None for all alike.

    Returns
    -------
    float
        In nats per bag; larger is better.
    """
    if isinstance(bags, BagStream):
        if candidates is not None or sample_weight is not None:
            raise DataError("a scan brings its own candidates in every chunk; pass the scan alone, without weights")
        return float(bags.map_datasets(lambda ds: np.full(len(ds), label_free_score(model, ds))).mean())
    ids = bags.bag_ids if isinstance(bags, MIPLDataset) else None
    if isinstance(bags, MIPLDataset):
        candidates, bags = bags.candidate_sets() if candidates is None else candidates, bags.bags
    elif candidates is None:
        raise DataError("no candidates: pass label_free_score(model, bags, candidates), or a MIPLDataset for bags")
    proba = model.predict_proba(bags)
    mask, _ = parse_candidates(candidates, model.classes_, n_bags=len(proba))
    in_set = np.sum(proba, axis=1, where=mask, dtype=np.float64)
    gain = np.log(np.maximum(in_set, _FLOOR)) - np.log(mask.mean(axis=1))
    return float(np.average(gain, weights=check_sample_weight(sample_weight, len(gain), ids)))


# -------------------------------------------------------------------- checks


def _calibration_error(labels: NDArray[np.int64], proba: NDArray[np.floating[Any]], n_bins: int) -> float:
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == labels
    bin_of = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gaps = [abs(np.sum(right[bin_of == b]) - np.sum(confidence[bin_of == b])) for b in range(n_bins)]
    return float(np.sum(gaps) / len(labels))


def _checked(labels: ArrayLike, proba: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.floating[Any]]]:
    p, truth = _as_proba(proba), np.asarray(labels)
    if truth.shape != (len(p),):
        raise DataError(f"{truth.shape} labels for {len(p)} rows of probabilities; there must be one per row")
    wrong = np.flatnonzero((truth < 0) | (truth >= p.shape[1]))
    if len(wrong):
        raise DataError(f"row {wrong[0]}: the label {truth[wrong[0]]} is none of the {p.shape[1]} classes")
    return truth, p


def _as_proba(proba: ArrayLike) -> NDArray[np.floating[Any]]:
    p = np.asarray(proba)
    if p.ndim != 2 or not p.size:
        raise DataError(f"probabilities must be an array (m, q) with a row per bag, got {p.shape}")
    return p


def _check_positive(name: str, value: int) -> None:
    if value < 1:
        raise ParameterError(f"{name}={value} must be at least 1")
