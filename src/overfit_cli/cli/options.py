"""Options that several commands share, and parameters as options: `--n 2:20`, `--set d=1024`.

A parameter may be called by its symbol: `--SNR 5`. Unknown names are refused with the nearest one.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar, get_args

import typer

from overfit_cli.cli import completion
from overfit_cli.cli.completion import settings, subjects
from overfit_cli.core.text import BadValue, UserError, is_plain_number, is_text, nearest, shortened

if TYPE_CHECKING:
    from overfit_cli.core.study import AnyStudy
    from overfit_cli.sweeps.executors import Executor


HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}
PARAMETER_OPTIONS = {"ignore_unknown_options": True, **HELP_OPTIONS}
"""The settings of a command that takes every parameter of its study as an option."""
TYPED = "overfit.typed"
"""Where a context keeps how the user typed each parameter: `--snr`, `--set d` or `--SNR`."""


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


def as_option(error: UserError) -> str:
    """Return what an error says, a bad value's name spelled as an option: `--where n=9: …`."""
    if not isinstance(error, BadValue):
        return str(error)
    option = f"--{error.name.replace('_', '-')}"
    return f"{option} {shortened(str(error.value))}: {error.accepts}"


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
    from overfit_cli.core.files import reason_of

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
    from overfit_cli.core.files import set_data_folder

    path = read_path("--data", text)
    if path is not None:
        set_data_folder(path)


_BACKENDS = ("loky", "threading", "dask", "ray")
Jobs = Annotated[
    str,
    typer.Option(
        metavar="N", help="Cells to train at the same time; -1 means one per core, or all workers."
    ),
]
BackendName = Annotated[
    str,
    typer.Option(
        "--backend",
        metavar="|".join(_BACKENDS),
        help="Processes (loky) or threads of this machine, or a cluster.",
        autocompletion=completion.one_of(*_BACKENDS),
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="With --backend dask: the scheduler, such as tcp://10.0.0.1:8786."
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="With --backend ray: the cluster, such as 10.0.0.1:6379, or auto."
    ),
]


def read_executor(
    backend: str, jobs: str, device: str, scheduler: str | None, address: str | None
) -> Executor:
    """Return the executor that the options ask for.

    Raises:
        UserError: if one of them isn't taken, or no cluster answers.
    """
    from overfit_cli.core.training import DeviceChoice
    from overfit_cli.sweeps.clusters import Backend, executor_of

    return executor_of(
        read_one_of("--backend", backend, get_args(Backend)),
        read_jobs(jobs),
        read_one_of("--device", device, get_args(DeviceChoice)),
        scheduler=scheduler,
        address=address,
    )


def read_jobs(text: str) -> int:
    """Return the number of jobs that is asked for; -1 for as many as there is room for.

    Raises:
        UserError: if the text is no such number.
    """
    accepts = "a whole number of at least 1, or -1 for one per core"
    asked = int(read_number("--jobs", text, accepts, whole=True))
    if asked < -1 or asked == 0:
        raise UserError(f"--jobs {text}: it takes {accepts}.")
    return asked


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
    from overfit_cli.sweeps.presets import DEFAULT_STUDY

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
    from overfit_cli.core.parameters import parameter_named

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
    context.meta[TYPED] = dict(flags)
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
