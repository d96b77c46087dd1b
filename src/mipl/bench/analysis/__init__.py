"""What the results say: the finished cells of a suite, their statistics, and the published figures beside them."""

from mipl.bench.analysis.published import Published, published
from mipl.bench.analysis.results import Results, Summary

__all__ = ["Published", "Results", "Summary", "published"]
