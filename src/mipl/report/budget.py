"""How many bytes a page may have, and what is left out when it would have more."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

__all__ = ["embedded_json", "page_bytes"]

_RESERVE = 0.95  # of the budget: base64 and escapes are counted exactly, the text of the page is not


def page_bytes(n_bags: int) -> int:
    """The bytes that a page of so many bags may have: 3 MB up to 1,000 bags, 8 MB from 20,000 on.

    >>> page_bytes(50), page_bytes(1_000_000)
    (2850000, 7600000)
    """
    return int(_RESERVE * np.interp(n_bags, [1_000, 20_000], [3e6, 8e6]))


def embedded_json(value: Any) -> str:
    r"""JSON that is safe inside a <script> element, whatever the names of bags and classes are.

    Everything but ASCII is escaped, and so are ``< > &``: no text can end the element or begin a comment in it.

    >>> embedded_json(["</script>", "é"])
    '["\\u003c/script\\u003e","\\u00e9"]'
    """
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
