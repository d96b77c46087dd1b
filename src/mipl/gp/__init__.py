"""Gaussian processes: an exact engine for many classes that share one kernel, and a low-rank one for bags.

The exact engine knows nothing of bags: it sees instances, and for each class targets and noises. The low-rank engine
keeps its statistics as sums over shards of whole bags.
"""
