"""What commands share: options, their completion, parameters as options, and what is written."""

from __future__ import annotations

import contextlib
import inspect
import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.files import results_folder, write_user_file
from overfit_cli.core.options import declared
from overfit_cli.core.text import brief, most_alike, shorten, spelled, visible

if TYPE_CHECKING:
    from rich.console import Console

    from overfit_cli.core.study import AnyStudy


KINDS = ("studies", "presets", "figures", "claims")
"""The kinds of what there is, as `list` lists them."""


def completer(kind: str) -> Callable[[typer.Context, str], Sequence[Any]]:
    """Return a completer of what there is of a kind; whatever fails, it prints nothing."""

    def complete(context: typer.Context, incomplete: str) -> Sequence[Any]:
        hidden, failing = io.StringIO(), contextlib.suppress(Exception, SystemExit)
        with contextlib.redirect_stdout(hidden), contextlib.redirect_stderr(hidden), failing:
            return _offered(kind, context, incomplete)
        return []

    return complete


def _offered(kind: str, context: typer.Context, incomplete: str) -> Sequence[Any]:
    """Words, or words each with the help that some shells show beside it."""
    from overfit_cli.core import registry

    if kind == "runs":  # in the folder that is typed, else in `results/` and here
        typed = incomplete[: incomplete.rfind("/") + 1]
        return [
            f"{folder}{cells.parent.name}"
            for folder in ([typed] if typed else [f"{results_folder()}/", ""])
            for cells in sorted(Path(folder).glob("*/cells"))
        ]
    if kind in ("studies", "listed"):
        return [*(KINDS if kind == "listed" else ()), *registry.study_names()]
    if kind == "figures":
        figures = (registry.figures_of(study).values() for study in registry.installed_studies())
        return [*{figure.name: figure.title for of in figures for figure in of}.items()]
    from overfit_cli.sweeps import presets

    if kind == "presets":
        studies, every = registry.installed_studies(), presets.reproducible()
        papers = {study.paper.key: study.paper.title for study in studies if study.paper}
        return [*({name: one.title for one in every for name in one.names} | papers).items()]
    names = registry.study_names()
    if kind == "subjects":
        return [] if context.params.get("words") else [*names, *presets.preset_names()]
    from overfit_cli.core.parameters import describe

    # The parameters of the study that `sweep` or `train` runs; other commands have no words.
    subject = (context.params["words"] or ["--"])[0]
    subject = registry.default_study() if subject.startswith("--") else subject
    preset = None if subject in names else presets.find_preset(subject)
    study = registry.find_study(preset.study if preset else subject)
    declared = {option for parameter in context.command.params for option in parameter.opts}
    options = {f"--{name}": info.meaning for name, info in describe(study.parameters).items()}
    return [
        SimpleNamespace(value=option, help=meaning)
        for option, meaning in options.items()
        if option.startswith(incomplete) and option not in declared
    ]


# Declarations

_Command = TypeVar("_Command", bound=Callable[..., int])


def argument(takes: str, meaning: str, complete: str = "", default: Any = ..., **more: Any) -> Any:
    """Declare an argument of a command, by default a required one.

    Args:
        complete: the kind of what a shell offers for it.
    """
    more |= {"autocompletion": completer(complete) if complete else None}
    return typer.Argument(default, metavar=takes, help=meaning, **more)


def option(
    takes: str, meaning: str, *names: str, default: Any = None, complete: str = "", **more: Any
) -> Any:
    """Declare an option of one command; it takes a value, unless that is empty."""
    more |= {"autocompletion": completer(complete) if complete else None}
    return typer.Option(default, *names, metavar=takes or None, help=meaning, **more)


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


TYPED = "overfit.typed"
"""The key in a context for each parameter as the user typed it: `--snr`, `--set d` or `--SNR`."""


# A command that takes any option takes what follows it for an argument: all of it comes here.
SUBJECT_AND_PARAMETERS = argument(
    "STUDY|PRESET|FILE.py|'COMMAND {NAME}'] [--NAME RANGE", "", "subjects", default=[], hidden=True
)
SETTINGS = option(
    "NAME=RANGE", "Set any parameter; required if its name is also an option.", "--set", default=[]
)
WHERE = option(
    "CONDITION",
    "Only these cells: n=5:20, n=100:, kernel=softmax,gaussian or 'test_loss<0.1'; may be "
    "repeated.",
    default=[],
)
STRICT = flag(
    "Exit with code 1 if a claim fails (with --expect: if a verdict differs from the expected one) "
    "or if nothing was judged.",
    "--strict",
)
EXPECT = option(
    "FILE",
    "Expected verdicts: the claims.json of a report, or a TOML file; may be repeated.",
    default=[],
)
JSON_FILE = option("FILE", "JSON file of all numbers; - prints only the JSON.", "--json")
FUNCTION_FILE = option(
    "FILE.py",
    "File of the run's function, to judge its claims as they are now. A file that you swept and "
    "left as it was is loaded by itself; another one only if you name it.",
    "--study",
)
FIGURE_FILE = option(
    "FILE", "PNG, PDF or SVG file for a figure; a caption is written beside it, as .txt."
)


def error_as_option(error: UserError, option: str = "") -> str:
    """Return what an error says, a bad value's name spelled as an option: `--where n=9: …`."""
    if not isinstance(error, BadValue):
        return str(error)
    shown = shorten(brief(error.value, 12)) or repr("")
    given = option or spelled(error.name)
    return f"{given}{'' if error.value is None else f' {shown}'}: {error.accepts}"


Typed = tuple[str, str, str | None]
"""A parameter as it is typed: its name or symbol, its flag such as `--set n`, and its text."""


def read_words(words: Sequence[str], settings: Sequence[str]) -> tuple[str, list[Typed]]:
    """Return the subject of a command, and the parameters that are given.

    Args:
        words: what the command doesn't declare: `fig1`, `--n`, `2:20`, `--snr=0.1:16`, ...
    """
    from overfit_cli.core.registry import default_study

    subjects, given, left = list[str](), list[Typed](), list(words)
    while left:
        word = left.pop(0)
        if word.startswith("--"):
            flag, equals, value = word.partition("=")
            has_next = left and not left[0].startswith("--")
            text = value if equals else left.pop(0) if has_next else None
            given.append((flag.removeprefix("--").replace("-", "_"), flag, text))
        elif word.startswith("-") and word[1:2].isalpha():
            raise UserError(f"{word}: options begin with two dashes, such as --{word[1:]} 5.")
        else:
            subjects.append(word)
    if len(subjects) > 1:
        takes = "a command takes one, a command line in quotes, and parameters as --NAME VALUE"
        raise UserError(f"{subjects[1]}: {subjects[0]} is named already; {takes}.")
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise UserError(f"--set {setting}: write NAME=VALUE or NAME=RANGE, such as d=1024.")
        given.append((name.strip(), f"--set {name.strip()}", text))
    return (subjects or [default_study()])[0], given


def values_of(given: Sequence[Typed]) -> dict[str, str]:
    """Return the values that are given, by the names as they are written."""
    return {name: text for name, _, text in given if text is not None}


def texts_by_name(
    context: typer.Context, given: Sequence[Typed], study: AnyStudy
) -> dict[str, str]:
    """Return the text of each parameter that is given, by its name: `--SNR 5` sets `snr`.

    The context keeps the flags, for errors about their values.
    """
    from overfit_cli.core.parameters import parameter_named

    flags, texts, parameters = dict[str, str](), dict[str, str](), study.parameters.model_fields
    for written, flag, text in given:
        name = parameter_named(study.parameters, written)
        if name not in parameters and not flag.startswith("--set"):
            options = [option for each in context.command.params for option in each.opts]
            words = [*parameters, *(word[2:] for word in options if word.startswith("--"))]
            near, known = most_alike(written, words), ", ".join(sorted(parameters)) or "none"
            hint = f"did you mean '--{near}'?" if near else f"known: {known}."
            lack = f"{study.name} has no parameter {name!r}, and overfit has no such option"
            raise UserError(f"{flag}: {lack}; {hint}")
        if name in flags:
            twice = " and ".join(dict.fromkeys([flags[name], flag]))
            raise UserError(f"{shorten(twice)}: {name} is given twice; give it once.")
        if text is None:
            raise UserError(f"{flag}: it takes a value: {flag} VALUE.")
        flags[name], texts[name] = flag, text
    context.meta[TYPED] = flags
    return texts


# What commands write


def write_content(output: Console, path: Path | None, content: bytes, name: str) -> None:
    """Write a file that the user names, or for `-` to standard output; for None nothing.

    On a terminal nothing in it is obeyed.
    """
    if path == Path("-"):
        shown = content.decode()
        if sys.stdout.isatty():
            shown = "\n".join(visible(line) for line in shown.split("\n"))
        elif hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(encoding="utf-8")
        typer.echo(shown, nl=False)
    elif path is not None:
        write_user_file(path, content, name)
        output.print(f"Written: {path}")


def say_drawn(output: Console, path: Path) -> None:
    """Say where a picture and its caption are."""
    endings = (".txt", ".caption.tex") if path.suffix.lower() == ".pdf" else (".txt",)
    captions = " and ".join(path.with_suffix(ending).name for ending in endings)
    output.print(f"Drawn: {path}, and its caption in {captions}")
