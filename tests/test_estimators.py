"""Every method in the registry keeps the contract."""

from __future__ import annotations

import pytest

import mipl
from mipl.checks import mipl_checks

ALL = [(name, check) for name in mipl.methods() for check in mipl_checks()]


@pytest.mark.parametrize(("name", "check"), ALL, ids=[f"{n}-{c.__name__.removeprefix('check_')}" for n, c in ALL])
def test_method_keeps_the_contract(name, check):
    check(mipl.make(name))
