"""Completion in shells.

Quick looks at studies, files and run directories, for the completion of a command line.

They read no numbers but those of a manifest, and run no code of the user's. What they raise is not
for people: see `completion`.

Answers to shells that ask how a command line goes on, in the words that each shell knows.

Typer reads the question from the environment and writes the answer. Two things are mended on the
way: bash takes `=` and `:` for words of their own, and all shells take `--option=value` for one.
And nothing is said where something fails, because it would stand in somebody's prompt.

Completers: what a command line may go on with, for Typer's `autocompletion=`.

Typer keeps what begins as the word that is typed. Where nothing can be found there is nothing to
say: an error has no place in a shell's prompt.

Completers of what `sweep` and `train` are about: studies and presets, then their parameters.

A parameter is offered by its name. One that is called by its symbol counts as given, and its values
are completed too.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

import typer

from overfit_cli.core.files import RESULTS

if TYPE_CHECKING:
    from overfit_cli.core.parameters import ParameterInfo
    from overfit_cli.core.study import AnyStudy


MOST_BYTES = 1 << 24
"""The largest file that is read while somebody waits for a word to be completed."""


def parameters_of(subject: str) -> Mapping[str, ParameterInfo]:
    """Return the parameters of a study, of a preset's study, or of a function in a file.

    Args:
        subject: how the user named it; empty for the study that is meant then.
    """
    from overfit_cli.core.registry import find_study, study_names
    from overfit_cli.sweeps.presets import DEFAULT_STUDY, find_preset

    subject = subject or DEFAULT_STUDY
    preset = None if subject in study_names() else find_preset(subject)
    study = subject if preset is None else preset.content.study
    if study in study_names():
        return described(find_study(study))
    return _arguments(subject)


def described(study: AnyStudy) -> Mapping[str, ParameterInfo]:
    """Return a study's parameters by name."""
    from overfit_cli.core.parameters import describe

    return describe(study.parameters)


def _arguments(reference: str) -> dict[str, ParameterInfo]:
    """The arguments of a function `FILE.py` or `FILE.py:NAME` by name, as its text tells them."""
    from overfit_cli.core.files import read_bounded
    from overfit_cli.core.parameters import ParameterInfo
    from overfit_cli.functions.references import PREFERRED
    from overfit_cli.functions.signature import SEED

    stem, _, name = f"{reference}:".partition(".py:")
    tree = ast.parse(read_bounded(Path(f"{stem}.py"), MOST_BYTES))
    functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
    public = [one for one in functions if one[0] != "_"]
    name = name.rstrip(":") or (PREFERRED if PREFERRED in public else public[0])
    arguments = functions[name].args
    names = [one.arg for one in (*arguments.args, *arguments.kwonlyargs) if one.arg != SEED]
    return {one: ParameterInfo(one, "text", None, "", "", "", (), "") for one in names}


def choices(info: ParameterInfo) -> list[str]:
    """Return the values of a parameter that has few; else none."""
    return ["true", "false"] if info.kind == "bool" else list(info.choices)


def newest_run() -> Path:
    """Return the run directory in `results/` that was written last."""
    return max(RESULTS.glob("*/cells"), key=lambda folder: folder.stat().st_mtime).parent


def study_of_run(run: Path) -> AnyStudy:
    """Return the study of a run directory; of a function, what the directory remembers of it."""
    from overfit_cli.core.registry import find_study

    manifest = _manifest(run)
    if manifest.get("function") is None:
        return find_study(manifest["study"])
    from overfit_cli.functions.function_study import FunctionStudy
    from overfit_cli.functions.record import FunctionRecord

    return FunctionStudy(FunctionRecord.model_validate(manifest["function"]))


def values_in(run: Path) -> dict[str, list[str]]:
    """Return the values that a run directory has of each parameter and of `seed`, as texts."""
    found = dict[str, dict[str, None]]()
    for one in _manifest(run)["runs"]:
        for name, values in {**one["values"], "seed": one["seeds"]}.items():
            texts = (given if isinstance(given, str) else json.dumps(given) for given in values)
            found.setdefault(name, {}).update(dict.fromkeys(texts))
    return {name: list(texts) for name, texts in found.items()}


def _manifest(run: Path) -> Any:
    from overfit_cli.core.files import read_bounded

    return json.loads(read_bounded(run / "manifest.json", MOST_BYTES))


def numbers_of(
    study: AnyStudy, run: Path, kind: Literal["cells", "trajectories"]
) -> list[tuple[str, str]]:
    """Return the measured or the logged columns of a run, each with its meaning.

    What a function returned is known from the files alone.
    """
    if study.identity.function is not None:
        import pyarrow.parquet as pq

        names = pq.read_schema(next((run / kind).glob("*.parquet"))).names
        first = names.index("steps") if kind == "cells" else 2
        return [(name, "") for name in names[first:]]
    if kind == "trajectories":
        return [(one.name, one.meaning) for one in study.trajectory_columns]
    common = [("steps", study.step), ("seconds", "time")]
    return [*((one.name, one.meaning) for one in study.columns), *common]


_VARIABLE = "_OVERFIT_COMPLETE"
_ASKS = "complete_"
NOTHING = 1
"""The exit code that leaves it to the shell to complete names of files."""


def is_asking() -> bool:
    """Whether this process was started by a shell that completes a command line."""
    return os.environ.get(_VARIABLE, "").startswith(_ASKS)


def answer(run: Callable[[], object]) -> int:
    """Print how the command line goes on, and return the exit code.

    Args:
        run: the command line, which Typer answers from.
    """
    shell = os.environ[_VARIABLE].removeprefix(_ASKS)
    said, unsaid, code = io.StringIO(), io.StringIO(), 0
    try:
        with (
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(unsaid),
            warnings.catch_warnings(action="ignore"),
        ):
            mend = _MENDS[shell]() if shell in _MENDS else str
            run()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else NOTHING
    except BaseException:
        return NOTHING
    sys.stdout.write(mend(said.getvalue()))
    return code


def _bash() -> Callable[[str], str]:
    """Join what bash took apart; return what takes the same parts off an answer."""
    last = int(os.environ["COMP_CWORD"])
    words = [*os.environ["COMP_WORDS"].split("\n"), ""][: last + 1]
    line, _ = _with_option_apart(re.sub(r"\n?([=:]+)\n?", r"\1", "\n".join(words)), "\n")
    os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = line, str(line.count("\n"))
    typed = re.sub(r"\\(.)", r"\1", line.rpartition("\n")[2])
    known = max(typed.rfind("="), typed.rfind(":")) + 1

    def mend(text: str) -> str:
        # Bash puts a word into the line as it is: what it would obey is escaped.
        found = (re.sub(r"[^\w@%+=:,./-]", r"\\\g<0>", one[known:]) for one in text.splitlines())
        return "".join(f"{one}\n" for one in found if one)

    return mend


def _zsh() -> Callable[[str], str]:
    """Set an option apart from its value; return what joins them again."""
    option = _set_option_apart()
    return lambda text: re.sub(r'(?m)^(_arguments .*\(\()?"', lambda one: f"{one[0]}{option}", text)


def _fish() -> Callable[[str], str]:
    """Set an option apart from its value; return what joins them again."""
    option = _set_option_apart()
    return lambda text: "".join(f"{option}{line}\n" for line in text.splitlines() if line)


_MENDS = {"bash": _bash, "zsh": _zsh, "fish": _fish}


def _set_option_apart() -> str:
    """Change the question of zsh or fish; return the option with its `=`, empty without one."""
    line = os.environ.get("_TYPER_COMPLETE_ARGS", "")
    os.environ["_TYPER_COMPLETE_ARGS"], option = _with_option_apart(line, " ")
    return option


def _with_option_apart(line: str, blank: str) -> tuple[str, str]:
    """A line whose last word is split in two if it is `--option=value`, and the option with `=`."""
    found = re.search(rf"{blank}(--[\w-]+=)([^{blank}]*)\Z", line)
    if found is None:
        return line, ""
    return f"{line[: found.start(1)]}{found[1][:-1]}{blank}{found[2]}", found[1]


Found = Sequence[str | tuple[str, str]]
"""Words, or words each with what some shells show beside it."""

Given = ParamSpec("Given")
One = TypeVar("One")


def silently(find: Callable[Given, Sequence[One]]) -> Callable[Given, Sequence[One]]:
    """Have a completer find nothing where it fails, and print nothing."""

    @functools.wraps(find)
    def found(*given: Given.args, **named: Given.kwargs) -> Sequence[One]:
        with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
            return find(*given, **named)
        return []

    return found


def one_of(*words: str) -> Callable[[str], Found]:
    """Return a completer that knows these words."""

    def known(incomplete: str) -> Found:
        return words

    return known


@silently
def run_directories(incomplete: str) -> Found:
    """Complete run directories: those in the folder that is typed, else in `results/` and here."""
    typed = incomplete[: incomplete.rfind("/") + 1]
    folders = [typed] if typed else [f"{RESULTS}/", ""]
    return [
        f"{folder}{cells.parent.name}"
        for folder in folders
        for cells in sorted(Path(folder).glob("*/cells"))
    ]


@silently
def studies(incomplete: str) -> Found:
    """Complete the names of studies."""
    from overfit_cli.core.registry import study_names

    return study_names()


@silently
def reproducible(incomplete: str) -> Found:
    """Complete papers, their figures, and presets."""
    from overfit_cli.sweeps.presets import everything

    every = everything()
    papers = {one.paper.key: one.paper.title for one in every if one.paper}
    titles = {one.address: one.preset.content.title for one in every}
    return [*papers.items(), *titles.items(), *(one.preset.name for one in every)]


@silently
def figures(context: typer.Context, incomplete: str) -> Found:
    """Complete figures: those of the study of the run that is named, else those of all studies."""
    from overfit_cli.core.registry import figures_of, installed_studies

    run = _named_run(context)
    of = [study_of_run(run)] if run else installed_studies()
    titles = {one.name: one.title for study in of for one in figures_of(study).values()}
    return list(titles.items())


@silently
def columns(context: typer.Context, incomplete: str) -> Found:
    """Complete the columns that a figure draws: measured ones, or logged ones."""
    from overfit_cli.core.registry import figures_of

    run = _run(context)
    study = study_of_run(run)
    figure = figures_of(study).get(context.params.get("figure") or "")
    return numbers_of(study, run, "cells" if figure is None else figure.reads)


@silently
def lists_of_columns(context: typer.Context, incomplete: str) -> Found:
    """Complete a list of columns with commas between, parameters among them."""
    run = _run(context)
    study = study_of_run(run)
    logged = context.params.get("trajectories")
    kind: Literal["cells", "trajectories"] = "trajectories" if logged else "cells"
    numbers = [name for name, _ in numbers_of(study, run, kind)]
    return in_list(incomplete, [*described(study), "seed", *numbers])


@silently
def axes(context: typer.Context, incomplete: str) -> Found:
    """Complete the parameters that vary in the run, or all of its study where none does."""
    run = _run(context)
    known = described(study_of_run(run))
    values = values_in(run)
    varying = [name for name in known if len(values.get(name, ())) > 1]
    return [(name, known[name].meaning) for name in varying or known]


@silently
def conditions(context: typer.Context, incomplete: str) -> Found:
    """Complete `NAME=VALUE` by the parameters of the run, and the values that it has."""
    run = _run(context)
    known = described(study_of_run(run))
    words = {name: choices(info) for name, info in known.items()}
    return assignments(incomplete, known, {**words, **values_in(run)})


def _named_run(context: typer.Context) -> Path | None:
    """The run directory that a command line names, the first of several; None for none."""
    for one in context.command.params:
        if getattr(one, "metavar", "") in ("DIR", "A") and not {"--out", "--data"} & set(one.opts):
            given = context.params.get(one.name or "")
            named = [given] if isinstance(given, str) else given
            if named:
                return Path(named[0])
    return None


def _run(context: typer.Context) -> Path:
    """The run directory that is named, or the one that was written last."""
    return _named_run(context) or newest_run()


def in_list(incomplete: str, words: Iterable[str]) -> list[str]:
    """Return words behind those of a list `A,B,` that are typed, without those."""
    typed = incomplete[: incomplete.rfind(",") + 1]
    return [f"{typed}{word}" for word in words if word not in typed.split(",")]


def assignments(
    incomplete: str, known: Mapping[str, ParameterInfo], values: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return names with `=` behind them; of the one that is meant, its values too.

    A parameter that is called by its symbol has its values behind it.

    Args:
        incomplete: what is typed.
        known: the parameters.
        values: what may stand behind each name; there may be other names than of parameters.
    """
    from overfit_cli.core.parameters import named_among

    name, equals, typed = incomplete.partition("=")
    behind = values.get(named_among(known, name), ())
    if equals:
        return [f"{name}={one}" for one in in_list(typed, behind)]
    meant = [one for one in values if one.startswith(name)] or ([name] if behind else [])
    of_one = values.get(named_among(known, meant[0]), ()) if len(meant) == 1 else ()
    return [*(f"{one}=" for one in meant), *(f"{meant[0]}={value}" for value in of_one)]


@silently
def settings(context: typer.Context, incomplete: str) -> Found:
    """Complete `NAME=VALUE` by the parameters of the study: its few values, or its default."""
    known = parameters_of(_typed(context).subject)
    return assignments(incomplete, known, {one.name: _few(one) for one in known.values()})


def _few(info: ParameterInfo) -> Sequence[str]:
    """The few values of a parameter, or its default."""
    return choices(info) or ([] if info.default is None else [str(info.default)])


@silently
def subjects(context: typer.Context, incomplete: str) -> Found:
    """Complete what `sweep` and `train` are about, and then its parameters with their values.

    Typer hands over all words that are neither options of the command's own nor their values.
    """
    from overfit_cli.core.parameters import named_among
    from overfit_cli.core.registry import study_names
    from overfit_cli.sweeps.presets import preset_names

    typed = _typed(context)
    if typed.waiting:
        known = parameters_of(typed.subject)
        return in_list(incomplete, choices(known[named_among(known, typed.waiting)]))
    if typed.subject:
        return [(f"--{name}", meaning) for name, meaning in _free_parameters(context)]
    files = [path.name for ending in ("*.py", "*.toml") for path in sorted(Path().glob(ending))]
    return [*study_names(), *preset_names(), *files]


@dataclass(frozen=True)
class Suggestion:
    """A word that a shell is offered, as Typer reads it, and what is said of it."""

    value: str
    help: str


def parameter_options(context: typer.Context, incomplete: str) -> list[Suggestion]:
    """Return the parameters of what `sweep` or `train` is about, as options: `--learning_rate`.

    They are spelled with dashes where the user types one.
    """
    if "words" not in context.params:
        return []
    dash = "-" if "-" in incomplete[2:] else "_"
    offered = [
        Suggestion(f"--{name.replace('_', dash)}", meaning)
        for name, meaning in _free_parameters(context)
    ]
    return [one for one in offered if one.value.startswith(incomplete)]


@dataclass(frozen=True)
class _Typed:
    """What is typed of a command that takes every parameter as an option.

    Attributes:
        subject: the study, preset or file; empty where none is named yet.
        given: the parameters that have a value already, as they are called.
        waiting: the parameter whose value is being typed; empty for none.
    """

    subject: str
    given: frozenset[str]
    waiting: str


def _typed(context: typer.Context) -> _Typed:
    left, subject, given = list(context.params.get("words") or []), "", set[str]()
    while left:
        word = left.pop(0)
        if not word.startswith("--"):
            subject = subject or word
            continue
        name, equals, _ = word[2:].partition("=")
        name = name.replace("-", "_")
        if not equals and not left:
            return _Typed(subject, frozenset(given), name)
        given.add(name)
        del left[: 0 if equals else 1]
    return _Typed(subject, frozenset(given), "")


@silently
def _free_parameters(context: typer.Context) -> Sequence[tuple[str, str]]:
    """The parameters that can still be given as options, each with its meaning."""
    from overfit_cli.core.parameters import named_among

    typed = _typed(context)
    known: Mapping[str, ParameterInfo] = parameters_of(typed.subject)
    given = {named_among(known, one) for one in typed.given}
    own = {option for one in context.command.params for option in one.opts}
    return [
        (name, info.meaning)
        for name, info in known.items()
        if name not in given and f"--{name.replace('_', '-')}" not in own
    ]
