"""The run of a sweep or a training: plan, data, manifest, rounds, and the loop over its tasks.

The sentences are in `said`.
"""

from __future__ import annotations

import contextlib
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import pandas as pd
from rich.console import Console

from overfit_cli.claims.designs import read_stated
from overfit_cli.core.cell import NAME_TAKEN, Cell, CellResult
from overfit_cli.core.errors import (
    BadValue,
    DeviceChoice,
    MissingError,
    UserError,
    finite_number,
    valid_choice,
    whole_number,
)
from overfit_cli.core.failures import count_alike, is_exception, kind_of
from overfit_cli.core.files import error_text, results_folder
from overfit_cli.core.options import DEFAULTS, SweepOptions
from overfit_cli.core.processes import answering_interrupts, delaying_interrupts
from overfit_cli.core.registry import blaming
from overfit_cli.core.training import Execution, resolve_device, training_conditions
from overfit_cli.sweeps import said
from overfit_cli.sweeps.clusters import executor_of
from overfit_cli.sweeps.executors import Executor
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.part import cell_schema
from overfit_cli.sweeps.plan import (
    MOST_BATCHES,
    Plan,
    Shard,
    Speed,
    coarse_to_fine,
    cost_of,
    estimate,
    make_plan,
    task_size,
)
from overfit_cli.sweeps.presets import Subject
from overfit_cli.sweeps.progress import Progress, Watch
from overfit_cli.sweeps.refine import Refinement
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import KEPT, Summary, Task, TaskRecord, Work, record_of

LONGEST_DRY_RUN = 8.0
"""The seconds after which the batch that a dry run times is cut."""


def grid_of(
    subject: Subject,
    given: Mapping[str, Any] = MappingProxyType({}),
    how: SweepOptions = DEFAULTS,
) -> Grid:
    """Return the grid of a sweep, with what the user gives before what a preset sets."""
    own = subject.profile
    seeds = str(own.seeds) if how.seeds is None else how.seeds
    together, only = (*own.together, *how.together), (*own.only, *how.only)
    try:
        grid = Grid.read(subject.study, {**own.texts, **given}, seeds, together, only)
    except BadValue as error:
        if error.name == "together" and error.value in own.together:
            raise UserError(f"{subject.typed} ties {error.value}: {error.accepts}") from error
        raise
    grid.check_seeds("seeds")
    return grid


@dataclass(frozen=True)
class Session:
    """A subject's grid, a directory and an executor, and the options with which it is run.

    Attributes:
        stated: the claims that the user states with the sweep, by name.
        command: what runs the same cells again; None for what was typed.
        spell: writes the name of an argument as the reader of the sentences gives it.
    """

    subject: Subject
    grid: Grid
    output: Console
    directory: RunDirectory
    executor: Executor
    options: SweepOptions = DEFAULTS
    shard: Shard | None = None
    refinement: Refinement | None = None
    stated: Mapping[str, str] = field(default_factory=dict)
    command: Sequence[str] | None = None
    spell: Callable[[str], str] = str

    def say(self, *sentences: str) -> None:
        """Print sentences, a line each; an empty one is none."""
        for sentence in filter(None, sentences):
            self.output.print(sentence)

    @property
    def sentences(self) -> Mapping[str, str]:
        """The claims that the preset and the user state, by name."""
        return {**self.subject.sentences, **self.stated}

    @property
    def execution(self) -> Execution:
        """The settings with which cells are trained."""
        how, logs = self.options, self.options.trajectories or self.subject.trajectories
        return Execution(
            self.executor.device, logs, fail_fast=how.fail_fast, time_limit=how.time_limit
        )

    def run(self) -> Summary:
        """Run what the grid lacks, or in rounds the cells that its refinement chooses."""
        total, refined = Summary(), self.refinement
        for number, cells in enumerate([None] if refined is None else refined.rounds_of_cells()):
            plan = self.plan(cells)
            read = self.prepare(plan)
            if refined is None:
                self.describe(plan)
            else:
                self.say(*said.round_begins(plan, number, self.spell))
            if not total.ended:
                self.record(plan, read)
            self.train(plan, read, total)
            if refined is not None:
                refined.learn(self.directory)
            if total.stopped or (self.options.fail_fast and total.failed):
                break
        self.say(said.done(total, self.directory, self.spell), *said.failures(total, self.spell))
        self.say(*(() if refined is None else said.boundary(refined)))
        return total

    def outline(self) -> Plan:
        """Say what would run, and how long that would take; nothing is run.

        Returns:
            The plan; with a refinement, that of the coarse grid.
        """
        plan = self.plan()
        self.prepare(plan)
        self.describe(plan)
        if plan.batches:
            executor = self.executor_for(plan)
            likely = estimate(plan, executor.requested_jobs, self.execution, LONGEST_DRY_RUN)
            self.say(said.estimated(likely, executor, LONGEST_DRY_RUN))
        else:
            self.say("Nothing would run.")
        self.say("" if self.refinement is None else said.rounds_to_come(self.refinement))
        return plan

    def plan(self, cells: list[Cell] | None = None) -> Plan:
        """Compare the grid, or some cells of it, with what the directory holds."""
        return make_plan(
            self.grid if self.refinement is None else self.refinement.coarse_grid,
            self.directory,
            self.executor.device,
            cells=cells,
            fresh=self.options.fresh,
            retry_failed=self.options.retry_failed,
            trajectories=self.execution.trajectories,
            shard=self.shard,
        )

    def executor_for(self, plan: Plan) -> Executor:
        """Return the executor of a plan."""
        return self.executor.for_batches(len(plan.batches))

    def prepare(self, plan: Plan) -> Mapping[str, str]:
        """Read what the plan's cells need from outside, and return its fingerprints."""
        study = plan.grid.study
        if not plan.batches:
            if study.identity.function is not None:
                with contextlib.suppress(MissingError):  # nothing needs it
                    self.directory.check_data(study.prepare(plan.cells))
            return {}
        self.executor_for(plan).check(Work(study, self.execution))
        with blaming(study, "preparing its data"):
            read = study.prepare([cell for batch in plan.batches for cell in batch])
        self.directory.check_data(read)
        return read

    def describe(self, plan: Plan) -> None:
        """Say what a plan covers."""
        self.say(*said.planned(plan, self.directory, self.executor_for(plan), self.spell))
        self.say(self.directory.unfinished_merge())
        with blaming(plan.grid.study, "its notes"):
            self.say(*plan.grid.study.notes(plan.cells))

    def record(self, plan: Plan, read: Mapping[str, str]) -> None:
        """Put the directory in order, and enter a run that trains something into its manifest."""
        self.directory.check_stated(self.stated)
        self.say(*self.directory.prepare())
        # An empty shard's directory says what it is a part of, so that it can be merged.
        manifest, function = self.directory.manifest, plan.grid.study.identity.function
        is_described = function is None or (manifest and manifest.function == function)
        if not plan.batches and (plan.cells or manifest) and is_described:
            return
        executor = self.executor_for(plan)
        how: dict[str, str | int | float | None] = {
            "jobs": executor.jobs,
            "backend": executor.name,
            "device": executor.device,
            "shard": None if self.shard is None else str(self.shard),
            "time_limit": self.options.time_limit,
            "trajectories": self.options.trajectories or None,
            **({} if self.refinement is None else self.refinement.settings),
        }
        with writing_to(self.directory.path):
            self.directory.record(
                plan.grid,
                how,
                data=read,
                command=self.command,
                sentences=self.subject.sentences,
                preset=self.subject.preset and self.subject.preset.path,
                stated=self.stated,
            )

    def train(self, plan: Plan, read: Mapping[str, str], total: Summary) -> None:
        """Train a plan's cells on the data that was read for it, showing how far it is.

        Args:
            total: what was done before, to be counted on.
        """
        executor, speed = self.executor_for(plan), Speed()
        with blaming(plan.grid.study, "the cost of a cell"):
            plan = replace(plan, batches=coarse_to_fine(plan, executor.jobs))
            progress = Progress(plan, executor, self.directory, self.output, speed)
        work = Work(plan.grid.study, self.execution, read)
        try:
            with progress.shown():
                execute(plan, self.directory, work, executor, speed, total, progress.add)
        except KeyboardInterrupt:
            self.say(said.interrupted(progress.cells, progress.count(), self.directory))
            raise

    def cells(self) -> pd.DataFrame:
        """Return the cells of the sweep that are there, in the order of the grid and its seeds."""
        cells = self.grid.cells() if self.refinement is None else self.refinement.asked
        if self.directory.contents().empty:
            nothing: pd.DataFrame = cell_schema(self.grid.study).empty_table().to_pandas()
            return nothing
        points = {point: at for at, point in enumerate(dict.fromkeys(c.parameters for c in cells))}
        by_point = sorted(cells, key=lambda cell: points[cell.parameters])
        here = self.directory.load_cells().set_index("key", drop=False)
        keys = [cell.key for cell in by_point if cell.key in here.index]
        return here.loc[keys].reset_index(drop=True)


@contextlib.contextmanager
def open_sweep(
    subject: Subject,
    given: Mapping[str, Any],
    how: SweepOptions,
    output: Console,
    spell: Callable[[str], str] = str,
) -> Iterator[Session]:
    """Give the session of a sweep, on an executor that is closed at the end.

    Args:
        given: the values of parameters that the user gives.
    """
    grid = grid_of(subject, given, how)
    refinement = Refinement.read(grid, how.refine, how.threshold)
    shard = None if how.shard is None else Shard.read(how.shard)
    if shard is not None and refinement is not None:
        raise BadValue("shard", how.shard, "refinement chooses cells from all of them.")
    if how.time_limit is not None:
        how = replace(how, time_limit=finite_number("time_limit", how.time_limit, above=0))
    stated = read_stated(how.claim, subject.study, subject.sentences)
    name = subject.sweep_name(grid) + ("" if refinement is None else "-refined")
    directory = RunDirectory(how.out or results_folder() / name, "out")
    with executor_of(how.backend, how.jobs, how.device, how.address) as executor:
        yield Session(
            subject, grid, output, directory, executor, how, shard, refinement, stated, spell=spell
        )


def train_cell(
    subject: Subject, given: Mapping[str, Any], seed: Any, how: SweepOptions, output: Console
) -> Watch:
    """Train one cell again, print its steps, and keep it; return who has seen it.

    Args:
        given: the values of parameters that the user gives, one of each.
    """
    study = subject.study
    grid = Grid.read(study, {**subject.profile.texts, **given}, (whole_number("seed", seed, 0),))
    grid.check_seeds("seed")
    for name, values in grid.axes.items():
        takes = f"a training takes one value of {name}, not {len(values)}"
        raise BadValue(name, None, f"{takes}; a sweep takes several.")
    device = resolve_device(valid_choice("device", how.device, get_args(DeviceChoice)))
    path = how.out or results_folder() / subject.training_name(grid, given)
    watch, directory = Watch(study, device, output, path), RunDirectory(path, "out")
    options = SweepOptions(fresh=True, trajectories=True)
    session = Session(subject, grid, output, directory, watch, options)
    plan = session.plan()
    read = session.prepare(plan)
    session.record(plan, read)
    execute(plan, directory, Work(study, session.execution, read), watch)
    return watch


# The loop over the tasks of a plan

CHANCES = 3
"""The killed workers with a batch in flight after which its cells count as failed."""

MOST_LOSSES = 30
"""The losses of batches with their workers after which the sweep gives up."""

MOST_ALIKE = 20
"""The first cells after which a sweep stops, if all of them raised the same exception."""

ELSEWHERE = 10
"""How many of these are from places of the grid that are chosen at random."""


@contextlib.contextmanager
def writing_to(path: Path) -> Iterator[None]:
    """Say in one sentence, inside, that a run directory can't be written to."""
    try:
        yield
    except OSError as error:
        problem = f"{path} can't be written to ({error_text(error)}). {KEPT}"
        raise UserError(problem, exit_code=1) from error


def execute(
    plan: Plan,
    directory: RunDirectory,
    work: Work,
    executor: Executor,
    speed: Speed | None = None,
    summary: Summary | None = None,
    on_record: Callable[[TaskRecord], None] = lambda record: None,
) -> Summary:
    """Run the plan's batches; what is finished is on disk when this returns or raises.

    Args:
        speed: takes in the time of each task before `on_record` is called.
        summary: of what was done before, to be counted on.
        on_record: called in this process after each task.
    """
    total = summary or Summary()
    began, before = time.monotonic() - total.seconds, total.ended
    run = _Run(plan, work, executor, speed or Speed(), total)

    with (
        answering_interrupts(),
        training_conditions(),
        contextlib.closing(run.records()) as records,
    ):
        for record in records:
            if record.cells is not None:
                with delaying_interrupts(), writing_to(directory.path):
                    directory.append(record.cells, record.steps, work.study.identity.source)
            total.seconds = time.monotonic() - began
            on_record(record)
        with contextlib.suppress(OSError, MemoryError):  # many parts are no loss
            if total.ended > before:
                directory.compact()
    total.reused += plan.done
    total.earlier += plan.failed
    total.left += plan.to_run - (total.ended - before)
    return total


class _Run:
    """One sweep under way.

    Attributes:
        stop: whether no further task is handed out; those in flight end and are kept.
    """

    def __init__(
        self, plan: Plan, work: Work, executor: Executor, speed: Speed, summary: Summary
    ) -> None:
        self.summary, self.stop = summary, False
        self._work, self._executor, self._speed = work, executor, speed
        self._waiting = dict(enumerate(plan.batches))
        self._costs = [cost_of(work.study, batch) for batch in plan.batches]
        self._strikes: Counter[int] = Counter()
        self._losses = 0
        self._any_done, self._alike = plan.done > 0, False
        self._enough = math.inf
        """The failures alike that are enough to stop: some of them from anywhere in the grid."""

    def records(self) -> Generator[TaskRecord]:
        """Give a record for each task; after a killed worker go on with what is missing."""
        fail_fast = self._work.execution.fail_fast
        ahead = 1 if fail_fast else 2  # tasks that wait for a worker couldn't be taken back
        while self._waiting and not self.stop:
            for record in self._executor.run(self._work, self._tasks(), ahead):
                ended = self._fail_after_kills(record) if record.kills else record
                if ended is None:
                    continue
                if ended is record:
                    cost = sum(self._costs[number] for number in record.batches)
                    self._speed.add(cost, record.seconds, is_cold=record.is_cold)
                self._count(ended)
                # Before its rows are written, as tasks are handed out meanwhile.
                self.stop |= bool(self.summary.stopped or (fail_fast and ended.reasons))
                yield ended

    def _count(self, ended: TaskRecord) -> None:
        """Take in what a task did; a sweep stops where all cells so far have failed alike."""
        summary = self.summary
        summary.count(ended)
        cells = [cell for number in ended.batches for cell in self._waiting.pop(number)]
        if summary.example is None and any(map(is_exception, ended.reasons)):
            failed = {key for key, headline in ended.headlines if headline is None}
            summary.example = next(cell for cell in cells if cell.key in failed)
        if summary.trained:
            self._alike = False
            return
        taken = next((reason for reason in summary.failed if NAME_TAKEN in reason), "")
        raised = all(map(is_exception, summary.failed)) and len({*map(kind_of, summary.failed)})
        self._alike = raised == 1 and not self._any_done
        if taken:
            summary.stopped = taken.removeprefix("error: ")
        elif self._alike and self._enough <= summary.failed.total() >= MOST_ALIKE:
            [alike] = count_alike(summary.failed)
            words = alike.words.removeprefix("error: ")
            summary.stopped = f"the first {alike.count} cells all failed alike: {words}"

    def _tasks(self) -> Iterator[Task]:
        """The batches that wait, a task at a time.

        A batch that was with a killed worker may be the culprit: half of those that were so most
        often go alone.
        """
        strikes = max(self._strikes[number] for number in self._waiting)
        if strikes:
            suspects = [number for number in self._waiting if self._strikes[number] == strikes]
            yield self._task(suspects[: (len(suspects) + 1) // 2])
            return
        numbers, start = list(self._waiting), 0
        left = sum(self._costs[number] for number in numbers)
        while start < len(numbers) and not self.stop:
            if self._alike and self._enough == math.inf:
                numbers[start:] = self._from_elsewhere(numbers[:start], numbers[start:])
            finished = len(self._costs) - len(self._waiting)
            coming = [self._costs[number] for number in numbers[start : start + MOST_BATCHES]]
            end = start + task_size(coming, left, self._executor.jobs, self._speed, finished)
            left -= sum(self._costs[number] for number in numbers[start:end])
            yield self._task(numbers[start:end])
            start = end

    def _from_elsewhere(self, handed_out: Sequence[int], rest: Sequence[int]) -> list[int]:
        """The rest of the batches, some from anywhere first: an early region may fail by itself."""
        chosen = random.Random(0).sample(rest, min(ELSEWHERE, len(rest)))
        early = [number for number in (*handed_out, *chosen) if number in self._waiting]
        waiting = sum(len(self._waiting[number]) for number in early)
        self._enough = self.summary.failed.total() + waiting
        return [*chosen, *(number for number in rest if number not in chosen)]

    def _task(self, numbers: Sequence[int]) -> Task:
        return [(number, self._waiting[number]) for number in numbers]

    def _fail_after_kills(self, lost: TaskRecord) -> TaskRecord | None:
        """Count a kill against the batches in flight; fail one that had its chances alone."""
        self._losses += 1
        self.summary.restarts += lost.kills
        if self._losses > MOST_LOSSES:
            raise UserError(
                f"Workers were killed {self.summary.restarts} times; is memory short? Fewer "
                f"jobs need less. {KEPT}",
                exit_code=1,
            )
        self._strikes.update(lost.batches)
        if len(lost.batches) != 1 or self._strikes[lost.batches[0]] < CHANCES:
            return None
        failures = [
            CellResult(cell, reason="worker killed") for cell in self._waiting[lost.batches[0]]
        ]
        return record_of(self._work.study, lost.batches, failures)
