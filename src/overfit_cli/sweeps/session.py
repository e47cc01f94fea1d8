"""The run of a plan as a command shows it: sentences, manifest, progress, interruption."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

from rich.console import Console

from overfit_cli.claims.designs import read_stated
from overfit_cli.core.cell import Cell
from overfit_cli.core.errors import MissingError, UserError
from overfit_cli.core.files import error_text, results_folder
from overfit_cli.core.registry import blaming
from overfit_cli.core.text import duration, percent, plural
from overfit_cli.core.training import Execution
from overfit_cli.core.values import (
    Backend,
    DeviceChoice,
    finite_number,
    number_of_jobs,
    valid_choice,
)
from overfit_cli.stats.boundary_search import CONFIDENCE, CrossingEstimate
from overfit_cli.sweeps.clusters import executor_of
from overfit_cli.sweeps.executors import Executor
from overfit_cli.sweeps.grid import Grid, Shard, parse_shard
from overfit_cli.sweeps.inventory import forget_unfinished_merges
from overfit_cli.sweeps.manifest import (
    check_data,
    check_stated,
    is_described,
    read_manifest,
    record_run,
)
from overfit_cli.sweeps.order import coarse_to_fine
from overfit_cli.sweeps.plan import Plan, make_plan, other_settings
from overfit_cli.sweeps.progress import (
    Progress,
    earlier_in_words,
    estimate_in_words,
    failed_in_words,
    left_in_words,
    plan_in_words,
    restarts_in_words,
    source_in_words,
    summary_in_words,
)
from overfit_cli.sweeps.refine import Refinement
from overfit_cli.sweeps.run import Summary, execute
from overfit_cli.sweeps.speed import Estimate, Speed, estimate
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.subject import Subject, sweep_name
from overfit_cli.sweeps.worker import Work

LONGEST_DRY_RUN = 8.0
LEAST_FOR_PROBE = 3.0


@dataclass(frozen=True)
class Session:
    """The settings with which plans are run into a directory."""

    output: Console
    directory: RunDirectory
    executor: Executor
    shard: Shard | None = None
    trajectories: bool = False
    fresh: bool = False
    retry_failed: bool = False
    fail_fast: bool = False
    time_limit: float | None = None
    cell_seconds: float | None = None
    command: Sequence[str] | None = None
    sentences: Mapping[str, str] = field(default_factory=dict)
    preset: Path | None = None
    stated: Mapping[str, str] = field(default_factory=dict)

    def sweep(self, grid: Grid) -> tuple[Plan, Summary]:
        """Run what a grid lacks, from its plan to its last cell."""
        plan = self.plan(grid)
        read = self.prepare(plan)
        self.describe(plan)
        self.record(plan, read)
        summary = self.run(plan, read)
        with contextlib.suppress(OSError):  # a sentence that is out of date is no loss
            forget_unfinished_merges(self.directory)
        for sentence in summary_in_words(plan, self.directory, summary):
            self.output.print(sentence)
        return plan, summary

    def plan(self, grid: Grid, cells: Sequence[Cell] | None = None) -> Plan:
        """Compare a grid, or some cells of it, with what the directory holds; see `make_plan`."""
        return make_plan(
            grid,
            self.directory,
            self.executor.device,
            cells=None if cells is None else list(cells),
            fresh=self.fresh,
            retry_failed=self.retry_failed,
            trajectories=self.trajectories,
            shard=self.shard,
        )

    def executor_for(self, plan: Plan) -> Executor:
        """Return the executor of a plan."""
        return self.executor.for_batches(len(plan.batches))

    @property
    def execution(self) -> Execution:
        """The settings with which cells are trained."""
        return Execution(
            self.executor.device,
            self.trajectories,
            fail_fast=self.fail_fast,
            time_limit=self.time_limit,
        )

    def prepare(self, plan: Plan) -> Mapping[str, str]:
        """Read what the plan's cells need from outside, and return its fingerprints."""
        study = plan.grid.study
        if not plan.batches:
            if study.identity.function is not None:
                with contextlib.suppress(MissingError):  # nothing needs it
                    check_data(self.directory.path, study.prepare(plan.cells))
            return {}
        work = Work(study, self.execution)
        self.executor_for(plan).check(work)
        with blaming(study, "preparing its data"):
            read = study.prepare([cell for batch in plan.batches for cell in batch])
        check_data(self.directory.path, read)
        return read

    def describe(self, plan: Plan) -> None:
        """Say what a plan covers."""
        study = plan.grid.study
        for sentence in plan_in_words(plan, self.directory, self.executor_for(plan)):
            self.output.print(sentence)
        if sentence := self.directory.unfinished_merge():
            self.output.print(sentence)
        self.describe_others(plan)
        with blaming(study, "its notes"):
            for sentence in study.notes(plan.cells):
                self.output.print(sentence)

    def describe_others(self, plan: Plan) -> None:
        """Say which cells of other settings are there."""
        if sentence := other_settings(plan, self.directory):
            self.output.print(sentence)

    def record(self, plan: Plan, read: Mapping[str, str], **settings: str | int | float) -> None:
        """Put the directory in order, and enter a run that trains something into its manifest."""
        check_stated(self.directory.path, self.stated)
        for sentence in self.directory.prepare():
            self.output.print(sentence)
        # An empty shard's directory says what it is a part of, so that it can be merged.
        entered = plan.cells or read_manifest(self.directory.path) is not None
        if not plan.batches and entered and is_described(self.directory.path, plan.grid.study):
            return
        executor = self.executor_for(plan)
        how: dict[str, str | int | float] = {
            "jobs": executor.jobs,
            "backend": executor.name,
            "device": executor.device,
            **({} if self.shard is None else {"shard": str(self.shard)}),
            **({} if self.time_limit is None else {"time_limit": self.time_limit}),
            **settings,
        }
        try:
            record_run(
                self.directory.path,
                plan.grid,
                how,
                read,
                self.command,
                self.sentences,
                self.preset,
                self.stated,
            )
        except OSError as error:
            raise UserError(
                f"{self.directory.path} can't be written to ({error_text(error)})."
            ) from error

    def estimate(self, plan: Plan, elapsed: float = 0.0) -> Estimate:
        """Return what a prepared plan with something to run would take; see `outline`."""
        executor = self.executor_for(plan)
        jobs = executor.requested_jobs
        within = max(LEAST_FOR_PROBE, LONGEST_DRY_RUN - elapsed)
        work = None if self.cell_seconds is None else self.cell_seconds * plan.to_run
        return estimate(plan, jobs, self.execution, within, work and work / jobs)

    def run(self, plan: Plan, read: Mapping[str, str]) -> Summary:
        """Train a plan's cells on the data that was read for it, showing how far it is."""
        executor, speed = self.executor_for(plan), Speed()
        with blaming(plan.grid.study, "the cost of a cell"):
            plan = replace(plan, batches=coarse_to_fine(plan, executor.jobs))
            progress = Progress(plan, executor, self.directory, self.output, speed)
        try:
            with progress.shown():
                return execute(
                    plan,
                    self.directory,
                    self.execution,
                    executor,
                    data=read,
                    speed=speed,
                    on_record=progress.add,
                )
        except KeyboardInterrupt:
            self.output.print(
                f"Interrupted after {progress.count()}; they are kept in {self.directory.path}, "
                "and the same command goes on from there."
                if progress.cells
                else "Interrupted before the first result; the same command starts again."
            )
            raise


def outline(
    session: Session,
    grid: Grid,
    refinement: Refinement | None,
    rounds: int,
    elapsed: float = 0.0,
) -> Plan:
    """Say what a sweep would run, and how long that would take; nothing is run.

    Args:
        refinement: what its rounds would find, if it has any.
        elapsed: how many seconds have gone already of those that this should take.

    Returns:
        The plan; with rounds, that of the coarse grid.
    """
    plan = session.plan(grid if refinement is None else refinement.coarse_grid)
    session.prepare(plan)
    session.describe(plan)
    if plan.batches:
        likely = session.estimate(plan, elapsed)
        session.output.print(estimate_in_words(plan, session.executor_for(plan), likely))
    else:
        session.output.print("Nothing would run.")
    if refinement is not None:
        session.output.print(
            f"That is the coarse grid, with {len(refinement.coarse_grid.seeds)} of "
            f"{plural(len(grid.seeds), 'seed')}; up to {rounds} rounds of fewer cells follow it."
        )
    return plan


def refine(session: Session, refinement: Refinement, rounds: int) -> Summary:
    """Run the coarse grid and up to `rounds` rounds after it; say what is known at the end.

    Returns:
        What all rounds did together.
    """
    total, reused, boundary = Summary(), 0, list[CrossingEstimate]()
    recorded = False
    settings: dict[str, str | int | float] = {
        "refine": rounds,
        "tolerance": refinement.search.tolerance,
        "threshold": float(refinement.target.threshold),
    }
    for number in range(rounds + 1):
        cells = refinement.next_cells()
        if not cells:
            break
        plan = session.plan(refinement.coarse_grid, cells)
        read = session.prepare(plan)
        what = "The coarse grid" if number == 0 else f"Round {number}"
        session.output.print(f"{what}: {plural(len(cells), 'cell')}, {plan.to_run} to run.")
        if number == 0:
            for sentence in source_in_words(plan):
                session.output.print(sentence)
            session.describe_others(plan)
        if not recorded:
            session.record(plan, read, **settings | {"value": refinement.target.value})
            recorded = bool(plan.batches)
        summary = session.run(plan, read)
        total.add(summary)
        reused += plan.done
        boundary = refinement.learn(session.directory)
        if summary.stopped or (session.fail_fast and summary.failed):
            break
    for sentence in [
        *([f"Stale cells there, of another version: {plan.stale}."] if plan.stale else []),
        _summary_in_words(refinement, total, reused),
        *left_in_words(total),
        *_boundary_in_words(refinement, boundary),
        f"The cells are in {session.directory.path}/cells.",
    ]:
        session.output.print(sentence)
    return total


def _summary_in_words(refinement: Refinement, total: Summary, reused: int) -> str:
    failed = f", {failed_in_words(total)}" if total.failed else ""
    failed += earlier_in_words(total) + restarts_in_words(total)
    grid = len(refinement.search.y) * len(refinement.search.seeds)
    low, high = refinement.search.coarse[0], refinement.search.coarse[-1]
    full = grid * (round((high - low) / refinement.search.tolerance) + 1)
    return (
        f"Done: {total.trained} trained in {duration(total.seconds)}, {reused} reused{failed}. A "
        f"grid with the tolerance's spacing would have {full} cells: these are "
        f"{percent(refinement.asked / full, 1)} of it."
    )


def _boundary_in_words(refinement: Refinement, boundary: Sequence[CrossingEstimate]) -> list[str]:
    """Sentences on where the boundary lies, and on the values where that isn't known."""
    search, target = refinement.search, refinement.target
    converged = [point for point in boundary if point.crossing_seeds and point.converged]
    sentences = [
        f"The crossing of {target.value} = {target.threshold:g} along {target.x}, the median of "
        f"{plural(len(search.seeds), 'seed')}, is known to ±{search.tolerance:.3g} "
        f"({percent(CONFIDENCE)}) at {len(converged)} of {plural(len(boundary), 'value')} of "
        f"{target.y}."
    ]
    for point in boundary:
        name = f"{target.y} = {point.y:g}"
        if not point.crossing_seeds:
            side = f"stay {point.side}" if point.side else "have no number"
            count = point.never_seeds if point.side else len(search.seeds) - point.never_seeds
            seeds = f"{plural(count, 'seed')} of {len(search.seeds)}"
            sentences.append(f"{name}: no crossing; {seeds} {side}.")
            continue
        if not point.converged:
            width = f"±{point.half_width:.3g}" if math.isfinite(point.half_width) else "less"
            sentences.append(f"{name}: {point.crossing:.4g}, known to {width} only.")
        if point.never_seeds:
            several = point.never_seeds > 1
            seeds = (
                f"{point.never_seeds} of {plural(point.never_seeds + point.crossing_seeds, 'seed')}"
            )
            if point.open_seeds:
                so_far = f"{'have' if several else 'has'} not crossed so far"
                sentences.append(f"{name}: {seeds} {so_far}, {point.side} on their samples.")
                continue
            sentences.append(
                f"{name}: {seeds} {'cross' if several else 'crosses'} nowhere; "
                f"{'they stay' if several else 'it stays'} {point.side}."
            )
    return sentences


@contextmanager
def open_sweep(
    subject: Subject,
    grid: Grid,
    output: Console,
    *,
    out: Path | None,
    shard: str | None,
    refinement: Refinement | None,
    jobs: int,
    backend: Backend,
    address: str | None,
    device: DeviceChoice,
    trajectories: bool,
    fresh: bool,
    retry_failed: bool,
    fail_fast: bool,
    time_limit: float | None,
    claims: Sequence[str],
) -> Iterator[Session]:
    """Give the session of a sweep, on an executor that is closed at the end.

    Args:
        out: the run directory; None for one in `results/` with a name of its own.
        shard, jobs, backend, address, device, trajectories, fresh,
            retry_failed, fail_fast, time_limit: as in `overfit_cli.sweep`.
    """
    name = sweep_name(subject, grid) + ("" if refinement is None else "-refined")
    limit = None if time_limit is None else finite_number("time_limit", time_limit, above=0)
    part = parse_shard(shard, refined=refinement is not None)
    stated = read_stated(claims, subject.study, subject.sentences)
    with executor_of(
        valid_choice("backend", backend, get_args(Backend)),
        number_of_jobs(jobs),
        valid_choice("device", device, get_args(DeviceChoice)),
        address,
    ) as executor:
        yield Session(
            output=output,
            directory=RunDirectory(out or results_folder() / name, "out"),
            executor=executor,
            shard=part,
            trajectories=trajectories or subject.trajectories,
            fresh=fresh,
            retry_failed=retry_failed,
            fail_fast=fail_fast,
            cell_seconds=subject.cell_seconds,
            time_limit=limit,
            sentences=subject.sentences,
            preset=None if subject.preset is None else subject.preset.path,
            stated=stated,
        )
