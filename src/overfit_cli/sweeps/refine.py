"""Refinement: from a coarse grid to the cells that tell where a boundary lies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pandas as pd

from overfit_cli.core.cell import Cell
from overfit_cli.core.errors import BadValue
from overfit_cli.core.expressions import read_number
from overfit_cli.core.figure import Figure
from overfit_cli.core.options import whole_number
from overfit_cli.core.parameters import build, describe
from overfit_cli.stats.boundary_search import FIRST_SEEDS, CrossingEstimate, Point, Search
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.load import load_run
from overfit_cli.sweeps.store import RunDirectory

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

    def __init__(self, grid: Grid, rounds: int, threshold: float | None) -> None:
        self.grid, self.rounds = grid, rounds
        figure = _figure_of_a_boundary(grid)
        own = figure.options
        self.figure, self.value = figure.name, own.value or grid.study.headline
        level = own.threshold if threshold is None else threshold
        if level is None:
            value = grid.study.headline or "its first column"
            accepts = f"name the value of {value} at which a cell changes sides as threshold."
            problem = f"{grid.study.name} has no threshold of its own; {accepts}"
            raise BadValue("refine", None, problem)
        self.x, self.y = (own.x, own.y) if own.x and own.y else _open_axes(grid)
        coarse = self._checked_axis()
        tolerance = (coarse[-1] - coarse[0]) / (FINE - 1)
        self.search = Search(self._values(self.y), coarse, grid.seeds, level, tolerance)
        self.estimates = list[CrossingEstimate]()
        self.asked = list[Cell]()
        self._points = dict[str, Point]()
        self._known = pd.DataFrame(columns=["y", "seed", "x", "value"])

    @classmethod
    def read(
        cls, grid: Grid, rounds: int | None, threshold: float | str | None
    ) -> Refinement | None:
        """Return the refinement of a grid; None without rounds."""
        if rounds is None:
            if threshold is not None:
                raise BadValue("threshold", threshold, "it requires refine, the number of rounds.")
            return None
        whole_number("refine", rounds, 0)
        if not grid.is_product:
            accepts = "it takes a full grid: leave out together, only and expressions in parameters"
            raise BadValue("refine", rounds, f"{accepts}.")
        return cls(grid, rounds, None if threshold is None else read_number(threshold, "threshold"))

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
            cells = self._cells(points)
            self.asked += cells
            self._points.update(zip((cell.key for cell in cells), points, strict=True))
            if points:
                yield cells
                points = self.search.next_points(self._known)

    def learn(self, directory: RunDirectory) -> None:
        """Take in what the directory holds of the cells asked for."""
        data, points = load_run(directory), self._points
        rows = data.trained[data.trained["key"].isin(points.keys())]
        # Which column of a function's is the first is known once it has measured something.
        self.value = self.value or data.study.headline
        numbers = rows.get(self.value, pd.Series(math.nan, rows.index))
        values = numbers.where(rows["status"] == "done").astype(float)
        known = [(*points[key], value) for key, value in zip(rows["key"], values, strict=True)]
        self._known = pd.DataFrame(known, columns=["y", "seed", "x", "value"])
        self.estimates = self.search.estimates(self._known)

    def _cells(self, points: Sequence[Point]) -> list[Cell]:
        study = self.grid.study
        others = {name: values[0] for name, values in self.grid.values.items()}
        whole = describe(study.parameters)[self.y].kind == "int"
        cells = []
        for point in points:
            y = int(point.y) if whole else point.y
            parameters = build(study.parameters, others | {self.x: point.x, self.y: y})
            cells.append(Cell(study.name, study.version, parameters, point.seed))
        return cells

    def _values(self, name: str) -> list[float]:
        default = describe(self.grid.study.parameters)[name].default
        given = self.grid.values.get(name, () if default is None else (default,))
        return [float(value) for value in given]

    def _checked_axis(self) -> list[float]:
        """The coarse values of x, ascending."""
        for name in self.grid.axes.keys() - {self.x, self.y}:
            one = f"at one value of {name}, such as {self.grid.values[name][0]}"
            accepts = f"{name} varies too; it refines along {self.x} for each {self.y}, {one}."
            raise BadValue("refine", None, accepts)
        coarse = sorted(self._values(self.x))
        problem = ""
        if coarse and coarse[0] <= 0:
            problem = f"{self.x} = {coarse[0]:g} isn't"
        elif len(coarse) < LEAST_COARSE:
            problem = f"there {'is' if len(coarse) == 1 else 'are'} {len(coarse)}"
        if problem:
            begins = f"refining begins with at least {LEAST_COARSE} values of {self.x}, all above 0"
            raise BadValue(self.x, None, f"{begins}; {problem}.")
        return coarse


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
    kinds = {name: info.kind for name, info in describe(grid.study.parameters).items()}
    numbers = [name for name, kind in kinds.items() if kind in ("int", "float")]
    numbers.sort(key=lambda name: name not in grid.axes)
    x = next((name for name in numbers if name in grid.axes and kinds[name] == "float"), "")
    if not x or len(numbers) < 2:
        wants = "it refines along an axis of real numbers, for each value of another number"
        axes = ", ".join(grid.axes) or "none"
        raise BadValue("refine", None, f"{wants}; the axes here are {axes}.")
    return x, next(name for name in numbers if name != x)
