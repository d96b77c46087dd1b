"""ScanBlock: some bags of a scan, small to send and read where it arrives."""

from __future__ import annotations

from dataclasses import dataclass

from mipl.bags import Bags
from mipl.dataset import MIPLDataset
from mipl.scanning.pieces import Part, read_pieces
from mipl.scanning.recipe import Recipe
from mipl.scanning.selection import Selection
from mipl.supervision import Supervision

__all__ = ["ScanBlock"]


@dataclass(frozen=True)
class ScanBlock:
    """Consecutive bags of a scan, described by files and rows; `Scan.blocks` makes them.

    It pickles to a few kilobytes, so that a worker that sees the same files can be told what to read.

    Parameters
    ----------
    parts : tuple of (file, start, stop, offset)
        The rows of each file.
    recipe : Recipe
        How rows become bags: columns, classes and features, the same in all blocks.
    selection : Selection
        Which of the bags are meant.
    start : int
        The position of the first bag in the scan.
    n_bags : int
        The number of bags.
    n_instances : int
        The number of instances; where a row is a bag, an estimate from the mean of the row group.
    """

    parts: tuple[Part, ...]
    recipe: Recipe
    selection: Selection
    start: int
    n_bags: int
    n_instances: int

    @property
    def stop(self) -> int:
        """The position after that of the last bag."""
        return self.start + self.n_bags

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the bags are in."""
        return tuple(part.file.path for part in self.parts)

    def read(self) -> MIPLDataset:
        """The bags with all that is known of them."""
        return self.recipe.load(list(read_pieces(self.parts, self.recipe.layout, self.selection))).dataset

    def read_bags(self) -> Bags:
        """The bags alone; candidates and labels are not read."""
        found = read_pieces(self.parts, self.recipe.layout, self.selection, what="bags")
        return self.recipe.load_bags(list(found))

    def read_supervision(self) -> Supervision:
        """What is known of the labels of the bags; features are not read."""
        found = read_pieces(self.parts, self.recipe.layout, self.selection, what="labels")
        return self.recipe.load_labels(list(found)).dataset.supervision()
