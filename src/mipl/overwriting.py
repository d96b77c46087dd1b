"""No command writes over what it reads: its outputs and its inputs are compared before anything is computed."""

from __future__ import annotations

import os
import stat
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path

from mipl.datasets.registry import dataset_names
from mipl.datasets.sources.files import raw_files
from mipl.errors import ParameterError
from mipl.io.images import is_image_folder
from mipl.io.sources import files_read, is_data

__all__ = ["refuse_overwriting"]


def refuse_overwriting(
    outputs: Iterable[str | Path | None], files: Iterable[str | Path | None] = (), sources: Sequence[str | Path] = ()
) -> None:
    """Refuse an output that is an input, by whatever path or link, and two outputs that are one file.

    Parameters
    ----------
    outputs : iterable of str or Path
        The files that will be written; ``"-"`` is standard output. Here and in `files` None is no file.
    files : iterable of str or Path, default=()
        Single files that are read: models, tables of candidates, decisions, stores.
    sources : sequence of str or Path, default=()
        What a user named as data: files, patterns, folders, ``"-"`` for standard input, or the name of a data set.

    Raises
    ------
    ParameterError
        An output is read, is another output, or would be read the next time, as it lies in a folder of data.
    """
    written: dict[Hashable, str | Path] = {}
    for output in outputs:
        if output is not None:
            key = _identity(output, 1)
            if key in written:
                where = f"{output}" if str(output) == str(written[key]) else f"{output}, which is {written[key]}"
                raise ParameterError(f"two outputs would both be written to {where}; choose another file for one")
            written[key] = output
    if len(sources) == 1 and str(sources[0]) in dataset_names():
        files, sources = [*files, *raw_files(str(sources[0]))], ()
    if any(not isinstance(key, str) for key in written):  # a path stands for what does not exist and so is not read
        for file in (*files, *files_read(sources)):
            if file is not None and (key := _identity(file, 0)) in written:
                name = "standard input" if str(file) == "-" else str(file)
                alias = "" if name == str(written[key]) else f" as {name}"
                raise ParameterError(
                    f"cannot write {written[key]}: this command reads it{alias}; choose another file or folder"
                )
    for source in map(Path, sources):
        for output in written.values() if source.is_dir() or _is_pattern(source) else ():
            if _joins(output, source):
                raise ParameterError(
                    f"cannot write {output}: whoever reads {source} the next time would take it for data; choose "
                    "another folder"
                )


def _identity(path: str | Path, standard: int) -> Hashable:
    """What two paths share if they are one file: its number on the disk, or the path behind all links if it is new."""
    try:
        found = os.fstat(standard) if str(path) == "-" else os.stat(path)
    except OSError:
        return os.path.realpath(path)
    if stat.S_ISREG(found.st_mode):
        return found.st_dev, found.st_ino
    return str(path), standard  # a terminal or a pipe: nothing in it is lost, but two tables would be mixed up


def _is_pattern(source: Path) -> bool:
    return not source.exists() and any(character in str(source) for character in "*?[")


def _joins(output: str | Path, source: Path) -> bool:
    """Whether a file, once it is written, is read with a folder or pattern."""
    if _is_pattern(source):
        return Path(os.path.abspath(output)).match(os.path.abspath(source))
    real, root = Path(os.path.realpath(output)), Path(os.path.realpath(source))
    return root in real.parents and is_data(real.relative_to(root), is_image_folder(source))
