"""Raw data files: from the folder $MIPL_DATA, else downloaded once into a cache folder; every byte is checked."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.errors import DataError
from mipl.io.atomic import atomic_path

__all__ = ["by_hand", "cache_folder", "check_sha256", "download", "local_file", "read_npz", "sha256_of_arrays"]


def cache_folder() -> Path:
    """Where downloads and derived features are kept: $MIPL_CACHE, else the user's cache folder."""
    import pooch

    return Path(os.environ.get("MIPL_CACHE") or pooch.os_cache("mipl"))


def local_file(relative: str, sha256: str) -> Path | None:
    """The file ``$MIPL_DATA/relative`` after a check of its content, or None where there is none."""
    folder = os.environ.get("MIPL_DATA")
    if not folder or not (Path(folder) / relative).is_file():
        return None
    path = Path(folder) / relative
    check_sha256(path, sha256)
    return path


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of a checked .npz file."""
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def check_sha256(path: Path, expected: str) -> None:
    """Raise where the content of `path` is not the expected one."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise DataError(
            f"{path} is damaged, truncated or another file: expected sha256 {expected}, found {found}; "
            "restore it, or remove it so that it is downloaded"
        )


def sha256_of_arrays(*arrays: NDArray[Any]) -> str:
    """A digest of the values of arrays, whatever file they came from."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()


def download(relative: str, sha256: str, urls: Sequence[str]) -> Path:
    """The cached file `relative`, fetched from the first of `urls` that delivers the expected content.

    A source whose address ends in .gz is unpacked; `sha256` is that of the unpacked file.
    """
    import pooch

    path = cache_folder() / relative
    if path.is_file():
        check_sha256(path, sha256)
        return path
    failures = []
    path.parent.mkdir(parents=True, exist_ok=True)
    for url in urls:
        try:
            with atomic_path(path) as part:
                pooch.HTTPDownloader(progressbar=False, timeout=30)(url, str(part), None)
                if url.endswith(".gz"):
                    _unpack(part)
                check_sha256(part, sha256)
            return path
        except Exception as error:  # any failure of one mirror only means that the next one is asked
            failures.append(f"{url}: {error}")
    raise DataError(by_hand(f"{path.name} (sha256 {sha256})", failures, f"save it as {path}"))


def by_hand(what: str, failures: Sequence[str], remedy: str) -> str:
    """The message for a raw file that cannot be fetched: what was tried, and the manual steps."""
    tried = "\n".join(f"  - {failure}" for failure in failures)
    return (
        f"cannot download {what}; no source answered:\n{tried}\n"
        f"By hand: fetch it from one of these on a machine with a network and {remedy}; "
        "or set MIPL_DATA to a folder with the raw files (layout: docs/datasets.md)."
    )


def _unpack(path: Path) -> None:
    unpacked = path.with_suffix(".unpacked")
    with gzip.open(path, "rb") as packed, unpacked.open("wb") as out:
        shutil.copyfileobj(packed, out)
    unpacked.replace(path)
