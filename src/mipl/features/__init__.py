"""Front ends: scikit-learn transformers from raw instances (n, d) to the features that a kernel sees."""

from mipl.features.auto import choose_features
from mipl.features.common_scale import CommonScale
from mipl.features.conv_kmeans import ConvKMeans
from mipl.features.projection import Projection
from mipl.features.unit_range import UnitRange
from mipl.features.unit_rows import UnitRows

__all__ = ["CommonScale", "ConvKMeans", "Projection", "UnitRange", "UnitRows", "choose_features"]
