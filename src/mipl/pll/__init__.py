"""Partial-label learners on plain (n, d) arrays, and the embeddings that carry them to bags."""

from mipl.pll.base import PLLClassifier
from mipl.pll.clpl import CLPL
from mipl.pll.embedding import EmbeddedPLL
from mipl.pll.gmpll import GMPLL
from mipl.pll.lsbcmm import LSBCMM
from mipl.pll.plaggd import PLAGGD
from mipl.pll.plknn import PLkNN
from mipl.pll.sure import SURE

__all__ = ["CLPL", "GMPLL", "LSBCMM", "PLAGGD", "SURE", "EmbeddedPLL", "PLLClassifier", "PLkNN"]
