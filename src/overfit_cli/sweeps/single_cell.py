"""Training of one cell that is seen learning: its steps printed, its row and trajectory kept."""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

from rich.console import Console

from overfit_cli.core.cell import CellResult
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.files import error_text, results_folder
from overfit_cli.core.parameters import Value
from overfit_cli.core.processes import answering_interrupts
from overfit_cli.core.study import MOST_PROGRESS_COLUMNS, AnyStudy
from overfit_cli.core.training import Execution, training_conditions
from overfit_cli.sweeps.grid import Grid, check_seeds
from overfit_cli.sweeps.manifest import check_data, record_run
from overfit_cli.sweeps.plan import make_plan
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.subject import Subject, named_after
from overfit_cli.sweeps.worker import storable, train_all


def train_cell(
    subject: Subject,
    grid: Grid,
    settings: Collection[str],
    out: Path | None,
    device: Literal["cpu", "cuda"],
    output: Console,
) -> tuple[CellResult, RunDirectory, BaseException | None]:
    """Train the only cell of a grid, print its steps, and keep it.

    Args:
        out: the run directory; None for one in `results/` with a name of its own.

    Returns:
        The result, failed or not, its run directory, and the exception that it failed with.
    """
    check_seeds(grid.study, grid.seeds, "seed")
    for name, values in grid.axes.items():
        accepts = f"a training takes one value of {name}, not {len(values)}; a sweep takes several."
        raise BadValue(name, None, accepts)
    directory = RunDirectory(out or results_folder() / _name(subject, settings, grid), "out")
    study = grid.study
    cell = make_plan(grid, directory, device).cells[0]
    data_read = study.prepare([cell])
    check_data(directory.path, data_read)
    for sentence in directory.prepare():
        output.print(sentence)
    watch, errors = Watch(output, study), list[BaseException]()
    execution = Execution(
        device=device,
        trajectories=True,
        on_step=watch.add,
        on_error=errors.append,
        on_task=watch.wait_for,
    )
    with watch, answering_interrupts(), training_conditions():
        [result] = train_all(study, [cell], execution)
        result = storable(study, result)
    error = errors[0] if errors else None
    try:
        record_run(directory.path, grid, {"jobs": 1, "device": device}, data_read)
        directory.finish(directory.write(study, [result]), replaced=True)
    except OSError as refused:
        sentence = f"{directory.path} can't be written to ({error_text(refused)})."
        raise UserError(sentence, exit_code=1) from refused
    return result, directory, error


def _name(subject: Subject, settings: Collection[str], grid: Grid) -> str:
    if subject.preset is not None and subject.preset.content.directory and not settings:
        return subject.run_name
    [seed] = grid.seeds
    values: dict[str, Sequence[Value]] = {name: grid.values[name] for name in settings}
    return named_after(subject.name, values | ({"seed": (seed,)} if seed else {}))


PATIENCE = 3.0
"""Seconds without a step after which it is said what is done."""


class Watch:
    """Printer of logged steps: all of the first ones, then ever fewer, and the last.

    It is a context, in which the training runs.

    Args:
        study: has the columns to show; for a study that declares none, those that it logs.
    """

    def __init__(self, output: Console, study: AnyStudy) -> None:
        self.output = output
        self._columns = study.progress_columns
        self._open = not study.trajectory_columns
        self._next = 0
        self._held: Mapping[str, float] | None = None
        self._headed = False
        self._timer = threading.Timer(0, lambda: None)

    def __enter__(self) -> Self:
        self.wait_for("Training, without a step so far")
        return self

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
        self.finish()

    def wait_for(self, task: str) -> None:
        """Print what is done, if no step and no other task comes for a while."""
        self._timer.cancel()
        self._timer = threading.Timer(PATIENCE, lambda: self.output.print(f"{task} ..."))
        self._timer.daemon = True
        self._timer.start()

    def add(self, row: Mapping[str, float]) -> None:
        """Take in a logged step."""
        self._timer.cancel()
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
        names = dict.fromkeys([*self._columns, *(name for name in row if name != "step")])
        shown = tuple(names)[:MOST_PROGRESS_COLUMNS]
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
    parts = [["step"], *(name.split("_") for name in columns)]
    height = max(len(name) for name in parts)
    stacked = [[""] * (height - len(name)) + name for name in parts]
    return [
        "  ".join([line[0].rjust(6), *(part.rjust(_WIDTH) for part in line[1:])])
        for line in zip(*stacked, strict=True)
    ]


def _number(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.4g}"
