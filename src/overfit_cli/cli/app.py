"""Assembly of the command line, and the one place where an error becomes a sentence.

Commands are strict when they run, and lenient while a shell completes them.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperOption

from overfit_cli.cli import options as cli
from overfit_cli.cli.export_and_compare import compare, export
from overfit_cli.cli.judge_and_report import judge, report
from overfit_cli.cli.list_and_runs import compact, list_everything, merge, runs
from overfit_cli.cli.plot_and_verify import plot, verify
from overfit_cli.cli.sweep_and_reproduce import reproduce, sweep, train
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.files import error_text, usable_path
from overfit_cli.core.options import NUMBERS, alternatives
from overfit_cli.core.processes import end_quickly, write_any_letter
from overfit_cli.core.text import VERSION, spelled, visible


class Command(TyperCommand):
    """A command that says in one sentence which value it doesn't take.

    While a shell completes a command line, it takes what is there, and offers the parameters of
    the study too.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line."""
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        texts, _, given = self.make_parser(ctx).parse_args(list(args))
        for option, times in Counter(given).items():
            repeats = isinstance(option, TyperOption) and (option.multiple or option.is_flag)
            if times > 1 and isinstance(option, TyperOption) and not repeats:
                raise UserError(f"{option.opts[-1]} is given {times} times; give it once.")
        try:
            for parameter in self.params:
                _check_paths(parameter, texts.get(parameter.name))
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            text = texts.get(error.param.name) if error.param else None
            if error.param is None or text is None:
                raise
            kind = error.param.type_descriptor
            takes = alternatives(kind.choices) if kind.choices else NUMBERS[kind.annotation]
            refused = BadValue(error.param.name, text, f"it takes {takes}.")
            raise UserError(self._as_typed(refused, ctx)) from error
        except BadValue as error:
            raise UserError(self._as_typed(error, ctx)) from error

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except BadValue as error:
            raise UserError(self._as_typed(error, ctx), exit_code=error.exit_code) from error

    def _as_typed(self, error: BadValue, ctx: Any) -> str:
        """The sentence of a bad value, which begins with an option of this command."""
        typed = ctx.meta.get(cli.TYPED, {})
        words = {each.name: str(each.metavar).rstrip(".") for each in self.params}
        words |= {each.name: each.opts[0] for each in self.params if isinstance(each, TyperOption)}
        option = (words | typed).get(error.name)
        if not option and "settings" in words:
            option = spelled(error.name) if error.value is None else f"--set {error.name}"
        elif error.name not in typed and isinstance(error.value, bool):
            error.value = None
        return cli.error_as_option(error, option or error.name)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return the options that begin so, and the parameters of the study that do."""
        offered = cli.completer("parameters")(ctx, incomplete) if incomplete.startswith("-") else ()
        return [*super().shell_complete(ctx, incomplete), *offered]


def _check_paths(parameter: Any, given: Any) -> None:
    """Refuse what Typer takes for a path: an empty one, and bytes that are no text."""
    if given is not None and parameter.type_descriptor.annotation in (Path, list[Path]):
        for text in given if isinstance(given, list | tuple) else [given]:
            usable_path(parameter.name, text)


NAME = "overfit"
INTERRUPTED = 130

HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
PARAMETERS = {"ignore_unknown_options": True, **HELP}
"""The settings of a command that takes every parameter of its study as an option."""

app = typer.Typer(
    name=NAME, context_settings=HELP, rich_markup_mode=None, pretty_exceptions_enable=False
)
app.command(cls=Command, add_help_option=False, context_settings=PARAMETERS)(sweep)
app.command(cls=Command, context_settings=PARAMETERS)(train)
app.command("list", cls=Command, context_settings=HELP)(list_everything)
for _command in (plot, verify, report, judge, compare, reproduce, export, compact, merge, runs):
    app.command(cls=Command, context_settings=HELP)(_command)


def _version(context: typer.Context, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        typer.echo(f"overfit {VERSION}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _overfit(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", help="Print the version.", callback=_version, is_eager=True
    ),
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command line and exit: 0 done, 1 something failed, 2 bad input, 130 interrupted."""
    write_any_letter()
    end_quickly()

    @functools.cache  # each note is said once
    def say(text: str) -> None:
        # Unlike typer.echo, this leaves the picture of a running sweep whole.
        sys.stderr.write(f"{visible(text)}\n")

    def note(message: Warning | str, *others: Any, **more: Any) -> None:
        say(f"note: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = note
        try:
            code = _run()
            sys.stdout.flush()
        except BrokenPipeError:  # its reader has left, as `head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 1
    sys.exit(code)


def _run() -> int:
    try:
        return int(app(prog_name=NAME, standalone_mode=False) or 0)
    except UserError as error:
        sentence, code = str(error), error.exit_code
    except typer.Abort:
        return INTERRUPTED
    except typer.TyperException as error:
        sentence, code = getattr(error, "format_message", error.__str__)(), 2
    except OSError as error:
        if error.filename is None:  # it isn't about a file
            raise
        sentence, code = f"{error.filename} can't be read or written ({error_text(error)}).", 1
    except MemoryError:
        sentence, code = "it needs more memory than there is; what was written is kept.", 1
    except KeyboardInterrupt:
        # Threads of a backend may still compute; they have nothing half-written.
        sys.stdout.flush()
        os._exit(INTERRUPTED)
    typer.echo(visible(f"overfit: {sentence}"), err=True)
    return code
