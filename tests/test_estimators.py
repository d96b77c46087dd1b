"""Every method in the registry keeps the contract."""

from __future__ import annotations

import pytest

import mipl
from mipl.checks import mipl_checks

#: Passes over the training bags, for methods that count them: the contract says nothing about how well a method learns.
#: FastMIPL refreshes its factors in the eleventh.
EPOCHS = 12

ALL = [(name, check) for name in mipl.methods() for check in mipl_checks()]


@pytest.mark.parametrize(("name", "check"), ALL, ids=[f"{n}-{c.__name__.removeprefix('check_')}" for n, c in ALL])
def test_method_keeps_the_contract(name, check):
    model = mipl.make(name)
    counts = [key for key in model.get_params() if key in ("max_epochs", "learner__max_epochs")]
    check(model.set_params(**dict.fromkeys(counts, EPOCHS)))
