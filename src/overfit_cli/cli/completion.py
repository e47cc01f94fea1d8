"""Completers: what a command line may go on with, for Typer's `autocompletion=`.

Typer keeps what begins as the word that is typed. Where nothing can be found there is nothing to
say: an error has no place in a shell's prompt.
"""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, ParamSpec, TypeVar

import typer

from overfit_cli.cli import lookup
from overfit_cli.cli.common import RESULTS

Found = Sequence[str | tuple[str, str]]
"""Words, or words each with what some shells show beside it."""

Given = ParamSpec("Given")
One = TypeVar("One")


def _silently(find: Callable[Given, Sequence[One]]) -> Callable[Given, Sequence[One]]:
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


@_silently
def run_directories(incomplete: str) -> Found:
    """Complete run directories: those in the folder that is typed, else in `results/` and here."""
    typed = incomplete[: incomplete.rfind("/") + 1]
    folders = [typed] if typed else [f"{RESULTS}/", ""]
    return [
        f"{folder}{cells.parent.name}"
        for folder in folders
        for cells in sorted(Path(folder).glob("*/cells"))
    ]


@_silently
def studies(incomplete: str) -> Found:
    """Complete the names of studies."""
    from overfit_cli.registry import study_names

    return study_names()


@_silently
def reproducible(incomplete: str) -> Found:
    """Complete papers, their figures, and presets."""
    from overfit_cli.sweeps.reproducible import everything

    every = everything()
    papers = {one.paper.key: one.paper.title for one in every if one.paper}
    titles = {one.address: one.preset.content.title for one in every}
    return [*papers.items(), *titles.items(), *(one.preset.name for one in every)]


@_silently
def figures(context: typer.Context, incomplete: str) -> Found:
    """Complete figures: those of the study of the run that is named, else those of all studies."""
    from overfit_cli.registry import figures_of, installed_studies

    run = _named_run(context)
    of = [lookup.study_of_run(run)] if run else installed_studies()
    titles = {one.name: one.title for study in of for one in figures_of(study).values()}
    return list(titles.items())


@_silently
def columns(context: typer.Context, incomplete: str) -> Found:
    """Complete the columns that a figure draws: measured ones, or logged ones."""
    from overfit_cli.registry import figures_of

    run = _run(context)
    study = lookup.study_of_run(run)
    figure = figures_of(study).get(context.params.get("figure") or "")
    return lookup.numbers_of(study, run, "cells" if figure is None else figure.reads)


@_silently
def lists_of_columns(context: typer.Context, incomplete: str) -> Found:
    """Complete a list of columns with commas between, parameters among them."""
    run = _run(context)
    study = lookup.study_of_run(run)
    logged = context.params.get("trajectories")
    kind: Literal["cells", "trajectories"] = "trajectories" if logged else "cells"
    numbers = [name for name, _ in lookup.numbers_of(study, run, kind)]
    return _in_list(incomplete, [*lookup.described(study), "seed", *numbers])


@_silently
def axes(context: typer.Context, incomplete: str) -> Found:
    """Complete the parameters that vary in the run, or all of its study where none does."""
    run = _run(context)
    known = lookup.described(lookup.study_of_run(run))
    values = lookup.values_in(run)
    varying = [name for name in known if len(values.get(name, ())) > 1]
    return [(name, known[name].meaning) for name in varying or known]


@_silently
def conditions(context: typer.Context, incomplete: str) -> Found:
    """Complete `NAME=VALUE` by the parameters of the run, and the values that it has."""
    run = _run(context)
    known = lookup.described(lookup.study_of_run(run))
    choices = {name: lookup.choices(info) for name, info in known.items()}
    return _assignments(incomplete, {**choices, **lookup.values_in(run)})


@_silently
def settings(context: typer.Context, incomplete: str) -> Found:
    """Complete `NAME=VALUE` by the parameters of the study: its few values, or its default."""
    known = lookup.parameters_of(_typed(context).subject).values()
    defaults = {one.name: [] if one.default is None else [str(one.default)] for one in known}
    return _assignments(
        incomplete, {one.name: lookup.choices(one) or defaults[one.name] for one in known}
    )


@_silently
def subjects(context: typer.Context, incomplete: str) -> Found:
    """Complete what `sweep` and `train` are about, and then its parameters with their values.

    Typer hands over all words that are neither options of the command's own nor their values.
    """
    from overfit_cli.registry import study_names
    from overfit_cli.sweeps.presets import preset_names

    typed = _typed(context)
    if typed.waiting:
        info = lookup.parameters_of(typed.subject)[typed.waiting]
        return _in_list(incomplete, lookup.choices(info))
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
        given: the parameters that have a value already.
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


@_silently
def _free_parameters(context: typer.Context) -> Sequence[tuple[str, str]]:
    """The parameters that can still be given as options, each with its meaning."""
    typed = _typed(context)
    own = {option for one in context.command.params for option in one.opts}
    return [
        (name, info.meaning)
        for name, info in lookup.parameters_of(typed.subject).items()
        if name not in typed.given and f"--{name.replace('_', '-')}" not in own
    ]


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
    return _named_run(context) or lookup.newest_run()


def _in_list(incomplete: str, words: Iterable[str]) -> list[str]:
    """Words behind those of a list `A,B,` that are typed, without those."""
    typed = incomplete[: incomplete.rfind(",") + 1]
    return [f"{typed}{word}" for word in words if word not in typed.split(",")]


def _assignments(incomplete: str, values: Mapping[str, Sequence[str]]) -> list[str]:
    """Names with `=` behind them; of the one that is meant, its values too."""
    name, equals, typed = incomplete.partition("=")
    if equals:
        return [f"{name}={one}" for one in _in_list(typed, values.get(name, ()))]
    meant = [one for one in values if one.startswith(name)]
    of_one = [f"{meant[0]}={one}" for one in values[meant[0]]] if len(meant) == 1 else []
    return [*(f"{one}=" for one in meant), *of_one]
