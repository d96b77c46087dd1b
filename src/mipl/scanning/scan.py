"""Scan: bags in files that are larger than memory together; `scan` is the way in."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from mipl.bags import Bags
from mipl.clusters import map_on_cluster, n_threads
from mipl.dataset import MIPLDataset
from mipl.errors import DataError, ParameterError
from mipl.io.options import OPTIONS, Columns, describes_options
from mipl.scanning.files import list_files
from mipl.scanning.pieces import Layout, Part, Piece, Selection, cut, hash_keys, read_pieces
from mipl.scanning.source import Recipe, Source
from mipl.streams import BagStream
from mipl.supervision import Supervision, background_column

__all__ = ["Index", "Scan", "ScanBlock", "build_index", "scan"]


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


@dataclass(frozen=True)
class Index:
    """The bags of a scan in their order.

    Parameters
    ----------
    ids : (m,) array
        What they are called.
    first : (m,) int64
        The row of the scan at which each begins.
    rows : (m,) int64
        The rows of each: 1 where a row is a bag, else its instances.
    """

    ids: NDArray[Any]
    first: NDArray[np.int64]
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)


def build_index(source: Source, selection: Selection) -> Index:
    """Read the ids of all selected bags; a bag that comes again is an error."""
    pieces: list[Piece] = []
    fresh: list[Piece] = []
    for piece in read_pieces(source.parts(), source.layout, selection, what="ids"):
        bare = Piece(piece.file, piece.table.slice(0, 0), piece.ids, piece.first, piece.rows, piece.rows)
        if fresh and fresh[0].file != piece.file:
            _check_unique(fresh, source.layout)  # an unsorted file is told before all others are read
            fresh = []
        fresh.append(bare)
        pieces.append(bare)
    if not pieces:
        none = np.array([], dtype=np.int64)
        return Index(none, none, none)
    _check_unique(pieces, source.layout)
    return Index(_joined(pieces), *(np.concatenate([getattr(p, n) for p in pieces]) for n in ("first", "rows")))


def _joined(pieces: list[Piece]) -> NDArray[Any]:
    kinds = {piece.ids.dtype.kind for piece in pieces}
    return np.concatenate([piece.ids.astype(str) if len(kinds) > 1 else piece.ids for piece in pieces])


def _check_unique(pieces: list[Piece], layout: Layout) -> None:
    ids = _joined(pieces)
    order = np.argsort(ids, kind="stable")
    again = np.flatnonzero(ids[order[1:]] == ids[order[:-1]])
    if not len(again):
        return
    one, other = order[again[0]], order[again[0] + 1]
    ends = np.cumsum([len(piece.ids) for piece in pieces])
    files = [pieces[int(np.searchsorted(ends, i, side="right"))].file.path for i in (one, other)]
    where = f"in {files[0]}" if files[0] == files[1] else f"of {files[0]} comes again in {files[1]}"
    bag = layout.columns.bag or "bag_id"
    if layout.instances is not None:
        twice = "occurs twice " if files[0] == files[1] else ""
        raise DataError(f"the bag {ids[one].item()!r} {twice}{where}; with one row per bag, ids must be unique")
    later = "comes again later " if files[0] == files[1] else ""
    raise DataError(
        f"the bag {ids[one].item()!r} {later}{where}; a scan needs the rows of a bag one after the other: sort them, "
        f"with DuckDB: COPY (SELECT * FROM '{files[0]}' ORDER BY {bag}) TO 'sorted.parquet'; or with pyarrow: "
        f"pq.write_table(pq.read_table('{files[0]}').sort_by('{bag}'), 'sorted.parquet')"
    )


#: Bytes of the features of one chunk.
_CHUNK_BYTES = 64 << 20


class Scan(BagStream):
    """Bags in many files, read chunk by chunk; `mipl.scan` makes it.

    It holds paths and not data, so it pickles small. Files must not change while it is used.

    Parameters
    ----------
    source : Source
        The files and what is known of them.
    selection : Selection
        Which bags are meant.
    features : tuple of str, default=None
        The features that were selected; None for all.
    client : distributed.Client, default=None
        Of the cluster whose workers read the chunks, see `on`; None for this process. It does not travel with a
        pickled scan.
    """

    def __init__(
        self, source: Source, selection: Selection, features: tuple[str, ...] | None = None, client: Any = None
    ) -> None:
        self._source = source
        self._selection = selection
        self._features = features
        self.client = client

    @cached_property
    def _layout(self) -> Layout:
        return self._source.layout if self._features is None else self._source.layout.select(self._features)

    def __reduce__(self) -> tuple[Any, ...]:
        return Scan, (self._source, self._selection, self._features)

    # ---------------------------------------------------------------- sizes and names

    @property
    def files(self) -> list[str]:
        """The files in their order."""
        return [file.path for file in self._source.files]

    @cached_property
    def _index(self) -> Index:
        return build_index(self._source, self._selection)

    def __len__(self) -> int:
        return len(self._index)

    @property
    def bag_ids(self) -> NDArray[Any]:
        """What the bags (m,) are called, in order; needs a pass over the bag ids."""
        return self._index.ids

    @cached_property
    def n_instances(self) -> int:
        """The number n of instances.

        Without filters and splits it comes from the footers; with one row per bag and a filter or split, or in Arrow
        files, the lists of instances are read once. Instances that ``missing="drop"`` leaves out are counted.
        """
        if not self._selection:
            return int(self._source.group_instances.sum())
        if self._layout.instances is None:
            return int(self._index.rows.sum())
        return sum(int(piece.sizes.sum()) for piece in self._pieces("bags"))

    @property
    def n_features(self) -> int:
        """The number d of features."""
        return self._layout.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the features, None where they have none."""
        return self._layout.feature_names

    @property
    def instance_shape(self) -> tuple[int, ...]:
        """The shape of an instance."""
        return self._layout.instance_shape

    @cached_property
    def classes(self) -> NDArray[Any]:
        """The classes (q,) of all files, whatever is selected; may need a pass over the candidates."""
        return np.array(self._source.labels.classes)

    @property
    def background(self) -> Any:
        """The background class, or None."""
        return self._source.labels.background

    @property
    def reading(self) -> dict[str, Any]:
        """The options that the files are read with, for models to remember."""
        return self._source.columns.said()

    @property
    def remark(self) -> str | None:
        """What the columns were taken for, where that is not as usual."""
        return self._layout.remark

    def __repr__(self) -> str:
        source, known = self._source, "_index" in vars(self)
        files = f"{len(source.files):,} file{'s' if len(source.files) > 1 else ''}"
        whole = not self._selection
        bags = ""
        if known or (whole and self._layout.instances is not None):
            m = len(self._index) if known else int(source.groups.edges[-1])
            bags = f", {m:,} bags"
        n = f", {self.n_instances:,} instances" if whole or "n_instances" in vars(self) else ", selected"
        return f"Scan({files}{bags}{n}, {'x'.join(map(str, self.instance_shape))})"

    # ---------------------------------------------------------------- reading

    def chunks(self, *, max_bytes: int | None = None, max_instances: int | None = None) -> Iterator[MIPLDataset]:
        """Data sets of bounded size, one after the other, all with the same classes and features.

        Parameters
        ----------
        max_bytes : int, default=67108864
            The most bytes that the features of a chunk take; a larger bag comes alone.
        max_instances : int, default=None
            The most instances of a chunk, in place of `max_bytes`.
        """
        most = self._most(max_bytes, max_instances)
        len(self._index)  # a bag that comes again is found before anything is computed
        recipe = self._source.recipe(self._layout)
        return (recipe.load(pieces).dataset for pieces in cut(self._pieces("all", most), most))

    def bag_chunks(self, *, max_bytes: int | None = None, max_instances: int | None = None) -> Iterator[Bags]:
        """The bags alone in chunks, as `chunks` has them; candidates and labels are not read.

        Parameters
        ----------
        max_bytes : int, default=67108864
            As in `chunks`.
        max_instances : int, default=None
            As in `chunks`.
        """
        most = self._most(max_bytes, max_instances)
        len(self._index)
        recipe = Recipe(self._layout)
        return (recipe.load_bags(pieces) for pieces in cut(self._pieces("bags", most), most))

    def blocks(self, max_instances: int) -> list[ScanBlock]:
        """The bags in blocks that can be read in any order, anywhere: small descriptions with `read()`.

        Which bags a block has depends on the files, the selection and `max_instances` alone. With one row per bag, a
        bag is taken to be as large as the mean of its row group, so that a block may have somewhat more instances.

        Parameters
        ----------
        max_instances : int
            The most instances of a block; a larger bag is a block of its own. A block inside a row group of Parquet
            costs the reading of the rows before it, so blocks should not be much smaller than row groups.
        """
        most = self._most(None, max_instances)
        found, start = [], 0
        ends = np.cumsum(self._sizes)
        while start < len(ends):
            done = ends[start - 1] if start else 0.0
            stop = max(start + 1, int(np.searchsorted(ends, done + most * (1 + 1e-9), side="right")))
            found.append(self.block(start, stop))
            start = stop
        return found

    def chunk_blocks(self) -> list[ScanBlock]:
        """All bags in blocks of about the size of a chunk; on a cluster equally many for each thread, of equal size."""
        most = self._most(None, None)
        if self.client is not None and len(self):
            threads = n_threads(self.client)
            n_blocks = threads * math.ceil(self.n_instances / (most * threads))
            most = math.ceil(self.n_instances / n_blocks + self.n_instances / len(self))
        return self.blocks(most)

    def on(self, client: Any) -> Scan:
        """The same bags, whose chunks are read and worked on by the workers of a Dask cluster.

        Whatever a model answers for this scan is computed there: `predict`, `predict_proba`, `predict_instances`,
        `resolve`, `score`, `mipl.explain`, `mipl.resolve` and `mipl.label_free_score`; `BagGP.fit` runs there too. The
        workers must see the files under the same paths.

        Parameters
        ----------
        client : distributed.Client
            A client of the cluster; None for this process.
        """
        found = Scan(self._source, self._selection, self._features, client)
        for name in ("_index", "n_instances", "_sizes"):  # what was read already
            if name in vars(self):
                vars(found)[name] = vars(self)[name]
        return found

    def block(self, start: int, stop: int) -> ScanBlock:
        """The bags from one position to another, as `blocks` has them.

        Parameters
        ----------
        start : int
            The position of the first bag.
        stop : int
            The position after the last one.
        """
        index = self._index
        rows = int(index.first[start]), int(index.first[stop - 1] + index.rows[stop - 1])
        count = round(float(self._sizes[start:stop].sum()))
        parts = (
            part._replace(file=replace(part.file, path=os.path.abspath(part.file.path)))  # for any working directory
            for part in self._source.parts(*rows)
        )
        recipe = self._source.recipe(self._layout)
        return ScanBlock(tuple(parts), recipe, self._selection, start, stop - start, count)

    def take(self, bags: NDArray[np.int64]) -> MIPLDataset:
        """Some bags in memory, by their positions in ascending order.

        Parameters
        ----------
        bags : (k,) int64
            Ascending positions.
        """
        taken = set(self._index.first[bags].tolist())
        pieces = (
            kept
            for piece in read_pieces(self._parts_of(bags), self._layout, self._selection)
            if len((kept := piece.keep(np.array([row in taken for row in piece.first.tolist()]))).ids)
        )
        return self._source.recipe(self._layout).load(list(pieces)).dataset

    def to_dataset(self) -> MIPLDataset:
        """All bags in memory, as `mipl.load` gives them."""
        self._check_not_empty()
        return next(self.chunks(max_instances=np.iinfo(np.int64).max // 2))

    def supervision(self) -> Supervision:
        """What is known of the labels of all bags (m,), in order, without their features: candidates, weights, groups.

        Needs a pass over all columns but the features. It takes m * q bytes, nine times as many with weights.
        """
        if self._layout.columns.missing == "drop":
            raise DataError("missing='drop' may leave out bags, which only their features tell; read chunks() instead")
        self._check_not_empty()
        if self.client is None:
            recipe = self._source.recipe(self._layout)
            parts = [recipe.load_labels([p]).dataset.supervision() for p in self._pieces("labels")]
        else:
            parts = map_on_cluster(self.client, ScanBlock.read_supervision, self.chunk_blocks())

        def joined(name: str) -> Any:
            values = [getattr(part, name) for part in parts]
            return None if any(value is None for value in values) else np.concatenate(values)

        column = background_column(self.background, self.classes)
        return Supervision(joined("candidates"), joined("weights"), column, joined("groups"))

    # ---------------------------------------------------------------- selection

    def select(self, features: str | Sequence[str]) -> Scan:
        """The same bags with some features only; where these are columns of their own, only they are read.

        Parameters
        ----------
        features : str or sequence of str
            Names or patterns of features, in the order that chunks are to have.
        """
        selected = self._layout.select([features] if isinstance(features, str) else features)
        return Scan(self._source, self._selection, selected.feature_names, self.client)

    def filter(self, condition: pc.Expression) -> Scan:
        """The bags that fulfil a condition on columns that belong to the whole bag.

        Row groups whose statistics rule the condition out are not read. Classes stay those of all files.

        Parameters
        ----------
        condition : pyarrow.compute.Expression
            Such as ``pc.field("year") > 2020``; any column may be used but the features, also those of folder names.
        """
        if not isinstance(condition, pc.Expression):
            raise ParameterError(
                f"filter takes a pyarrow expression such as pc.field('year') > 2020, not {type(condition).__name__}"
            )
        return Scan(self._source, self._selection.where(condition), self._features, self.client)

    def split(self, train_size: float = 0.5, seed: int = 0) -> tuple[Scan, Scan]:
        """Two scans, by a hash of the bag id and the seed: no file order, chunk size or other bag has a say.

        Where the files have a column ``group``, it is the hash of the group, so that a group lies on one side.

        Parameters
        ----------
        train_size : float in (0, 1), default=0.5
            The share of bags, in expectation, that the first scan has.
        seed : int, default=0
            Another seed gives another split.
        """
        if isinstance(train_size, bool) or not isinstance(train_size, Real) or not 0 < train_size < 1:
            raise ParameterError(f"train_size={train_size!r}; the split of a scan takes a share in (0, 1)")
        sides = self._selection.split(float(train_size), _seed(seed))
        first, second = (Scan(self._source, side, self._features, self.client) for side in sides)
        return first, second

    def sample(self, n: int, seed: int = 0) -> MIPLDataset:
        """Draw n bags at random, in random order, into memory: those with the smallest hashes of id and seed.

        The sample depends on the ids alone, not on the order of files or bags. A larger sample begins with the smaller.

        Parameters
        ----------
        n : int
            How many bags; all where the scan has no more.
        seed : int, default=0
            Another seed gives another sample.
        """
        if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
            raise ParameterError(f"n={n!r}; a sample has at least one bag")
        self._check_not_empty()
        index = self._index
        keys = hash_keys(index.ids.tolist(), _seed(seed), "sample")
        chosen = np.lexsort((index.ids, keys))[: int(n)]
        at = np.sort(chosen)
        dataset = self.take(at)
        if len(dataset) < len(at):  # instances with missing values were dropped, and with them bags
            order = np.lexsort((dataset.bag_ids, hash_keys(dataset.bag_ids.tolist(), _seed(seed), "sample")))
            return dataset[order]
        return dataset[np.searchsorted(at, chosen)]

    # ---------------------------------------------------------------- rows

    def _check_not_empty(self) -> None:
        if not len(self):
            raise DataError("the scan has no bags: none is on this side of its filters and splits")

    def _pieces(self, what: str, most: float = math.inf) -> Iterator[Piece]:
        at_once = int(min(most, 1 << 30)) // 2 + 1
        return read_pieces(self._source.parts(), self._layout, self._selection, what=what, at_once=at_once)

    @cached_property
    def _sizes(self) -> NDArray[np.float64]:
        """The instances (m,) of each bag; with one row per bag, the mean of its row group."""
        index = self._index
        if self._layout.instances is None:
            return index.rows.astype(np.float64)
        edges = self._source.groups.edges
        mean = self._source.group_instances / np.maximum(np.diff(edges), 1)
        return mean[np.searchsorted(edges, index.first, side="right") - 1]

    def _parts_of(self, bags: NDArray[np.int64]) -> list[Part]:
        """Parts with all rows of some bags, which are sorted; row groups without any of them are left out."""
        index, edges = self._index, self._source.groups.edges
        start, stop = index.first[bags], index.first[bags] + index.rows[bags]
        parts: list[Part] = []
        for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            inside = slice(np.searchsorted(stop, low, side="right"), np.searchsorted(start, high, side="left"))
            if inside.start < inside.stop:
                parts += self._source.parts(max(low, int(start[inside.start])), min(high, int(stop[inside.stop - 1])))
        return parts

    def _most(self, max_bytes: int | None, max_instances: int | None) -> int:
        """The instances of a chunk."""
        if max_bytes is not None and max_instances is not None:
            raise ParameterError("pass either max_bytes or max_instances")
        for name, value in (("max_bytes", max_bytes), ("max_instances", max_instances)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, Integral) or value < 1):
                raise ParameterError(f"{name}={value!r}; it must be a positive integer")
        if max_instances is not None:
            return int(max_instances)
        return max(1, int(max_bytes or _CHUNK_BYTES) // (4 * self.n_features))


def _seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise ParameterError(f"seed={seed!r}; it must be an int that is not negative")
    return int(seed)


@describes_options
def scan(
    paths: Any,
    *,
    bag: str | None = None,
    candidates: str | None = None,
    label: str | None = None,
    features: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] | None = None,
    instance_id: str | None = None,
    missing: str | Mapping[str, float] | None = None,
    candidates_sep: str = "|",
    unlabelled: Sequence[Any] | None = None,
) -> Scan:
    """Scan Parquet, Feather or Arrow files that may be larger than memory.

    Only footers and the first rows are read at once. Two things need a pass over some columns, each when it is first
    asked for: the bag ids (their column), and the classes where not every file was written by mipl (the candidates).
    Features are read chunk by chunk only; which columns they are is decided by the first 1,000 rows. A mean in place of
    missing values is of all rows, so it must be given: those that a model remembers (`reading_`).

    A row is a bag (lists of instances in one column, as `MIPLDataset.save` writes), or a row is an instance; then the
    rows of a bag lie one after the other, and may go on in the next row group or file.

    Parameters
    ----------
    paths : str, Path, sequence of these, or pyarrow.dataset.Dataset
        A file, a folder, a pattern such as ``"folder/*.parquet"``, or several. Folders named ``year=2024`` are columns
        for `Scan.filter`, and for the roles below where they are named.
    {options}
    unlabelled : sequence of labels, default=None
        The classes that a bag without candidates may have; None refuses such bags, where candidates are asked for.

    Returns
    -------
    Scan

    Examples
    --------
    >>> import tempfile, mipl
    >>> folder = tempfile.TemporaryDirectory()
    >>> ds = mipl.load("digits")
    >>> paths = [ds[:70].save(f"{folder.name}/1.parquet"), ds[70:].save(f"{folder.name}/2.parquet")]
    >>> found = scan(f"{folder.name}/*.parquet")
    >>> found
    Scan(2 files, 150 bags, 1,125 instances, 8x8)
    >>> [len(chunk) for chunk in found.chunks(max_instances=500)]
    [67, 66, 17]
    >>> folder.cleanup()
    """
    columns = Columns(**{name: value for name, value in locals().items() if name in OPTIONS})
    source = Source(list_files(paths), columns, None if unlabelled is None else list(unlabelled))
    source.layout  # noqa: B018 - what is wrong with the columns is said at once
    return Scan(source, Selection())
