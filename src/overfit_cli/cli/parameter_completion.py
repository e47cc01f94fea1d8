"""Completers of what `sweep` and `train` are about: studies and presets, then their parameters.

A parameter is offered by its name. One that is called by its symbol counts as given, and its values
are completed too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from overfit_cli.cli import lookup
from overfit_cli.cli.completion import Found, assignments, in_list, silently

if TYPE_CHECKING:
    from overfit_cli.parameters import ParameterInfo


@silently
def settings(context: typer.Context, incomplete: str) -> Found:
    """Complete `NAME=VALUE` by the parameters of the study: its few values, or its default."""
    known = lookup.parameters_of(_typed(context).subject)
    return assignments(incomplete, known, {one.name: _few(one) for one in known.values()})


def _few(info: ParameterInfo) -> Sequence[str]:
    """The few values of a parameter, or its default."""
    return lookup.choices(info) or ([] if info.default is None else [str(info.default)])


@silently
def subjects(context: typer.Context, incomplete: str) -> Found:
    """Complete what `sweep` and `train` are about, and then its parameters with their values.

    Typer hands over all words that are neither options of the command's own nor their values.
    """
    from overfit_cli.parameters import named_among
    from overfit_cli.registry import study_names
    from overfit_cli.sweeps.presets import preset_names

    typed = _typed(context)
    if typed.waiting:
        known = lookup.parameters_of(typed.subject)
        return in_list(incomplete, lookup.choices(known[named_among(known, typed.waiting)]))
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
    from overfit_cli.parameters import named_among

    typed = _typed(context)
    known: Mapping[str, ParameterInfo] = lookup.parameters_of(typed.subject)
    given = {named_among(known, one) for one in typed.given}
    own = {option for one in context.command.params for option in one.opts}
    return [
        (name, info.meaning)
        for name, info in known.items()
        if name not in given and f"--{name.replace('_', '-')}" not in own
    ]
