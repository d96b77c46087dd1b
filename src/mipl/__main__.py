"""The program ``mipl``, also as ``python -m mipl``."""

import os
import sys
from io import TextIOWrapper

from mipl.stopping import catch_signals

__all__ = ["main"]


def main() -> None:
    """Run the command line; a signal ends it with one line from here on, while its modules are imported too."""
    _complete_streams()
    catch_signals()
    os.environ.pop("MPLBACKEND", None)  # pictures are files; matplotlib is not to fail for a window that it cannot open
    from mipl.cli import main as run

    run()


def _complete_streams() -> None:
    """Make missing standard streams the null device, and let no character fail that a terminal cannot show."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # Its descriptor is the lowest one that is free: the null device takes it before a file of data does.
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    main()
