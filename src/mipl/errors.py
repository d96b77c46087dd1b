"""The errors that say what is wrong in the user's terms, and what to do about it.

Every one is a `MIPLError`. Those that report a wrong value are `ValueError`s too, so code written for scikit-learn's
conventions catches them unchanged. The command line prints their message as one line and exits with code 2.
"""

__all__ = ["DataError", "MIPLError", "ParameterError", "UnavailableError"]


class MIPLError(Exception):
    """Base of all errors that mipl raises on purpose."""


class DataError(MIPLError, ValueError):
    """Data that cannot be used; the message names the bag, instance or column, and the remedy."""


class ParameterError(MIPLError, ValueError):
    """A parameter of a method, function or command that cannot be used; the message names it and what it takes."""


class UnavailableError(MIPLError, RuntimeError):
    """Something outside the data is missing: a device, an optional package, a file that has to be downloaded."""
