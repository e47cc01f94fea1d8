"""Assembly of the command line, and the one place where an error becomes a sentence.

Commands are strict when they run, and lenient while a shell completes them.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import typer
from typer.core import TyperCommand, TyperOption

from overfit_cli.cli.compact_and_merge import compact, merge
from overfit_cli.cli.compare import compare
from overfit_cli.cli.completion import parameter_options
from overfit_cli.cli.export import export
from overfit_cli.cli.judge import judge
from overfit_cli.cli.list import list_everything
from overfit_cli.cli.options import HELP_OPTIONS, PARAMETER_OPTIONS, TYPED, warn_of_parameter
from overfit_cli.cli.plot import plot
from overfit_cli.cli.report import report
from overfit_cli.cli.reproduce import reproduce
from overfit_cli.cli.runs import runs
from overfit_cli.cli.sweep import sweep
from overfit_cli.cli.train import train
from overfit_cli.cli.verify import verify
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.files import check_cache, check_data_variable, error_text, results_folder
from overfit_cli.core.processes import end_quickly, make_streams_patient, output_problem
from overfit_cli.core.text import VERSION, is_plain_number, most_alike, shorten, visible
from overfit_cli.core.values import JOBS_ACCEPTED, alternatives, number_in_words, usable_path


class Command(TyperCommand):
    """A command that says in one sentence which value it doesn't take.

    While a shell completes a command line, it takes what is there, and offers the parameters of
    the study too.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line."""
        if ctx.resilient_parsing:
            return super().parse_args(ctx, self._without_last_option(args))
        texts, _, given = self.make_parser(ctx).parse_args(list(args))
        self._check_given_once(given)
        try:
            for parameter in self.params:
                if texts.get(parameter.name) is not None:
                    _check_texts(parameter, texts[parameter.name])
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            text = texts.get(error.param.name) if error.param else None
            if error.param is None or text is None:
                raise
            if texts.get("words"):
                warn_of_parameter(ctx, texts["words"], error.param.opts[0])
            refused = BadValue(error.param.name, text, f"it takes {_accepted(error.param, text)}")
            raise UserError(self._as_typed(refused, ctx)) from error
        except BadValue as error:
            raise UserError(self._as_typed(error, ctx)) from error

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except BadValue as error:
            raise UserError(self._as_typed(error, ctx), exit_code=error.exit_code) from error

    def _check_given_once(self, given: Sequence[object]) -> None:
        for option, times in Counter(given).items():
            if times < 2 or not isinstance(option, TyperOption) or option.multiple:
                continue
            if not option.is_flag:
                raise UserError(f"{option.opts[-1]} is given {times} times; give it once.")

    def _as_typed(self, error: BadValue, ctx: Any) -> str:
        """The sentence of a bad value, which begins with an option of this command."""
        option, value = error.name, error.value
        typed = ctx.meta.get(TYPED, {})
        dashed = f"--{error.name.replace('_', '-')}"
        named = [
            parameter
            for parameter in self.params
            if error.name == parameter.name or dashed in parameter.opts
        ]
        if error.name in typed:
            option = typed[error.name]
        elif named:
            is_option = isinstance(named[0], TyperOption)
            option = named[0].opts[0] if is_option else str(named[0].metavar).rstrip(".")
            value = None if isinstance(value, bool) else value
        elif any("--set" in parameter.opts for parameter in self.params):
            option = dashed if value is None else f"--set {error.name}"
        shown = value[0] if isinstance(value, tuple) else value
        shown = f"{shown:.12g}" if isinstance(shown, float) else shown
        given = option if shown is None else f"{option} {shorten(str(shown)) or repr('')}"
        return f"{given}: {error.accepts}"

    def _without_last_option(self, args: list[str]) -> list[str]:
        """The words without an option at their end that lacks its value: it would undo the rest."""
        options = [
            option
            for option in self.params
            if isinstance(option, TyperOption) and not option.is_flag
        ]
        lacks = args[-1:] and any(args[-1] in option.opts for option in options)
        return args[:-1] if lacks else args

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return the options that begin so, and the parameters of the study that do."""
        parameters = parameter_options(ctx, incomplete) if incomplete.startswith("-") else []
        offered = [SimpleNamespace(value=option, help=meaning) for option, meaning in parameters]
        return [*super().shell_complete(ctx, incomplete), *offered]


def _check_texts(parameter: Any, given: Any) -> None:
    """Refuse what Typer would take: an empty path, and a number such as `1_0`."""
    kind = parameter.type_descriptor.annotation
    for text in given if isinstance(given, list | tuple) else [given]:
        if kind in (Path, list[Path]):
            usable_path(parameter.name, text)
        elif kind in (int, float) and not is_plain_number(text):
            raise BadValue(parameter.name, text, f"it takes {_accepted(parameter, text)}")


def _accepted(parameter: Any, given: str) -> str:
    if parameter.name == "jobs":
        return f"{JOBS_ACCEPTED}."
    kind, limits = parameter.type_descriptor, parameter.type_descriptor.parameter_info
    if kind.choices:
        near = most_alike(given, kind.choices, cutoff=0.7)
        return alternatives(kind.choices) + (f"; did you mean {near!r}?" if near else ".")
    return f"{number_in_words(kind.annotation, limits.min, limits.max)}."


NAME = "overfit"
INTERRUPTED = 130
INSTALL = "--install-completion"
TRAINING = ("sweep", "train", "reproduce")
"""The commands that train, and so use the cache."""

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
app.command(cls=Command, context_settings=HELP_OPTIONS)(judge)
app.command(cls=Command, context_settings=HELP_OPTIONS)(compare)
app.command(cls=Command, context_settings=HELP_OPTIONS)(reproduce)
app.command(cls=Command, context_settings=HELP_OPTIONS)(export)
app.command(cls=Command, context_settings=HELP_OPTIONS)(compact)
app.command(cls=Command, context_settings=HELP_OPTIONS)(merge)
app.command(cls=Command, context_settings=HELP_OPTIONS)(runs)
app.command("list", cls=Command, context_settings=HELP_OPTIONS)(list_everything)


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
        return
    if not context.resilient_parsing:
        results_folder()
        check_data_variable()
    if context.invoked_subcommand in TRAINING and not context.resilient_parsing:
        check_cache()


def main() -> None:
    """Run the command line and exit: 0 done, 1 something failed, 2 bad input, 130 interrupted."""
    make_streams_patient()
    end_quickly()
    with warnings.catch_warnings():
        warnings.showwarning = _notes()
        code = _run()
    problem = output_problem()
    if problem is not None:
        _say(f"The output can't be written ({error_text(problem)}); everything else was done.")
    sys.exit(code or int(problem is not None))


def _run() -> int:
    code: int
    try:
        if INSTALL in sys.argv and len(sys.argv) > 2:
            raise UserError(
                f"{INSTALL}: it takes no other words; it serves the shell in which you run it."
            )
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
        _say(f"{INSTALL}: {error.filename} can't be written ({error_text(error)}).")
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
    shown = set[str]()

    def say(message: Warning | str, *others: object) -> None:
        text = visible(f"note: {message}")
        if text not in shown:
            shown.add(text)
            # Unlike typer.echo, this leaves the picture of a running sweep whole.
            sys.stderr.write(f"{text}\n")

    return say
