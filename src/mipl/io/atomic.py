"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mipl.errors import DataError

__all__ = ["atomic_path"]


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; on success it is flushed and renamed, on any error it is removed."""
    final = Path(path)
    if not final.parent.is_dir():
        raise DataError(f"cannot write {final}: the folder {final.parent} does not exist")
    if final.is_dir():
        raise DataError(f"cannot write {final}: it is a folder")
    handle, name = tempfile.mkstemp(prefix=f".{final.stem}-", suffix=final.suffix, dir=final.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        # mkstemp makes the file private; give it the permissions that open() would have.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(final)
    finally:
        temporary.unlink(missing_ok=True)
