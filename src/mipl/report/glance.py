"""The data at a glance: how many, how large, of what kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mipl.plotting.instances import is_image, is_text

if TYPE_CHECKING:
    from mipl.bags import Bags
    from mipl.resolution import Resolution

__all__ = ["at_a_glance"]


def at_a_glance(resolution: Resolution) -> list[tuple[str, str]]:
    """Name and value, line by line."""
    sizes = resolution.bags.sizes
    lines = [
        ("bags", f"{len(resolution):,}"),
        ("instances", f"{resolution.bags.n_instances:,}"),
        ("instances per bag", _range(sizes.min(), np.median(sizes), sizes.max())),
        ("an instance is", _kind(resolution.bags)),
        ("classes", f"{len(resolution.classes):,}"),
    ]
    if resolution.candidates is not None:
        counts = resolution.candidates.sum(axis=1)
        lines.append(("candidates per bag", _range(counts.min(), np.median(counts), counts.max())))
        lines.append(("bags with one candidate", f"{int(np.sum(counts == 1)):,}"))
    n_known = 0 if resolution.truth is None else sum(label is not None for label in resolution.truth.tolist())
    lines.append(("true labels known", f"{n_known:,}" if n_known else "none"))
    return lines


def _range(low: float, middle: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g} to {high:g}, median {middle:g}"


def _kind(bags: Bags) -> str:
    if is_image(bags.instance_shape):
        colour = "a colour image" if len(bags.instance_shape) == 3 else "a grey image"
        return f"{colour}, {bags.instance_shape[0]} × {bags.instance_shape[1]}"
    if is_text(bags):
        return f"text, {bags.n_features:,} words"
    return f"{bags.n_features:,} features" + ("" if bags.feature_names is None else ", with names")
