"""The run of a sweep or a training: plan, data, manifest and rounds, and what is said of them.

What is said of them is in `templates`, which write an argument as the reader gives it: as an
option, or as an argument in Python.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from overfit_cli.claims.cells import repeated_seeds, repeats_in_words
from overfit_cli.claims.stated import read_stated
from overfit_cli.core import files, registry
from overfit_cli.core.cell import Cell, taken_columns
from overfit_cli.core.errors import BadValue, MissingError, UserError, count_alike
from overfit_cli.core.options import DEFAULTS, SweepOptions, finite_number, whole_number
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import plural, templates, typed
from overfit_cli.core.training import Execution
from overfit_cli.stats.intervals import LEVEL
from overfit_cli.sweeps import clusters, part
from overfit_cli.sweeps.executors import Executor, Local, Run, train_again, writing_to
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.manifest import Differing, differing_in_words
from overfit_cli.sweeps.plan import Plan, Refinement, coarse_to_fine, estimate, make_plan
from overfit_cli.sweeps.presets import Subject
from overfit_cli.sweeps.progress import Progress, Watch
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import Summary, Work

LONG, CHECKED = 20.0, 3
"""The seconds of a sweep after which some cells of a user's code are checked, and how many."""

SHARE = 0.2
"""The part of a long sweep's seconds that its check may take by default."""

ROUNDING, TINY = 1e-6, 1e-12
"""Numbers are equal up to such a part of them, or up to such a number."""

LONGEST_DRY_RUN = 8.0
"""The seconds after which the batch that a dry run times is cut."""

MOST_REASONS = 4
"""Of more reasons why cells failed, a sentence says the number of cells."""


def grid_of(subject: Subject, given: Mapping[str, Any] = {}, how: SweepOptions = DEFAULTS) -> Grid:
    """Return the grid of a sweep, with what the user gives before what a preset sets."""
    own = subject.profile
    seeds = subject.seeds if how.seeds is None else how.seeds
    together, only = (*own.together, *how.together), (*own.only, *how.only)
    grid = Grid.read(subject.study, {**own.texts, **given}, seeds, together, only)
    grid.check_seeds("seeds")
    return grid


@dataclass(frozen=True)
class Session:
    """A subject's grid, a directory and an executor, and the options with which it is run.

    Attributes:
        stated: the claims that the user states with the sweep, by name.
    """

    subject: Subject
    grid: Grid
    output: Console
    directory: RunDirectory
    executor: Executor
    options: SweepOptions = DEFAULTS
    refinement: Refinement | None = None
    stated: Mapping[str, str] = field(default_factory=dict)

    def say(self, *sentences: str) -> None:
        """Print sentences, a line each; an empty one is none."""
        for sentence in filter(None, sentences):
            self.output.print(sentence)

    def _tell(self, template: str, **values: Any) -> None:
        """Print the lines that a template makes of values, and of the session's own."""
        own = {"path": self.directory.path, "spell": typed, "refinement": self.refinement}
        told = templates(Path(__file__).parent / "templates").get_template(template)
        self.say(*told.render(own | values).splitlines())

    @property
    def sentences(self) -> Mapping[str, str]:
        """The claims that the preset and the user state, by name."""
        return {**self.subject.sentences, **self.stated}

    def run(self) -> Summary:
        """Run what the grid lacks, or in rounds the cells that its refinement chooses."""
        total, refined = Summary(), self.refinement
        for number, cells in enumerate([None] if refined is None else refined.rounds_of_cells()):
            now = self.prepare(cells, total)
            self.describe(now, None if refined is None else number)
            if not (total.trained or total.failed):
                self.record(now)
            try:
                with Progress(now, self.output).shown() as progress:
                    now.execute(progress.add)
            except KeyboardInterrupt:
                self._tell("interrupted.txt", run=now)
                raise
            if refined is not None:
                refined.learn(self.directory)
            if total.stopped or (self.options.fail_fast and total.failed):
                break
        kinds = count_alike(total.failed, total.tracebacks)
        self._tell("done.txt", total=total, kinds=kinds, most=MOST_REASONS, confidence=LEVEL)
        identity = self.grid.study.identity
        is_own = identity.source or (identity.function and identity.function.command)
        if self.options.check or (is_own and total.trained):
            self._check(now.work, total.seconds)
        return total

    def _check(self, work: Work, seconds: float) -> None:
        """Train finished cells a second time, and note those that give other numbers.

        Cells that take no seed are checked after a short sweep too, by the workers that are there:
        if their numbers are drawn, there is one draw of each.
        """
        study, asked = self.grid.study, self.options.check
        done = self.cells().query("status == 'done'")
        self.say(repeats_in_words(repeated_seeds(done, study.parameters)))
        anew = asked is not None or seconds > LONG
        chosen = done.sample(frac=1, random_state=0)
        if asked is None:
            limit = max(min(seconds, LONG), SHARE * seconds)
            chosen = chosen[(anew or not study.seeded) & (chosen["seconds"].cumsum() <= limit)]
        chosen = chosen.head(CHECKED if asked is None else whole_number("check", asked, 0))
        cells = [cell for cell in self._cells if cell.key in {*chosen["key"]}]
        executor = Local(2, device=self.executor.device) if anew else self.executor.for_batches(1)
        with contextlib.suppress(*[UserError] * (asked is None)):  # it can't be sent elsewhere
            executor.check(work)
            again = train_again(executor, work, cells, anew=anew)
            differing = _differing(chosen, again, study)
            self.directory.note_check(again["key"], differing)
            words = differing_in_words(differing, done)
            self._tell("checked.txt", count=len(again), differing=differing, words=words, new=anew)

    def outline(self) -> Plan:
        """Say what would run, and how long that would take; nothing is run.

        Returns:
            The plan; with a refinement, that of the coarse grid.
        """
        now, likely = self.prepare(), None
        self.describe(now)
        jobs = now.executor.requested_jobs
        if now.plan.batches:
            likely = estimate(now.plan, jobs, now.work.execution, LONGEST_DRY_RUN)
        told = {"plan": now.plan, "grid": self.grid, "likely": likely, "jobs": jobs}
        self._tell("estimate.txt", **told, longest=LONGEST_DRY_RUN)
        return now.plan

    def prepare(self, cells: list[Cell] | None = None, total: Summary | None = None) -> Run:
        """Compare the grid, or some cells of it, with the directory; read what they need.

        Args:
            total: what was done before, to be counted on; None for a dry run or a training, whose
                batches stay in the order of the study.
        """
        subject, study, device = self.subject, self.grid.study, self.executor.device
        how = replace(self.options, trajectories=self.options.trajectories or subject.trajectories)
        grid = self.grid if self.refinement is None else self.refinement.coarse_grid
        plan = make_plan(grid, self.directory, device, how, cells)
        execution = Execution(
            device, how.trajectories, fail_fast=how.fail_fast, time_limit=how.time_limit
        )
        executor = self.executor.for_batches(len(plan.batches))
        chosen, read = [cell for batch in plan.batches for cell in batch], dict[str, str]()
        if chosen:
            executor.check(Work(study, execution))
        # A function's files are compared with those of its cells even where nothing needs them.
        looked_at = chosen or (plan.cells if study.identity.function is not None else [])
        needed = contextlib.nullcontext() if chosen else contextlib.suppress(MissingError)
        with needed, registry.blaming(study, "preparing its data"):
            read = dict(study.prepare(looked_at) if looked_at else {})
        for name, fingerprint in read.items():
            if self.directory.manifest.data.get(name, fingerprint) != fingerprint:
                then = f"({name} had other content then); name another directory."
                raise self.directory.error(f"its cells were trained on other data {then}")
        with registry.blaming(study, "the cost of a cell"):
            # The cells of a refinement lie between the points of the grid.
            if total is not None and self.refinement is None:
                plan = replace(plan, batches=coarse_to_fine(plan, executor.jobs))
            return Run(plan, self.directory, Work(study, execution, read), executor, total)

    def describe(self, now: Run, number: int | None = None) -> None:
        """Say what a plan covers; of a refinement, what its round of this number does."""
        self._tell("plan.txt", plan=now.plan, executor=now.executor, round=number)
        if number is None:
            self.say(self.directory.unfinished_merge())
            with registry.blaming(self.grid.study, "its notes"):
                self.say(*self.grid.study.notes(now.plan.cells))

    def record(self, now: Run) -> None:
        """Put the directory in order, and enter a run that trains something into its manifest."""
        plan, executor, manifest = now.plan, now.executor, self.directory.manifest
        for name, text in self.stated.items():
            if manifest and manifest.stated.get(name) != text:
                begun = f"{self.directory.path} was begun without it; name another directory"
                raise BadValue("claim", text, f"{begun}, or judge it there.")
        self.say(*self.directory.prepare())
        # An empty shard's directory says what it is a part of, so that it can be merged.
        function = self.grid.study.identity.function
        is_described = function is None or (manifest and manifest.function == function)
        if not plan.batches and (plan.cells or manifest) and is_described:
            return
        how: dict[str, str | int | float | None] = {
            "jobs": executor.jobs,
            "backend": executor.name,
            "device": executor.device,
            "shard": None if plan.shard is None else str(plan.shard),
            "time_limit": self.options.time_limit,
            "trajectories": self.options.trajectories or None,
            **({} if self.refinement is None else self.refinement.settings),
        }
        with writing_to(self.directory.path):
            data, preset = now.work.data, self.subject.preset
            self.directory.record(plan.grid, how, data=data, preset=preset, stated=self.stated)

    @property
    def _cells(self) -> list[Cell]:
        return self.grid.cells() if self.refinement is None else [*self.refinement.asked]

    def cells(self) -> pd.DataFrame:
        """Return the cells of the sweep that are there, in the order of the grid and its seeds."""
        if self.directory.contents().empty:
            nothing: pd.DataFrame = part.cell_schema(self.grid.study).empty_table().to_pandas()
            return nothing
        seen = dict[Any, int]()
        cells = sorted(self._cells, key=lambda cell: seen.setdefault(cell.parameters, len(seen)))
        keys = pd.DataFrame({"key": [cell.key for cell in cells]})
        return keys.merge(self.directory.load_cells())


def _differing(first: pd.DataFrame, again: pd.DataFrame, study: AnyStudy) -> Differing:
    """The columns of cells that have another number the second time, with both."""
    found = dict[str, dict[str, tuple[float | None, float | None]]]()
    again = again.reindex(columns=first.columns)
    both = first.merge(again, on="key", suffixes=("", " again")).set_index("key")
    for name in first.columns.difference([*taken_columns(study.parameters)]):
        old, new = (pd.to_numeric(both[each]) for each in (name, f"{name} again"))
        is_same = np.isclose(old, new, rtol=ROUNDING, atol=TINY, equal_nan=True)
        for key, *pair in zip(both.index[~is_same], old[~is_same], new[~is_same], strict=True):
            one, other = (None if np.isnan(each) else float(each) for each in pair)
            found.setdefault(str(key), {})[name] = one, other
    return found


@contextlib.contextmanager
def open_sweep(
    subject: Subject, given: Mapping[str, Any], how: SweepOptions, output: Console
) -> Iterator[Session]:
    """Give the session of a sweep, on an executor that is closed at the end.

    Args:
        given: the values of parameters that the user gives.
    """
    subject.take_data_folder(how.data)
    grid = grid_of(subject, given, how)
    if how.refine is None and how.threshold is not None:
        raise BadValue("threshold", how.threshold, "it requires refine, the number of rounds.")
    refinement = None if how.refine is None else Refinement(grid, how.refine, how.threshold)
    if how.shard is not None and refinement is not None:
        raise BadValue("shard", how.shard, "refinement chooses cells from all of them.")
    if how.time_limit is not None:
        how = replace(how, time_limit=finite_number("time_limit", how.time_limit, above=0))
    stated = read_stated(how.claim, subject.study, subject.sentences)
    name = subject.sweep_name(grid) + ("" if refinement is None else "-refined")
    directory = RunDirectory(how.out or files.results_folder() / name, "out")
    if how.adopt and not how.dry_run:
        given = dict(text.partition("=")[::2] for text in how.adopt)
        adopted = directory.adopt(Grid.read(subject.study, given, (0,)))
        output.print(f"Adopted: {plural(adopted, 'cell')} with {', '.join(how.adopt)}.")
    with clusters.executor_of(how.backend, how.jobs, how.device, how.address) as executor:
        yield Session(subject, grid, output, directory, executor, how, refinement, stated)


def train_cell(
    subject: Subject, given: Mapping[str, Any], seed: Any, how: SweepOptions, output: Console
) -> Watch:
    """Train one cell again, print its steps, and keep it; return who has seen it.

    Args:
        given: the values of parameters that the user gives, one of each.
    """
    subject.take_data_folder(how.data)
    study = subject.study
    grid = Grid.read(study, {**subject.profile.texts, **given}, (whole_number("seed", seed, 0),))
    grid.check_seeds("seed")
    for name, values in grid.axes.items():
        takes = f"a training takes one value of {name}, not {len(values)}"
        raise BadValue(name, None, f"{takes}; a sweep takes several.")
    path = how.out or files.results_folder() / subject.training_name(grid, given)
    watch, directory = Watch(study, output, path), RunDirectory(path, "out")
    here = clusters.executor_of("loky", 1, how.device)
    options = SweepOptions(fresh=True, trajectories=True)
    session = Session(subject, grid, output, directory, here, options)
    now = session.prepare()
    session.record(now)
    now.work = replace(now.work, execution=watch.seeing(now.work.execution))
    now.execute()
    return watch
