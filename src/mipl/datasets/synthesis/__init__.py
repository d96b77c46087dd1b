"""From labelled instances or bags to bags with candidate sets."""

from mipl.datasets.synthesis.build import from_bags, from_instances

__all__ = ["from_bags", "from_instances"]
