"""The program ``mipl``, also as ``python -m mipl``."""

from mipl.stopping import catch_signals

__all__ = ["main"]


def main() -> None:
    """Run the command line; a signal ends it with one line from here on, while its modules are imported too."""
    catch_signals()
    from mipl.cli import main as run

    run()


if __name__ == "__main__":
    main()
