"""The command line: one file per command; heavy imports wait until a command runs."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mipl import __version__
from mipl.cli import bench, data, demo, explain, fit, methods, predict, resolve
from mipl.errors import MIPLError

__all__ = ["app", "main"]


class _Stoppable(TyperGroup):
    """Commands that Ctrl-C ends with one line and code 130, as a shell expects."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("mipl: stopped", err=True)
            raise typer.Exit(130) from None


app = typer.Typer(
    name="mipl",
    cls=_Stoppable,
    help="Learn from bags of instances with ambiguous labels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo.demo)
app.add_typer(data.app, name="data")
app.command()(methods.methods)
app.command()(fit.fit)
app.command()(predict.predict)
app.command()(explain.explain)
app.command()(resolve.resolve)
app.add_typer(bench.app, name="bench")


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"mipl {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")] = False,
) -> None:
    """Learn from bags of instances with ambiguous labels."""


def main() -> None:
    """Run the command line; an error that a user can mend ends in one line and exit code 2."""
    debug = "--debug" in sys.argv
    sys.argv = [sys.argv[0], *(a for a in sys.argv[1:] if a != "--debug")]
    try:
        app()
    except _users_errors() as error:
        if debug:
            raise
        typer.echo(f"mipl: {error}", err=True)
        sys.exit(2)


def _users_errors() -> tuple[type[Exception], ...]:
    """Errors that say what is wrong in the user's terms; scikit-learn's too, if a command has imported it by then."""
    sklearn = sys.modules.get("sklearn.exceptions")
    return (MIPLError, OSError) if sklearn is None else (MIPLError, OSError, sklearn.NotFittedError)
