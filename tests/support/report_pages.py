"""Resolutions without a fit, and what a reader finds in their pages."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import numpy as np

from mipl import Bags, Resolution

__all__ = ["Page", "made_up"]


def made_up(
    m: int = 40, q: int = 4, size: int = 5, shape: tuple[int, ...] = (6, 6), seed: int = 0, **changes: Any
) -> Resolution:
    """m bags of `size` random instances, up to three candidates each, and a posterior from nowhere."""
    rng = np.random.default_rng(seed)
    candidates = np.zeros((m, q), dtype=bool)
    for _ in range(3):
        candidates[np.arange(m), rng.integers(0, q, m)] = True
    posterior = np.where(candidates, rng.dirichlet(np.full(q, 0.5), m) + 1e-6, 0)
    parts: dict[str, Any] = {
        "classes": np.array([f"class {c}" for c in range(q)]),
        "bags": Bags(rng.random((m * size, int(np.prod(shape))), dtype=np.float32), np.arange(m + 1) * size, shape),
        "bag_ids": np.array([f"bag-{i}" for i in range(m)]),
        "posterior": posterior / posterior.sum(axis=1, keepdims=True),
        "instance_probabilities": rng.dirichlet(np.full(q + 1, 0.5), m * size),
        "candidates": candidates,
        "method": "made up",
        "seconds": 1.25,
    }
    return Resolution(**parts | changes)


class Page(HTMLParser):
    """The text that a page shows, its tags with attributes, and the data of its script."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._shown: list[str] = []
        self._raw: list[str] = []
        self._inside = ""
        self.feed(html)
        self.close()
        self.text = " ".join(" ".join(self._shown).replace("\u00a0", " ").split())
        self.data = json.loads(self._raw[0])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside = "data" if dict(attrs).get("type") == "application/json" else tag

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self._shown.append(data)
        elif self._inside == "data":
            self._raw.append(data)
