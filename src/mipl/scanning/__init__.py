"""Data larger than memory: files of bags that are read chunk by chunk."""

from __future__ import annotations

from mipl.scanning.block import ScanBlock
from mipl.scanning.scan import Scan, scan

__all__ = ["Scan", "ScanBlock", "scan"]
