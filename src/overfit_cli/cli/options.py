"""Options that several commands share, and parameters as options: `--n 2:20`, `--set d=1024`.

A parameter may be called by its symbol: `--SNR 5`. Unknown names are refused with the nearest one.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from overfit_cli.cli import completion
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.files import set_data_folder
from overfit_cli.core.text import most_alike, shorten
from overfit_cli.core.values import Backend, DeviceChoice

if TYPE_CHECKING:
    from overfit_cli.core.study import AnyStudy


HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}
PARAMETER_OPTIONS = {"ignore_unknown_options": True, **HELP_OPTIONS}
"""The settings of a command that takes every parameter of its study as an option."""
TYPED = "overfit.typed"
"""The key in a context for each parameter as the user typed it: `--snr`, `--set d` or `--SNR`."""


DataFolder = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Folder of real data.  [default: $OVERFIT_DATA]"),
]
# A command that takes any option takes what follows it for an argument: all of it comes here.
SubjectAndParameters = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="STUDY|PRESET|FILE.py] [--NAME RANGE",
        hidden=True,
        autocompletion=completion.subjects,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=RANGE",
        help="Set any parameter; required if its name is also an option.",
        autocompletion=completion.settings,
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="CONDITION",
        help="Only these cells: n=5:20, n=100:, kernel=softmax,gaussian or 'test_loss<0.1'; may be "
        "repeated.",
        autocompletion=completion.conditions,
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Exit with code 1 if a claim fails (with --expect: if a verdict differs from the "
        "expected one) or if nothing was judged.",
    ),
]
Expect = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Expected verdicts: the claims.json of a report, or a TOML file."
    ),
]
DeviceName = Annotated[
    DeviceChoice,
    typer.Option("--device", metavar="auto|cpu|cuda", help="Device to train on."),
]


def error_as_option(error: UserError) -> str:
    """Return what an error says, a bad value's name spelled as an option: `--where n=9: …`."""
    if not isinstance(error, BadValue):
        return str(error)
    option = f"--{error.name.replace('_', '-')}"
    shown = option if error.value is None else f"{option} {shorten(str(error.value))}"
    return f"{shown}: {error.accepts}"


def set_data_option(path: Path | None) -> None:
    """Take the folder that `--data` names, if it names one."""
    if path is not None:
        set_data_folder(path)


Jobs = Annotated[
    int,
    typer.Option(
        envvar="OVERFIT_JOBS",
        metavar="N",
        help="Cells to train at the same time; -1 means one per core, or all workers.",
    ),
]
BackendName = Annotated[
    Backend,
    typer.Option(
        "--backend",
        envvar="OVERFIT_BACKEND",
        metavar="loky|threading|dask|ray",
        help="Processes (loky) or threads of this machine, or a cluster.",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="With --backend dask the scheduler (tcp://10.0.0.1:8786), with ray the cluster "
        "(10.0.0.1:6379, or auto).",
    ),
]


class TypedParameter(NamedTuple):
    """A parameter as it is typed: its name or symbol, its flag such as `--set n`, and its text."""

    name: str
    flag: str
    text: str


def read_words(
    context: typer.Context, words: Sequence[str] | None, settings: Sequence[str] | None
) -> tuple[str, list[TypedParameter]]:
    """Return the subject of a command, and the parameters that are given.

    Args:
        words: what the command doesn't declare: `fig1`, `--n`, `2:20`, `--snr=0.1:16`, ...
    """
    from overfit_cli.sweeps.subject import DEFAULT_STUDY

    subjects, given, left = list[str](), list[TypedParameter](), list(words or [])
    while left:
        word = left.pop(0)
        if not word.startswith("--"):
            if word.startswith("-") and word[1:2].isalpha():
                raise UserError(f"{word}: options begin with two dashes, such as --{word[1:]} 5.")
            subjects.append(word)
            continue
        flag, equals, text = word.partition("=")
        if not equals:
            if not left or left[0].startswith("--"):
                raise UserError(_without_value(context, flag, (subjects or [DEFAULT_STUDY])[0]))
            text = left.pop(0)
        given.append(TypedParameter(flag.removeprefix("--").replace("-", "_"), flag, text))
    if len(subjects) > 1:
        name, equals, text = subjects[1].partition("=")
        hint = f"write --{name} {text}" if equals and name.isidentifier() else "a command takes one"
        raise UserError(f"{subjects[1]}: {subjects[0]} is named already; {hint}.")
    given += [_read_setting(setting) for setting in settings or []]
    return (subjects or [DEFAULT_STUDY])[0], given


def _without_value(context: typer.Context, flag: str, subject: str) -> str:
    """Return the error for an option without a value: a lacking value, or an unknown name."""
    from overfit_cli.core.parameters import parameter_named
    from overfit_cli.sweeps.subject import find_subject

    options = declared_options(context)
    with contextlib.suppress(UserError):
        parameters = find_subject(subject).study.parameters
        written = flag.removeprefix("--").replace("-", "_")
        if parameter_named(parameters, written) in parameters.model_fields:
            return f"{flag}: it takes a value: {flag} VALUE."
        options += [f"--{name}" for name in parameters.model_fields]
    near = most_alike(flag, options, cutoff=_CLOSE)
    hint = f"; did you mean {near!r}?" if near else "; a parameter is given as --NAME VALUE."
    return f"{flag}: {context.command.name} has no such option{hint}"


def _read_setting(setting: str) -> TypedParameter:
    name, equals, text = setting.partition("=")
    if not equals or not name.strip():
        raise UserError(f"--set {setting}: write NAME=VALUE or NAME=RANGE, such as d=1024.")
    return TypedParameter(name.strip(), f"--set {name.strip()}", text)


def texts_by_name(
    context: typer.Context, given: Sequence[TypedParameter], study: AnyStudy
) -> dict[str, str]:
    """Return the text of each parameter that is given, by its name: `--SNR 5` sets `snr`.

    The context keeps the flags, for errors about their values.
    """
    from overfit_cli.core.parameters import parameter_named

    flags, texts = dict[str, str](), dict[str, str]()
    for written, flag, text in given:
        name = parameter_named(study.parameters, written)
        if name in flags:
            twice = " and ".join(dict.fromkeys([flags[name], flag]))
            raise UserError(f"{shorten(twice)}: {name} is given twice; give it once.")
        flags[name], texts[name] = flag, text
    context.meta[TYPED] = flags
    parameters = study.parameters.model_fields
    for name, flag in flags.items():
        if name not in parameters and not flag.startswith("--set"):
            options = [f"--{parameter}" for parameter in parameters]
            near = most_alike(flag, [*options, *declared_options(context)], cutoff=_CLOSE)
            known = f"known: {', '.join(sorted(options)) or 'none'}."
            raise UserError(
                f"{flag}: {study.name} has no parameter {name!r}, and overfit has no such option; "
                + (f"did you mean {near!r}?" if near and len(name) > 1 else known)
            )
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if source is not None and source.name == "COMMANDLINE":
            _warn_of_namesake(option.opts[0], study)
    return texts


def declared_options(context: typer.Context) -> list[str]:
    """Return the options that a command declares itself."""
    options = [option for parameter in context.command.params for option in parameter.opts]
    return [option for option in options if option.startswith("--")]


def warn_of_parameter(context: typer.Context, words: Sequence[str], option: str) -> None:
    """Warn if the study that is named has a parameter with the name of a refused option."""
    from overfit_cli.sweeps.subject import find_subject

    with contextlib.suppress(UserError):
        subject, _ = read_words(context, words, ())
        _warn_of_namesake(option, find_subject(subject).study)


def _warn_of_namesake(option: str, study: AnyStudy) -> None:
    name = option.removeprefix("--").replace("-", "_")
    if option.startswith("--") and name in study.parameters.model_fields:
        warnings.warn(
            f"{option} is an option of overfit; write --set {name}=... for the parameter {name}",
            UserWarning,
            stacklevel=2,
        )


_CLOSE = 0.65
"""The least likeness of an option that is suggested; the dashes alone make short ones alike."""
