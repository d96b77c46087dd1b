"""`mipl.load`: a data set by its name or from files."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from mipl.arrays import is_table
from mipl.dataset import MIPLDataset
from mipl.datasets.registry import builder, dataset_names
from mipl.errors import DataError
from mipl.io.border import file_format
from mipl.io.options import OPTIONS, Columns, describes_options
from mipl.io.raw import Loaded
from mipl.io.sources import READERS, read_files, read_frame
from mipl.supervision import background_column

__all__ = ["check_source", "load", "load_with_ids", "with_background"]


@describes_options
def load(
    source: Any,
    *,
    bag: str | None = None,
    candidates: str | None = None,
    label: str | None = None,
    features: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] | None = None,
    instance_id: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    missing: str | Mapping[str, float] | None = None,
    candidates_sep: str = "|",
    unlabelled: Sequence[Any] | None = None,
    background: Any = None,
    table: str | Path | None = None,
    patch: int | None = None,
    size: int | None = None,
    **options: Any,
) -> MIPLDataset:
    """Load a data set by its name (``"digits"``, ``"mnist"``, ...), from files, or from a table in memory.

    Parameters
    ----------
    source : str, Path or sequence of these; or a frame of pandas or polars, or a table of pyarrow
        A name of `mipl.datasets.dataset_names()`; or a file (.csv, .tsv, .parquet, .feather, .jsonl, .xlsx, .npz,
        .mat; text may be compressed), a pattern such as ``"day*.csv"``, a folder of such files, a folder of images,
        ``"-"`` for standard input, or several of these. A table is read as the same table in a file would be.
    {options}
    unlabelled : sequence of labels, default=None
        The classes that a bag without candidates may have: all of them become its candidates. None refuses such bags.
    background : label, default=None
        The class whose bags have no positive instance; None takes the one that the file or the data set names.
    **options
        For a name: ``r`` (false positive labels per bag, default 1), ``seed`` (default 0) and what else the data set's
        builder takes.

    Examples
    --------
    >>> ds = load("digits", r=1, seed=0)
    >>> ds.candidates.sum(axis=1).max()
    np.int64(2)

    New files as the training files of a model were read, with its means in place of missing values:
    ``load("new.csv", **model.reading_)``.
    """
    columns = Columns(**{name: value for name, value in locals().items() if name in OPTIONS})
    return load_with_ids(source, columns, unlabelled, background=background, **options).dataset


def load_with_ids(
    source: Any,
    columns: Columns | None = None,
    unlabelled: Sequence[Any] | None = None,
    *,
    background: Any = None,
    **options: Any,
) -> Loaded:
    """Load a data set together with the ids of its instances and remarks on how its files were read.

    Parameters
    ----------
    source : str, Path, sequence of these, or table
        As in `load`.
    columns : Columns, default=None
        What is known of the columns.
    unlabelled : sequence of labels, default=None
        As in `load`.
    background : label, default=None
        As in `load`.
    **options
        For a data set by name.
    """
    columns = columns or Columns()
    if is_table(source):
        if columns.table is not None or options:
            names = [*(["table"] if columns.table is not None else []), *options]
            raise DataError(f"tables have no option {', '.join(map(repr, names))}; see mipl.load")
        loaded = read_frame(source, columns).load(columns.missing, unlabelled, warn=True)
        return _finished(loaded, columns, background)
    sources = [source] if isinstance(source, str | Path) else list(source) if isinstance(source, Iterable) else [source]
    if not sources:
        raise DataError("no files to load")
    if len(sources) == 1 and isinstance(sources[0], str) and sources[0] in dataset_names():
        # Options such as `patch` are an image folder's and a data set's alike; the data set says which it has.
        its_own = inspect.signature(builder(sources[0])).parameters.keys()
        given = {**columns.said(), **({} if columns.table is None else {"table": columns.table})}
        if given.keys() - ({"patch", "size"} & its_own):
            raise DataError(f"{sources[0]} is a data set by name; options for columns and images are for files")
        return _finished(Loaded(_build(sources[0], {**given, **options})), Columns(), background)
    for each in sources:
        check_source(each)
    if options:
        raise DataError(f"files have no option {', '.join(map(repr, options))}; see mipl.load for those they have")
    return _finished(read_files(sources, columns, unlabelled), columns, background)


def _finished(loaded: Loaded, columns: Columns, background: Any) -> Loaded:
    """What was read, with what a model is to remember of it, and the background class where the user names it."""
    means = {} if loaded.means is None else {"missing": dict(loaded.means)}
    loaded.dataset.reading = {**columns.said(), **means}
    return loaded if background is None else loaded._replace(dataset=with_background(loaded.dataset, background))


def with_background(dataset: MIPLDataset, background: Any) -> MIPLDataset:
    """The same data set with a class declared the background.

    Parameters
    ----------
    dataset : MIPLDataset
        The bags.
    background : label
        One of its classes; where these are integers, their digits as text will do, as on a command line.
    """
    by_text = {str(name): name for name in dataset.classes.tolist()}
    label = by_text.get(background, background) if isinstance(background, str) else background
    background_column(label, dataset.classes)  # refuses what is no class
    declared = copy.copy(dataset)
    declared.background = label
    return declared


def _build(name: str, options: dict[str, Any]) -> MIPLDataset:
    build = builder(name)
    known = inspect.signature(build).parameters
    for option in options:
        if option not in known:
            raise DataError(f"{name} has no option {option!r}; it has {', '.join(known)}")
    return build(**options)


def check_source(source: str | Path) -> None:
    """Refuse what is neither a data set nor looks like a file that can be read."""
    if not isinstance(source, str | Path):
        raise DataError(
            f"cannot load data from a {type(source).__name__}; pass the name of a data set, a file, several, or a table"
        )
    path = Path(source)
    if str(source) == "-" or path.is_dir() or any(c in str(source) for c in "*?["):
        return
    if file_format(path)[0] not in READERS:
        if path.exists():
            raise DataError(f"cannot tell the format of {path}; its suffix must be one of {', '.join(READERS)}")
        if str(source) in dataset_names():
            raise DataError(f"{str(source)!r} is a data set of its own, not one of several files; name it alone")
        close = get_close_matches(str(source), dataset_names(), n=1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        raise DataError(
            f"{str(source)!r} is neither a data set ({', '.join(dataset_names())}) nor a file with a suffix of "
            f"{', '.join(READERS)}{meant}"
        )
