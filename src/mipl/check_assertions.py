"""What the checks of an estimator share: clones with a seed, and assertions about answers and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from mipl.bags import Bags
from mipl.base import MIPLClassifier

__all__ = ["TOLERANCE", "assert_probabilities", "assert_refused", "random_states", "seeded"]

#: How far two probabilities that should be equal may be apart.
TOLERANCE = 1e-5


def random_states(estimator: MIPLClassifier) -> list[str]:
    """The random states of an estimator and of its learner; front ends of scikit-learn keep their own rules."""
    return [name for name in ("random_state", "learner__random_state") if name in estimator.get_params()]


def seeded(estimator: MIPLClassifier) -> MIPLClassifier:
    """A clone with a fixed seed wherever it takes one."""
    copy: MIPLClassifier = clone(estimator).set_params(**dict.fromkeys(random_states(estimator), 3))
    return copy


def assert_probabilities(what: str, model: MIPLClassifier, bags: Bags) -> None:
    """Assert that a model gives bags probabilities: one row per bag, finite, not negative, with the sum one."""
    proba = model.predict_proba(bags)
    assert proba.shape == (len(bags), len(model.classes_)), f"{what} has shape {proba.shape}"
    valid = np.isfinite(proba).all() and (proba >= 0).all() and np.abs(proba.sum(axis=1) - 1).max() < TOLERANCE
    assert valid, f"rows of {what} are no probabilities"


def assert_refused(who: str, what: str, expected: type[Exception], call: Callable[[], Any], mentions: str = "") -> str:
    """Assert that a call ends in the expected error whose message mentions what is wrong, and return the message."""
    try:
        call()
    except expected as error:
        message = str(error)
    except Exception as error:
        raise AssertionError(
            f"{who}: {what} ends in {type(error).__name__}, not in {expected.__name__}: {error}"
        ) from error
    else:
        raise AssertionError(f"{who} accepts {what}")
    assert mentions in message, f"{who}: the error about {what} does not mention {mentions}: {message}"
    return message
