"""Options that several commands share, and parameters as options: `--n 2:20`, `--set d=1024`.

A parameter may be called by its symbol: `--SNR 5`. Unknown names are refused with the nearest one.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import typer

from overfit_cli.cli import completion
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.options import declared
from overfit_cli.core.text import most_alike, shorten, spelled

if TYPE_CHECKING:
    from overfit_cli.core.study import AnyStudy

_Command = TypeVar("_Command", bound=Callable[..., int])


def argument(takes: str, meaning: str, complete: Any = None, default: Any = ...) -> Any:
    """Declare an argument of a command, by default a required one."""
    return typer.Argument(default, metavar=takes, help=meaning, autocompletion=complete)


def option(
    takes: str, meaning: str, *names: str, default: Any = None, complete: Any = None, **more: Any
) -> Any:
    """Declare an option of one command; it takes a value, unless that is empty."""
    told: dict[str, Any] = {"metavar": takes or None, "help": meaning, "autocompletion": complete}
    return typer.Option(default, *names, **told, **more)


def flag(meaning: str, *names: str) -> Any:
    """Declare an option of one command, without a value."""
    return option("", meaning, *names, default=False)


def with_options(options: type, *names: str) -> Callable[[_Command], _Command]:
    """Give a command options for the fields of a dataclass, or some of them, in place of its `**`.

    In its help they stand before what the command takes by name only.
    """

    def give(command: _Command) -> _Command:
        signature, told = inspect.signature(command, eval_str=True), declared(options)
        *own, others = signature.parameters.values()
        parameters = [each for each in own if each.kind is not each.KEYWORD_ONLY]
        for name in names or told:
            each, word = told[name], spelled(name)
            more = {"default": getattr(options, name), "envvar": each.variable}
            info = option(each.takes, each.meaning, word, **more)
            given = others.replace(name=name, annotation=each.typed)
            parameters.append(given.replace(kind=given.KEYWORD_ONLY, default=info))
        parameters += [each for each in own if each.kind is each.KEYWORD_ONLY]
        command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        return command

    return give


HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}
PARAMETER_OPTIONS = {"ignore_unknown_options": True, **HELP_OPTIONS}
"""The settings of a command that takes every parameter of its study as an option."""
TYPED = "overfit.typed"
"""The key in a context for each parameter as the user typed it: `--snr`, `--set d` or `--SNR`."""


# A command that takes any option takes what follows it for an argument: all of it comes here.
SUBJECT_AND_PARAMETERS: Any = typer.Argument(
    None,
    metavar="STUDY|PRESET|FILE.py] [--NAME RANGE",
    hidden=True,
    autocompletion=completion.subjects,
)
SETTINGS = option(
    "NAME=RANGE", "Set any parameter; required if its name is also an option.", "--set"
)
WHERE = option(
    "CONDITION",
    "Only these cells: n=5:20, n=100:, kernel=softmax,gaussian or 'test_loss<0.1'; may be "
    "repeated.",
)
STRICT = flag(
    "Exit with code 1 if a claim fails (with --expect: if a verdict differs from the expected one) "
    "or if nothing was judged.",
    "--strict",
)
EXPECT = option("FILE", "Expected verdicts: the claims.json of a report, or a TOML file.")
JSON_FILE = option("FILE", "JSON file of all numbers; - prints only the JSON.", "--json")
FIGURE_FILE = option(
    "FILE", "PNG, PDF or SVG file for a figure; a caption is written beside it, as .txt."
)


def error_as_option(error: UserError, option: str = "") -> str:
    """Return what an error says, a bad value's name spelled as an option: `--where n=9: …`."""
    if not isinstance(error, BadValue):
        return str(error)
    value = error.value[0] if isinstance(error.value, tuple) else error.value
    shown = shorten(f"{value:.12g}" if isinstance(value, float) else str(value)) or repr("")
    given = option or spelled(error.name)
    return f"{given}{'' if value is None else f' {shown}'}: {error.accepts}"


class TypedParameter(NamedTuple):
    """A parameter as it is typed: its name or symbol, its flag such as `--set n`, and its text."""

    name: str
    flag: str
    text: str | None


def read_words(
    words: Sequence[str] | None, settings: Sequence[str] | None
) -> tuple[str, list[TypedParameter]]:
    """Return the subject of a command, and the parameters that are given.

    Args:
        words: what the command doesn't declare: `fig1`, `--n`, `2:20`, `--snr=0.1:16`, ...
    """
    from overfit_cli.core.registry import default_study

    subjects, given, left = list[str](), list[TypedParameter](), list(words or [])
    while left:
        word = left.pop(0)
        if word.startswith("--"):
            flag, equals, value = word.partition("=")
            has_next = left and not left[0].startswith("--")
            text = value if equals else left.pop(0) if has_next else None
            given.append(TypedParameter(flag.removeprefix("--").replace("-", "_"), flag, text))
        elif word.startswith("-") and word[1:2].isalpha():
            raise UserError(f"{word}: options begin with two dashes, such as --{word[1:]} 5.")
        else:
            subjects.append(word)
    if len(subjects) > 1:
        name, equals, text = subjects[1].partition("=")
        hint = f"write --{name} {text}" if equals and name.isidentifier() else "a command takes one"
        raise UserError(f"{subjects[1]}: {subjects[0]} is named already; {hint}.")
    for setting in settings or []:
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise UserError(f"--set {setting}: write NAME=VALUE or NAME=RANGE, such as d=1024.")
        given.append(TypedParameter(name.strip(), f"--set {name.strip()}", text))
    return (subjects or [default_study()])[0], given


def texts_by_name(
    context: typer.Context, given: Sequence[TypedParameter], study: AnyStudy
) -> dict[str, str]:
    """Return the text of each parameter that is given, by its name: `--SNR 5` sets `snr`.

    The context keeps the flags, for errors about their values.
    """
    from overfit_cli.core.parameters import parameter_named

    flags, texts, parameters = dict[str, str](), dict[str, str](), study.parameters.model_fields
    for written, flag, text in given:
        name = parameter_named(study.parameters, written)
        if name not in parameters and not flag.startswith("--set"):
            raise UserError(_unknown(context, flag, name, study))
        if name in flags:
            twice = " and ".join(dict.fromkeys([flags[name], flag]))
            raise UserError(f"{shorten(twice)}: {name} is given twice; give it once.")
        if text is None:
            raise UserError(f"{flag}: it takes a value: {flag} VALUE.")
        flags[name], texts[name] = flag, text
    context.meta[TYPED] = flags
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.name in parameters and source is not None and source.name == "COMMANDLINE":
            way = f"write --set {option.name}=... for the parameter {option.name}"
            text = f"{option.opts[0]} is an option of overfit; {way}"
            warnings.warn(text, UserWarning, stacklevel=2)
    return texts


def _unknown(context: typer.Context, flag: str, name: str, study: AnyStudy) -> str:
    parameters = sorted(f"--{name}" for name in study.parameters.model_fields)
    near = most_alike(flag, [*parameters, *declared_options(context)], cutoff=_CLOSE)
    has_near = near and len(flag) > len("--n")
    hint = f"did you mean {near!r}?" if has_near else f"known: {', '.join(parameters) or 'none'}."
    return f"{flag}: {study.name} has no parameter {name!r}, and overfit has no such option; {hint}"


def declared_options(context: typer.Context) -> list[str]:
    """Return the options that a command declares itself."""
    options = [option for parameter in context.command.params for option in parameter.opts]
    return [option for option in options if option.startswith("--")]


_CLOSE = 0.65
"""The least likeness of an option that is suggested; the dashes alone make short ones alike."""
