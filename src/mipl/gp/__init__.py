"""Gaussian processes: kernels, engines and the stages built on them."""
