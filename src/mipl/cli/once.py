"""Commands that refuse an option which takes one value and is given several times: the last would win silently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand

__all__ = ["App"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Once(TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:  # of completion
            given = Counter(self.make_parser(ctx).parse_args(args=list(args))[2])
            for param, count in given.items():
                several = getattr(param, "multiple", True) or getattr(param, "count", False)
                same = getattr(param, "is_flag", False) and not param.secondary_opts
                if count > 1 and not several and not same:
                    ctx.fail(f"{'/'.join(param.opts)} is given {count} times, but takes one value; give it once")
        return super().parse_args(ctx, args)


class App(typer.Typer):
    """A `typer.Typer` of such commands."""

    def command(self, *args: Any, **options: Any) -> Callable[[_Function], _Function]:
        """Add a command."""
        return super().command(*args, cls=_Once, **options)
