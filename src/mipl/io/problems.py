"""One problem of a file: what it is, where, and what mends it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Problem"]


@dataclass(frozen=True)
class Problem:
    """Something in a data set that a person should know.

    Parameters
    ----------
    kind : str
        A short name, such as ``"missing value"``.
    severity : str
        ``"error"`` stops a fit, ``"warning"`` is likely a mistake, ``"note"`` is worth knowing.
    where : str
        File, line, column and bag, as far as they are known.
    message : str
        What is wrong.
    remedy : str, default=""
        The argument, option or change that mends it.
    """

    kind: str
    severity: str
    where: str
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}; {self.remedy}" if self.remedy else text

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, for JSON."""
        return asdict(self)
