"""Assembly of the command line, and the one place where an error becomes a sentence."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable

import typer

from overfit_cli import __version__
from overfit_cli.cli.command import Command
from overfit_cli.cli.compact import compact
from overfit_cli.cli.compare import compare
from overfit_cli.cli.export import export
from overfit_cli.cli.list import list_everything
from overfit_cli.cli.merge import merge
from overfit_cli.cli.options import HELP_OPTIONS, PARAMETER_OPTIONS
from overfit_cli.cli.plot import plot
from overfit_cli.cli.report import report
from overfit_cli.cli.reproduce import reproduce
from overfit_cli.cli.shells import answer, is_asking
from overfit_cli.cli.sweep import sweep
from overfit_cli.cli.train import train
from overfit_cli.cli.verify import verify
from overfit_cli.display import make_streams_patient, output_problem
from overfit_cli.ending import end_quickly
from overfit_cli.errors import UserError
from overfit_cli.files import reason_of
from overfit_cli.plain_text import visible

NAME = "overfit"
INTERRUPTED = 130
INSTALL = "--install-completion"

app = typer.Typer(
    name=NAME,
    context_settings=HELP_OPTIONS,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command(cls=Command, add_help_option=False, context_settings=PARAMETER_OPTIONS)(sweep)
app.command(cls=Command, context_settings=PARAMETER_OPTIONS)(train)
app.command(cls=Command, context_settings=HELP_OPTIONS)(plot)
app.command(cls=Command, context_settings=HELP_OPTIONS)(verify)
app.command(cls=Command, context_settings=HELP_OPTIONS)(report)
app.command(cls=Command, context_settings=HELP_OPTIONS)(compare)
app.command(cls=Command, context_settings=HELP_OPTIONS)(reproduce)
app.command(cls=Command, context_settings=HELP_OPTIONS)(export)
app.command(cls=Command, context_settings=HELP_OPTIONS)(compact)
app.command(cls=Command, context_settings=HELP_OPTIONS)(merge)
app.command("list", cls=Command, context_settings=HELP_OPTIONS)(list_everything)


def _version(context: typer.Context, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        typer.echo(f"overfit {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _overfit(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", help="Print the version.", callback=_version, is_eager=True
    ),
) -> None:
    """Run the experiments of papers on the theory of attention, and say which claims hold."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command line and exit: 0 done, 1 something failed, 2 bad input, 130 interrupted."""
    make_streams_patient()
    end_quickly()
    if is_asking():
        sys.exit(answer(lambda: app(prog_name=NAME, standalone_mode=False)))
    with warnings.catch_warnings():
        warnings.showwarning = _notes()
        code = _run()
    problem = output_problem()
    if problem is not None:
        _say(f"The output can't be written ({reason_of(problem)}); the rest was done.")
    sys.exit(code or int(problem is not None))


def _run() -> int:
    """Run the command line and return its exit code."""
    code: int
    try:
        code = app(prog_name=NAME, standalone_mode=False) or 0
    except UserError as error:
        _say(str(error))
        code = error.exit_code
    except typer.Abort:
        code = INTERRUPTED
    except typer.TyperException as error:
        _say(_words_of(error))
        code = 2
    except OSError as error:
        if INSTALL not in sys.argv:
            raise
        _say(f"{INSTALL}: {error.filename} can't be written ({reason_of(error)}).")
        code = 1
    except KeyboardInterrupt:
        # Threads of a backend may still compute; they have nothing half-written.
        sys.stdout.flush()
        os._exit(INTERRUPTED)
    return code


def _words_of(error: typer.TyperException) -> str:
    return error.format_message() if hasattr(error, "format_message") else str(error)


def _say(sentence: str) -> None:
    typer.echo(visible(f"overfit: {sentence}"), err=True)


def _notes() -> Callable[..., None]:
    """What says warnings, each text once, whatever place of the code it comes from."""
    said = set[str]()

    def say(message: Warning | str, *others: object) -> None:
        text = visible(f"note: {message}")
        if text not in said:
            said.add(text)
            # Unlike typer.echo, this leaves the picture of a running sweep whole.
            sys.stderr.write(f"{text}\n")

    return say
