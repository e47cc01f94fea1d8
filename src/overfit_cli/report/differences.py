"""Differences of two runs.

The difference of two sides in one measured column: its mean over seeds, and the largest.

A comparison as JSON: everything that the terminal shows, and each published point.

The measured columns that two sides are compared in.

The two sides of a comparison: the chosen cells of a run directory, or published points.

Interpolation of a run's cells at the other side's points, seed by seed.

Why no cell of B has a counterpart in A, and which option pairs them.

Claims judged on both sides of a comparison, and the verdicts that change.

Comparison of two runs, or of a run and published numbers: what changes from A to B.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from overfit_cli.core.claim import Measurement
from overfit_cli.core.parameters import Value, describe
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import UserError, nearest, plural
from overfit_cli.report.judge import LoadedRun, finite_or_null, interval_or_null, judge_run
from overfit_cli.report.published import read_published
from overfit_cli.stats.intervals import Estimate, difference_estimate, mean_estimate
from overfit_cli.stats.pairs import (
    DIGITS,
    Pairs,
    as_place,
    between,
    by_ratio,
    finite,
    pair_up,
    places,
)
from overfit_cli.sweeps.load import (
    chosen_cells,
    load_study_and_cells,
    parameters_in,
    read_selections,
)
from overfit_cli.sweeps.manifest import read_manifest
from overfit_cli.sweeps.store import RunDirectory

MOST_AXES = 3
"""The limit of parameters that vary in a figure of a comparison: a map's two, and its panels."""


@dataclass(frozen=True)
class Point:
    """A published number beside the run's.

    Attributes:
        at: the values of the parameters.
        own: the run's mean over seeds.
        published: the published number.
        difference: published less own, with the interval of the mean over seeds.
    """

    at: Mapping[str, Value]
    own: float
    published: float
    difference: Estimate

    @property
    def is_inside(self) -> bool:
        """Whether the published number lies in the interval of the run's mean."""
        return self.difference.low <= 0 <= self.difference.high


@dataclass(frozen=True)
class Difference:
    """How two sides differ in a measured column; every difference is B less A.

    Attributes:
        column: its name.
        pairs: how many pairs of cells have a number on both sides; of means and of published
            numbers, how many places.
        lone: how many pairs that are done have a number on one side alone.
        mean_a, mean_b: over the pairs of each seed, and then over seeds.
        estimate: the mean difference, with its interval over seeds.
        largest: the difference that is the largest in absolute value; nan without pairs.
        at: where that is: the parameters, and the seed where cells are paired.
        points: every place, where B is published.
    """

    column: str
    pairs: int
    lone: int
    mean_a: float
    mean_b: float
    estimate: Estimate
    largest: float
    at: Mapping[str, Value]
    points: tuple[Point, ...] = ()

    @property
    def is_none(self) -> bool:
        """Whether every pair has the same number twice."""
        return self.pairs > 0 and self.largest == 0 and not self.lone


def difference_in(
    column: str, pairs: Pairs, names: Sequence[str], a: pd.DataFrame, b: pd.DataFrame
) -> Difference:
    """Return how two sides differ in a column.

    Seeds are independent draws, and cells of one seed aren't: the mean difference is that of each
    seed's pairs, averaged over seeds. Without a seed in common it is the mean of B's seeds less
    that of A's, each seed's numbers taken from the middle of both sides at their place.

    Args:
        column: the measured column.
        pairs: the pairs.
        names: the parameters that pairs share.
        a, b: all cells of both sides.
    """
    rows = pairs.left.assign(a=finite(pairs.left, column), b=finite(pairs.right, column))
    done = (pairs.left["status"] == "done") & (pairs.right["status"] == "done")
    lone = int((done & (rows["a"].isna() != rows["b"].isna())).sum())
    rows = rows[rows["a"].notna() & rows["b"].notna()]
    if rows.empty:
        nothing = Estimate(np.nan, np.nan, np.nan, "", 0)
        return Difference(column, 0, lone, np.nan, np.nan, nothing, np.nan, {})
    if pairs.by == "means":
        middle = dict(zip(places(rows, names), (rows["a"] + rows["b"]) / 2, strict=True))
        first, second = (_by_seed(cells, column, names, middle) for cells in (a, b))
        estimate = difference_estimate(second, first)
    else:
        seeds = rows.groupby("seed")[["a", "b"]].mean()
        first, second = seeds["a"], seeds["b"]
        estimate = mean_estimate(second - first)
    points = _points(rows, names) if pairs.by == "point" else ()
    shown = [*names, *(["seed"] if pairs.by == "seed" else [])]
    each = np.array([one.difference.value for one in points] or (rows["b"] - rows["a"]).tolist())
    most = int(np.abs(each).argmax())
    at = points[most].at if points else _values(rows.iloc[most], shown)
    means = float(first.mean()), float(second.mean())
    largest = float(each[most])
    return Difference(column, len(each), lone, *means, estimate, largest, at, points)


def _by_seed(
    cells: pd.DataFrame, column: str, names: Sequence[str], middle: Mapping[Any, float]
) -> pd.Series[float]:
    """The mean of each seed at the places that both sides have.

    A seed may lack some of the places: its numbers are taken from the middle at their place, so
    that it doesn't count which.
    """
    at = places(cells, names).map(lambda place: middle.get(place, np.nan)).astype(float)
    apart = (finite(cells, column) - at).groupby(cells["seed"]).mean().dropna()
    found: pd.Series[float] = apart + float(np.mean(list(middle.values())))
    return found


def _points(rows: pd.DataFrame, names: Sequence[str]) -> tuple[Point, ...]:
    """Every place with the run's mean over seeds and the published number."""
    found = []
    for _, cells in rows.groupby(places(rows, names), sort=False):
        own, published = float(cells["a"].mean()), float(cells["b"].iloc[0])
        difference = mean_estimate(published - cells["a"])
        found.append(Point(_values(cells.iloc[0], names), own, published, difference))
    return tuple(found)


def _values(row: pd.Series[Any], names: Sequence[str]) -> dict[str, Value]:
    """Values of a row as Python's own numbers and texts."""
    return {name: row[name].item() if hasattr(row[name], "item") else row[name] for name in names}


SCHEMA = 1


def as_json(found: Comparison, tolerance: float | None = None) -> str:
    """Return a comparison as JSON; what isn't finite is null.

    Args:
        found: the comparison.
        tolerance: beyond which two sides differ; None where none is asked for.
    """
    pairs, between = found.pairs, found.between
    content = {
        "schema": SCHEMA,
        "difference": "B - A",
        "a": _side(found.a),
        "b": _side(found.b),
        "settings": {name: {"a": one, "b": two} for name, (one, two) in found.settings.items()},
        "paired_by": [*found.names, *(["seed"] if pairs.by == "seed" else [])],
        "pairs": pairs.both,
        "alone": {"a": found.alone_in_a, "b": found.alone_in_b},
        "failed_on_one_side": {"a": found.failed_in_a, "b": found.failed_in_b},
        "means_over_seeds": pairs.by != "seed",
        "interpolated": None
        if between is None
        else {
            "points": between.points,
            "interpolated": between.between,
            "unknown": between.unknown,
            "axes": {name: "log" if log else "linear" for name, log in between.axes.items()},
        },
        "columns": [_column(one) for one in found.differences],
        "columns_on_one_side": {"a": list(found.only_in_a), "b": list(found.only_in_b)},
        "verdicts": [
            {"claim": one.claim, "changed": one.changed, "a": _verdict(one.a), "b": _verdict(one.b)}
            for one in found.verdicts
        ],
        "tolerance": tolerance,
        "beyond": None if tolerance is None else found.beyond(tolerance),
    }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def _side(one: Side) -> dict[str, Any]:
    return {
        "path": str(one.path),
        "where": list(one.where),
        "published": one.is_published,
        "study": one.study.name,
        "version": one.version,
        "cells": len(one.cells),
        "failed": int((one.cells["status"] == "failed").sum()),
    }


def _column(one: Difference) -> dict[str, Any]:
    return {
        "column": one.column,
        "pairs": one.pairs,
        "numbers_on_one_side": one.lone,
        "mean_a": finite_or_null(one.mean_a),
        "mean_b": finite_or_null(one.mean_b),
        "difference": _estimate(one.estimate),
        "largest": {"difference": finite_or_null(one.largest), "at": dict(one.at)},
        **({"points": [_point(point) for point in one.points]} if one.points else {}),
    }


def _point(one: Point) -> dict[str, Any]:
    return {
        "at": dict(one.at),
        "a": finite_or_null(one.own),
        "b": finite_or_null(one.published),
        "difference": _estimate(one.difference),
    }


def _verdict(one: Measurement) -> dict[str, Any]:
    value, interval = finite_or_null(one.value), interval_or_null(one.interval)
    return {"verdict": one.verdict, "value": value, "interval": interval}


def _estimate(one: Estimate) -> dict[str, Any]:
    return {
        "value": finite_or_null(one.value),
        "low": finite_or_null(one.low),
        "high": finite_or_null(one.high),
        "kind": one.kind,
        "seeds": one.seeds,
    }


def asked_columns(a: Side, b: Side, values: Sequence[str]) -> list[str]:
    """Return the columns that the user names.

    Raises:
        UserError: if a name is unknown, or a side has no number of it.
    """
    known = [*_measured(a), "seconds"]
    for name in values:
        if name not in known:
            raise UserError(
                f"--value {name}: {a.study.name} measures no {name!r}; {nearest(name, known)}"
            )
        for one in (a, b):
            if not _has_numbers(one, name):
                raise UserError(f"--value {name}: {one.letter} {one.path} has no number of it.")
    return list(dict.fromkeys(values))


def shared_columns(a: Side, b: Side) -> list[str]:
    """Return the columns that both sides have numbers of, the headline first.

    Raises:
        UserError: if there is none.
    """
    of_a = [name for name in _measured(a) if _has_numbers(a, name)]
    shared = [name for name in of_a if _has_numbers(b, name) and not _counts_nothing(name, a, b)]
    if not of_a:
        raise UserError(f"A {a.path}: none of its {plural(len(a.cells), 'cell')} has a number.")
    if not shared:
        raise UserError(
            f"B {b.path}: it has no number of what A has numbers of: {', '.join(of_a)}."
        )
    return shared


def lonely_columns(one: Side, other: Side) -> list[str]:
    """Return the columns that one side has numbers of, and the other doesn't."""
    names = _measured(one)
    return [name for name in names if _has_numbers(one, name) and not _has_numbers(other, name)]


def _measured(side: Side) -> list[str]:
    """What a study measures, the headline first."""
    study = side.study
    names = [study.headline, *(column.name for column in study.columns), "steps"]
    return [name for name in dict.fromkeys(names) if name]


def _has_numbers(side: Side, name: str) -> bool:
    return name in side.cells and bool(finite(side.cells, name).notna().any())


def _counts_nothing(name: str, a: Side, b: Side) -> bool:
    """Whether these are the steps of a study that takes none."""
    return name == "steps" and not any(finite(one.cells, name).any() for one in (a, b))


@dataclass(frozen=True)
class Side:
    """One side of a comparison.

    Attributes:
        letter: `A` or `B`.
        path: the run directory, or the CSV file.
        where: the conditions that choose cells of this side alone.
        shared: those that choose cells of both sides.
        study: whose cells they are; of published points, that of the other side.
        cells: one row per cell, done and failed; published points have a seed or none.
        parameters: the names of the parameters that the cells have a column of.
        version: the cells' numerical version; None of published points.
        refined: whether a sweep chose the cells one by one.
        data: fingerprints of the data that the cells were trained on, by name.
    """

    letter: str
    path: Path
    where: tuple[str, ...]
    shared: tuple[str, ...]
    study: AnyStudy
    cells: pd.DataFrame
    parameters: tuple[str, ...]
    version: int | None = None
    refined: bool = False
    data: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_published(self) -> bool:
        """Whether it is a file of published points, and no run."""
        return self.version is None

    @property
    def is_of_another_version(self) -> bool:
        """Whether the study here has another numerical version than the cells."""
        return self.version not in (None, self.study.version)

    def values(self, name: str) -> list[Value]:
        """Return the values that a parameter takes, in order; those of one place once."""
        found: list[Value] = self.cells[name].dropna().unique().tolist()
        return sorted({as_place(value): value for value in found}.values())


def load_run(path: Path, letter: str, where: Sequence[str], own: Sequence[str]) -> Side:
    """Return the side that a run directory is, of whatever version its cells are.

    Args:
        path: the run directory.
        letter: `A` or `B`.
        where: conditions that choose cells of both sides.
        own: conditions that choose cells of this one.

    Raises:
        UserError: if it holds no cells, or none that is chosen.
    """
    directory = RunDirectory(path, letter)
    study, cells = load_study_and_cells(directory, any_version=True)
    selections = read_selections(where, study)
    selections += read_selections(own, study, f"--where-{letter.lower()}")
    manifest = read_manifest(path)
    return Side(
        letter,
        path,
        tuple(own),
        tuple(where),
        study,
        chosen_cells(cells, selections).reset_index(drop=True),
        tuple(parameters_in(cells)),
        int(cells["version"].iloc[0]),
        manifest is not None and manifest.refined,
        {} if manifest is None else manifest.data,
    )


def load_points(path: Path, other: Side, where: Sequence[str], own: Sequence[str]) -> Side:
    """Return the side that a CSV file of published points is.

    Args:
        path: the file.
        other: the run that it is compared with, whose study has measured the same.
        where: conditions that choose cells of both sides; those on what the file doesn't have are
            about the run alone.
        own: conditions that choose points.

    Raises:
        UserError: if it can't be read (see `read_published`), or no point is chosen.
    """
    points = read_published(path, other.study)
    columns = list(points.columns)
    shared = [one for one in read_selections(where, other.study) if one.name in columns]
    shared += read_selections(own, other.study, "--where-b")
    chosen = chosen_cells(points, shared).reset_index(drop=True)
    names = [name for name in columns[: columns.index("status")] if name != "seed"]
    return Side("B", path, tuple(own), tuple(where), other.study, chosen, tuple(names))


def names_of(a: Side, b: Side) -> tuple[str, str]:
    """Return what two sides are called: by the last part of their paths, in full if they share it.

    The conditions on one side alone are part of its name.
    """
    whole = [one.path.resolve() for one in (a, b)]
    alike = whole[0].name == whole[1].name and whole[0] != whole[1]
    called = [str(one.path) if alike else one.path.resolve().name for one in (a, b)]
    first, second = (
        f"{name} ({', '.join(one.where)})" if one.where else name
        for name, one in zip(called, (a, b), strict=True)
    )
    return first, second


def shared_axes(a: Side, b: Side) -> list[str]:
    """Return the parameters that vary on either side, in whose values pairs agree.

    Raises:
        UserError: if a side doesn't have a parameter that varies on the other.
    """
    order = list(dict.fromkeys([*a.parameters, *b.parameters]))
    varying = [
        name
        for name in order
        if any(name in one.parameters and len(one.values(name)) > 1 for one in (a, b))
    ]
    for one, other in ((a, b), (b, a)):
        for name in varying:
            if name not in one.parameters:
                what = "it has no column" if one.is_published else "its cells have no parameter"
                of = ""
                if one.study.name != other.study.name:
                    of = f" A is of {a.study.name}, and B of {b.study.name}:"
                raise UserError(
                    f"{one.letter} {one.path}:{of} {what} {name}, which varies in {other.letter}; "
                    f"choose one value with --where-{other.letter.lower()} {name}=VALUE."
                )
    return varying


def different_settings(a: Side, b: Side) -> dict[str, tuple[Value, Value]]:
    """Return the parameters that have one value on each side, and not the same one."""
    found = {}
    for name in a.parameters:
        if name in b.parameters:
            first, second = a.values(name), b.values(name)
            if len(first) == len(second) == 1 and as_place(first[0]) != as_place(second[0]):
                found[name] = (first[0], second[0])
    return found


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interpolated:
    """A run's cells, and what lies between them.

    Attributes:
        cells: the run's own, and one for each seed and each point where it has none; its numbers
            are interpolated.
        points: how many points the other side has.
        between: at how many of those the numbers are interpolated.
        unknown: how many lie beyond the run's grid, or beside a gap in it.
        axes: along what is interpolated, and whether in the logarithm.
    """

    cells: pd.DataFrame
    points: int
    between: int
    unknown: int
    axes: Mapping[str, bool]


def interpolate(
    cells: pd.DataFrame,
    points: pd.DataFrame,
    names: Sequence[str],
    axes: Sequence[str],
    columns: Sequence[str],
) -> Interpolated:
    """Interpolate measured columns at points that a run hasn't, between the cells of each seed.

    Along an axis whose values are spaced by ratio the logarithm is taken. Beyond the cells of a
    seed, and beside one that failed or is missing, nothing is known.

    Args:
        cells: the run's parameters, `seed`, `status` and columns, one row per cell.
        points: rows with the parameters.
        names: the parameters that make a point.
        axes: those of them between whose values is interpolated; the others must agree.
        columns: the measured columns.
    """
    logarithmic = {name: by_ratio(np.unique(_rounded(cells[name]))) for name in axes}
    settings = [name for name in names if name not in axes]
    place, own = places(points, names), set(places(cells, names))
    wanted = points[~place.isin(own) & ~place.duplicated()]
    by_setting = dict(list(wanted.groupby(places(wanted, settings))))
    made = [
        _of_one_seed(group, by_setting[at], names, logarithmic, columns)
        for _, of_seed in cells.groupby("seed")
        for at, group in of_seed.groupby(places(of_seed, settings))
        if at in by_setting
    ]
    known = [rows for rows in made if len(rows)]
    found = len(set(places(pd.concat(known), names))) if known else 0
    return Interpolated(
        pd.concat([cells, *known], ignore_index=True),
        points=place.nunique(),
        between=found,
        unknown=len(wanted) - found,
        axes=logarithmic,
    )


def _of_one_seed(
    cells: pd.DataFrame,
    points: pd.DataFrame,
    names: Sequence[str],
    logarithmic: Mapping[str, bool],
    columns: Sequence[str],
) -> pd.DataFrame:
    """The points between one seed's cells, those at which some column is known."""
    axes = {name: np.unique(_rounded(cells[name])) for name in logarithmic}
    if min(map(len, axes.values())) < 2:
        return points.iloc[:0]
    at = tuple(np.searchsorted(axis, _rounded(cells[name])) for name, axis in axes.items())
    scaled = [_scaled(axis, logarithmic[name]) for name, axis in axes.items()]
    where = [_scaled(_rounded(points[name]), log) for name, log in logarithmic.items()]
    rows = cells.iloc[[0] * len(points)].set_index(points.index)  # what doesn't vary
    rows = rows.assign(**{name: points[name] for name in names}, status="done")
    for column in columns:
        grid = np.full([len(axis) for axis in scaled], np.nan)
        grid[at] = finite(cells, column)
        rows[column] = between(scaled, grid, np.column_stack(where))
    known: pd.DataFrame = rows[rows[list(columns)].notna().any(axis=1)]
    return known


def _rounded(values: Any) -> Floats:
    """Values of a parameter by which places are told apart, in order of the rows."""
    return np.array([float(f"{value:.{DIGITS}g}") for value in values], dtype=np.float64)


def _scaled(values: Floats, logarithmic: bool) -> Floats:
    """Values on the scale along which is interpolated; nan for what has no logarithm."""
    if not logarithmic:
        return values
    positive = values > 0
    return np.where(positive, np.log(np.where(positive, values, 1.0)), np.nan)


MOST_VALUES = 4
"""Of more values of a parameter, a sentence says the first and the last."""


def why_no_pair(a: Side, b: Side, names: Sequence[str], pairs: Pairs, *, interpolated: bool) -> str:
    """Return a sentence on why no cells are paired.

    Where both sides have no value of a parameter in common, it says which, and what to do.

    Args:
        a, b: the two sides.
        names: the parameters in whose values pairs agree.
        pairs: what was tried.
        interpolated: whether A was interpolated at B's points.
    """
    no_pair = f"B {b.path}: no {'point' if b.is_published else 'cell'} of it has"
    apart = [name for name in names if not _shared(a, b, name)]
    if not apart:
        seed = "the seed and " if pairs.by == "seed" else ""
        return f"{no_pair} {seed}the values of {', '.join(names)} of a cell of A."
    differs = "; ".join(
        f"{name} is {_listed(a.values(name))} in A and {_listed(b.values(name))} in B"
        for name in apart
    )
    chosen = " ".join(word for name in apart for side in (a, b) for word in _choice(side, name))
    choose = f"choose one value on each side with {chosen}"
    between = not interpolated and all(_is_between(a, b, name) for name in apart)
    interpolate = "compare between A's values with --interpolate, or " if between else ""
    return f"{no_pair} a counterpart: {differs}; {interpolate}{choose}."


def _shared(a: Side, b: Side, name: str) -> bool:
    first, second = ({as_place(value) for value in side.values(name)} for side in (a, b))
    return bool(first & second)


def _is_between(a: Side, b: Side, name: str) -> bool:
    """Whether some of B's values of a parameter lie between values of A."""
    info = describe(a.study.parameters).get(name)
    if info is None or info.kind not in ("int", "float"):
        return False
    own = [float(value) for value in a.values(name)]
    return any(own[0] < float(value) < own[-1] for value in b.values(name))


def _choice(side: Side, name: str) -> list[str]:
    """The option that leaves one value of a parameter on a side; none where it has one."""
    values = side.values(name)
    option = f"--where-{side.letter.lower()} {shlex.quote(f'{name}={values[0]}')}"
    return [option] if len(values) > 1 else []


def _listed(values: Sequence[Value]) -> str:
    """Values with commas; the first and the last of many."""
    texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    if len(texts) > MOST_VALUES:
        return f"{texts[0]} to {texts[-1]}"
    return ", ".join(texts)


@dataclass(frozen=True)
class Verdicts:
    """A claim as it was judged on each side."""

    claim: str
    a: Measurement
    b: Measurement

    @property
    def changed(self) -> bool:
        """Whether the two verdicts differ."""
        return self.a.verdict != self.b.verdict


def verdicts_of(a: Side, b: Side) -> list[Verdicts]:
    """Return every claim that can be measured on both sides; none where they can't be judged so."""
    if why_not_judged(a, b) or b.is_published or a.study.name != b.study.name:
        return []
    first, second = (
        {
            one.claim.name: one.measurement
            for one in judge_run(LoadedRun(RunDirectory(side.path), side.study, side.cells))
            if one.measurement.verdict != "not run"
        }
        for side in (a, b)
    )
    return [Verdicts(name, first[name], second[name]) for name in first if name in second]


def why_not_judged(a: Side, b: Side) -> str:
    """Return why claims aren't judged on cells of another version; empty where all are of this."""
    if b.is_published or not (a.study.has_claims or b.study.has_claims):
        return ""
    old = [one for one in (a, b) if one.is_of_another_version]
    if not old:
        return ""
    which = " and ".join(f"{one.letter}'s of {one.version}" for one in old)
    return (
        f"Verdicts aren't compared: cells are of another version than the claims, {which} and the "
        f"claims of {a.study.version}."
    )


@dataclass(frozen=True)
class Comparison:
    """What changes from A to B; every difference is B less A.

    Attributes:
        a, b: the two sides.
        settings: parameters with one value on each side that isn't the same: A's and B's.
        names: the parameters in whose values pairs agree.
        pairs: cells, or means over seeds, with their counterparts.
        between: what was interpolated of A at B's points; None where nothing was asked for.
        alone_in_a, alone_in_b: how many cells, or places, have no counterpart.
        differences: of each column that is compared.
        only_in_a, only_in_b: the measured columns of which one side alone has numbers.
        verdicts: of each claim that can be measured on both sides.
    """

    a: Side
    b: Side
    settings: Mapping[str, tuple[Value, Value]]
    names: tuple[str, ...]
    pairs: Pairs
    between: Interpolated | None
    alone_in_a: int
    alone_in_b: int
    differences: tuple[Difference, ...]
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]
    verdicts: tuple[Verdicts, ...]

    @property
    def unit(self) -> str:
        """What has its counterpart: a `cell`, or a `place` where means over seeds are compared."""
        return "cell" if self.pairs.by == "seed" else "place"

    @property
    def failed_in_b(self) -> int:
        """How many pairs of cells, or of means, failed in B and are done in A."""
        if self.pairs.by == "point":
            return 0
        failed = self.pairs.right["status"] == "failed"
        return int((failed & (self.pairs.left["status"] == "done")).sum())

    @property
    def failed_in_a(self) -> int:
        """How many failed in A and are done in B."""
        failed = self.pairs.left["status"] == "failed"
        return int((failed & (self.pairs.right["status"] == "done")).sum())

    @property
    def changed(self) -> list[Verdicts]:
        """The claims whose verdicts differ."""
        return [one for one in self.verdicts if one.changed]

    def table(self) -> pd.DataFrame:
        """Return a row for each compared column."""
        return pd.DataFrame(
            {
                "column": one.column,
                "pairs": one.pairs,
                "mean_a": one.mean_a,
                "mean_b": one.mean_b,
                "difference": one.estimate.value,
                "low": one.estimate.low,
                "high": one.estimate.high,
                "largest": one.largest,
            }
            for one in self.differences
        )

    def beyond(self, tolerance: float) -> list[str]:
        """Return in words what differs by more than a tolerance; nothing where all agrees.

        Published numbers may be of fewer points than the run, and of fewer columns: what they lack
        is no difference. Two runs must have the same cells, done or failed, and the same verdicts.

        Args:
            tolerance: how large a difference of a pair may be, in the unit of its column.
        """
        found = [
            f"{one.column} by up to {abs(one.largest):.4g}"
            for one in self.differences
            if abs(one.largest) > tolerance
        ]
        if self.b.is_published:
            return found
        found += [f"{name}, of which B has no number" for name in self.only_in_a]
        found += [
            f"{plural(one.lone, 'number')} of {one.column} on one side alone"
            for one in self.differences
            if one.lone
        ]
        if changed := self.failed_in_a + self.failed_in_b:
            found.append(f"{plural(changed, self.unit)} failed on one side alone")
        # Whoever interpolates compares at B's points, and A's own may be others.
        alone = self.alone_in_b + (self.alone_in_a if self.between is None else 0)
        if alone:
            found.append(f"{plural(alone, self.unit)} without a counterpart")
        if self.changed:
            found.append(plural(len(self.changed), "verdict"))
        return found


def compare_sides(
    a: Path,
    b: Path,
    values: Sequence[str] = (),
    where: Sequence[str] = (),
    where_a: Sequence[str] = (),
    where_b: Sequence[str] = (),
    *,
    interpolated: bool = False,
) -> Comparison:
    """Compare a run directory with another, or with a CSV file of published numbers.

    Args:
        a: a run directory.
        b: another, or a file whose name ends in `.csv`.
        values: the measured columns to compare; empty for all that both have numbers of.
        where: conditions that choose cells of both, such as `n=5:20`.
        where_a, where_b: conditions that choose cells of one of the two.
        interpolated: whether to interpolate A's cells at those points of B where A has none.

    Raises:
        UserError: if one of both can't be read, they share no cell and no column, or a column is
            unknown.
    """
    if is_csv(a):
        raise UserError(f"A {a}: A is a run directory; name the CSV file second.")
    first = load_run(a, "A", where, where_a)
    load = partial(load_points, b, first) if is_csv(b) else partial(load_run, b, "B")
    return compare_loaded(first, load(where, where_b), values, interpolated=interpolated)


def compare_loaded(
    first: Side, second: Side, values: Sequence[str] = (), *, interpolated: bool = False
) -> Comparison:
    """Compare two sides that are loaded.

    Args:
        first: a run.
        second: another, or published points.
        values: the measured columns to compare; empty for all that both have numbers of.
        interpolated: whether to interpolate the first at those points where it has none.

    Raises:
        UserError: if they share no cell and no column, or a column is unknown.
    """
    names = shared_axes(first, second)
    columns = asked_columns(first, second, values) if values else shared_columns(first, second)
    between = _between(first, second, names, columns) if interpolated else None
    own = pair_up(first.cells, second.cells, names, columns)
    cells = first.cells if between is None else between.cells
    pairs = own if between is None else pair_up(cells, second.cells, names, columns)
    if not pairs.both:
        raise UserError(why_no_pair(first, second, names, pairs, interpolated=interpolated))
    return Comparison(
        a=first,
        b=second,
        settings=different_settings(first, second),
        names=tuple(names),
        pairs=pairs,
        between=between,
        alone_in_a=own.here - own.both,
        alone_in_b=pairs.there - pairs.both,
        differences=tuple(difference_in(one, pairs, names, cells, second.cells) for one in columns),
        only_in_a=tuple(
            lonely_columns(first, second) if not (values or second.is_published) else ()
        ),
        only_in_b=tuple(lonely_columns(second, first) if not values else ()),
        verdicts=tuple(verdicts_of(first, second)),
    )


def is_csv(path: Path) -> bool:
    """Whether a path names a file of published numbers, by its ending."""
    return path.suffix.lower() == ".csv" and not path.is_dir()


def _between(a: Side, b: Side, names: Sequence[str], columns: Sequence[str]) -> Interpolated:
    """A's cells, and what lies between them at B's points."""
    kinds = describe(a.study.parameters)
    axes = [
        name
        for name in names
        if name in kinds and kinds[name].kind in ("int", "float") and len(a.values(name)) > 1
    ]
    if not axes:
        raise UserError("--interpolate: no number varies in A, so nothing lies between its cells.")
    known = a.cells[[*a.parameters, "seed", "status", *columns]]
    return interpolate(known, b.cells, names, axes, columns)
