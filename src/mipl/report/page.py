"""The page itself: what the other modules found out, put into the template and written as one file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from numpy.typing import NDArray

from mipl.io.atomic import atomic_path, check_writable
from mipl.io.decisions import NONE_OF_THESE
from mipl.report.bag_rows import bag_rows, page_names
from mipl.report.budget import embedded_json, page_bytes
from mipl.report.certainty import DOUBTFUL, SURE, calibration_error, histogram, known_right, levels
from mipl.report.confusion import confused_pairs
from mipl.report.evidence import evidence_of
from mipl.report.glance import at_a_glance
from mipl.report.numbers import percent, short_count
from mipl.report.provenance import provenance
from mipl.report.shares import class_shares
from mipl.report.verdict import verdict_of

if TYPE_CHECKING:
    from mipl.resolution import Resolution

__all__ = ["PAGES", "render_page", "write_page"]

#: The suffixes of pages.
PAGES = (".html",)
_FOLDER = Path(__file__).parent
_SCRIPTS = ("drawing.js", "decisions.js", "page.js")
_OF_ROWS = 0.6  # the part of a page that the list may take before pictures get the rest
_NEXT = 8  # bags to look at next
_FIXED = 120_000  # bytes that the text, the style and the script of a page take at most


def write_page(resolution: Resolution, path: str | Path, **options: Any) -> Path:
    """Write the page of a resolution, whole or not at all.

    Parameters
    ----------
    resolution : Resolution
        What was found.
    path : str or Path
        Where to write: .html.
    **options
        As in `render_page`.
    """
    check_writable(path, PAGES)
    text = render_page(resolution, **options)
    with atomic_path(path) as temporary:
        # A lone surrogate in a name is no text; it is shown as a question mark.
        temporary.write_bytes(text.encode("utf-8", "replace"))
    return Path(path)


def render_page(
    resolution: Resolution,
    *,
    title: str = "",
    verdict: str | None = None,
    notes: Mapping[str, Any] | None = None,
    decisions: Mapping[str, str | None] | None = None,
) -> str:
    """The page as one string of HTML that needs nothing else.

    Parameters
    ----------
    resolution : Resolution
        What was found.
    title : str, default=""
        What the data are called.
    verdict : str or None, default=None
        How far the answers can be trusted, in words. None: what the known true labels say about it.
    notes : mapping from str to anything, default=None
        What to say about how the answers were made: ``{"parameters": model.get_params(), "command": "mipl ..."}``.
    decisions : mapping from str to str or None, default=None
        Decisions that were taken already, as `mipl.io.decisions.read_decisions` gives them; the page exports them too.
    """
    budget = page_bytes(len(resolution)) - _FIXED
    listed = bag_rows(resolution, int(_OF_ROWS * budget))
    drawn = evidence_of(resolution, listed.bags, budget - listed.size)
    names = page_names(resolution)
    data = {
        "key": data_key(resolution),
        "names": names,
        "classes": len(resolution.classes),
        "candidates": resolution.candidates is not None,
        "sure": SURE,
        "doubtful": DOUBTFUL,
        "none": NONE_OF_THESE,
        "background": None if resolution.background is None else str(resolution.background),
        "rows": listed.rows,
        "kind": drawn.kind,
        "legend": drawn.legend,
        "sheets": drawn.sheets,
        "details": drawn.details,
        "decided": list((decisions or {}).items()),
    }
    bins = histogram(resolution)
    return _template().render(
        title=title,
        resolution=resolution,
        verdict=verdict_of(resolution, verdict),
        levels=levels(resolution.probability),
        n_known=int(known_right(resolution)[0].sum()),
        accuracy=resolution.accuracy,
        glance=at_a_glance(resolution),
        shares=class_shares(resolution),
        bins=bins,
        calibration=calibration_error(bins),
        pairs=confused_pairs(resolution),
        names=names,
        next_rows=[(row, listed.rows[row]) for row in _next_rows(resolution, listed.bags)],
        n_listed=len(listed.rows),
        n_drawn=len(drawn.details),
        kind=drawn.kind,
        legend=drawn.legend,
        left_out=[bag for bag, label in (decisions or {}).items() if label is None],
        made=provenance(resolution, notes or {}),
        sure=SURE,
        doubtful=DOUBTFUL,
        style=(_FOLDER / "page.css").read_text(encoding="utf-8"),
        script="\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in _SCRIPTS),
        data=embedded_json(data),
    )


def _next_rows(resolution: Resolution, bags: NDArray[np.int64]) -> list[int]:
    """The rows of the list, of these bags (k,), to look at next: by what an answer would teach, else from the top."""
    if resolution.label_order is None:
        return list(range(min(_NEXT, len(bags))))
    order = np.argsort(resolution.label_order.rank[bags], kind="stable")[:_NEXT]
    return [int(row) for row in order]


def data_key(resolution: Resolution) -> str:
    """A digest of the bags, their ids and the classes: decisions kept in a browser belong to these data alone."""
    digest = hashlib.blake2b(digest_size=12)
    names = [resolution.bag_ids.tolist(), resolution.classes.tolist()]
    digest.update(json.dumps(names).encode())
    digest.update(np.ascontiguousarray(resolution.offsets).data)
    digest.update(np.ascontiguousarray(resolution.bags.instances).data)
    return digest.hexdigest()


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = percent
    environment.filters["short"] = short_count
    environment.filters["share"] = lambda share: f"{100 * share:.1f}\u00a0%"
    environment.filters["count"] = lambda number: f"{number:,}"
    return environment.get_template("page.html.jinja")
