"""MIPLGP: the estimator of the MIPLGP paper, its disambiguations and presets."""

from mipl.miplgp.estimator import MIPLGP, MIPLGPNaive, MIPLGPUniform

__all__ = ["MIPLGP", "MIPLGPNaive", "MIPLGPUniform"]
