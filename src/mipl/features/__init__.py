"""Front ends: scikit-learn transformers from raw instances (n, d) to the features that a kernel sees.

The names below are imported when they are first used, since most data need one of them alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mipl.features.auto import choose_features
    from mipl.features.common_scale import CommonScale
    from mipl.features.conv_kmeans import ConvKMeans
    from mipl.features.linear_map import LinearMap
    from mipl.features.projection import Projection
    from mipl.features.unit_range import UnitRange
    from mipl.features.unit_rows import UnitRows

_EXPORTS = {
    "CommonScale": "common_scale",
    "ConvKMeans": "conv_kmeans",
    "LinearMap": "linear_map",
    "Projection": "projection",
    "UnitRange": "unit_range",
    "UnitRows": "unit_rows",
    "choose_features": "auto",
}

__all__ = ["CommonScale", "ConvKMeans", "LinearMap", "Projection", "UnitRange", "UnitRows", "choose_features"]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(import_module(f"mipl.features.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module 'mipl.features' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
