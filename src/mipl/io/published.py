"""Whether a file is one of those that the authors of MIPLGP published, told by its content."""

from __future__ import annotations

import hashlib
from pathlib import Path

__all__ = ["git_blob", "provenance"]

#: How the git blob ids of the authors' three MNIST-MIPL files begin, by which their repository lists them.
AUTHORS_MNIST = ("97dad3c7", "999c450d", "c1b25b44")


def git_blob(path: Path) -> str:
    """The id (40 hex digits) under which git stores the content of a file: that of ``git hash-object``."""
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def provenance(path: Path) -> str:
    """One sentence: whether the file at `path` is one of the authors' MNIST-MIPL files."""
    blob = git_blob(path)
    if blob.startswith(AUTHORS_MNIST):
        return f"One of the MNIST-MIPL files that the authors of MIPLGP published (git blob {blob[:8]})."
    return f"Not one of the authors' MNIST-MIPL files (git blob {blob[:8]}; theirs are {', '.join(AUTHORS_MNIST)})."
