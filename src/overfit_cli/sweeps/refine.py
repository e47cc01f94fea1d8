"""Refinement: from a coarse grid to the cells that tell where a boundary lies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from overfit_cli.core.cell import Cell
from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import Value, build, describe
from overfit_cli.core.values import finite_number, whole_number
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
from overfit_cli.sweeps.load import load_study_and_cells
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
    # The study's own, else one that shows two sides.
    ranked = sorted(
        candidates, key=lambda one: (one.options.threshold is None, one.name != "cutoff")
    )
    figure = next(iter(ranked), None)
    if figure is None:
        raise BadValue("refine", None, f"{study.name} has no figure of a boundary to refine.")
    options = figure.options
    level = options.threshold if threshold is None else threshold
    if level is None:
        raise BadValue(
            "refine",
            None,
            f"{study.name} has no threshold of its own; name the value of "
            f"{study.headline or 'its first column'} at which a cell changes sides as threshold.",
        )
    x, y = (options.x, options.y) if options.x and options.y else _open_axes(grid)
    return BoundaryTarget(figure.name, x, y, options.value or study.headline, level)


def _open_axes(grid: Grid) -> tuple[str, str]:
    kinds = describe(grid.study.parameters)
    numbers = [name for name, info in kinds.items() if info.kind in ("int", "float")]
    real = [name for name in numbers if name in grid.axes and kinds[name].kind == "float"]
    if not real or len(numbers) < 2:
        raise BadValue(
            "refine",
            None,
            "it refines along an axis of real numbers, for each value of another number; the axes "
            f"here are {', '.join(grid.axes) or 'none'}.",
        )
    others = [name for name in numbers if name != real[0]]
    return real[0], next((name for name in others if name in grid.axes), others[0])


class Refinement:
    """A sweep that finds a boundary: it says which cells come next, and what is known.

    Only cells that it has chosen itself count, in the order of its rounds: so it chooses the
    same ones whatever else the directory holds, and goes on after a kill where it was.

    Args:
        grid: the coarse grid; the search's axes are its only ones.
    """

    def __init__(self, grid: Grid, target: BoundaryTarget) -> None:
        self.grid, self.target = grid, target
        coarse = self._checked_axes()
        self.search = Search(
            y=[float(y) for y in self._values(target.y)],
            coarse=coarse,
            seeds=grid.seeds,
            threshold=target.threshold,
            tolerance=(coarse[-1] - coarse[0]) / (FINE - 1),
        )
        self._asked: list[Point] = []
        self._known = pd.DataFrame(columns=["y", "seed", "x", "value"])

    @property
    def coarse_grid(self) -> Grid:
        """The grid of the first round: of the first seeds only."""
        return replace(self.grid, seeds=self.grid.seeds[:FIRST_SEEDS])

    @property
    def asked(self) -> int:
        """The number of cells requested so far."""
        return len(self._asked)

    def asked_cells(self) -> list[Cell]:
        """Return the cells that have been asked for so far."""
        return self._cells(self._asked)

    def next_cells(self) -> list[Cell]:
        """Return the cells of the next round; none where everything has converged."""
        points = next_points(self.search, self._known) if self._asked else first_points(self.search)
        self._asked += points
        return self._cells(points)

    def learn(self, directory: RunDirectory) -> list[CrossingEstimate]:
        """Take in what the directory holds of the cells asked for; return what is known now."""
        study, cells = load_study_and_cells(directory)
        points = {
            cell.key: point
            for cell, point in zip(self._cells(self._asked), self._asked, strict=True)
        }
        rows = cells[cells["key"].isin(points.keys())]
        # Which column of a function's is the first is known once it has measured something.
        self.target = replace(self.target, value=self.target.value or study.headline)
        numbers = rows.get(self.target.value, pd.Series(math.nan, rows.index))
        values = numbers.where(rows["status"] == "done").astype(float)
        self._known = pd.DataFrame(
            [(*points[key], value) for key, value in zip(rows["key"], values, strict=True)],
            columns=["y", "seed", "x", "value"],
        )
        return crossing_estimates(self.search, self._known)

    def _cells(self, points: Sequence[Point]) -> list[Cell]:
        study = self.grid.study
        others = {name: values[0] for name, values in self.grid.values.items()}
        kinds = describe(study.parameters)
        cells = []
        for point in points:
            y = int(point.y) if kinds[self.target.y].kind == "int" else point.y
            values = others | {self.target.x: point.x, self.target.y: y}
            parameters = build(study.parameters, values)
            cells.append(Cell(study.name, study.version, parameters, point.seed))
        return cells

    def _values(self, name: str) -> tuple[Value, ...]:
        default = describe(self.grid.study.parameters)[name].default
        return self.grid.values.get(name, () if default is None else (default,))

    def _checked_axes(self) -> list[float]:
        x, y = self.target.x, self.target.y
        for name in self.grid.axes:
            if name not in (x, y):
                raise BadValue(
                    "refine",
                    None,
                    f"{name} varies too; it refines along {x} for each {y}, at one value of "
                    f"{name}, such as {self.grid.values[name][0]}.",
                )
        coarse = sorted(float(value) for value in self._values(x))
        begins = f"refining begins with at least {LEAST_COARSE} values of {x}, all above 0; "
        if coarse and coarse[0] <= 0:
            raise BadValue(x, None, f"{begins}{x} = {coarse[0]:g} isn't.")
        if len(coarse) < LEAST_COARSE:
            raise BadValue(
                x, None, f"{begins}there {'is' if len(coarse) == 1 else 'are'} {len(coarse)}."
            )
        return coarse


def refinement_of(grid: Grid, rounds: int | None, threshold: float | None) -> Refinement | None:
    """Return the refinement of a grid; None without rounds."""
    if rounds is None:
        if threshold is not None:
            raise BadValue("threshold", threshold, "it requires refine, the number of rounds.")
        return None
    whole_number("refine", rounds, 0)
    if not grid.is_product:
        accepts = "it takes a full grid: leave out together, only and expressions in parameters."
        raise BadValue("refine", rounds, accepts)
    level = None if threshold is None else finite_number("threshold", threshold)
    return Refinement(grid, boundary_target(grid, level))
