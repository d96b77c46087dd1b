"""The one place where files are written: whole or not at all, and never over a device."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import platform
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from mipl.errors import DataError

__all__ = ["atomic_path", "check_writable", "is_stream"]

_LOG = logging.getLogger(__name__)
#: Bytes of the target's name and of the machine's that stand in a temporary name, which has at most 255.
_LONGEST_NAME, _LONGEST_NODE = 128, 64
#: Errors of a disk without room, of a quota and of a limit of file sizes.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def check_writable(path: str | Path, suffixes: Collection[str] = ()) -> None:
    """Refuse a path that cannot be written; commands ask before they compute anything.

    Parameters
    ----------
    path : str or Path
        Where a file is going to be written.
    suffixes : collection of str, default=()
        The suffixes that the writer knows, such as ``".csv"``. Empty: any will do.

    Raises
    ------
    DataError
        The suffix is not known, the folder is missing or read-only, or the path is a folder.
    """
    target = Path(path)
    if suffixes and target.suffix.lower() not in suffixes:
        raise DataError(f"cannot tell the format of {target}; its suffix must be one of {', '.join(suffixes)}")
    if is_stream(target):
        return
    final = Path(os.path.realpath(target))
    if not final.parent.is_dir():
        # Of a symbolic link, the folder that it points to.
        missing = final.parent if target.is_symlink() else target.parent
        raise DataError(f"cannot write {target}: the folder {missing} does not exist")
    if final.is_dir():
        raise DataError(f"cannot write {target}: it is a folder")
    if not os.access(final.parent, os.W_OK | os.X_OK):
        raise DataError(f"cannot write {target}: no permission to write in the folder {target.parent}")


def is_stream(path: str | Path) -> bool:
    """Whether `path` takes bytes as they come: ``-``, a terminal, a pipe, a device, this program's own output."""
    if str(path) == "-":
        return True
    try:
        found = os.stat(path)
    except OSError:
        return False
    if stat.S_ISDIR(found.st_mode):
        return False
    # /dev/stdout is a regular file where the shell sends the output to one; a rename would cut that connection.
    return not stat.S_ISREG(found.st_mode) or _own_output(found) is not None


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Give the path of a temporary file to write to; it takes the place of `path` at the end of the block.

    If the block or the program fails, `path` is left as it was. A symbolic link stays and the file that it points to is
    replaced; a file that is replaced keeps its permissions. A stream (`is_stream`) gets the bytes once they are all
    there. The temporary name does not end in the suffix of `path`, so tell the writer its format.

    Raises
    ------
    DataError
        The path cannot be written (`check_writable`), or there is no room.
    """
    target = Path(path)
    check_writable(target)
    try:
        with _for_stream(target) if is_stream(target) else _beside(Path(os.path.realpath(target))) as temporary:
            yield temporary
    except Exception as error:
        cause: BaseException | None = error  # writers that tidy up after a full disk may fail in another way once more
        while cause is not None and getattr(cause, "errno", None) not in _NO_ROOM:
            cause = cause.__context__
        if not isinstance(cause, OSError) or cause.errno is None:
            raise
        reason = os.strerror(cause.errno)
        raise DataError(f"cannot write {target}: {reason}; make room there, or choose another folder") from error


@contextmanager
def _for_stream(target: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mipl-") as folder:
        temporary = Path(folder) / "part"
        temporary.touch()
        yield temporary
        sys.stdout.flush()
        with temporary.open("rb") as content:
            if str(target) == "-":
                shutil.copyfileobj(content, sys.stdout.buffer)
                sys.stdout.flush()
                return
            own = _own_output(target.stat())
            with target.open("wb") if own is None else os.fdopen(os.dup(own), "wb") as stream:
                shutil.copyfileobj(content, stream)


@contextmanager
def _beside(final: Path) -> Iterator[Path]:
    _remove_leftovers(final)
    temporary = final.with_name(f"{_prefix(final)}{os.getpid()}-{secrets.token_hex(4)}.tmp")
    old = stat.S_IMODE(final.stat().st_mode) if final.exists() else None
    # Created here and not by tempfile, which would make it private: the umask decides on the permissions of a new file.
    # One that takes the place of a private file is private from the start, also if it is left behind by a kill.
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if old is None else old & 0o666 | 0o600))
    mode = temporary.stat().st_mode if old is None else old
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(stat.S_IMODE(mode))  # last: the old mode may be read-only, and some writers make private files
        temporary.replace(final)
        _LOG.debug("wrote %s", final)
    finally:
        temporary.unlink(missing_ok=True)


def _prefix(final: Path) -> str:
    """How temporary names of `final` begin: hidden, and with the machine, since process numbers are its own."""
    name = os.fsencode(final.name)
    # A name may be as long as the file system allows, and what is put around it would be too much.
    short = final.name if len(name) <= _LONGEST_NAME else hashlib.blake2b(name, digest_size=16).hexdigest()
    return f".{short}.mipl-{platform.node()[:_LONGEST_NODE]}-"


def _remove_leftovers(final: Path) -> None:
    """Remove temporary files of this target whose process was killed."""
    ours = re.compile(re.escape(_prefix(final)) + r"(\d+)-[0-9a-f]{8}\.tmp")
    for name in os.listdir(final.parent):
        found = ours.fullmatch(name)
        if found and not _is_alive(int(found[1])):
            (final.parent / name).unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    if os.name != "posix":  # elsewhere signal 0 is not a question
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def _own_output(found: os.stat_result) -> int | None:
    """The descriptor of this program's standard output or error if that is the file `found`."""
    for descriptor in (1, 2):
        try:
            if os.path.samestat(found, os.fstat(descriptor)):
                return descriptor
        except OSError:  # closed
            continue
    return None
