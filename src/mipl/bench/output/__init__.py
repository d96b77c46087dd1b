"""What a reader gets: tables, figures, a page of results, and the state of a run."""

from mipl.bench.output.figures import draw
from mipl.bench.output.render import render
from mipl.bench.output.report import report_files, write_report
from mipl.bench.output.status import status, status_counts

__all__ = ["draw", "render", "report_files", "status", "status_counts", "write_report"]
