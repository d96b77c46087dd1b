"""What notebooks show of bags, data sets and resolutions: sizes and the first rows, as a small piece of HTML.

Everything that comes from the data is escaped. There is no colour, so that it is readable on light and on dark pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from mipl.bags import Bags
    from mipl.dataset import MIPLDataset
    from mipl.resolution import Resolution

__all__ = ["bags_html", "dataset_html", "resolution_html"]

_ROWS = 5
_COLUMNS = 6
_LABELS = 6
_LONGEST = 40
_CELL = "padding: 0.15em 0.8em; text-align: left; border-bottom: 1px solid rgba(128, 128, 128, 0.35)"


def bags_html(bags: Bags) -> str:
    """Bags: how many instances each has, and the first features of its first instance."""
    names = bags.feature_names or [f"feature {j}" for j in range(min(bags.n_features, _COLUMNS))]
    first = bags.instances[bags.offsets[:-1][:_ROWS], :_COLUMNS]
    more = ["…"] if bags.n_features > _COLUMNS else []
    rows = [
        [i, size, *(f"{value:.4g}" for value in values), *more]
        for i, (size, values) in enumerate(zip(bags.sizes.tolist(), first.tolist(), strict=False))
    ]
    features = " × ".join(map(str, bags.instance_shape)) + (" features" if len(bags.instance_shape) == 1 else "")
    title = f"{len(bags):,} bags, {bags.n_instances:,} instances of {features}"
    headings = ["bag", "instances", *names[:_COLUMNS], *more]
    return _block("Bags", title, headings, rows, len(bags), "features of the first instance of each bag")


def dataset_html(dataset: MIPLDataset) -> str:
    """A data set: the id, the size, the candidates and the label of bags."""
    top = dataset[: min(_ROWS, len(dataset))]
    columns: dict[str, list[Any]] = {
        "bag": top.bag_ids.tolist(),
        "instances": top.bags.sizes.tolist(),
        "candidates": [_entry(names, w) for names, w in zip(top.candidate_sets(), _weights(top), strict=True)],
    }
    if dataset.labels is not None:
        columns["label"] = ["" if name is None else name for name in top.label_names() or [None] * len(top)]
    sizes = dataset.candidates.sum(axis=1)
    title = (
        f"{len(dataset):,} bags, {dataset.bags.n_instances:,} instances, {dataset.n_classes:,} classes, "
        f"{sizes.mean():.3g} candidates per bag"
    )
    name = f"MIPLDataset {_cut(dataset.name)}" if dataset.name else "MIPLDataset"
    return _block(name, title, list(columns), list(zip(*columns.values(), strict=True)), len(dataset))


def resolution_html(resolution: Resolution) -> str:
    """A resolution: the label and the second one of bags with their probabilities."""
    top = resolution[: min(_ROWS, len(resolution))]
    columns: dict[str, list[Any]] = {
        "bag": top.bag_ids.tolist(),
        "label": top.labels.tolist(),
        "probability": [f"{p:.3f}" for p in top.probability],
        "second label": ["" if label is None else label for label in top.second_label],
        "its probability": [f"{p:.3f}" for p in top.second_probability],
    }
    if top.instance_probabilities is not None:
        columns["instance"] = ["" if k < 0 else k for k in top.instance.tolist()]
    if top.truth is not None:
        columns["truth"] = ["" if label is None else label for label in top.truth]
    among = "all classes" if resolution.candidates is None else "the candidates"
    title = f"{len(resolution):,} bags, {len(resolution.classes):,} classes, by {resolution.method} among {among}"
    rows = list(zip(*columns.values(), strict=True))
    return _block("Resolution", title, list(columns), rows, len(resolution), resolution.verdict)


def _weights(dataset: MIPLDataset) -> Iterable[Any]:
    if dataset.candidate_weights is None:
        return [None] * len(dataset)
    return [weights[row] for weights, row in zip(dataset.candidate_weights, dataset.candidates, strict=True)]


def _entry(names: Sequence[Any], weights: np.ndarray | None) -> str:
    """The candidates of a bag, with their weights where they have any."""
    shown = [
        _cut(name, _LONGEST // 2) + ("" if weights is None else f": {weights[k]:.3g}")
        for k, name in enumerate(names[:_LABELS])
    ]
    return ", ".join(shown) + (f" and {len(names) - _LABELS} more" if len(names) > _LABELS else "")


def _block(name: str, title: str, headings: Sequence[Any], rows: Sequence[Any], total: int, note: str = "") -> str:
    head = "".join(f'<th scope="col" style="{_CELL}">{escape(_cut(each))}</th>' for each in headings)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escape(_cut(cell, 4 * _LONGEST))}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    more = f"first {len(rows)} of {total:,} bags" if total > len(rows) else ""
    foot = "; ".join(text for text in (more, note) if text)
    return (
        f'<div style="overflow-x: auto"><p style="margin: 0.3em 0"><strong>{escape(name)}</strong> {escape(title)}</p>'
        '<table style="border-collapse: collapse; margin: 0; color: inherit">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        + (f'<p style="margin: 0.3em 0; opacity: 0.75">{escape(foot)}</p>' if foot else "")
        + "</div>"
    )


def _cut(value: Any, longest: int = _LONGEST) -> str:
    text = str(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"
