"""Partial-label learners on plain (n, d) arrays, and the embeddings that carry them to bags."""

from mipl.pll.plknn import PLkNN

__all__ = ["PLkNN"]
