"""The one error type that says: the data are at fault, and this is what to do."""


class DataError(ValueError):
    """Input that cannot be used; the message names the bag, instance or column, and the remedy.

    It is a `ValueError`, so code written for scikit-learn's conventions catches it unchanged. The command line prints
    its message as one line and exits with code 2.
    """
