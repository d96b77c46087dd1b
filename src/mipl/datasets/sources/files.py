"""Raw data files: from the folder $MIPL_DATA, else downloaded once into a cache folder; every byte is checked."""

from __future__ import annotations

import gzip
import hashlib
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipl.errors import DataError
from mipl.io.atomic import atomic_path

__all__ = [
    "RemoteFile",
    "by_hand",
    "cache_folder",
    "check_arrays",
    "check_sha256",
    "download",
    "github",
    "local_file",
    "raw_files",
    "read_npz",
    "required_file",
]

_LOG = logging.getLogger(__name__)


def cache_folder() -> Path:
    """Where downloads and derived features are kept: $MIPL_CACHE, else the user's cache folder."""
    import pooch

    return Path(os.environ.get("MIPL_CACHE") or pooch.os_cache("mipl"))


def local_file(relative: str, sha256: str) -> Path | None:
    """The file ``$MIPL_DATA/relative`` after a check of its content, or None where there is none."""
    folder = os.environ.get("MIPL_DATA")
    if folder and not Path(folder).is_dir():
        raise DataError(f"MIPL_DATA is {folder!r}, which is not a folder; correct it, or unset it to download the data")
    if not folder or not (Path(folder) / relative).is_file():
        return None
    path = Path(folder) / relative
    check_sha256(path, sha256)
    return path


def required_file(relative: str, sha256: str) -> Path:
    """The file ``$MIPL_DATA/relative`` after a check of its content, for data that cannot be downloaded as one file."""
    path = local_file(relative, sha256)
    if path is None:
        raise DataError(
            f"no file {relative} in the folder MIPL_DATA ({os.environ.get('MIPL_DATA') or 'not set'}); it is not "
            f"downloaded: docs/datasets.md says what it is put together from (sha256 {sha256})"
        )
    return path


def raw_files(name: str) -> list[Path]:
    """The files in ``$MIPL_DATA`` that the data set `name` may be built from."""
    folder, kept = os.environ.get("MIPL_DATA"), name.partition("-")[0]  # birdsong-natural is built from birdsong
    return sorted(Path(folder).glob(f"{kept}/{kept}.*")) if folder else []


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


def check_arrays(name: str, expected: str, *arrays: NDArray[Any]) -> None:
    """Raise where the values of arrays, put together from other files than the usual ones, are not the expected."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.tobytes())
    if digest.hexdigest() != expected:
        raise DataError(
            f"the downloaded data of {name} are not the expected ones: the arrays have sha256 {digest.hexdigest()}, "
            f"expected {expected}"
        )


class RemoteFile(NamedTuple):
    """A file of the cache folder, and where it comes from."""

    path: str  #: relative to the cache folder
    sha256: str  #: of the file, unpacked where a source packs it
    urls: Sequence[str]  #: sources, the preferred one first; one that ends in .gz is unpacked


def download(files: Sequence[RemoteFile]) -> list[Path]:
    """The cached `files`, each fetched from the first of its sources that delivers the expected content."""
    for file in files:
        path = cache_folder() / file.path
        if path.is_file():
            check_sha256(path, file.sha256)
            continue
        failures = _fetch(file, path)
        if not path.is_file():
            missing = [f for f in files if not (cache_folder() / f.path).is_file()]
            raise DataError(by_hand(missing, failures))
    return [cache_folder() / file.path for file in files]


def _fetch(file: RemoteFile, path: Path) -> list[str]:
    """Ask one source after the other until one delivers; what was wrong with those before it."""
    import pooch

    path.parent.mkdir(parents=True, exist_ok=True)
    failures = []
    for url in file.urls:
        _LOG.info("downloading %s to %s", url, path)
        try:
            with atomic_path(path) as part:
                pooch.HTTPDownloader(progressbar=False, timeout=30)(url, str(part), None)
                if url.endswith(".gz"):
                    part.write_bytes(gzip.decompress(part.read_bytes()))
                check_sha256(part, file.sha256)
            break
        except Exception as error:  # any failure of one source only means that the next one is asked
            unanswered = getattr(error, "response", error) is None
            failures.append(f"{url}: {'no answer' if unanswered else error}")
            _LOG.warning("not downloaded: %s", failures[-1])
    return failures


def by_hand(missing: Sequence[RemoteFile], failures: Sequence[str]) -> str:
    """The message for raw files that cannot be fetched: what was tried, and the manual steps."""
    tried = "\n".join(f"  {failure}" for failure in failures)
    steps = "\n".join(
        f"  {file.urls[0]}\n    {'unpack it to' if file.urls[0].endswith('.gz') else 'save it as'} "
        f"{cache_folder() / file.path}  (sha256 {file.sha256})"
        for file in missing
    )
    return (
        f"the raw files cannot be downloaded:\n{tried}\nBy hand: on a machine with a network, fetch\n{steps}\n"
        "or set MIPL_DATA to a folder with the raw files, laid out as docs/datasets.md describes"
    )


def github(repository: str, commit: str, path: str) -> list[str]:
    """Addresses of one file of a GitHub repository: the site itself and a content network that mirrors it."""
    return [
        f"https://raw.githubusercontent.com/{repository}/{commit}/{path}",
        f"https://cdn.jsdelivr.net/gh/{repository}@{commit}/{path}",
    ]
