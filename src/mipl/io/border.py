"""The border between files and the program: nothing but errors of mipl leaves it.

Readers check what they take for granted and say what is wrong. What they did not think of, an error of another library
in the middle of a damaged file, becomes a `DataError` here; its cause is kept for a bug report.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mipl.errors import DataError, MIPLError

__all__ = ["border", "first_line"]


@contextmanager
def border(where: str, kind: str = "data") -> Iterator[None]:
    """Turn every error of the block that is not one of mipl's into a `DataError` of one line.

    Parameters
    ----------
    where : str
        What the error calls the file.
    kind : str, default="data"
        What the file should be: ``"a Parquet file"``.
    """
    try:
        yield
    except MIPLError:
        raise
    except MemoryError as error:
        raise DataError(f"{where} needs more memory than there is ({first_line(error)})") from error
    except Exception as error:
        told = f"{type(error).__name__}: {first_line(error)}"
        raise DataError(f"{where} is damaged or not {kind} ({told})") from error


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its name."""
    try:
        text = str(error).strip()
    except Exception:  # Arrow quotes bytes that are no text
        text = ""
    return text.splitlines()[0][:300] if text else type(error).__name__
