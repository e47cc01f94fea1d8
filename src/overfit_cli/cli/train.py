"""The command `overfit train`: one cell that is seen learning."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
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
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.text import duration
from overfit_cli.core.values import whole_number

if TYPE_CHECKING:
    from rich.console import Console

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
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Open Python's debugger at the line where the cell fails."),
    ] = False,
) -> int:
    """Train one cell, show some of its steps, and save all of them.

    The argument is a study or a preset (see `overfit list`), or a function: FILE.py, FILE.py:NAME
    or package.module:NAME. The default is benign-vit. Every parameter of the study is an option:
    --n 20 --snr 10.
    """
    from overfit_cli.core.training import resolve_device
    from overfit_cli.sweeps.grid import make_grid
    from overfit_cli.sweeps.single_cell import train_cell
    from overfit_cli.sweeps.subject import find_subject, take_data_folder
    from overfit_cli.sweeps.worker import FAILURE_PREFIXES

    post_mortem = _debugger() if debug else None
    named, given = read_words(context, words, settings)
    subject = find_subject(named)
    texts = texts_by_name(context, given, subject.study)
    take_data_folder(subject.study, data)
    seeds = (whole_number("seed", seed, 0),)
    grid = make_grid(subject.study, {**subject.texts, **texts}, seeds)
    output = console()
    result, directory, error = train_cell(subject, grid, texts, out, resolve_device(device), output)
    if post_mortem is not None:
        _debug(post_mortem, subject.study, result, error, output)
    if result.reason and (result.reason.startswith(FAILURE_PREFIXES) or not result.measurements):
        hint = " --debug opens a debugger there." if error is not None and not debug else ""
        raise UserError(f"The cell failed: {result.reason}.{hint}", exit_code=1)
    for line in subject.study.summary(result).splitlines():
        output.print(line)
    following = _next_command(subject.study, result, directory)
    output.print(" ".join([f"Took {duration(result.seconds)}.", *proposed_command(following)]))
    return 1 if result.reason else 0


def _debugger() -> Callable[[TracebackType], object]:
    """Return `pdb.post_mortem`, or that of the debugger that PYTHONBREAKPOINT names."""
    if not sys.stdin.isatty():
        accepts = "it needs a terminal, and standard input is not a terminal."
        raise BadValue("debug", True, accepts)
    chosen = os.environ.get("PYTHONBREAKPOINT", "")  # such as ipdb.set_trace
    module = chosen.rpartition(".")[0] or "pdb"
    try:
        post_mortem: Callable[[TracebackType], object]
        post_mortem = importlib.import_module(module).post_mortem
    except (ImportError, AttributeError):
        accepts = f"{module} has no post_mortem that can be imported; unset it for Python's pdb."
        raise UserError(f"PYTHONBREAKPOINT={chosen}: {accepts}") from None
    return post_mortem


def _debug(
    post_mortem: Callable[[TracebackType], object],
    study: AnyStudy,
    result: CellResult,
    error: BaseException | None,
    output: Console,
) -> None:
    """Open a debugger at the user's line where a cell failed; say why where there is none."""
    from overfit_cli.core.failures import user_traceback

    lines = None if error is None else user_traceback(error)
    if lines is None and error is not None and study.identity.function is None:
        lines = error.__traceback__  # a study that is installed: nothing there is the user's
    if lines is None:
        raised = "it raised nothing" if error is None else "no line of yours raised it"
        why = f"the cell failed, but {raised}" if result.reason else "the cell did not fail"
        output.print(f"There is nothing to debug: {why}.")
        return
    values = {**result.cell.parameters.model_dump(), "seed": result.cell.seed}
    cell = ", ".join(f"{name}={value!r}" for name, value in values.items())
    output.print(f"The cell: {cell}. `up` goes to the calling line, and `q` quits.")
    post_mortem(lines)


def _next_command(study: AnyStudy, result: CellResult, directory: RunDirectory) -> list[str]:
    """A command for what was trained: a figure of its steps, or a report; empty without either."""
    from overfit_cli.core.registry import figures_of

    source = ["--from", str(directory.path)]
    of_steps = [
        figure.name for figure in figures_of(study).values() if figure.reads == "trajectories"
    ]
    if result.trajectory and of_steps:
        return ["plot", of_steps[0], *source]
    return ["report", str(directory.path)] if study.claims() else []
