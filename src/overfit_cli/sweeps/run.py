"""The run of a sweep or a training: plan, data, manifest and rounds, and what is said of them.

The loop over the tasks of a plan is in `loop`. Sentences that name an argument take `spell`, which
writes it as the reader gives it: as an option, or as an argument in Python.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import pandas as pd
from rich.console import Console

from overfit_cli.claims.stated import read_stated
from overfit_cli.core.cell import Cell
from overfit_cli.core.errors import BadValue, MissingError, UserError, count_alike
from overfit_cli.core.files import results_folder
from overfit_cli.core.options import DEFAULTS, SweepOptions, finite_number, whole_number
from overfit_cli.core.registry import blaming
from overfit_cli.core.text import duration, duration_estimate, percent, plural, size
from overfit_cli.core.training import Execution
from overfit_cli.stats.boundary_search import CONFIDENCE
from overfit_cli.sweeps.clusters import executor_of
from overfit_cli.sweeps.executors import Executor, Run, writing_to
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.part import cell_schema
from overfit_cli.sweeps.plan import Estimate, Plan, Shard, coarse_to_fine, estimate, make_plan
from overfit_cli.sweeps.presets import Subject
from overfit_cli.sweeps.progress import Progress, Watch
from overfit_cli.sweeps.refine import Refinement
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import Summary, Work

Spell = Callable[[str], str]

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
    spell: Spell = str

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
                what = f"Round {number}" if number else "The coarse grid"
                self.say(f"{what}: {plural(len(plan.cells), 'cell')}, {plan.to_run} to run.")
                self.say(*([] if number else _of_earlier_code(plan, self.spell)))
            if not (total.trained or total.failed):
                self.record(plan, read)
            self.train(plan, read, total)
            if refined is not None:
                refined.learn(self.directory)
            if total.stopped or (self.options.fail_fast and total.failed):
                break
        self.say(_done(total, self.directory, self.spell), *_failures(total, self.spell))
        self.say(*(() if refined is None else _boundary(refined)))
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
            self.say(_estimated(likely, executor))
        else:
            self.say("Nothing would run.")
        if self.refinement is not None:
            first, seeds = len(plan.grid.seeds), plural(len(self.grid.seeds), "seed")
            rounds = f"up to {self.refinement.rounds} rounds of fewer cells follow it"
            self.say(f"That is the coarse grid, with {first} of {seeds}; {rounds}.")
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
        grid, study, spell = plan.grid, plan.grid.study, self.spell
        shard = "" if plan.shard is None else f" of {grid.size}, shard {plan.shard}"
        cells = f"{plural(len(plan.cells), 'cell')}{shard}"
        covers = f"{study.name}: {cells} ({_shape(grid)}), {self.directory.path}"
        counts = {
            "there already": plan.done,
            f"there as failed ({spell('retry_failed')} runs them)": plan.failed,
            "run again": plan.again,
            "stale, of another version of the study": plan.stale,
        }
        kept = "".join(f"{count} {words}; " for words, count in counts.items() if count)
        if plan.cells:
            to_run = f"{kept}{plan.to_run} to run, {self.executor_for(plan).description}."
            self.say(covers, to_run)
        else:
            self.say(f"{covers}.", "This shard has no cell: there are more shards than cells.")
        self.say(*_of_earlier_code(plan, spell), self.directory.unfinished_merge())
        with blaming(study, "its notes"):
            self.say(*study.notes(plan.cells))

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
        executor, work = self.executor_for(plan), Work(plan.grid.study, self.execution, read)
        with blaming(plan.grid.study, "the cost of a cell"):
            plan = replace(plan, batches=coarse_to_fine(plan, executor.jobs))
            run = Run(plan, self.directory, work, executor, total)
        progress = Progress(run, self.output)
        try:
            with progress.shown():
                run.execute(progress.add)
        except KeyboardInterrupt:
            count = f"{run.cells} of {plural(plan.to_run, 'cell')}"
            kept = f"they are kept in {self.directory.path}"
            ends = f"after {count}; {kept}, and the same command goes on from there"
            never = "before the first result; the same command starts again"
            self.say(f"Interrupted {ends if run.cells else never}.")
            raise

    def cells(self) -> pd.DataFrame:
        """Return the cells of the sweep that are there, in the order of the grid and its seeds."""
        cells = self.grid.cells() if self.refinement is None else self.refinement.asked
        if self.directory.contents().empty:
            nothing: pd.DataFrame = cell_schema(self.grid.study).empty_table().to_pandas()
            return nothing
        by_point = dict[Any, list[str]]()
        for cell in cells:
            by_point.setdefault(cell.parameters, []).append(cell.key)
        keys = pd.DataFrame({"key": [key for point in by_point.values() for key in point]})
        return keys.merge(self.directory.load_cells())


@contextlib.contextmanager
def open_sweep(
    subject: Subject,
    given: Mapping[str, Any],
    how: SweepOptions,
    output: Console,
    spell: Spell = str,
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
    path = how.out or results_folder() / subject.training_name(grid, given)
    watch, directory = Watch(study, output, path), RunDirectory(path, "out")
    options, here = SweepOptions(fresh=True, trajectories=True), executor_of("loky", 1, how.device)
    session = Session(subject, grid, output, directory, here, options)
    plan = session.plan()
    read = session.prepare(plan)
    session.record(plan, read)
    Run(plan, directory, Work(study, watch.seeing(session.execution), read), here).execute()
    return watch


# Sentences

MOST_REASONS = 4
"""Of more reasons why cells failed, a sentence says the number."""


def _of_earlier_code(plan: Plan, spell: Spell) -> list[str]:
    """How many cells that are kept another version of the study has trained."""
    name, sentences = plan.grid.study.name, list[str]()
    before = {
        f"by an earlier version of the code of {name}": plan.of_other_source,
        f"before the digest changed that tells versions of {name} apart": plan.before_digest,
    }
    add = f"Add {spell('fresh')} to train all again, or another {spell('out')} to keep both."
    for when, count in before.items():
        were = f"{plural(count, 'cell')} {'was' if count == 1 else 'were'} trained {when}"
        sentences += [f"{were}, and kept. {add}"] if count else []
    if plan.parameters_changed:
        changed = f"have changed since cells there were trained ({plan.parameters_changed})"
        stay = "those cells stay, and figures leave them out"
        sentences.append(f"The parameters of {name} {changed}; {stay}.")
    return sentences


def _shape(grid: Grid) -> str:
    """The factors of a grid, and what ties, derives or leaves out its points."""
    lengths = [(" with ".join(group), len(grid.given[group[0]])) for group in grid.groups]
    axes = [f"{names} {length}" for names, length in lengths if length > 1]
    rules = [f"{name} = {', '.join(map(str, several))}" for name, several in grid.derived.items()]
    if grid.only:
        conditions = " and ".join(grid.only)
        rules.append(f"{conditions} at {grid.points} of {plural(grid.full_points, 'point')}")
    return "; ".join([" × ".join([*axes, f"seeds {len(grid.seeds)}"]), *rules])


def jobs_in_words(executor: Executor) -> str:
    """Return how many jobs an estimate is for, and how many of them a cluster has now."""
    jobs = executor.jobs
    fewer = f" ({jobs} there now)" if jobs != executor.requested_jobs else ""
    return f"{plural(executor.requested_jobs, 'job')}{fewer}"


def _estimated(likely: Estimate, executor: Executor) -> str:
    """Return what a plan would take, from a batch that was timed or cut."""
    begin, time = "From one timed batch", "how long it takes isn't known"
    if likely.seconds is None:
        begin = f"No batch ended within {duration(LONGEST_DRY_RUN)}"
    else:
        time = duration_estimate(likely.seconds)
    takes = [f"{time} on {jobs_in_words(executor)}"]
    takes += ["as long as the longest batch"] if likely.is_longest else []
    takes += [f"{size(likely.memory)} of memory"] if likely.memory else []
    takes += [f"{size(likely.disk)} on disk"] if likely.disk else []
    return f"{begin}: {', '.join(takes)}. Nothing was run or written."


def _done(summary: Summary, directory: RunDirectory, spell: Spell) -> str:
    """Return what a sweep did: how many cells are done, and why others failed."""
    words = f"{summary.trained} trained in {duration(summary.seconds)}, {summary.reused} reused"
    if summary.failed:
        kinds = count_alike(summary.failed)
        reasons = [f"{kind.count} {kind.words}" for kind in kinds[:MOST_REASONS]]
        if others := kinds[MOST_REASONS:]:
            count = sum(kind.count for kind in others)
            reasons.append(f"{count} for {plural(len(others), 'other reason')}")
        words += f", {summary.failed.total()} failed ({', '.join(reasons)})"
    if summary.earlier:
        words += f", {summary.earlier} failed earlier; {spell('retry_failed')} runs them again"
    if summary.restarts:
        restarts = plural(summary.restarts, "time")
        words += f"; workers were killed and started again {restarts}"
    return f"Done: {words}. The cells are in {directory.path}/cells."


def _failures(summary: Summary, spell: Spell) -> list[str]:
    """Return lines on where failed cells raised, and on how many cells were left for it."""
    lines = list[str]()
    for kind in count_alike(summary.failed, summary.tracebacks)[:MOST_REASONS]:
        if kind.traceback:
            lines.append(f"Failed ({plural(kind.count, 'cell')}):")
            lines += [f"  {line}" for line in kind.traceback.splitlines()]
    if summary.left:
        left = f"{plural(summary.left, 'cell')} {'was' if summary.left == 1 else 'were'} not run."
        again = f"Correct the function and repeat the command with {spell('retry_failed')}."
        stopped = f"Stopped: {summary.stopped}. {left} {again}" if summary.stopped else ""
        lines.append(stopped or f"Stopped after a failed cell ({spell('fail_fast')}): {left}")
    return lines


def _boundary(refinement: Refinement) -> list[str]:
    """Return where the boundary lies, at what cost, and at which values that isn't known."""
    search, found, x, y = refinement.search, refinement.estimates, refinement.x, refinement.y
    spacings = round((search.coarse[-1] - search.coarse[0]) / search.tolerance)
    full = len(search.y) * len(search.seeds) * (spacings + 1)
    known = sum(math.isfinite(point.crossing) and point.converged for point in found)
    sentences = [
        f"A grid with the tolerance's spacing would have {full} cells: these are "
        f"{percent(len(refinement.asked) / full, 1)} of it.",
        f"The crossing of {refinement.value} = {search.threshold:g} along {x}, the median of "
        f"{plural(len(search.seeds), 'seed')}, is known to ±{search.tolerance:.3g} "
        f"({percent(CONFIDENCE)}) at {known} of {plural(len(found), 'value')} of {y}.",
    ]
    for point in found:
        name = f"{y} = {point.y:g}"
        if math.isnan(point.crossing):
            side = f"stay {point.side}" if point.side else "have no number"
            sentences.append(f"{name}: no crossing; seeds {side}.")
        elif not point.converged:
            sentences.append(f"{name}: {point.crossing:.4g} ± {point.half_width:.3g} only.")
    return sentences
