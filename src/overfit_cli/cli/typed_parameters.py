"""Parameters as a command line gives them: `--n 2:20`, `--set d=1024`, `--SNR 5`."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import typer

from overfit_cli.cli.subject import DEFAULT_STUDY
from overfit_cli.errors import UserError, nearest, shortened

if TYPE_CHECKING:
    from overfit_cli.study import AnyStudy


def subject_and_settings(
    words: Sequence[str], settings: Sequence[str], own: Collection[str]
) -> tuple[str, dict[str, str], dict[str, str]]:
    """Read what a command doesn't declare: what it is about, and its parameters.

    Args:
        words: what is left of the command line: `fig1`, `--n`, `2:20`, `--snr=0.1:16`, ...
        settings: the texts after `--set`.
        own: the command's own options, such as `--seeds`.

    Returns:
        The study, preset or function; the text of each parameter; and the flag that the user wrote
        it with.

    Raises:
        UserError: if an option has no value, a name is given twice, or there are two subjects.
    """
    subjects, given = _read_words(words, own)
    given += [_read_setting(setting) for setting in settings]
    if len(subjects) > 1:
        raise UserError(f"{subjects[1]}: {subjects[0]} is named already; a command takes one.")
    texts: dict[str, str] = {}
    for name, flag, text in given:
        if name in texts:
            typed = f"{flag}={text}" if flag.startswith("--set ") else f"{flag} {text}"
            raise UserError(f"{shortened(typed)}: {name} is given twice; give it once.")
        texts[name] = text
    flags = {name: flag for name, flag, _ in given}
    return (subjects or [DEFAULT_STUDY])[0], texts, flags


_Given = tuple[str, str, str]
"""A parameter's name, the flag that it was given with, and its text."""


def _read_words(words: Sequence[str], own: Collection[str]) -> tuple[list[str], list[_Given]]:
    """What is left of a command line: words that are no options, and parameters."""
    subjects, given, left = list[str](), list[_Given](), list(words)
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
                raise UserError(f"{flag}: it takes a value: {flag} VALUE{_nearest(flag, own)}")
            text = left.pop(0)
        given.append((flag.removeprefix("--").replace("-", "_"), flag, text))
    return subjects, given


def _read_setting(setting: str) -> _Given:
    """A parameter that is given by `--set`."""
    name, equals, text = setting.partition("=")
    if not equals or not name.strip():
        raise UserError(f"--set {setting}: write NAME=VALUE or NAME=RANGE, such as d=1024.")
    return name.strip(), f"--set {name.strip()}", text


def by_name(
    texts: Mapping[str, str], flags: Mapping[str, str], study: AnyStudy
) -> tuple[dict[str, str], dict[str, str]]:
    """Return texts and flags by the names of parameters, where the user writes symbols: `--SNR 5`.

    Raises:
        UserError: if a parameter is given by its name and by its symbol.
    """
    from overfit_cli.parameters import parameter_named

    names = {written: parameter_named(study.parameters, written) for written in texts}
    for name, times in Counter(names.values()).items():
        if times > 1:
            both = " and ".join(flags[written] for written in texts if names[written] == name)
            raise UserError(f"{both}: {name} is given twice; give it once.")
    return (
        {name: texts[written] for written, name in names.items()},
        {name: flags[written] for written, name in names.items()},
    )


def own_options(context: typer.Context) -> list[str]:
    """Return the options that a command declares itself."""
    return [option for one in context.command.params for option in one.opts if option[:2] == "--"]


def check_parameters(
    flags: Mapping[str, str], study: AnyStudy, own: Collection[str], context: typer.Context
) -> None:
    """Hold options to the study's parameters.

    A parameter that has the name of an option of the command's own can't be given so: where that
    option is given, this is said.

    Raises:
        UserError: for an option that is neither, naming the nearest one.
    """
    parameters = study.parameters.model_fields
    for name, flag in flags.items():
        if name not in parameters and not flag.startswith("--set"):
            known = [f"--{one}" for one in parameters]
            hint = nearest(flag, [*known, *own], cutoff=_CLOSE)
            raise UserError(
                f"{flag}: {study.name} has no parameter {name!r}, and overfit no such option; "
                f"{hint if hint.startswith('did') else nearest(flag, known, cutoff=_CLOSE)}"
            )
    for one in context.command.params:
        source = context.get_parameter_source(one.name or "")
        given = source is not None and source.name == "COMMANDLINE"
        name = next((option[2:].replace("-", "_") for option in one.opts), "")
        if given and name in parameters and one.name != "words":
            warnings.warn(
                f"--{name} is an option of overfit; "
                f"write --set {name}=... for the parameter {name}",
                UserWarning,
                stacklevel=2,
            )


_CLOSE = 0.65
"""How alike two options are of which one is meant; the dashes alone make short ones alike."""


def _nearest(flag: str, own: Collection[str]) -> str:
    """The end of a sentence about an option without a value, where one of ours is meant."""
    hint = nearest(flag, own, cutoff=_CLOSE)
    return f"; {hint}" if hint.startswith("did") else "."
