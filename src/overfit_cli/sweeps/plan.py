"""The plan of a sweep: which cells are there, which will run, in which batches and how long.

A shard is the part of a sweep that one machine runs. A refinement chooses cells in rounds, from a
coarse grid to the cells that tell where a boundary lies.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import hashlib
import itertools
import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from overfit_cli.core import expressions, processes, registry
from overfit_cli.core.cell import Cell
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.figure import Figure
from overfit_cli.core.options import DEFAULTS, SweepOptions, whole_number
from overfit_cli.core.parameters import Value, build, describe
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import plural
from overfit_cli.core.training import Device, Execution, training_conditions
from overfit_cli.stats.boundary_search import FIRST_SEEDS, CrossingEstimate, Point, Search
from overfit_cli.sweeps import load, part, worker
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.store import RunDirectory


@dataclass(frozen=True)
class Plan:
    """A sweep before it runs.

    Attributes:
        cells: all of the grid's cells.
        batches: the cells that will run, as they are trained together.
        failed: how many are there as failed and are left so.
        again: how many are there and will run again.
        stale: how many cells of an earlier numerical version lie in the directory.
        of_other_source: how many of the cells that are kept were trained by other code, or have a
            digest of it that was made in another way.
        parameters_changed: how a function's parameters have changed since it was last run there.
    """

    grid: Grid
    cells: list[Cell]
    batches: list[list[Cell]]
    done: int
    failed: int
    again: int
    stale: int
    of_other_source: int = 0
    parameters_changed: str = ""
    shard: Shard | None = None

    def __repr__(self) -> str:
        """Write it in a line: how many cells of what, and how many will run."""
        cells = f"{plural(len(self.cells), 'cell')} of {self.grid.study.name}"
        return f"<Plan of {cells}: {self.to_run} to run>"

    @functools.cached_property
    def costs(self) -> list[float]:
        """The cost of each batch, in the study's unit."""
        return [sum(map(self.grid.study.cost, batch)) for batch in self.batches]

    @property
    def to_run(self) -> int:
        """The number of cells that will run."""
        return sum(len(batch) for batch in self.batches)


def make_plan(
    grid: Grid,
    directory: RunDirectory,
    device: Device,
    how: SweepOptions = DEFAULTS,
    cells: list[Cell] | None = None,
) -> Plan:
    """Compare a grid, or some cells, with what the directory holds.

    Cells are run again that are failed or without a trajectory where `how` says so, or all.
    """
    study, shard = grid.study, None if how.shard is None else Shard.read(how.shard)
    trajectories = how.trajectories and study.has_steps
    directory.check_study(study)
    cells = grid.cells() if cells is None else cells
    with registry.blaming(study, "the cost or the memory of a cell"):
        cells = cells if shard is None else shard.cells_of(cells, study.cost)
        if device == "cpu" and cells:  # a shard may have none
            _check_memory(grid, cells)
    contents = directory.contents(trajectories=trajectories)
    stored = contents.reindex([cell.key for cell in cells])  # nothing but gaps for one that lacks
    is_there, is_failed = stored["status"].notna(), stored["status"].eq("failed")
    redone = is_failed & how.retry_failed | ~is_failed & stored["logged"].ne(True) & trajectories
    stays = is_there & ~redone & (not how.fresh)
    statuses, source = Counter(stored["status"][stays]), study.identity.source
    return Plan(
        grid=grid,
        cells=cells,
        batches=_batches(study, [*itertools.compress(cells, ~stays)], device),
        done=statuses["done"],
        failed=statuses["failed"],
        again=int((is_there & ~stays).sum()),
        stale=int((contents["version"] != study.version).sum()),
        of_other_source=int((~stored["source"][stays].isin(["", source])).sum()) if source else 0,
        parameters_changed=_compare_function(study, directory),
        shard=shard,
    )


def _compare_function(study: AnyStudy, directory: RunDirectory) -> str:
    """How a function's parameters have changed; another file of the same name is refused."""
    manifest, present = directory.manifest, study.identity.function
    if manifest.function is None or present is None:
        return ""
    references = (manifest.function.reference, present.reference)
    earlier, now = (Path(reference.rpartition(":")[0]) for reference in references)
    changed = bool(manifest.runs) and manifest.runs[-1].source != study.identity.source
    if changed and earlier.is_file() and now.is_file() and not earlier.samefile(now):
        raise directory.error(f"it holds cells of another file, {earlier}; name another directory.")
    types = (part.parameter_types(one.parameters) for one in (manifest.function, present))
    change = part.change_of(*types)
    if change and present.command:  # only types can differ
        told = "values tell the types, unless the command line says {lr:float}, {n:int} or {a:text}"
        raise directory.error(f"{change} in its cells; {told}.")
    return change


def _batches(study: AnyStudy, cells: list[Cell], device: Device) -> list[list[Cell]]:
    with registry.blaming(study, "making batches"):
        batches = [list(batch) for batch in study.batches(cells, device)]
    batched = sorted(cell.key for batch in batches for cell in batch)
    if batched != sorted(cell.key for cell in cells):
        raise UserError(f"The study {study.name!r} puts a cell into no batch, or into several.")
    return [batch for batch in batches if batch]


def _check_memory(grid: Grid, cells: list[Cell]) -> None:
    """Refuse a cell that needs more memory than this machine has, where both are known."""
    largest = max(cells, key=lambda cell: grid.study.memory(cell) or 0.0)
    needed, present = grid.study.memory(largest) or 0.0, math.inf
    with contextlib.suppress(AttributeError, ValueError, OSError):  # not on every system
        present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > present:
        values = largest.parameters.model_dump()
        at = ", ".join(f"{name} {values[name]}" for name in grid.values) or "The defaults"
        wants = f"a cell needs about {needed / 1e9:.3g} GB and this machine has {present / 1e9:.3g}"
        raise UserError(f"{at}: {wants}; smaller values are accepted.")


# Shards

MOST_SHARDS = 100_000


@dataclass(frozen=True)
class Shard:
    """One part of several.

    Attributes:
        number: which, from 1.
    """

    number: int
    of: int

    @classmethod
    def read(cls, text: str) -> Shard:
        """Return the shard that a text names, such as `2/8`."""
        # No longer numbers: `int` would take thousands of digits.
        found = re.fullmatch(r"(\d{1,8})/(\d{1,8})", text, re.ASCII)
        number, count = map(int, found.groups()) if found else (0, 0)
        if not 1 <= number <= count <= MOST_SHARDS:
            raise BadValue("shard", text, "it takes I/N, such as 2/8: the second of eight parts.")
        return cls(number, count)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def cells_of(self, cells: Sequence[Cell], cost: Callable[[Cell], float]) -> list[Cell]:
        """Return this shard's cells, in their order.

        Cells are dealt out by falling cost, one to each shard and then back again, whether they are
        finished or not: so each machine finds the same parts whenever it looks. Of the same cost,
        neighbours in the grid go to different shards; who is first is drawn anew each time. So what
        is missing falls to all alike, and so do costs that nobody knows, such as a function's.

        Args:
            cells: of the whole sweep, in the same order for all shards.
        """
        costs = [cost(cell) for cell in cells]
        falling = sorted(range(len(cells)), key=lambda index: -costs[index])
        ranks = list[int]()
        for start in range(0, len(falling), 2 * self.of):
            index = self._place(start)
            ranks += [start + index, start + 2 * self.of - 1 - index]
        chosen = sorted(falling[rank] for rank in ranks if rank < len(falling))
        return [cells[rank] for rank in chosen]

    def _place(self, turn: int) -> int:
        """Its place from 0 in a turn, drawn by a hash: the same with every version of Python."""

        def drawn(number: int) -> bytes:
            return hashlib.sha256(f"{number}/{self.of} {turn}".encode()).digest()

        return sorted(range(1, self.of + 1), key=drawn).index(self.number)


# The order of batches


EARLY = 0.5
"""The share of all cost that goes coarse to fine."""

LONG = 0.25
"""The share of a job's cost from which a batch is long: started late, it would end alone."""


def diagram_axes(grid: Grid) -> tuple[str, str] | None:
    """Return the two axes with the most numbers, as (up, across); of equally long ones the first.

    None where there are no two.
    """
    axes = {name: grid.axes[name] for name in grid.free_axes}
    numeric = [name for name in axes if not any(isinstance(v, str | bool) for v in axes[name])]
    longest = sorted(numeric, key=lambda name: -len(axes[name]))[:2]
    chosen = tuple(name for name in numeric if name in longest)
    return chosen if len(chosen) == 2 else None


def coarse_to_fine(plan: Plan, jobs: int) -> list[list[Cell]]:
    """Return a plan's batches in the order to start them.

    Long batches come first. Seed by seed follow the corners of the grid, then the places halfway
    between those that are there, pass by pass, up to a half of all cost; from there it is the
    study's order, in which cheap batches are last, so that all jobs end together. Without two axes
    of numbers all go in the study's order.
    """
    axes = diagram_axes(plan.grid)
    if axes is None:
        return plan.batches
    depths = [(name, _depths(plan.grid.axes[name])) for name in axes]
    ranks = {seed: rank for rank, seed in enumerate(plan.grid.seeds)}
    costs, total = plan.costs, sum(plan.costs)

    def pass_of(cell: Cell) -> tuple[int, int]:
        up, across = (depth[getattr(cell.parameters, name)] for name, depth in depths)
        # Between four places their centre comes first, then the middles of their edges.
        return ranks[cell.seed], 2 * max(up, across) + (up != across)

    def place(index: int) -> tuple[bool, tuple[int, int]]:
        return costs[index] * jobs <= LONG * total, min(map(pass_of, plan.batches[index]))

    order = sorted(range(len(costs)), key=place)
    spent = itertools.accumulate(costs[index] for index in order)
    early = sum(cost <= EARLY * total for cost in spent)
    return [plan.batches[index] for index in (*order[:early], *sorted(order[early:]))]


def _depths(values: Sequence[Value]) -> dict[Value, int]:
    """Return how often a range is halved until it comes to each number; its ends have 0."""
    depths, depth = {0: 0, len(values) - 1: 0}, 0
    while len(depths) < len(values):
        depth += 1
        gaps = itertools.pairwise(sorted(depths))
        depths |= {(low + high) // 2: depth for low, high in gaps if high - low > 1}
    return {value: depths[place] for place, value in enumerate(sorted(values))}


# Time


class Estimate(NamedTuple):
    """The estimated time and memory of a plan; None for what isn't known.

    Attributes:
        seconds: wall time of all that is left to run, with the imports of what trains.
        memory: bytes, with as many cells at a time as there are jobs, as the study says.
    """

    seconds: float | None
    memory: float | None


class _TimeOver(processes.Interrupted):
    """The end of a timed batch: like an interrupt, it is no result of a cell."""


def estimate(plan: Plan, jobs: int, execution: Execution, within: float) -> Estimate:
    """Train one of the plan's batches here, as its study shortens it, and scale by the costs.

    It is the batch that has a half of all cost in cheaper ones. Nothing of it is kept.

    Args:
        within: seconds after which it is cut; the time isn't known then.
    """
    study, costs = plan.grid.study, plan.costs
    order = sorted(range(len(costs)), key=costs.__getitem__)
    spent = [*itertools.accumulate(costs[index] for index in order)]
    middle = plan.batches[order[bisect.bisect_left(spent, spent[-1] / 2)]]
    probe, took = [study.probe(cell) for cell in middle], list[float]()
    execution = replace(execution, fail_fast=False, time_limit=None)  # one clock at a time
    deadline = time.monotonic() + within
    with (
        contextlib.suppress(_TimeOver),
        training_conditions(),
        processes.alarm(deadline, _TimeOver),
    ):
        for _ in range(2):  # the first time it imports what trains, and fills the cache
            began = time.perf_counter()
            list(worker.train_all(study, probe, execution))
            took.append(time.perf_counter() - began)
    busy = min(jobs, len(costs))
    largest = max(study.memory(cell) or 0.0 for cell in itertools.chain(*plan.batches))
    memory = busy * largest or None
    if not took:
        return Estimate(None, memory)
    rate = took[-1] / (sum(map(study.cost, probe)) or 1.0)
    return Estimate(max(0.0, took[0] - took[-1]) + rate * max(sum(costs) / busy, *costs), memory)


# Refinement

LEAST_COARSE = 3
FINE = 100
"""The tolerance is the spacing of a grid of so many points."""


class Refinement:
    """A sweep that finds a boundary: it says which cells come next, and what is known.

    The boundary is where a column crosses a threshold along x, for each y: that of the study's
    figure of one. Where its study leaves the axes open, x is the grid's axis of real numbers.

    Only cells that it has chosen itself count, in the order of its rounds: so it chooses the
    same ones whatever else the directory holds, and goes on after a kill where it was.

    Args:
        grid: the coarse grid; the search's axes are its only ones.
        rounds: how many may follow that of the coarse grid.
        threshold: the value at which a cell changes sides; None for the study's own.

    Attributes:
        figure: the name of the figure that shows the boundary.
        estimates: what is known of the boundary.
        asked: the cells that have been asked for so far.
    """

    def __init__(self, grid: Grid, rounds: int, threshold: float | str | None) -> None:
        self.grid, self.rounds = grid, whole_number("refine", rounds, 0)
        if not grid.is_product:
            accepts = "it takes a full grid: leave out together, only and expressions in parameters"
            raise BadValue("refine", rounds, f"{accepts}.")
        figure = _figure_of_a_boundary(grid)
        own, level = figure.options, figure.options.threshold
        self.figure, self.value = figure.name, own.value or grid.study.headline
        if threshold is not None:
            level = expressions.read_number(threshold, "threshold")
        if level is None:
            accepts = f"{grid.study.name} has no threshold of its own; give one."
            raise BadValue("refine", None, accepts)
        self.x, self.y = (own.x, own.y) if own.x and own.y else _open_axes(grid)
        for name in grid.axes.keys() - {self.x, self.y}:
            one = f"it refines along {self.x} for each {self.y}, at one value of {name}"
            raise BadValue("refine", None, f"{name} varies too; {one}.")
        coarse = sorted(self._values(self.x))
        if len(coarse) < LEAST_COARSE or coarse[0] <= 0:
            accepts = f"refining takes at least {LEAST_COARSE} values of {self.x}, all above 0."
            raise BadValue(self.x, None, accepts)
        tolerance = (coarse[-1] - coarse[0]) / (FINE - 1)
        self.search = Search(self._values(self.y), coarse, grid.seeds, level, tolerance)
        self.estimates = list[CrossingEstimate]()
        self.asked = dict[Cell, Point]()
        self._known = pd.DataFrame(columns=["y", "seed", "x", "value"])

    @property
    def settings(self) -> dict[str, str | int | float]:
        """What a manifest says of it."""
        known = {"tolerance": self.search.tolerance, "threshold": float(self.search.threshold)}
        return {"refine": self.rounds, **known, "value": self.value}

    @property
    def coarse_grid(self) -> Grid:
        """The grid of the first round: of the first seeds only."""
        return replace(self.grid, seeds=self.grid.seeds[:FIRST_SEEDS])

    def rounds_of_cells(self) -> Iterator[list[Cell]]:
        """Give the cells of each round, until everything has converged; `learn` comes between."""
        points = self.search.first_points()
        for _ in range(self.rounds + 1):
            if points:
                cells = {self._cell(point): point for point in points}
                self.asked |= cells
                yield [*cells]
                points = self.search.next_points(self._known)

    def learn(self, directory: RunDirectory) -> None:
        """Take in what the directory holds of the cells asked for."""
        data, points = load.load_run(directory), {cell.key: at for cell, at in self.asked.items()}
        rows = data.trained[data.trained["key"].isin(points.keys())]
        # Which column of a function's is the first is known once it has measured something.
        self.value = self.value or data.study.headline
        numbers = rows.get(self.value, pd.Series(math.nan, rows.index))
        values = numbers.where(rows["status"] == "done").astype(float)
        known = [(*points[key], value) for key, value in zip(rows["key"], values, strict=True)]
        self._known = pd.DataFrame(known, columns=["y", "seed", "x", "value"])
        self.estimates = self.search.estimates(self._known)

    def _cell(self, point: Point) -> Cell:
        study = self.grid.study
        setting = {name: values[0] for name, values in self.grid.values.items()}
        as_y = int if describe(study.parameters)[self.y].kind == "int" else float
        setting |= {self.x: point.x, self.y: as_y(point.y)}
        return Cell(study.name, study.version, build(study.parameters, setting), point.seed)

    def _values(self, name: str) -> list[float]:
        default = describe(self.grid.study.parameters)[name].default
        given = self.grid.values.get(name, () if default is None else (default,))
        return [float(value) for value in given]


def _figure_of_a_boundary(grid: Grid) -> Figure:
    """A study's own figure of a boundary, else one that shows two sides."""
    candidates = [
        figure
        for figure in grid.study.figures().values()
        if "threshold" in figure.accepts and figure.reads == "cells" and figure.axes == 2
    ]
    if not candidates:
        raise BadValue("refine", None, f"{grid.study.name} has no figure of a boundary to refine.")
    return min(candidates, key=lambda one: (one.options.threshold is None, one.name != "cutoff"))


def _open_axes(grid: Grid) -> tuple[str, str]:
    infos = describe(grid.study.parameters)
    x = next((name for name in grid.axes if infos[name].kind == "float"), "")
    others = [name for name in (*grid.axes, *infos) if infos[name].is_number and name != x]
    if not x or not others:
        wants = "it refines along an axis of real numbers, for each value of another number"
        raise BadValue("refine", None, f"{wants}; the axes here are {', '.join(grid.axes)}.")
    return x, others[0]
