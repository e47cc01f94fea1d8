"""The command `overfit train`: one cell that is seen learning."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from overfit_cli.cli.options import (
    DataFolder,
    DeviceName,
    Settings,
    SubjectAndParameters,
    read_words,
    texts_by_name,
    use_data,
)
from overfit_cli.core.console import console, next_lines
from overfit_cli.core.text import BadValue, UserError, duration
from overfit_cli.core.values import whole_number

if TYPE_CHECKING:
    from rich.console import Console

    from overfit_cli.core.cell import CellResult
    from overfit_cli.core.parameters import Value
    from overfit_cli.core.study import AnyStudy
    from overfit_cli.sweeps.grid import Grid
    from overfit_cli.sweeps.presets import Subject
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
    """Train one cell, show every step, and save its trajectory.

    The argument is a study or a preset (see `overfit list`), or a function: FILE.py, FILE.py:NAME
    or package.module:NAME. The default is benign-vit. Every parameter of the study is an option:
    --n 20 --snr 10.
    """
    from overfit_cli.core.files import RESULTS
    from overfit_cli.core.training import resolve_device
    from overfit_cli.sweeps.grid import check_seeds, make_grid
    from overfit_cli.sweeps.presets import find_subject
    from overfit_cli.sweeps.store import RunDirectory
    from overfit_cli.sweeps.worker import FAILURE_PREFIXES

    subject, given = read_words(context, words, settings)
    chosen = find_subject(subject)
    texts = texts_by_name(context, given, chosen.study)
    use_data(data)
    seeds = (whole_number("seed", seed, 0),)
    check_seeds(chosen.study, seeds, "seed")
    grid = make_grid(chosen.study, {**chosen.texts, **texts}, seeds)
    _check_one_cell(grid)
    output = console()
    directory = RunDirectory(out or RESULTS / _name(chosen, texts, grid), "out")
    watch = Watch(output, chosen.study)
    result = _train(grid, directory, resolve_device(device), watch)
    if result.reason and (result.reason.startswith(FAILURE_PREFIXES) or not result.measurements):
        raise UserError(f"The cell failed: {result.reason}.", exit_code=1)
    for line in chosen.study.summary(result).splitlines():
        output.print(line)
    following = _next_command(chosen.study, result, directory)
    output.print(" ".join([f"Took {duration(result.seconds)}.", *next_lines(following)]))
    return 1 if result.reason else 0


def _train(
    grid: Grid, directory: RunDirectory, device: Literal["cpu", "cuda"], watch: Watch
) -> CellResult:
    """Train the grid's only cell, and keep it."""
    from overfit_cli.core.files import error_text
    from overfit_cli.core.processes import answering_interrupts
    from overfit_cli.core.training import Execution, training_conditions
    from overfit_cli.sweeps.manifest import check_data, record_run
    from overfit_cli.sweeps.plan import make_plan
    from overfit_cli.sweeps.worker import storable, train_all

    study = grid.study
    cell = make_plan(grid, directory, device).cells[0]
    data_read = study.prepare([cell])
    check_data(directory.path, data_read)
    for sentence in directory.prepare():
        watch.output.print(sentence)
    execution = Execution(device=device, trajectories=True, on_step=watch.add)
    with answering_interrupts(), training_conditions():
        [result] = train_all(study, [cell], execution)
        result = storable(study, result)
    watch.finish()
    try:
        how: dict[str, str | int | float] = {"jobs": 1, "device": device}
        record_run(directory.path, grid, how, data_read)
        written = directory.write(study, [result])
        directory.finish(written, replaced=True)
    except OSError as error:
        raise UserError(
            f"{directory.path} can't be written to ({error_text(error)}).", exit_code=1
        ) from error
    return result


def _next_command(study: AnyStudy, result: CellResult, directory: RunDirectory) -> list[str]:
    """A command for what was trained: a figure of its steps, or a report; empty without either."""
    from overfit_cli.core.registry import figures_of

    source = ["--from", str(directory.path)]
    of_steps = [one.name for one in figures_of(study).values() if one.reads == "trajectories"]
    if result.trajectory and of_steps:
        return ["plot", of_steps[0], *source]
    return ["report", *source] if study.claims() else []


class Watch:
    """Prints logged steps as they come: all of the first ones, then ever fewer, and the last.

    Args:
        output: where to.
        study: whose progress columns are shown; of one that hasn't declared any, what it logs.
    """

    def __init__(self, output: Console, study: AnyStudy) -> None:
        self.output = output
        self._columns = study.progress_columns
        self._open = not study.trajectory_columns
        self._next = 0
        self._held: Mapping[str, float] | None = None
        self._headed = False

    def add(self, row: Mapping[str, float]) -> None:
        """Take in a logged step."""
        if self._open:
            self._add_columns(row)
        if not any(name in row for name in self._columns):
            return
        if row["step"] < self._next:
            self._held = row
            return
        if not self._headed:
            self._headed = True
            for line in _headings(self._columns):
                self.output.print(line)
        self._next = max(int(row["step"]) + 1, math.ceil(row["step"] * _THINNING))
        self._held = None
        numbers = [_number(row.get(name)).rjust(_WIDTH) for name in self._columns]
        self.output.print("  ".join([f"{int(row['step']):6d}", *numbers]))

    def _add_columns(self, row: Mapping[str, float]) -> None:
        """Show the columns that a row has for the first time, under headings of their own."""
        from overfit_cli.core.study import MOST_PROGRESS_COLUMNS

        known = dict.fromkeys([*self._columns, *(name for name in row if name != "step")])
        shown = tuple(known)[:MOST_PROGRESS_COLUMNS]
        if shown != self._columns:
            self._columns, self._headed, self._next = shown, False, 0

    def finish(self) -> None:
        """Print the last step, if it was passed over."""
        if self._held is not None:
            self._next = 0
            self.add(self._held)


_WIDTH = 12
_THINNING = 1.1


def _headings(columns: Sequence[str]) -> list[str]:
    """The columns' names over their numbers, a part of the name a line."""
    parts = [["step"], *(name.split("_") for name in columns)]
    height = max(len(name) for name in parts)
    stacked = [[""] * (height - len(name)) + name for name in parts]
    return [
        "  ".join([line[0].rjust(6), *(part.rjust(_WIDTH) for part in line[1:])])
        for line in zip(*stacked, strict=True)
    ]


def _number(value: float | None) -> str:
    """A logged number in a few digits; a dash where none was logged."""
    return "–" if value is None or math.isnan(value) else f"{value:.4g}"


def _name(chosen: Subject, given: Collection[str], grid: Grid) -> str:
    """What the training's directory is called: the study or preset, and what was given."""
    from overfit_cli.sweeps.presets import named_after

    if chosen.preset is not None and chosen.preset.content.directory and not given:
        return chosen.run_name
    [seed] = grid.seeds
    values: dict[str, Sequence[Value]] = {name: grid.values[name] for name in given}
    return named_after(chosen.name, values | ({"seed": (seed,)} if seed else {}))


def _check_one_cell(grid: Grid) -> None:
    for name, values in grid.axes.items():
        accepts = (
            f"a training takes one value of {name}, not {len(values)}; several are an axis of "
            "`overfit sweep`."
        )
        raise BadValue(name, None, accepts)
