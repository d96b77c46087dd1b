"""`mipl.scan`: from paths and the names of columns to a `Scan`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mipl.io.columns import Columns
from mipl.scanning.files import list_files
from mipl.scanning.scan import Scan
from mipl.scanning.selection import Selection
from mipl.scanning.source import Source

__all__ = ["scan"]


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
    Features are read chunk by chunk only.

    A row is a bag (lists of instances in one column, as `MIPLDataset.save` writes), or a row is an instance; then the
    rows of a bag lie one after the other, and may go on in the next row group or file.

    Parameters
    ----------
    paths : str, Path, sequence of these, or pyarrow.dataset.Dataset
        A file, a folder, a pattern such as ``"folder/*.parquet"``, or several. Folders named ``year=2024`` are columns
        for `Scan.filter`, and for the roles below where they are named.
    bag, candidates, label, candidates_sep
        The columns of bags, of candidate labels and of true labels, as in `mipl.load`.
    features : str or sequence of str, default=None
        The feature columns, by name or pattern; None decides by the first 1,000 rows as `mipl.load` does by all.
    ignore : str or sequence of str, default=None
        Columns that are left out.
    instance_id : str, default=None
        The column that names each instance, which is then no feature.
    missing : str or mapping from str to float, default=None
        ``"drop"`` leaves out instances with a missing value, a mapping fills in its value for the feature, such as the
        means that a model remembers (`reading_`); None refuses missing values.
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
    columns = Columns(
        bag=bag,
        candidates=candidates,
        label=label,
        features=features,
        ignore=ignore,
        instance_id=instance_id,
        missing=missing,
        candidates_sep=candidates_sep,
    )
    source = Source(list_files(paths), columns, None if unlabelled is None else list(unlabelled))
    source.layout  # noqa: B018 - what is wrong with the columns is said at once
    return Scan(source, Selection())
