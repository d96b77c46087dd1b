"""Resolution: what a model found in bags, with the names of its classes and the ids of the bags.

Numbers leave a model in this form, so that no table, file or picture joins arrays by position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mipl import __version__
from mipl.bags import Bags
from mipl.certainty import DOUBTFUL, verdict
from mipl.errors import DataError, ParameterError, UnavailableError
from mipl.html_reprs import resolution_html
from mipl.io.tables import rows_of, write_table
from mipl.labelling import DECIDED, order_to_label
from mipl.supervision import background_column

if TYPE_CHECKING:
    import pandas as pd

    from mipl.labelling import LabelOrder

__all__ = ["Resolution"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Resolution:
    """The labels that a model gives to m bags, how sure it is, and which instances say so.

    `mipl.resolve` and `mipl.explain` make it; it does not change afterwards.

    Parameters
    ----------
    classes : (q,) labels
        The model's classes, in the order of the columns of `posterior`.
    bags : Bags
        The m bags with n instances.
    bag_ids : (m,) integers or strings
        What the bags are called.
    posterior : (m, q)
        Probability of each class; zero off the candidates where these are given, unless the model holds it possible
        that the truth is missing from a set.
    instance_probabilities : (n, q + 1) or None, default=None
        Probability of each class for every instance, the last column for none of them. None: not asked for.
    candidates : (m, q) bool or None, default=None
        Among which classes the label was sought. None: among all.
    truth : (m,) labels or None, default=None
        The true labels as far as they are known, None where not.
    method : str, default=""
        Name of the method that answered.
    instance_ids : (n,) integers or strings, or None, default=None
        What the instances are called. None: they are counted.
    version : str, default=mipl.__version__
        Version of mipl that answered.
    seconds : float, default=0.0
        Time taken to fit (where a model was fitted) and to answer.
    label_free : (float, float) or None, default=None
        How much more probable the candidate sets of held-out training bags were to the model than by chance, in nats
        per bag, and its standard error; None where the method does not tell.
    label_order : LabelOrder or None, default=None
        What a person's answer about each bag would tell about all of them, for `next_to_label`; None where the method
        does not tell.
    background : label or None, default=None
        The class whose bags hold no positive instance: none is behind this label.

    Examples
    --------
    >>> import mipl
    >>> ds = mipl.load("digits", r=1, seed=0)
    >>> found = mipl.resolve(ds, mipl.make("PL-kNN"))
    >>> found.labels[:3].tolist(), found[:3]
    (['8', '4', '0'], Resolution(3 bags, 5 classes, by PL-kNN among the candidates))
    """

    classes: Array
    bags: Bags
    bag_ids: Array
    posterior: Array
    instance_probabilities: Array | None = None
    candidates: NDArray[np.bool_] | None = None
    truth: Array | None = None
    method: str = ""
    instance_ids: Array | None = None
    version: str = __version__
    seconds: float = 0.0
    label_free: tuple[float, float] | None = None
    label_order: LabelOrder | None = None
    background: Any = None

    def __post_init__(self) -> None:
        m, n, q = len(self.bags), self.bags.n_instances, len(self.classes)
        shapes = {
            "bag_ids": (m,),
            "posterior": (m, q),
            "instance_probabilities": (n, q + 1),
            "candidates": (m, q),
            "truth": (m,),
            "instance_ids": (n,),
        }
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array is not None and array.shape != shape:
                raise DataError(f"{name} has shape {array.shape} for {m} bags, {n} instances, {q} classes; not {shape}")
        background_column(self.background, self.classes)  # refuses what is no class
        for each in fields(self):
            array = getattr(self, each.name)
            if isinstance(array, np.ndarray):
                array = array.view()
                array.flags.writeable = False
                object.__setattr__(self, each.name, array)

    # ---------------------------------------------------------------- what was found

    @property
    def labels(self) -> Array:
        """The most probable label (m,) of each bag."""
        return self.classes[self._best]

    @property
    def probability(self) -> NDArray[np.floating[Any]]:
        """The probability (m,) of each label."""
        return self.posterior[np.arange(len(self)), self._best]

    @property
    def second_label(self) -> Array:
        """The second most probable label (m,); None where the bag has a single candidate."""
        names = self.classes.astype(object)[self._second]
        names[self._second < 0] = None
        return names

    @property
    def second_probability(self) -> NDArray[np.floating[Any]]:
        """The probability (m,) of the second label; zero where there is none."""
        return np.where(self._second < 0, 0, self.posterior[np.arange(len(self)), self._second])

    @property
    def margin(self) -> NDArray[np.floating[Any]]:
        """By how much (m,) the label is more probable than the second one."""
        return self.probability - self.second_probability

    @property
    def review(self) -> NDArray[np.bool_]:
        """Which bags (m,) deserve a second look.

        Their label is less probable than `mipl.certainty.DOUBTFUL`, or it is not among their candidates.
        """
        return (self.probability < DOUBTFUL) | self._best_is_outside

    @property
    def outside(self) -> NDArray[np.floating[Any]]:
        """The probability (m,) that the truth is missing from the candidates; zero for models that rule this out."""
        if self.candidates is None:
            return np.zeros(len(self))
        outside: NDArray[np.floating[Any]] = np.where(self.candidates, 0, self.posterior).sum(axis=1)
        return outside

    @property
    def verdict(self) -> str:
        """How far the answers can be trusted, in words."""
        return verdict(len(self), int(self.review.sum()), int(self._best_is_outside.sum()), self.label_free)

    def next_to_label(self, k: int = 10) -> list[dict[str, Any]]:
        """The bags that a person should label next, best first: one dictionary each.

        The order is by the expected gain of an answer (`mipl.labelling`): what it says about the bag itself and about
        bags that are alike, less what the bags before it will have told. Methods that do not know which bags are alike
        give the entropy of the bag alone. Bags that are certain already are left out.

        Parameters
        ----------
        k : int, default=10
            How many bags at most, from 0 up.

        Returns
        -------
        list of dict
            ``bag_id``, ``gain`` in nats, of which ``others`` is about other bags (None where the method does not
            tell), ``label``, ``probability``, ``second_label``, ``second_probability``.
        """
        if isinstance(k, bool) or not isinstance(k, Integral) or k < 0:
            raise ParameterError(f"next_to_label({k!r}): k is how many bags are named at most, an integer from 0 up")
        order = order_to_label(self.posterior) if self.label_order is None else self.label_order
        chosen = [i for i in np.argsort(order.rank, kind="stable").tolist() if order.own[i] > DECIDED][:k]
        columns = {
            "bag_id": self.bag_ids[chosen].tolist(),
            "gain": (order.own + order.others)[chosen].tolist(),
            "others": [None] * len(chosen) if self.label_order is None else order.others[chosen].tolist(),
            "label": self.labels[chosen].tolist(),
            "probability": self.probability[chosen].tolist(),
            "second_label": self.second_label[chosen].tolist(),
            "second_probability": self.second_probability[chosen].tolist(),
        }
        return rows_of(columns)

    @property
    def instance(self) -> NDArray[np.int64]:
        """The instance (m,) behind each label, counted from 0 in its bag: the most probable one of that class.

        It is -1 where the label is the background class, which no instance shows.
        """
        if self.instance_probabilities is None:
            raise DataError("the instances were not asked for; call explain(model, data) with instances=True")
        values = self.instance_probabilities[np.arange(self.bags.n_instances), self.bags.spread(self._best)]
        at_top = np.flatnonzero(values == self.bags.spread(self.bags.max(values)))
        starts = self.offsets[:-1]
        return np.where(self.is_background, -1, at_top[np.searchsorted(at_top, starts)] - starts)

    @property
    def is_background(self) -> NDArray[np.bool_]:
        """Whether the label of each bag (m,) is the background class."""
        column = background_column(self.background, self.classes)
        return np.asarray(self._best == (-1 if column is None else column))

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where the bags begin and end (m + 1,) in the rows of `instance_probabilities`."""
        return self.bags.offsets

    @property
    def accuracy(self) -> float | None:
        """The share of right labels among the bags whose true label is known; None where none is."""
        if self.truth is None:
            return None
        known = np.array([label is not None for label in self.truth])
        return float(np.mean(self.labels.astype(object)[known] == self.truth[known])) if known.any() else None

    @cached_property
    def _among_candidates(self) -> Array:
        """The posterior with -1 for what is impossible, so that a candidate of probability zero comes before it."""
        if self.candidates is None:
            return self.posterior
        return np.where(self.candidates | (self.posterior > 0), self.posterior, -1)

    @cached_property
    def _best_is_outside(self) -> NDArray[np.bool_]:
        if self.candidates is None:
            return np.zeros(len(self), dtype=bool)
        return ~self.candidates[np.arange(len(self)), self._best]

    @cached_property
    def _best(self) -> NDArray[np.int64]:
        best: NDArray[np.int64] = np.argmax(self._among_candidates, axis=1)
        return best

    @cached_property
    def _second(self) -> NDArray[np.int64]:
        """The column of the second label, -1 where there is none."""
        others = self._among_candidates.copy()
        others[np.arange(len(self)), self._best] = -1
        return np.where(others.max(axis=1) < 0, -1, np.argmax(others, axis=1))

    # ---------------------------------------------------------------- selection

    def __len__(self) -> int:
        return len(self.bags)

    def __getitem__(self, key: Any) -> Resolution:
        """Select bags by slice, index array or mask; a single integer gives one bag."""
        index = np.atleast_1d(np.arange(len(self))[key])
        rows = self.bags.rows_of(index)
        return replace(
            self,
            bags=self.bags[index],
            bag_ids=self.bag_ids[index],
            posterior=self.posterior[index],
            instance_probabilities=None if self.instance_probabilities is None else self.instance_probabilities[rows],
            candidates=None if self.candidates is None else self.candidates[index],
            truth=None if self.truth is None else self.truth[index],
            instance_ids=None if self.instance_ids is None else self.instance_ids[rows],
            label_order=None if self.label_order is None else self.label_order.select(index),
        )

    def __repr__(self) -> str:
        among = "all classes" if self.candidates is None else "the candidates"
        return f"Resolution({len(self)} bags, {len(self.classes)} classes, by {self.method} among {among})"

    def _repr_html_(self) -> str:
        return resolution_html(self)

    # ---------------------------------------------------------------- tables, files, pictures

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per bag, for tables and JSON; numbers have six decimals.

        The label is under ``label`` where it was sought among candidates, else under ``predicted``. ``instance``,
        ``candidates`` and ``truth`` are there where they are known, ``outside`` where the truth may be missing from a
        set; ``p(NAME)`` is the probability of a class. No ``instance`` is behind the background class.
        """
        return rows_of(self.columns())

    def to_frame(self) -> pd.DataFrame:
        """The columns of `rows`, in full precision, as a pandas frame."""
        try:
            import pandas as pd
        except ImportError as error:
            raise UnavailableError("a frame needs pandas: pip install pandas; or use rows() or save()") from error
        frame = pd.DataFrame(self.columns())
        if "instance" in frame and self.is_background.any():
            frame["instance"] = frame["instance"].astype("Int64")  # whole numbers, although some are missing
        return frame

    def save(self, path: str | Path, *, raw: bool = False) -> Path:
        """Write the columns of `rows`, whole or not at all.

        Parameters
        ----------
        path : str or Path
            Its suffix chooses the format: .csv, .jsonl, .xlsx (needs openpyxl) or .parquet, which has full precision;
            ``"-"`` is CSV on standard output.
        raw : bool, default=False
            Whether CSV and Excel have names such as ``=1+1`` as they are, which a spreadsheet would run as a formula;
            see `mipl.io.tables.write_table`.
        """
        return write_table(self.columns(), path, raw=raw)

    def save_instances(self, path: str | Path, *, raw: bool = False) -> Path:
        """Write one row per instance: its bag, its id or number in the bag, and the probability of each class.

        Parameters
        ----------
        path : str or Path
            Its suffix chooses the format, as in `save`. ``negative`` is the probability of no class.
        raw : bool, default=False
            As in `save`.
        """
        return write_table(self.instance_columns(), path, raw=raw)

    def instance_columns(self) -> dict[str, list[Any]]:
        """The columns of `save_instances`, in full precision."""
        if self.instance_probabilities is None:
            raise DataError("the instances were not asked for; call explain(model, data) with instances=True")
        numbers = np.arange(self.bags.n_instances) - self.bags.spread(self.offsets[:-1])
        columns: dict[str, list[Any]] = {
            "bag_id": self.bags.spread(self.bag_ids).tolist(),
            "instance": numbers.tolist() if self.instance_ids is None else self.instance_ids.tolist(),
        }
        headings = [*(f"p({name})" for name in self.classes.tolist()), "negative"]
        for heading, values in zip(headings, self.instance_probabilities.T, strict=True):
            columns[heading] = values.tolist()
        return columns

    def plot(self, path: str | Path, n_bags: int = 8) -> Path:
        """Draw bags with their labels, the instance behind each framed, if there is one.

        Parameters
        ----------
        path : str or Path
            Where to save; the suffix (.png, .svg, .pdf) chooses the format.
        n_bags : int, default=8
            How many bags are shown at most, from the first.
        """
        from mipl.plotting.resolution import draw_resolved

        return draw_resolved(self, path, n_bags)

    def report(
        self,
        path: str | Path,
        *,
        title: str = "",
        notes: Mapping[str, Any] | None = None,
        decisions: Mapping[str, str | None] | None = None,
    ) -> Path:
        """Write a page to look at, to correct and to show: one HTML file that needs no network and no server.

        Parameters
        ----------
        path : str or Path
            Where to write: .html.
        title : str, default=""
            What the data are called.
        notes : mapping from str to anything, default=None
            What to say about how the answers were made, such as ``{"parameters": model.get_params()}``.
        decisions : mapping from str to str or None, default=None
            Decisions that were taken already, as `mipl.io.decisions.read_decisions` gives them; the page exports them
            again with those that are taken in it.
        """
        from mipl.report import write_page

        verdict = None if self.label_free is None else self.verdict
        return write_page(self, path, verdict=verdict, title=title, notes=notes, decisions=decisions)

    def summary(self) -> dict[str, Any]:
        """What was found, in numbers: sizes, mean probability and margin, accuracy where the truth is known."""
        return {
            "method": self.method,
            "bags": len(self),
            "instances": self.bags.n_instances,
            "classes": len(self.classes),
            "candidates": None if self.candidates is None else float(self.candidates.sum(axis=1).mean()),
            "probability": float(self.probability.mean()),
            "margin": float(self.margin.mean()),
            "review": int(self.review.sum()),
            "accuracy": self.accuracy,
            "seconds": self.seconds,
        }

    def columns(self) -> dict[str, list[Any]]:
        """The columns of `rows`, in full precision."""
        columns: dict[str, list[Any]] = {
            "bag_id": self.bag_ids.tolist(),
            "predicted" if self.candidates is None else "label": self.labels.tolist(),
            "probability": self.probability.tolist(),
            "second_label": self.second_label.tolist(),
            "second_probability": self.second_probability.tolist(),
            "review": self.review.tolist(),
        }
        if self.instance_probabilities is not None:
            found = self.instance
            columns["instance"] = [None if k < 0 else k for k in found.tolist()]
            if self.instance_ids is not None:
                names = self.instance_ids[self.offsets[:-1] + found].tolist()
                columns["instance_id"] = [None if k < 0 else name for k, name in zip(found, names, strict=True)]
        if self.candidates is not None:
            columns["candidates"] = [self.classes[row].tolist() for row in self.candidates]
        if self.outside.any():
            columns["outside"] = self.outside.tolist()
        if self.truth is not None:
            columns["truth"] = self.truth.tolist()
        for name, values in zip(self.classes.tolist(), self.posterior.T, strict=True):
            columns[f"p({name})"] = values.tolist()
        return columns
