"""The command `overfit train`: one cell that is seen learning."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from overfit_cli.cli.options import (
    DataFolder,
    DeviceName,
    Settings,
    SubjectAndParameters,
    read_words,
    texts_by_name,
)
from overfit_cli.core.console import console, proposed_command
from overfit_cli.core.errors import UserError
from overfit_cli.core.text import duration, visible
from overfit_cli.core.values import whole_number

if TYPE_CHECKING:
    from overfit_cli.core.cell import CellResult
    from overfit_cli.core.study import AnyStudy
    from overfit_cli.sweeps.store import RunDirectory


def train(
    context: typer.Context,
    words: SubjectAndParameters = None,
    settings: Settings = None,
    seed: Annotated[int, typer.Option(metavar="SEED", help="The cell's seed.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Run directory.  [default: results/NAME-SETTINGS]"),
    ] = None,
    data: DataFolder = None,
    device: DeviceName = "auto",
) -> int:
    """Train one cell, show some of its steps, and save all of them.

    The argument is a study or a preset (see `overfit list`), or a function: FILE.py, FILE.py:NAME
    or package.module:NAME. The default is benign-vit. Every parameter of the study is an option:
    --n 20 --snr 10.

    `python -m pdb -m overfit_cli train ...` opens Python's debugger where a function raises.
    """
    from overfit_cli.core.failures import traceback_lines
    from overfit_cli.core.training import resolve_device
    from overfit_cli.sweeps.grid import make_grid
    from overfit_cli.sweeps.single_cell import train_cell
    from overfit_cli.sweeps.subject import find_subject, take_data_folder
    from overfit_cli.sweeps.worker import FAILURE_PREFIXES

    named, given = read_words(context, words, settings)
    subject = find_subject(named)
    texts = texts_by_name(context, given, subject.study)
    take_data_folder(subject.study, data)
    seeds = (whole_number("seed", seed, 0),)
    grid = make_grid(subject.study, {**subject.texts, **texts}, seeds)
    output = console()
    result, directory, error = train_cell(subject, grid, texts, out, resolve_device(device), output)
    for line in traceback_lines(error) if error is not None else ():
        output.print(line, soft_wrap=True)  # a marker stands below what it marks
    failed = f"The cell failed: {result.reason}."
    if isinstance(error, Exception):
        # It passes as it is, so that Python's debugger opens where it was raised.
        sys.excepthook = lambda *_: typer.echo(visible(f"overfit: {failed}"), err=True)
        raise error
    if result.reason and (result.reason.startswith(FAILURE_PREFIXES) or not result.measurements):
        raise UserError(failed, exit_code=1)
    for line in subject.study.summary(result).splitlines():
        output.print(line)
    following = _next_command(subject.study, result, directory)
    output.print(" ".join([f"Took {duration(result.seconds)}.", *proposed_command(following)]))
    return 1 if result.reason else 0


def _next_command(study: AnyStudy, result: CellResult, directory: RunDirectory) -> list[str]:
    from overfit_cli.core.registry import figures_of

    source = ["--from", str(directory.path)]
    of_steps = [
        figure.name for figure in figures_of(study).values() if figure.reads == "trajectories"
    ]
    if result.trajectory and of_steps:
        return ["plot", of_steps[0], *source]
    return ["report", str(directory.path)] if study.claims() else []
