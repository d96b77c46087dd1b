"""Multi-instance learners on binary bags, and `OneVsRest`, which carries them to candidate sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mipl.mil.base import MILClassifier
from mipl.mil.lmvgpmil import LMVGPMIL
from mipl.mil.ovr import OneVsRest
from mipl.mil.vgpmil import VGPMIL
from mipl.mil.vwsgp import VWSGP

if TYPE_CHECKING:
    from mipl.mil.mivae import MIVAE

__all__ = ["LMVGPMIL", "MIVAE", "VGPMIL", "VWSGP", "MILClassifier", "OneVsRest"]


def __getattr__(name: str) -> Any:
    if name == "MIVAE":  # the only one that needs torch
        from mipl.mil.mivae import MIVAE

        return MIVAE
    raise AttributeError(f"module 'mipl.mil' has no attribute {name!r}")
