"""One cell of an experiment: a method with its parameters on one split of one data set."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

__all__ = ["Cell"]


@dataclass(frozen=True, eq=False)
class Cell:
    """What is run, complete: two cells with the same `key` and `code` give the same result.

    Which scores are computed does not belong to it: stored results stay valid when a suite asks for more.

    Parameters
    ----------
    dataset : str
        A name or a file that `mipl.load` takes.
    r : int or None
        False positive labels per bag; None for a file, whose candidate sets are what they are.
    method : str
        A name of `mipl.methods()`, or ``"package.module:Class"``.
    split : int
        Seed of the random split, the same for every method; also the `random_state` of methods that have one.
    train_size : float, default=0.5
        Share of training bags.
    options : dict, default={}
        Further options of the data set's builder, among them the seed of the bags where it is not 0; for a file its
        sha256.
    scale : {"", "min-max", "z-scores"}, default=""
        How features are scaled on the training bags (`mipl.datasets.scaling`); "" to leave them alone.
    params : dict, default={}
        Parameters of the method.
    code : str, default=""
        Version of the code that is run, see `mipl.bench.suite.code_version`.
    """

    dataset: str
    r: int | None
    method: str
    split: int
    train_size: float = 0.5
    options: dict[str, Any] = field(default_factory=dict)
    scale: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    code: str = ""

    @cached_property
    def key(self) -> str:
        """A digest of everything but the code version."""
        parts = (self.dataset, self.r, self.method, self.split, self.train_size, self.options, self.scale, self.params)
        text = json.dumps(parts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def __str__(self) -> str:
        return self.of(self.method + "".join(f" {name}={value}" for name, value in sorted(self.params.items())))

    def of(self, method: str) -> str:
        """The cell in one line, with its method called by a name, such as that in tables."""
        r = "" if self.r is None else f" r={self.r}"
        return f"{self.dataset}{r} split {self.split} {method}"
