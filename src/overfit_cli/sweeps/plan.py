"""The plan of a sweep: which cells are there, which will run, in which batches."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from overfit_cli.core.cell import Cell
from overfit_cli.core.errors import UserError
from overfit_cli.core.html import html_table
from overfit_cli.core.parameters import Value
from overfit_cli.core.registry import blaming
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import brief, plural, shorten
from overfit_cli.core.training import Device
from overfit_cli.functions.experiment import FunctionRecord
from overfit_cli.sweeps.grid import Grid, Shard
from overfit_cli.sweeps.manifest import Run, read_manifest
from overfit_cli.sweeps.part_file import change_of, study_of
from overfit_cli.sweeps.store import RunDirectory


@dataclass(frozen=True)
class Plan:
    """A sweep before it runs.

    Attributes:
        cells: all of the grid's cells.
        batches: the cells that will run, as they are trained together.
        failed: how many are there as failed and are left so.
        again: keys that are there and will run again.
        stale: how many cells of an earlier numerical version lie in the directory.
        of_other_source: how many of the cells that are kept were trained by other code.
        parameters_changed: how a function's parameters have changed since it was last run there.
    """

    grid: Grid
    cells: list[Cell]
    batches: list[list[Cell]]
    done: int
    failed: int
    again: frozenset[str]
    stale: int
    of_other_source: int = 0
    parameters_changed: str = ""
    shard: Shard | None = None

    def __repr__(self) -> str:
        """Write it in a line: how many cells of what, and how many will run."""
        return f"<{self._title}: {self.to_run} to run>"

    def _repr_html_(self) -> str:
        counts = {
            "there already": self.done,
            "there as failed": self.failed,
            "to run": self.to_run,
        }
        rows = [(name, str(count)) for name, count in counts.items()]
        return html_table(f"{self._title}.", ("cells", "number"), rows)

    @property
    def _title(self) -> str:
        return f"Plan of {plural(len(self.cells), 'cell')} of {self.grid.study.name}"

    @property
    def to_run(self) -> int:
        """The number of cells that will run."""
        return sum(len(batch) for batch in self.batches)


def make_plan(
    grid: Grid,
    directory: RunDirectory,
    device: Device,
    *,
    cells: list[Cell] | None = None,
    fresh: bool = False,
    retry_failed: bool = False,
    trajectories: bool = False,
    shard: Shard | None = None,
) -> Plan:
    """Compare a grid with what the directory holds.

    Args:
        trajectories: run those again that have no trajectory.
    """
    grid.check()
    trajectories = trajectories and grid.study.has_steps
    _check_study(grid, directory)
    parameters_changed = _compare_function(grid.study, directory)
    if cells is None:
        cells = grid.cells()
    if shard is not None:
        with blaming(grid.study, "the cost of a cell"):
            cells = shard.cells_of(cells, grid.study.cost)
    if device == "cpu":
        with blaming(grid.study, "the memory of a cell"):
            _check_memory(grid, cells)
    contents = directory.contents(trajectories=trajectories)
    stays = [contents.stays(cell.key, fresh, retry_failed, trajectories) for cell in cells]
    chosen = [cell for cell, kept in zip(cells, stays, strict=True) if not kept]
    left = [contents.cells[cell.key] for cell, kept in zip(cells, stays, strict=True) if kept]
    statuses = Counter(stored.status for stored in left)
    stale = sum(stored.version != grid.study.version for stored in contents.cells.values())
    return Plan(
        grid=grid,
        cells=cells,
        batches=_batches(grid.study, chosen, device),
        done=statuses["done"],
        failed=statuses["failed"],
        again=frozenset(cell.key for cell in chosen if cell.key in contents.cells),
        stale=stale,
        parameters_changed=parameters_changed,
        of_other_source=sum(
            stored.is_of_other_source(grid.study.identity.source) for stored in left
        ),
        shard=shard,
    )


def _compare_function(study: AnyStudy, directory: RunDirectory) -> str:
    manifest = read_manifest(directory.path)
    if manifest is None or manifest.function is None or study.identity.function is None:
        return ""
    _check_file(study, manifest.function, manifest.runs, directory)
    return change_of(manifest.function, study.identity.function)


def other_settings(plan: Plan, directory: RunDirectory) -> str:
    """Say how many cells there have another value of a parameter that the plan has one value of.

    Parameters that an earlier sweep had as an axis don't count.
    """
    stored = directory.contents().cells if plan.cells else {}
    if not stored.keys() - {cell.key for cell in plan.cells}:
        return ""
    manifest = read_manifest(directory.path)
    earlier = {axis for run in (manifest.runs if manifest else ()) for axis in run.axes}
    points = [cell.parameters.model_dump() for cell in plan.cells]
    taken = {name: {point[name] for point in points} for name in points[0]}
    here = {
        name: min(values)
        for name, values in taken.items()
        if len(values) == 1 and name not in earlier
    }
    count, others = 0, dict[str, set[Value]]()
    for part in directory.cells.read(["key", "study", "version", *here]).values():
        if isinstance(part, pa.Table) and study_of(part) == plan.grid.study.name:
            for row in part.to_pylist():
                differing = [name for name in here if row.get(name, here[name]) != here[name]]
                count += bool(differing) and row["version"] == plan.grid.study.version
                for name in differing:
                    others.setdefault(name, set()).add(row[name])
    texts = [
        f"{name} {shorten(', '.join(map(brief, sorted(values))))} (here {brief(here[name])})"
        for name, values in others.items()
    ]
    are = f"{plural(count, 'cell')} of other settings {'is' if count == 1 else 'are'}"
    return f"{are} there: {'; '.join(texts)}." if count else ""


def _batches(study: AnyStudy, cells: list[Cell], device: Device) -> list[list[Cell]]:
    with blaming(study, "making batches"):
        batches = [list(batch) for batch in study.batches(cells, device)]
    batched = sorted(cell.key for batch in batches for cell in batch)
    if batched != sorted(cell.key for cell in cells):
        raise UserError(
            f"The study {study.name!r} puts a cell into no batch, or into more than one."
        )
    return [batch for batch in batches if batch]


def _check_study(grid: Grid, directory: RunDirectory) -> None:
    other = directory.study_name()
    if other not in (None, grid.study.name):
        raise directory.error(
            f"it holds cells of {other}, not of {grid.study.name}; name another directory."
        )


def _check_file(
    study: AnyStudy, before: FunctionRecord, runs: Sequence[Run], directory: RunDirectory
) -> None:
    records = (before, study.identity.function)
    earlier, present = (Path(record.reference.rpartition(":")[0]) for record in records)
    changed = bool(runs) and runs[-1].source != study.identity.source
    if changed and earlier.is_file() and present.is_file() and not earlier.samefile(present):
        raise directory.error(
            f"it holds cells of {earlier}, which is another file than {present}; name another "
            "directory."
        )


def _check_memory(grid: Grid, cells: list[Cell]) -> None:
    if not cells:  # of a shard that has none
        return
    largest = max(cells, key=lambda cell: grid.study.memory(cell) or 0.0)
    needed, present = grid.study.memory(largest), _physical_memory()
    if needed is not None and present is not None and needed > present:
        raise UserError(
            f"{_as_set(grid, largest)}: a cell needs about {needed / 1e9:.3g} GB and this machine "
            f"has {present / 1e9:.3g}; smaller values are accepted."
        )


def _as_set(grid: Grid, cell: Cell) -> str:
    values = cell.parameters.model_dump()
    return ", ".join(f"{name} {values[name]}" for name in grid.values) or "The defaults"


def _physical_memory() -> float | None:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return None
