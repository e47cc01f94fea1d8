"""Completers of a command line, for the scripts that Typer gives to shells.

They read names: no torch, no pandas, and no code of the user's. Typer keeps the words
that begin as the one that is typed. Where a completer fails, nothing is offered and nothing said.
"""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import typer

from overfit_cli.core.files import results_folder

Words = Sequence[Any]
"""Words, or words each with the help that some shells show beside it."""


def silently(complete: Callable[..., Words]) -> Callable[..., Words]:
    """Have a completer offer nothing where it fails, and print nothing."""

    @functools.wraps(complete)
    def completer(*args: Any, **named: Any) -> Words:
        hidden, failing = io.StringIO(), contextlib.suppress(Exception, SystemExit)
        with contextlib.redirect_stdout(hidden), contextlib.redirect_stderr(hidden), failing:
            return complete(*args, **named)
        return []

    return completer


@silently
def studies(incomplete: str) -> Words:
    """Complete the names of studies."""
    from overfit_cli.core.registry import study_names

    return study_names()


@silently
def listed(incomplete: str) -> Words:
    """Complete the kinds of what `list` lists, and the names of studies."""
    from overfit_cli.core.registry import study_names

    return ["studies", "presets", "figures", "claims", *study_names()]


@silently
def reproducible(incomplete: str) -> Words:
    """Complete papers, their figures, and presets."""
    from overfit_cli.core.registry import find_study
    from overfit_cli.sweeps import presets

    every = presets.reproducible()
    studies = [find_study(preset.study) for preset in every]
    papers = {study.paper.key: study.paper.title for study in studies if study.paper}
    titles = {preset.address: preset.title for preset in every}
    return [*papers.items(), *titles.items(), *(preset.name for preset in every)]


@silently
def run_directories(incomplete: str) -> Words:
    """Complete run directories: those in the folder that is typed, else in `results/` and here."""
    typed = incomplete[: incomplete.rfind("/") + 1]
    return [
        f"{folder}{cells.parent.name}"
        for folder in ([typed] if typed else [f"{results_folder()}/", ""])
        for cells in sorted(Path(folder).glob("*/cells"))
    ]


@silently
def figures(context: typer.Context, incomplete: str) -> Words:
    """Complete the figures of all studies."""
    from overfit_cli.core.registry import figures_of, installed_studies

    figures = (figures_of(study).values() for study in installed_studies())
    return list({figure.name: figure.title for of in figures for figure in of}.items())


@silently
def subjects(context: typer.Context, incomplete: str) -> Words:
    """Complete studies and presets."""
    from overfit_cli.core.registry import study_names
    from overfit_cli.sweeps.presets import preset_names

    return [] if context.params.get("words") else [*study_names(), *preset_names()]


@silently
def parameters(context: typer.Context, incomplete: str) -> Words:
    """Return the options that are parameters of the study that `sweep` or `train` runs."""
    from overfit_cli.core.parameters import describe
    from overfit_cli.core.registry import default_study, find_study, study_names
    from overfit_cli.sweeps.presets import find_preset

    if "words" not in context.params:
        return []
    subject = (context.params["words"] or ["--"])[0]
    subject = default_study() if subject.startswith("--") else subject
    preset = None if subject in study_names() else find_preset(subject)
    study = find_study(preset.study if preset else subject)
    options = {f"--{name}": info.meaning for name, info in describe(study.parameters).items()}
    declared = {option for parameter in context.command.params for option in parameter.opts}
    return [
        SimpleNamespace(value=option, help=meaning)
        for option, meaning in options.items()
        if option.startswith(incomplete) and option not in declared
    ]
