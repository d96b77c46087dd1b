"""``mipl methods``: what there is to fit."""

from __future__ import annotations

from mipl.cli.output import JsonOption, QuietOption, print_json, print_table, say

__all__ = ["methods"]


def methods(json: JsonOption = False, quiet: QuietOption = False) -> None:
    """List the methods, one line of meaning each; --json also has their parameters and where they were published."""
    from mipl.registry import methods as all_methods

    found = all_methods()
    about = {
        name: method.summary + "".join(f" With {n}={v!r}." for n, v in method.params.items())
        for name, method in found.items()
    }
    if json:
        rows = [
            {"name": n, "summary": about[n], "citation": m.citation, "parameters": list(m.parameters())}
            for n, m in found.items()
        ]
        print_json(rows)
        return
    print_table("methods", ("name", "what it does"), about.items())
    say("parameters and publications: mipl methods --json; set a parameter with -p NAME=VALUE", quiet)
