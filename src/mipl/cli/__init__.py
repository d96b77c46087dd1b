"""The command line: one file per command; heavy imports wait until a command runs."""

from __future__ import annotations

import logging
import sys
import traceback
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mipl import __version__
from mipl.cli import bench, check, data, demo, explain, fit, info, methods, predict, resolve
from mipl.cli.once import App
from mipl.cli.output import say, say_error
from mipl.errors import MIPLError
from mipl.stopping import exit_code, stoppable
from mipl.visible_text import visible

__all__ = ["app", "main"]


class _Stoppable(TyperGroup):
    """Commands that Ctrl-C and SIGTERM end with one line and the code that a shell expects."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with stoppable():
                return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            say("mipl: stopped")
            raise typer.Exit(exit_code(stop)) from None


def _lines(*lines: str) -> str:
    """Text below the options of --help, one line each."""
    return "\n\n".join(lines)


app = App(
    name="mipl",
    cls=_Stoppable,
    help="Learn from bags of instances with ambiguous labels.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_lines(
        "Exit codes: 0 done; 1 'mipl check' found problems that stop a fit, or cells of 'mipl bench run' failed; 2 "
        "wrong options, data or files, in one line on standard error; 130 stopped by Ctrl-C; 143 stopped by SIGTERM.",
        "A first look: mipl demo. Your own files: mipl check FILE, then mipl resolve FILE --out labels.csv.",
    ),
)
app.command(epilog=_lines("Example: mipl demo --out demo --method MIPLGP"))(demo.demo)
app.command(
    epilog=_lines(
        "Examples:",
        "mipl check birds.csv",
        "mipl check birds.csv --bag recording --candidates species --candidates-sep ','",
        "mipl check photos/ --table names.csv --patch 16 --json",
    )
)(check.check)
app.add_typer(data.app, name="data")
app.command(epilog=_lines("Example: mipl methods --json"))(methods.methods)
app.command(
    epilog=_lines(
        "Examples:",
        "mipl fit birds.csv --out birds.mipl",
        "mipl fit 'shards/*.parquet' --method MIPLGP -p random_state=1 --out m.mipl",
    )
)(fit.fit)
app.command(epilog=_lines("Example: mipl info birds.mipl"))(info.info)
app.command(
    epilog=_lines(
        "Examples:",
        "mipl predict birds.mipl new.csv --out predicted.xlsx",
        "mipl predict birds.mipl 'in/*.parquet' --out answers/ --jobs 2",
        "cat new.csv | mipl predict birds.mipl - --out - --instances instances.parquet",
    )
)(predict.predict)
app.command(
    epilog=_lines(
        "Examples:",
        "mipl explain birds.mipl new.csv --out explained.csv",
        "mipl explain birds.mipl new.csv --out page.html",
    )
)(explain.explain)
app.command(
    epilog=_lines(
        "Examples:",
        "mipl resolve birds.csv --out labels.csv",
        "mipl resolve birds.csv --report page.html --decisions decisions.csv --out labels.xlsx",
        "mipl resolve birds.csv --model birds.mipl --out labels.parquet",
    )
)(resolve.resolve)
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
    verbose: Annotated[
        int, typer.Option("--verbose", "-v", count=True, help="Show the library's log; -vv with details.")
    ] = 0,
) -> None:
    """Learn from bags of instances with ambiguous labels."""
    if verbose:
        handler = logging.StreamHandler()
        handler.setFormatter(_PlainFormatter("%(name)s: %(message)s"))
        logging.getLogger("mipl").addHandler(handler)
        logging.getLogger("mipl").setLevel(logging.INFO if verbose == 1 else logging.DEBUG)


class _PlainFormatter(logging.Formatter):
    """Lines of the log, with names from files as plain text."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record), keep="\n")


def main() -> None:
    """Run the command line; an error that a user can mend ends in one line and exit code 2."""
    debug = "--debug" in sys.argv
    sys.argv = [sys.argv[0], *(a for a in sys.argv[1:] if a != "--debug")]
    with warnings.catch_warnings():
        warnings.showwarning = _Remarks()
        try:
            app(prog_name="mipl")
        except _users_errors() as error:
            say_error(traceback.format_exc().rstrip() if debug else f"mipl: {error}")
            sys.exit(2)


class _Remarks:
    """Warnings as remarks of one line, each once: the place in the code means nothing to a user."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(self, message: Warning | str, category: Any, filename: str, *_: Any, **__: Any) -> None:
        if "openpyxl" in Path(filename).parts:  # of styles and extensions of a workbook, which do not matter here
            return
        text = str(message)
        if text.startswith("Glyph "):  # matplotlib warns of every single character
            text = "some characters of the names are not in the font of pictures and are drawn as boxes"
        if text not in self._said:
            self._said.add(text)
            say(f"mipl: warning: {text}", quiet=not {"-q", "--quiet", "--json"}.isdisjoint(sys.argv))


def _users_errors() -> tuple[type[Exception], ...]:
    """Errors that say what is wrong in the user's terms; scikit-learn's too, if a command has imported it by then."""
    sklearn = sys.modules.get("sklearn.exceptions")
    return (MIPLError, OSError) if sklearn is None else (MIPLError, OSError, sklearn.NotFittedError)
