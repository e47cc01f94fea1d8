"""Shared options of commands: their declarations, and how their texts are read."""

from __future__ import annotations

import math
from collections.abc import Collection
from decimal import Decimal
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from overfit_cli.cli import completion
from overfit_cli.cli.parameter_completion import settings, subjects
from overfit_cli.errors import UserError, is_plain_number, shortened
from overfit_cli.plain_text import is_text

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}
PARAMETER_OPTIONS = {"ignore_unknown_options": True, **HELP_OPTIONS}
"""The settings of a command that takes every parameter of its study as an option."""


DataFolder = Annotated[
    str | None,
    typer.Option("--data", metavar="DIR", help="Folder of real data.  [default: $OVERFIT_DATA]"),
]
# A command that takes any option takes what follows it for an argument: all of it comes here.
SubjectAndParameters = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="STUDY|PRESET|FILE.py] [--NAME RANGE",
        hidden=True,
        autocompletion=subjects,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=RANGE",
        help="Set any parameter; needed if an option has its name.",
        autocompletion=settings,
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="NAME=RANGE",
        help="Only cells with these values: n=5:20 or kernel=softmax,gaussian; may be repeated.",
        autocompletion=completion.conditions,
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Exit with code 1 if a claim fails, or with --expect if a verdict is another; and if "
        "nothing is judged.",
    ),
]
Expect = Annotated[
    str | None,
    typer.Option(metavar="FILE.toml", help="File of expected verdicts, such as a verdicts.toml."),
]
DeviceName = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="auto|cpu|cuda",
        help="Device to train on.",
        autocompletion=completion.one_of("auto", "cpu", "cuda"),
    ),
]


_Name = TypeVar("_Name", bound=str)


def read_one_of(flag: str, text: str, names: Collection[_Name]) -> _Name:
    """Read one of several names.

    Raises:
        UserError: if the text is none of them.
    """
    for name in names:
        if text == name:
            return name
    raise UserError(f"{flag} {shortened(text)}: it takes {' or '.join(names)}.")


def read_whole(flag: str, text: str, at_least: int) -> int:
    """Read a whole number.

    Raises:
        UserError: if the text is none, or is below `at_least`.
    """
    accepts = f"a whole number of at least {at_least}"
    number = read_number(flag, text, accepts, whole=True)
    if not at_least <= number < 2**63:
        raise UserError(f"{flag} {shortened(text)}: it takes {accepts}.")
    return int(Decimal(text))


def read_number(flag: str, text: str, accepts: str = "a number", *, whole: bool = False) -> float:
    """Read a finite number.

    Raises:
        UserError: if the text is none, saying that the flag takes `accepts`.
    """
    try:
        number = float(text) if is_plain_number(text) else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or (whole and number != int(number)):
        raise UserError(f"{flag} {shortened(text)}: it takes {accepts}.")
    return number


def read_path(flag: str, text: str | None) -> Path | None:
    """Return the path that `text` names; None where none is given.

    Raises:
        UserError: if it is empty, isn't text, or no path can be so.
    """
    from overfit_cli.files import reason_of

    if text is None:
        return None
    if not text.strip():
        raise UserError(f"{flag} '': give a path.")
    if not is_text(text):
        raise UserError(f"{flag} {text}: the name isn't text; it takes a path in UTF-8.")
    try:
        Path(text).exists()
    except OSError as error:
        raise UserError(f"{flag} {text}: it can't be used: {reason_of(error)}.") from error
    return Path(text)


def use_data(text: str | None) -> None:
    """Take the folder that `--data` names, if it names one.

    Raises:
        UserError: if there is nothing there.
    """
    from overfit_cli.data_folder import set_data_folder

    path = read_path("--data", text)
    if path is not None:
        set_data_folder(path)
