"""Refinement: from a coarse grid to the cells that tell where a boundary lies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from overfit_cli.core.cell import Cell
from overfit_cli.core.errors import BadValue, whole_number
from overfit_cli.core.expressions import read_number
from overfit_cli.core.parameters import Value, build, describe
from overfit_cli.stats.boundary_search import (
    FIRST_SEEDS,
    CrossingEstimate,
    Point,
    Search,
    crossing_estimates,
    first_points,
    next_points,
)
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.load import load_run
from overfit_cli.sweeps.store import RunDirectory

LEAST_COARSE = 3
FINE = 100
"""The tolerance is the spacing of a grid of so many points."""


@dataclass(frozen=True)
class BoundaryTarget:
    """The crossing of a threshold along x, for each y, and the figure that shows it."""

    figure: str
    x: str
    y: str
    value: str
    threshold: float


def boundary_target(grid: Grid, threshold: float | None) -> BoundaryTarget:
    """Return the boundary that a grid is refined for: that of its study's figure of one.

    Of a study that leaves a figure's axes open, x is the grid's axis of real numbers.

    Args:
        threshold: the value at which a cell changes sides; None for the study's own.
    """
    study = grid.study
    candidates = [one for one in study.figures().values() if "threshold" in one.accepts]
    candidates = [one for one in candidates if one.reads == "cells" and one.axes == 2]
    if not candidates:
        raise BadValue("refine", None, f"{study.name} has no figure of a boundary to refine.")
    # The study's own, else one that shows two sides.
    figure = min(candidates, key=lambda one: (one.options.threshold is None, one.name != "cutoff"))
    options = figure.options
    level = options.threshold if threshold is None else threshold
    if level is None:
        value = study.headline or "its first column"
        accepts = f"name the value of {value} at which a cell changes sides as threshold."
        raise BadValue("refine", None, f"{study.name} has no threshold of its own; {accepts}")
    x, y = (options.x, options.y) if options.x and options.y else _open_axes(grid)
    return BoundaryTarget(figure.name, x, y, options.value or study.headline, level)


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


class Refinement:
    """A sweep that finds a boundary: it says which cells come next, and what is known.

    Only cells that it has chosen itself count, in the order of its rounds: so it chooses the
    same ones whatever else the directory holds, and goes on after a kill where it was.

    Args:
        grid: the coarse grid; the search's axes are its only ones.
        rounds: how many may follow that of the coarse grid.

    Attributes:
        estimates: what is known of the boundary.
        asked: the cells that have been asked for so far.
    """

    def __init__(self, grid: Grid, rounds: int, target: BoundaryTarget) -> None:
        self.grid, self.rounds, self.target = grid, rounds, target
        coarse = self._checked_axes()
        self.search = Search(
            y=[float(y) for y in self._values(target.y)],
            coarse=coarse,
            seeds=grid.seeds,
            threshold=target.threshold,
            tolerance=(coarse[-1] - coarse[0]) / (FINE - 1),
        )
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
        level = None if threshold is None else read_number(threshold, "threshold")
        return cls(grid, rounds, boundary_target(grid, level))

    @property
    def settings(self) -> dict[str, str | int | float]:
        """What a manifest says of it."""
        search, target = self.search, self.target
        known = {"tolerance": search.tolerance, "threshold": float(target.threshold)}
        return {"refine": self.rounds, **known, "value": target.value}

    @property
    def coarse_grid(self) -> Grid:
        """The grid of the first round: of the first seeds only."""
        return replace(self.grid, seeds=self.grid.seeds[:FIRST_SEEDS])

    def rounds_of_cells(self) -> Iterator[list[Cell]]:
        """Give the cells of each round, until everything has converged; `learn` comes between."""
        points = first_points(self.search)
        for _ in range(self.rounds + 1):
            cells = self._cells(points)
            self.asked += cells
            self._points.update(zip((cell.key for cell in cells), points, strict=True))
            if points:
                yield cells
                points = next_points(self.search, self._known)

    def learn(self, directory: RunDirectory) -> None:
        """Take in what the directory holds of the cells asked for."""
        data, points = load_run(directory), self._points
        rows = data.trained[data.trained["key"].isin(points.keys())]
        # Which column of a function's is the first is known once it has measured something.
        self.target = replace(self.target, value=self.target.value or data.study.headline)
        numbers = rows.get(self.target.value, pd.Series(math.nan, rows.index))
        values = numbers.where(rows["status"] == "done").astype(float)
        known = [(*points[key], value) for key, value in zip(rows["key"], values, strict=True)]
        self._known = pd.DataFrame(known, columns=["y", "seed", "x", "value"])
        self.estimates = crossing_estimates(self.search, self._known)

    def _cells(self, points: Sequence[Point]) -> list[Cell]:
        study, target = self.grid.study, self.target
        others = {name: values[0] for name, values in self.grid.values.items()}
        whole = describe(study.parameters)[target.y].kind == "int"
        cells = []
        for point in points:
            y = int(point.y) if whole else point.y
            parameters = build(study.parameters, others | {target.x: point.x, target.y: y})
            cells.append(Cell(study.name, study.version, parameters, point.seed))
        return cells

    def _values(self, name: str) -> tuple[Value, ...]:
        default = describe(self.grid.study.parameters)[name].default
        return self.grid.values.get(name, () if default is None else (default,))

    def _checked_axes(self) -> list[float]:
        x, y = self.target.x, self.target.y
        for name in self.grid.axes.keys() - {x, y}:
            one = f"at one value of {name}, such as {self.grid.values[name][0]}"
            accepts = f"{name} varies too; it refines along {x} for each {y}, {one}."
            raise BadValue("refine", None, accepts)
        coarse = sorted(float(value) for value in self._values(x))
        begins = f"refining begins with at least {LEAST_COARSE} values of {x}, all above 0; "
        if coarse and coarse[0] <= 0:
            raise BadValue(x, None, f"{begins}{x} = {coarse[0]:g} isn't.")
        if len(coarse) < LEAST_COARSE:
            are = "is" if len(coarse) == 1 else "are"
            raise BadValue(x, None, f"{begins}there {are} {len(coarse)}.")
        return coarse
