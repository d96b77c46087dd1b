"""The page of a `Resolution`: one self-contained HTML file to look at, to correct and to show to others."""

from mipl.report.page import write_page

__all__ = ["write_page"]
