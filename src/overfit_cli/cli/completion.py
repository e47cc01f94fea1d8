"""Completers of a command line, for the scripts that Typer gives to shells.

They read names and manifests: no torch, no pandas, and no code of the user's. Typer keeps the words
that begin as the one that is typed. Where a completer fails, nothing is offered and nothing said.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import typer

from overfit_cli.core.files import read_bounded, results_folder

if TYPE_CHECKING:
    from overfit_cli.core.parameters import ParameterInfo


MOST_BYTES = 1 << 24
"""The largest manifest that is read while a shell waits."""

Word = TypeVar("Word")
Words = Sequence[str | tuple[str, str]]
"""Words, or words each with the help that some shells show beside it."""
Typed = ParamSpec("Typed")


def silently(complete: Callable[Typed, Sequence[Word]]) -> Callable[Typed, Sequence[Word]]:
    """Have a completer offer nothing where it fails, and print nothing."""

    @functools.wraps(complete)
    def completer(*args: Typed.args, **named: Typed.kwargs) -> Sequence[Word]:
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            try:
                return complete(*args, **named)
            except (Exception, SystemExit):
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
    from overfit_cli.sweeps.presets import all_reproducibles

    presets = all_reproducibles()
    papers = {item.paper.key: item.paper.title for item in presets if item.paper}
    titles = {item.address: item.preset.content.title for item in presets}
    return [*papers.items(), *titles.items(), *(item.preset.name for item in presets)]


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

    titles = {
        name: figure.title
        for study in installed_studies()
        for name, figure in figures_of(study).items()
    }
    return list(titles.items())


@silently
def columns(context: typer.Context, incomplete: str) -> Words:
    """Complete the measured columns of a run; the logged ones where steps are drawn or written."""
    from overfit_cli.core.registry import figures_of, find_study

    study = find_study(_manifest(_run(context))["study"])
    figure = figures_of(study).get(str(context.params.get("figure")))
    if context.params.get("trajectories") or (figure and figure.reads == "trajectories"):
        return [(column.name, column.meaning) for column in study.trajectory_columns]
    measured = [(column.name, column.meaning) for column in study.columns]
    return [*measured, ("steps", study.step), ("seconds", "time")]


@silently
def axes(context: typer.Context, incomplete: str) -> Words:
    """Complete the parameters that vary in the run."""
    values = _values_in(_run(context))
    return [name for name, texts in values.items() if len(texts) > 1 and name != "seed"]


@silently
def conditions(context: typer.Context, incomplete: str) -> Words:
    """Complete `NAME=VALUE` by the values that the run has."""
    values = _values_in(_run(context))
    return [f"{name}={text}" for name, texts in values.items() for text in texts]


def _run(context: typer.Context) -> Path:
    for name in ("source", "run", "directory", "a"):
        named = context.params.get(name)
        if named:
            return Path(named[0] if isinstance(named, list | tuple) else named)
    return max(results_folder().glob("*/cells"), key=lambda folder: folder.stat().st_mtime).parent


def _manifest(run: Path) -> Any:
    return json.loads(read_bounded(run / "manifest.json", MOST_BYTES))


def _values_in(run: Path) -> Mapping[str, Sequence[str]]:
    """The values that a run has of each parameter and of `seed`, as texts."""
    texts = dict[str, dict[str, None]]()
    for part in _manifest(run)["runs"]:
        for name, values in {**part["values"], "seed": part["seeds"]}.items():
            written = (value if isinstance(value, str) else json.dumps(value) for value in values)
            texts.setdefault(name, {}).update(dict.fromkeys(written))
    return {name: list(values) for name, values in texts.items()}


@silently
def subjects(context: typer.Context, incomplete: str) -> Words:
    """Complete studies and presets; behind one, its parameters, and the few values of one."""
    from overfit_cli.core.registry import study_names
    from overfit_cli.sweeps.presets import preset_names

    words = context.params.get("words") or []
    if words and words[-1].startswith("--"):
        return _choices(_parameters(context)[words[-1][2:].replace("-", "_")])
    if words:
        return parameter_options(context, "--")
    return [*study_names(), *preset_names()]


@silently
def settings(context: typer.Context, incomplete: str) -> Words:
    """Complete `NAME=VALUE` by the parameters of the study: their few values, or the default."""
    parameters = _parameters(context).items()
    values = {name: _choices(info) or [str(info.default)] for name, info in parameters}
    return [f"{name}={value}" for name in values for value in values[name]]


@silently
def parameter_options(context: typer.Context, incomplete: str) -> Sequence[tuple[str, str]]:
    """Complete the parameters of the study that `sweep` or `train` runs: `--learning_rate`."""
    if "words" not in context.params:
        return []
    dash = "-" if "-" in incomplete[2:] else "_"
    parameters = _parameters(context).items()
    options = {f"--{name.replace('_', dash)}": info.meaning for name, info in parameters}
    taken = {option for parameter in context.command.params for option in parameter.opts}
    taken |= {*(context.params["words"] or [])}
    return [
        (option, meaning)
        for option, meaning in options.items()
        if option.startswith(incomplete) and not {option, option.replace("_", "-")} & taken
    ]


def _parameters(context: typer.Context) -> Mapping[str, ParameterInfo]:
    from overfit_cli.core.parameters import describe
    from overfit_cli.core.registry import find_study, study_names
    from overfit_cli.sweeps.presets import find_preset
    from overfit_cli.sweeps.subject import DEFAULT_STUDY

    subject, words = DEFAULT_STUDY, iter(context.params.get("words") or [])
    for word in words:
        if not word.startswith("--"):
            subject = word
            break
        if "=" not in word:
            next(words, None)
    preset = None if subject in study_names() else find_preset(subject)
    return describe(find_study(preset.content.study if preset else subject).parameters)


def _choices(info: ParameterInfo) -> Sequence[str]:
    return ["true", "false"] if info.kind == "bool" else info.choices
