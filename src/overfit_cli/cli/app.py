"""Assembly of the command line, and the one place where an error becomes a sentence.

Commands are strict when they run, and lenient while a shell completes them.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperOption

from overfit_cli.cli import completion
from overfit_cli.cli.compact_and_merge import compact, merge
from overfit_cli.cli.compare import compare
from overfit_cli.cli.export import export
from overfit_cli.cli.judge import judge
from overfit_cli.cli.list import list_everything
from overfit_cli.cli.options import HELP_OPTIONS, PARAMETER_OPTIONS, TYPED, error_as_option
from overfit_cli.cli.plot import plot
from overfit_cli.cli.report import report
from overfit_cli.cli.reproduce import reproduce
from overfit_cli.cli.runs import runs
from overfit_cli.cli.sweep import sweep
from overfit_cli.cli.train import train
from overfit_cli.cli.verify import verify
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
            if times < 2 or not isinstance(option, TyperOption) or option.multiple:
                continue
            if not option.is_flag:
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
        words, dashed = dict[str | None, str](), spelled(error.name)
        for parameter in self.params:
            is_option = isinstance(parameter, TyperOption)
            word = parameter.opts[0] if is_option else str(parameter.metavar).rstrip(".")
            words |= dict.fromkeys([parameter.name, *parameter.opts], word)
        option = words.get(error.name) or words.get(dashed)
        if error.name in (typed := ctx.meta.get(TYPED, {})):
            option = typed[error.name]
        elif option and isinstance(error.value, bool):
            error.value = None
        elif not option and "--set" in words:
            option = dashed if error.value is None else f"--set {error.name}"
        return error_as_option(error, option or error.name)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return the options that begin so, and the parameters of the study that do."""
        offered = completion.parameters(ctx, incomplete) if incomplete.startswith("-") else ()
        return [*super().shell_complete(ctx, incomplete), *offered]


def _check_paths(parameter: Any, given: Any) -> None:
    """Refuse what Typer takes for a path: an empty one, and bytes that are no text."""
    if given is not None and parameter.type_descriptor.annotation in (Path, list[Path]):
        for text in given if isinstance(given, list | tuple) else [given]:
            usable_path(parameter.name, text)


NAME = "overfit"
INTERRUPTED = 130
INSTALL = "--install-completion"

app = typer.Typer(
    name=NAME, context_settings=HELP_OPTIONS, rich_markup_mode=None, pretty_exceptions_enable=False
)
app.command(cls=Command, add_help_option=False, context_settings=PARAMETER_OPTIONS)(sweep)
app.command(cls=Command, context_settings=PARAMETER_OPTIONS)(train)
app.command("list", cls=Command, context_settings=HELP_OPTIONS)(list_everything)
for _command in (plot, verify, report, judge, compare, reproduce, export, compact, merge, runs):
    app.command(cls=Command, context_settings=HELP_OPTIONS)(_command)


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
    with warnings.catch_warnings():
        warnings.showwarning = _notes()
        try:
            code = _run()
            sys.stdout.flush()
        except BrokenPipeError:  # its reader has left, as `head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 1
    sys.exit(code)


def _run() -> int:
    code: int
    try:
        code = app(prog_name=NAME, standalone_mode=False) or 0
    except UserError as error:
        _say(str(error))
        code = error.exit_code
    except typer.Abort:
        code = INTERRUPTED
    except typer.TyperException as error:
        _say(error.format_message() if hasattr(error, "format_message") else str(error))
        code = 2
    except OSError as error:
        if error.filename is None:  # it isn't about a file
            raise
        place = f"{INSTALL}: {error.filename}" if INSTALL in sys.argv else error.filename
        _say(f"{place} can't be read or written ({error_text(error)}).")
        code = 1
    except KeyboardInterrupt:
        # Threads of a backend may still compute; they have nothing half-written.
        sys.stdout.flush()
        os._exit(INTERRUPTED)
    return code


def _say(sentence: str) -> None:
    typer.echo(visible(f"overfit: {sentence}"), err=True)


def _notes() -> Callable[..., None]:
    shown = set[str]()

    def say(message: Warning | str, *others: object) -> None:
        text = visible(f"note: {message}")
        if text not in shown:
            shown.add(text)
            # Unlike typer.echo, this leaves the picture of a running sweep whole.
            sys.stderr.write(f"{text}\n")

    return say
