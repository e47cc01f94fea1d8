"""The phase diagram of a sweep: its headline over two axes, while its cells arrive."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from overfit_cli.errors import UserError
from overfit_cli.figures.terminal import phase_diagram
from overfit_cli.sweeps.loading import load_headlines

if TYPE_CHECKING:
    from rich.console import RenderableType

    from overfit_cli.parameters import Value
    from overfit_cli.study import Cell
    from overfit_cli.sweeps.grid import Grid
    from overfit_cli.sweeps.plan import Plan
    from overfit_cli.sweeps.store import RunDirectory

    Point = tuple[Value, Value]


@dataclass
class SweepDiagram:
    """The mean headline at each point of two axes, over all other axes and the seeds.

    Attributes:
        grid: what is swept.
        x, y: the axes across and up.
        headline: the column that is shown; a function's isn't known before its first result.
    """

    grid: Grid
    x: str
    y: str
    headline: str
    _sums: dict[Point, tuple[float, int]] = field(default_factory=dict)

    def add(self, cell: Cell, headline: float | None) -> None:
        """Take in a cell's headline; None or nan where the cell failed."""
        total, count = self._sums.get(self.point(cell), (0.0, 0))
        if headline is not None and not math.isnan(headline):
            total, count = total + headline, count + 1
        self._sums[self.point(cell)] = total, count

    def point(self, cell: Cell) -> Point:
        """Return where a cell lies, as (x, y)."""
        return getattr(cell.parameters, self.x), getattr(cell.parameters, self.y)

    def points(self) -> set[Point]:
        """Return every point that the grid has cells at."""
        return set(itertools.product(self.grid.axes[self.x], self.grid.axes[self.y]))

    def drawn(self, width: int, height: int) -> RenderableType:
        """Return the diagram in at most so many columns and rows of cells."""
        return phase_diagram(
            self._ascending(self.x),
            self._ascending(self.y),
            {at: total / count if count else None for at, (total, count) in self._sums.items()},
            title=self._title(),
            width=width,
            height=height,
            log=True,
        )

    def _ascending(self, name: str) -> Sequence[float]:
        return sorted(cast("tuple[float, ...]", self.grid.axes[name]))

    def _title(self) -> str:
        title = f"{self.headline or 'result'} over {self.x} (across) and {self.y} (up)"
        others = [name for name in self.grid.axes if name not in (self.x, self.y)]
        return f"{title}, mean over {', '.join(others)}" if others else title


def diagram_of(plan: Plan, directory: RunDirectory) -> SweepDiagram | None:
    """Return a plan's diagram, with the cells that are there already.

    None where there are no two axes of numbers, or where the plan's cells aren't at the points of
    its grid: those of a later round of `--refine` lie between them.

    Args:
        plan: what runs.
        directory: where the cells are that don't run again.
    """
    axes = _longest_axes(plan.grid)
    if axes is None:
        return None
    y, x = axes
    diagram = SweepDiagram(plan.grid, x, y, plan.grid.study.headline)
    if {diagram.point(cell) for cell in plan.cells} != diagram.points():
        return None
    runs = {cell.key for batch in plan.batches for cell in batch}
    kept = {cell.key: cell for cell in plan.cells if cell.key not in runs}
    headlines = _headlines(plan, directory) if kept else {}
    for key, cell in kept.items():
        if key in headlines:
            diagram.add(cell, headlines[key])
    return diagram


def _longest_axes(grid: Grid) -> tuple[str, str] | None:
    """The two axes with the most numbers, as (up, across); of equally long ones the first."""
    numeric = [
        name
        for name, values in grid.axes.items()
        if not any(isinstance(value, (str, bool)) for value in values)
    ]
    longest = sorted(numeric, key=lambda name: -len(grid.axes[name]))[:2]
    if len(longest) < 2:
        return None
    up, across = (name for name in numeric if name in longest)
    return up, across


def _headlines(plan: Plan, directory: RunDirectory) -> dict[str, float]:
    """The headline of each cell that is there by its key; empty where they can't be read."""
    with contextlib.suppress(UserError):  # a diagram that lacks cells stops no sweep
        return load_headlines(directory, plan.grid.study)
    return {}
