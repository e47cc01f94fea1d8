"""Completers: what a command line may go on with, for Typer's `autocompletion=`.

Typer keeps what begins as the word that is typed. Where nothing can be found there is nothing to
say: an error has no place in a shell's prompt.
"""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, ParamSpec, TypeVar

import typer

from overfit_cli.cli import lookup
from overfit_cli.cli.common import RESULTS

if TYPE_CHECKING:
    from overfit_cli.parameters import ParameterInfo

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
    from overfit_cli.registry import study_names

    return study_names()


@silently
def reproducible(incomplete: str) -> Found:
    """Complete papers, their figures, and presets."""
    from overfit_cli.sweeps.reproducible import everything

    every = everything()
    papers = {one.paper.key: one.paper.title for one in every if one.paper}
    titles = {one.address: one.preset.content.title for one in every}
    return [*papers.items(), *titles.items(), *(one.preset.name for one in every)]


@silently
def figures(context: typer.Context, incomplete: str) -> Found:
    """Complete figures: those of the study of the run that is named, else those of all studies."""
    from overfit_cli.registry import figures_of, installed_studies

    run = _named_run(context)
    of = [lookup.study_of_run(run)] if run else installed_studies()
    titles = {one.name: one.title for study in of for one in figures_of(study).values()}
    return list(titles.items())


@silently
def columns(context: typer.Context, incomplete: str) -> Found:
    """Complete the columns that a figure draws: measured ones, or logged ones."""
    from overfit_cli.registry import figures_of

    run = _run(context)
    study = lookup.study_of_run(run)
    figure = figures_of(study).get(context.params.get("figure") or "")
    return lookup.numbers_of(study, run, "cells" if figure is None else figure.reads)


@silently
def lists_of_columns(context: typer.Context, incomplete: str) -> Found:
    """Complete a list of columns with commas between, parameters among them."""
    run = _run(context)
    study = lookup.study_of_run(run)
    logged = context.params.get("trajectories")
    kind: Literal["cells", "trajectories"] = "trajectories" if logged else "cells"
    numbers = [name for name, _ in lookup.numbers_of(study, run, kind)]
    return in_list(incomplete, [*lookup.described(study), "seed", *numbers])


@silently
def axes(context: typer.Context, incomplete: str) -> Found:
    """Complete the parameters that vary in the run, or all of its study where none does."""
    run = _run(context)
    known = lookup.described(lookup.study_of_run(run))
    values = lookup.values_in(run)
    varying = [name for name in known if len(values.get(name, ())) > 1]
    return [(name, known[name].meaning) for name in varying or known]


@silently
def conditions(context: typer.Context, incomplete: str) -> Found:
    """Complete `NAME=VALUE` by the parameters of the run, and the values that it has."""
    run = _run(context)
    known = lookup.described(lookup.study_of_run(run))
    choices = {name: lookup.choices(info) for name, info in known.items()}
    return assignments(incomplete, known, {**choices, **lookup.values_in(run)})


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
    from overfit_cli.parameters import named_among

    name, equals, typed = incomplete.partition("=")
    behind = values.get(named_among(known, name), ())
    if equals:
        return [f"{name}={one}" for one in in_list(typed, behind)]
    meant = [one for one in values if one.startswith(name)] or ([name] if behind else [])
    of_one = values.get(named_among(known, meant[0]), ()) if len(meant) == 1 else ()
    return [*(f"{one}=" for one in meant), *(f"{meant[0]}={value}" for value in of_one)]
