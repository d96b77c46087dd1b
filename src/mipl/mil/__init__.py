"""Multi-instance learners on binary bags, and the one-vs-rest adapter that carries them to candidate sets."""

from mipl.mil.lmvgpmil import LMVGPMIL
from mipl.mil.vgpmil import VGPMIL
from mipl.mil.vwsgp import VWSGP

__all__ = ["LMVGPMIL", "VGPMIL", "VWSGP"]
