"""From which probability on an answer is called sure, and below which doubtful; tables and pages agree on it."""

from __future__ import annotations

__all__ = ["DOUBTFUL", "SURE"]

SURE, DOUBTFUL = 0.95, 0.7
