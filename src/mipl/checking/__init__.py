"""`mipl.check`: everything that is wrong or odd in a data set, at once, each with what mends it."""

from __future__ import annotations

from mipl.checking.report import Report, check
from mipl.io.border import Problem

__all__ = ["Problem", "Report", "check"]
