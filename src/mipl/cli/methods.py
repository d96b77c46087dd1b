"""``mipl methods``: what there is to fit."""

from __future__ import annotations

from mipl.cli.output import JsonOption, print_json, print_table

__all__ = ["methods"]


def methods(json: JsonOption = False) -> None:
    """List the methods, where they were published, and their parameters."""
    from mipl.registry import methods as all_methods

    rows = [(name, method.citation, ", ".join(method.parameters())) for name, method in all_methods().items()]
    if json:
        print_json([{"name": n, "citation": c, "parameters": p.split(", ")} for n, c, p in rows])
    else:
        print_table("methods", ("name", "published", "parameters"), rows)
