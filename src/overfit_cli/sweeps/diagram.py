"""The phase diagram of a running sweep: the mean headline at each point of two axes."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pandas as pd
from rich.console import RenderableType

from overfit_cli.core.errors import UserError
from overfit_cli.core.parameters import Value
from overfit_cli.core.registry import figures_of
from overfit_cli.core.study import FigureData
from overfit_cli.stats.equations import parse_equation
from overfit_cli.sweeps.order import diagram_axes
from overfit_cli.sweeps.part_file import Refusal
from overfit_cli.sweeps.plan import Plan
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.terminal import Landmarks, phase_diagram

if TYPE_CHECKING:
    import pyarrow as pa

    from overfit_cli.core.cell import Cell
    from overfit_cli.core.study import AnyStudy
    from overfit_cli.sweeps.grid import Grid

    Point = tuple[Value, Value]


@dataclass
class SweepDiagram:
    """The mean headline at each point of two axes, over all other axes and the seeds.

    Attributes:
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
        if self.grid.is_product:
            return set(itertools.product(self.grid.axes[self.x], self.grid.axes[self.y]))
        names = list(self.grid.given)
        x, y = names.index(self.x), names.index(self.y)
        return {(row[x], row[y]) for row in self.grid.rows()}

    def render(self, width: int, height: int) -> RenderableType:
        """Render the diagram in at most so many columns and rows of cells."""
        return phase_diagram(
            self._ascending(self.x),
            self._ascending(self.y),
            {
                point: total / count if count else None
                for point, (total, count) in self._sums.items()
            },
            title=self._title(),
            width=width,
            height=height,
            log=True,
            landmarks=self._landmarks,
        )

    @functools.cached_property
    def _landmarks(self) -> Landmarks:
        study, names = self.grid.study, (self.x, self.y)
        if not study.headline:
            return Landmarks()
        law = None
        with contextlib.suppress(UserError):  # it has constants besides the axes
            text = law_of(self.grid, self.x, self.y)
            law = parse_equation(text, names) if text else None
        return Landmarks(study.threshold, study.sides, law, names)

    def _ascending(self, name: str) -> Sequence[float]:
        return sorted(cast("tuple[float, ...]", self.grid.axes[name]))

    def _title(self) -> str:
        title = f"{self.headline or 'result'} over {self.x} (across) and {self.y} (up)"
        others = [name for name in self.grid.axes if name not in (self.x, self.y)]
        return f"{title}, mean over {', '.join(others)}" if others else title


MOST_FOR_LAW = 1000
"""The cells that a study is asked for the law of."""


def law_of(grid: Grid, x: str, y: str) -> str | None:
    """Return the equation that a figure of the headline draws over two axes, if one does."""
    headline = grid.study.headline
    for figure in figures_of(grid.study).values():
        options = figure.options
        if (options.x, options.y, options.value) != (x, y, headline):
            continue
        if figure.equation_of is not None:
            cells = grid.some_cells(MOST_FOR_LAW)
            frame = pd.DataFrame([cell.parameters.model_dump() for cell in cells])
            text = figure.equation_of(FigureData(grid.study, frame, frame, pd.DataFrame()))
            return text and _with_numbers(text, frame, (x, y))
        return next(iter(options.law or ()), None)
    return None


def _with_numbers(text: str, cells: pd.DataFrame, axes: tuple[str, str]) -> str | None:
    """An equation with its constants as a number; None where one has several values here."""
    equation = parse_equation(text, axes, {str(name): str(name) for name in cells})
    constants = equation.names - {*axes}
    if not constants:
        return text
    if equation.right.names & {*axes} or (cells[[*constants]].nunique() > 1).any():
        return None
    values = {name: cells[name].to_numpy()[:1] for name in constants}
    return f"{str(equation.left).strip()} = {float(equation.right.value(values)[0]):.4g}"


def diagram_of(plan: Plan, directory: RunDirectory) -> SweepDiagram | None:
    """Return a plan's diagram, with the cells that are there already.

    None where there are no two axes of numbers, or where the plan's cells aren't at the points of
    its grid: those of a later round of `--refine` lie between them.
    """
    axes = diagram_axes(plan.grid)
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


def load_headlines(directory: RunDirectory, study: AnyStudy) -> dict[str, float]:
    """Return the headline measurement of each cell by its key; nan where it failed.

    It reads only the columns that it needs, because a sweep that goes on waits for it.
    """
    wanted = ["key", "status", study.headline] if study.headline else None
    headlines: dict[str, float] = {}
    for part in directory.cells.read(wanted).values():
        if isinstance(part, Refusal):
            continue
        for key, status, number in _rows_of(part, study.headline):
            has_number = status == "done" and number is not None
            if has_number or key not in headlines:  # a cell that failed at first may be there twice
                headlines[key] = number if has_number else math.nan
    return headlines


def _rows_of(part: pa.Table, name: str) -> Iterator[tuple[str, str, Any]]:
    """The key, the status and the headline of each row: without a name, the first measurement."""
    names = part.column_names
    name = name or next(iter(names[names.index("seconds") + 1 :]), "")
    numbers = part.column(name).to_pylist() if name in names else [None] * part.num_rows
    return zip(
        part.column("key").to_pylist(), part.column("status").to_pylist(), numbers, strict=True
    )


def _headlines(plan: Plan, directory: RunDirectory) -> dict[str, float]:
    with contextlib.suppress(UserError):  # a diagram that lacks cells stops no sweep
        return load_headlines(directory, plan.grid.study)
    return {}
