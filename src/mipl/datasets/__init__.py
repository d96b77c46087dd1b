"""Data sets: the table of names, and the two ways to turn other data into a MIPL data set."""

from mipl.datasets.paper import paper_characteristics
from mipl.datasets.registry import dataset_names
from mipl.datasets.scaling import min_max, z_scores
from mipl.datasets.synthesis.build import from_bags, from_instances
from mipl.datasets.synthetic import make_bags

__all__ = [
    "dataset_names",
    "from_bags",
    "from_instances",
    "make_bags",
    "min_max",
    "paper_characteristics",
    "z_scores",
]
