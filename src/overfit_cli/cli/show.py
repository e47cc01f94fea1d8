"""The command `overfit show`: what a run directory holds, and which of its cells failed."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from overfit_cli.cli import completion
from overfit_cli.cli.deciding import continuing_command
from overfit_cli.cli.report import counts_in_words
from overfit_cli.cli.runs import axes_in_words, state_in_words, values_in_words
from overfit_cli.core.console import console, print_folded
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.text import list_numbers, plural

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from overfit_cli.core.failures import Alike
    from overfit_cli.core.study import AnyStudy, FigureData
    from overfit_cli.sweeps.inventory import RunSummary


def show(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="Run directory.", autocompletion=completion.run_directories
        ),
    ],
    failed: Annotated[
        bool,
        typer.Option(
            "--failed",
            help="Show the failed cells by reason, with commands that repeat them.",
        ),
    ] = False,
) -> int:
    """Describe a run directory: its cells, settings, commands, figures, verdicts, next steps.

    With --failed, describe its failed cells: how many of each kind, at which settings, and the
    command that trains one of them again.
    """
    from overfit_cli.core.values import usable_path
    from overfit_cli.sweeps.inventory import summary
    from overfit_cli.sweeps.load import load_figure_data
    from overfit_cli.sweeps.store import RunDirectory

    path = usable_path("directory", directory)
    run, described = RunDirectory(path), summary(path)
    if described is None:
        raise run.error(run.why_empty())
    output = console()
    print_folded(output, f"{path}: {state_in_words(described)}")
    try:
        data = load_figure_data(run)
    except UserError as error:  # no cells yet, or of a study that can't read them
        reason = error.accepts if isinstance(error, BadValue) else str(error)
        planned = f"Planned: {axes_in_words(described)}." if described.runs else ""
        said = [reason[:1].upper() + reason[1:], planned, *_next_commands(described)]
        _print_lines(output, filter(None, said))
        return 0
    _print_lines(output, (_failed_lines if failed else _lines)(described, data))
    return 0


def _print_lines(output: Console, lines: Iterator[str] | filter[str]) -> None:
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        print_folded(output, line.lstrip(), indent, f"{indent}  ")


def _lines(described: RunSummary, data: FigureData) -> Iterator[str]:
    from overfit_cli.report.run_facts import run_facts

    paper = data.study.paper
    if data.study.title:
        yield f"Study: {data.study.title.removesuffix('.')}."
    if paper:
        yield f"Paper: {paper}: {paper.title}, {paper.url}"
    facts = run_facts(data, described.manifest)
    yield facts.cells
    yield facts.settings
    if facts.failures:
        yield facts.failures
    if facts.provenance:
        yield f"Made: {facts.provenance}"
    for command in facts.commands:
        yield f"Command: {command}"
    folder = described.path / "figures"
    pictures = sorted(path.name for path in folder.glob("*") if path.suffix in PICTURES)
    if pictures:
        yield f"Figures in {folder}: {', '.join(pictures)}."
    yield from _verdicts(described, data.study)
    figure = _figure(described, data)
    judging = _judging_command(described, data.study)
    drawing = ["plot", figure, "--from", str(described.path)] if figure else []
    yield from _next_commands(described, drawing, judging)


PICTURES = (".png", ".pdf", ".svg")


def _verdicts(described: RunSummary, study: AnyStudy) -> Iterator[str]:
    """The verdicts that the report in `results/` has of the run; else the names of its claims."""
    from overfit_cli.core.files import results_folder
    from overfit_cli.core.registry import claims_of
    from overfit_cli.report.expected import kept_verdicts
    from overfit_cli.sweeps.presets import presets_run_into

    here, folder = described.path.resolve(), results_folder() / "report"
    kept = [
        claim
        for claim in kept_verdicts(folder)
        if claim.study == study.name and claim.directory and claim.directory.resolve() == here
    ]
    if kept:
        counts = counts_in_words((claim.kind, claim.verdict) for claim in kept)
        yield f"Claims judged on it in {folder}: {counts}"
        others = [f"{claim.claim} {claim.verdict}" for claim in kept if claim.verdict != "holds"]
        if others:
            yield f"Claims that do not hold: {', '.join(others)}."
        return
    presets = {preset.name for preset in presets_run_into(here.name)}
    is_own = study.identity.function is not None
    names = [each.name for each in claims_of(study) if is_own or each.preset in presets]
    names += described.manifest.sentences if described.manifest else ()
    if names:
        yield f"Claims, not judged in {folder}: {', '.join(names)}."


def _figure(described: RunSummary, data: FigureData) -> str:
    """The first figure of the run's preset, or one with as many axes; empty without any."""
    from overfit_cli.core.registry import figures_of
    from overfit_cli.figures.labels import varying_parameters
    from overfit_cli.sweeps.presets import presets_run_into

    presets = presets_run_into(described.path.resolve().name)
    wanted = [name for preset in presets for name in preset.content.figures]
    count, known = len(varying_parameters(data)), figures_of(data.study)
    others = [name for name, figure in known.items() if figure.axes == count > 0]
    return next((name for name in (*wanted, *others) if name in known), "")


def _judging_command(described: RunSummary, study: AnyStudy) -> list[str]:
    """The words of the command that judges the run; none where its study has no claims."""
    from overfit_cli.core.registry import claims_of

    stated = described.manifest is not None and described.manifest.sentences
    if not described.done or not (claims_of(study) or stated):
        return []
    if study.identity.function is not None:
        return ["judge", str(described.path)]
    return ["report", str(described.path)]


def _next_commands(described: RunSummary, *others: list[str]) -> Iterator[str]:
    """Lines that propose what to type next: what is missing, what failed, and other commands."""
    missing = described.missing
    commands = [continuing_command(described.path, described.manifest)] if missing else []
    commands += [["show", str(described.path), "--failed"]] if described.failed else []
    for words in filter(None, [*commands, *others]):
        yield f"Next: {shlex.join(['overfit', *words])}"


# Failures


def _failed_lines(described: RunSummary, data: FigureData) -> Iterator[str]:
    from overfit_cli.core.failures import kind_of
    from overfit_cli.report.run_facts import kinds_of_failures

    cells = data.cells[data.cells["status"] == "failed"]
    kinds = kinds_of_failures(cells)
    if not kinds:
        yield "No cell failed."
        return
    for kind in kinds:
        shared = kind_of(kind.example)
        alike = cells[[kind_of(reason) == shared for reason in cells["reason"].astype(str)]]
        yield from _kind_lines(kind, alike, described, data)
    again = continuing_command(described.path, described.manifest, "--retry-failed")
    if again[:1] == ["sweep"]:
        yield f"Next: {shlex.join(['overfit', *again])}"


def _kind_lines(
    kind: Alike, cells: pd.DataFrame, described: RunSummary, data: FigureData
) -> Iterator[str]:
    from overfit_cli.figures.labels import varying_parameters

    reason = kind.words if kind.varied or kind.traceback else kind.example
    yield f"{plural(kind.count, 'cell')}: {reason}"
    names = varying_parameters(data)
    texts = [f"{name} = {values_in_words(sorted(cells[name].unique().tolist()))}" for name in names]
    numbers = sorted(cells["seed"].unique().tolist())
    seeds = f"{'seeds' if len(numbers) > 1 else 'seed'} {list_numbers(numbers)}"
    if names:
        seeds = f"{plural(len(cells[names].drop_duplicates()), 'setting')}, {seeds}"
    yield f"  {'; '.join([seeds, *texts])}"
    for line in kind.traceback.splitlines():
        yield f"  {line}"
    example = cells.iloc[0].to_dict()
    command = _command_of_cell(example, data.study, described)
    yield f"  Repeat one: {shlex.join(['overfit', *command])}"


def _command_of_cell(cell: Mapping[Any, Any], study: AnyStudy, described: RunSummary) -> list[str]:
    import pandas as pd

    from overfit_cli.core.parameters import describe

    record = None if described.manifest is None else described.manifest.function
    here = f"{Path.cwd()}{os.sep}"
    words = ["train", study.name if record is None else record.reference.removeprefix(here)]
    present = {name: value for name, value in cell.items() if not pd.isna(value)}
    for name, info in describe(study.parameters).items():
        value = present.get(name, info.default)
        if value != info.default:
            words += ["--set", f"{name}={value}"]
    return [*words, "--seed", str(cell["seed"])]
