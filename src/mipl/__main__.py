"""``python -m mipl``."""

from mipl.cli import main

main()
