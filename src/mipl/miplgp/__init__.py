"""MIPLGP: the estimator of the MIPLGP paper, its disambiguations and the paper's settings."""

from mipl.miplgp.estimator import MIPLGP

__all__ = ["MIPLGP"]
