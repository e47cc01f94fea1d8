"""Comparison of two runs, or of a run and published numbers: B less A, with standard errors.

Cells are paired by the parameters that vary and by seed. Seeds are independent draws, and cells of
one seed are not: a difference is averaged over the pairs of each seed, and then over seeds. What is
found stands in one dictionary, which is the JSON, and from which the sentences and tables are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from overfit_cli.core.arrays import finite_column
from overfit_cli.core.cells import Cells, Run
from overfit_cli.core.claim import Interval, number_with_interval
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.expressions import read_conditions
from overfit_cli.core.files import short_names
from overfit_cli.core.parameters import Value
from overfit_cli.core.text import brief, shorten, suggestion, three_digits, visible
from overfit_cli.report.contrasts import Margin, compare_column, places_of
from overfit_cli.report.published import ENDINGS, beside_study, error_column, read_published
from overfit_cli.report.words import sentences, templates
from overfit_cli.stats.pairs import Pairs, pair_up, setting_key
from overfit_cli.sweeps.load import load_run
from overfit_cli.sweeps.manifest import provenance_in_words
from overfit_cli.sweeps.store import RunDirectory


@dataclass(frozen=True)
class Comparison:
    """The changes from A to B; every difference is B − A.

    Attributes:
        where: the conditions on both sides, on A alone and on B alone.
        pairs: cells, or means over seeds, with their counterparts.
        tolerance: the margin within which columns are judged; None without verdicts.
        content: what is compared and what is found, as JSON has it.
    """

    a: Cells
    b: Cells
    where: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    pairs: Pairs
    tolerance: Margin | None
    content: Mapping[str, Any]

    def __repr__(self) -> str:
        """Write it in a line: both sides, and what is said first."""
        a, b = map(visible, self.names)
        return f"<Comparison of A {a} and B {b}: {self.above()[0]}>"

    def _repr_html_(self) -> str:
        table = templates(autoescape=True).get_template("comparison.html")
        return table.render(above=self.above(), rows=self.rows(), below=self.below())

    @property
    def columns(self) -> list[dict[str, Any]]:
        """A record for each compared column, the first of which is drawn."""
        records: list[dict[str, Any]] = self.content["columns"]
        return records

    @property
    def differs(self) -> bool:
        """Whether some column differs by more than the tolerance."""
        return any(record.get("verdict") == "differs" for record in self.columns)

    @property
    def names(self) -> list[str]:
        """The last part of the sides' paths, in full if they share it, and their conditions."""
        names = short_names([path_of(side) for side in (self.a, self.b)])
        return [
            f"{name} ({', '.join(where)})" if where else name
            for name, where in zip(names, self.where[1:], strict=True)
        ]

    def table(self) -> pd.DataFrame:
        """Return a row for each compared column."""
        columns = ["column", "pairs", "mean_a", "mean_b", "difference", "low", "high", "largest"]
        return _flat(self.columns)[columns + ["verdict"] * (self.tolerance is not None)]

    def places(self) -> pd.DataFrame:
        """Return a row for each column and setting: both means, their difference and its error."""
        places = [
            {"column": record["column"], **place.pop("at"), **place}
            for record in self.columns
            for place in places_of(record["column"], self.a, self.b, self.pairs, self.tolerance)
        ]
        unsaid = ["difference.kind", "difference.seeds", "difference.inner", "lacks"]
        return _flat(places, unsaid)

    def above(self) -> list[str]:
        """Return what is said above the table of columns: verdicts, both sides, and the pairs."""
        versions = [side.study.version for side in (self.a, self.b)]
        return sentences(
            "compare_above.txt",
            **self.content,
            by=self.pairs.by,
            names=self.names,
            current=versions,
            setting=_setting,
            furthest=_furthest,
        )

    def below(self) -> list[str]:
        """Return what is said below it: intervals, and numbers that are left out."""
        return sentences("compare_below.txt", **self.content, by=self.pairs.by)

    def rows(self) -> list[dict[str, str]]:
        """Return the compared columns with the mean on each side and the differences, in words."""
        rows = []
        for record in self.columns:
            largest, change = record["largest"], record["difference"]
            ends = Interval(change["low"], change["high"], "")
            at = f" at {_setting(largest['at'])}" if largest["difference"] and largest["at"] else ""
            rows.append(
                {
                    "column": record["column"],
                    "mean of A": three_digits(record["mean_a"]),
                    "mean of B": three_digits(record["mean_b"]),
                    "B − A": number_with_interval(change["value"], ends),
                    "largest": f"{three_digits(largest['difference'])}{at}",
                }
            )
        return rows


def _flat(records: Sequence[dict[str, Any]], unsaid: Sequence[str] = ()) -> pd.DataFrame:
    """A row for each record, whose numbers are called by their last names."""
    named = {"difference.value": "difference", "largest.difference": "largest"}
    named |= {f"seeds.{side}": f"seeds_{side}" for side in "ab"}
    frame = pd.json_normalize([*records]).drop(columns=[*unsaid], errors="ignore")
    return frame.rename(columns=lambda name: named.get(name, name.rpartition(".")[2]))


def _setting(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {brief(value)}" for name, value in values.items())


def _furthest(points: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The points that differ, the furthest first; those without a known error lead."""
    differing = [point for point in points if point["verdict"] == "differs"]
    return sorted(differing, key=lambda point: -np.nan_to_num(abs(point["z"]), nan=np.inf))


def path_of(side: Cells) -> Path:
    """Return the run directory, or the file, of one side."""
    return side.runs[0].path or Path()


def is_published(side: Cells) -> bool:
    """Return whether a side is a file of published points, and no run."""
    return "version" not in side.frame


# The two sides


def compare_sides(
    path_a: Path,
    path_b: Path,
    values: Sequence[str] = (),
    where: Sequence[str] = (),
    where_a: Sequence[str] = (),
    where_b: Sequence[str] = (),
    *,
    tolerance: object = None,
) -> Comparison:
    """Compare a run directory with another, or with a file of published numbers.

    The arguments and the errors are those of `overfit_cli.compare`.
    """
    margin = None if tolerance is None else Margin.read(tolerance)
    is_file = [path.suffix.lower() in ENDINGS and not path.is_dir() for path in (path_a, path_b)]
    if is_file[0]:
        raise UserError(f"A {path_a}: A is a run directory; name the published file second.")
    a = load_side(path_a, "A", where, where_a, values)
    b = load_side(path_b, "B", where, where_b, values, a if is_file[1] else None)
    sides = {"a": a, "b": b}
    names, settings = _pair_parameters(sides)
    in_a, in_b = (columns_with_numbers(side, values) for side in (a, b))
    columns = _choose_columns(sides, {"a": in_a, "b": in_b}, values)
    shared = {*a.frame} & {*b.frame}
    pairs = pair_up(a.trained, b.trained, names, columns) if shared.issuperset(names) else None
    if pairs is None or not pairs.both:
        raise _no_pair(sides, names)
    if margin and is_file[1] and not any(error_column(name) in pairs.right for name in columns):
        accepts = (
            f"{path_of(b)} has no uncertainty; beside {columns[0]} it takes {columns[0]}_sd and "
            f"seeds, {columns[0]}_se, or {columns[0]}_low and {columns[0]}_high."
        )
        raise BadValue("tolerance", None, accepts)
    lost_a, lost_b = (rows["status"] == "failed" for rows in (pairs.left, pairs.right))
    runs = {letter.upper(): side for letter, side in sides.items() if not is_published(side)}
    content = {
        "schema": 2,
        "difference": "B - A",
        "a": _facts(a, where_a),
        "b": _facts(b, where_b),
        "settings": settings,
        "notes": provenance_in_words(runs),
        "paired_by": list(pairs.keys),
        "pairs": pairs.both,
        "alone": {"a": pairs.here - pairs.both, "b": pairs.there - pairs.both},
        "failed_on_one_side": {
            "a": int((lost_a & ~lost_b).sum()),
            "b": int((lost_b & ~lost_a & (not is_published(b))).sum()),
        },
        "means_over_seeds": pairs.by != "seed",
        "tolerance": None if margin is None else str(margin),
        "columns": [compare_column(name, a, b, pairs, margin) for name in columns],
        "columns_on_one_side": {
            "a": [name for name in in_a if not (name in in_b or values or is_file[1])],
            "b": [name for name in in_b if not (name in in_a or values)],
        },
    }
    conditions = (tuple(where), tuple(where_a), tuple(where_b))
    return Comparison(a, b, conditions, pairs, margin, content)


def _facts(side: Cells, where: Sequence[str]) -> dict[str, Any]:
    published, counts = is_published(side), side.counts()
    return {
        "path": str(path_of(side)),
        "where": list(where),
        "published": published,
        "study": side.study.name,
        "version": None if published else int(side.trained["version"].iloc[0]),
        "cells": len(side.trained),
        "failed": counts["failed"],
        "missing": counts["missing"],
    }


def load_side(
    path: Path,
    letter: str,
    where: Sequence[str],
    where_here: Sequence[str],
    values: Sequence[str] = (),
    other: Cells | None = None,
) -> Cells:
    """Load a run directory, whatever version its cells have, or a file of published numbers.

    Args:
        path: the run directory, or the CSV file; a name that is no file here may be that of one
            beside the study's code.
        where: conditions on both sides; those on columns that a CSV file lacks don't apply to it.
        values: the columns to compare; an expression becomes one.
        other: the run that published points are compared with; None for a run.
    """
    option = f"where_{letter.lower()}"
    if other is None:
        cells = load_run(RunDirectory(path, letter.lower()), any_version=True)
    else:
        path = beside_study(path, other.study)
        points = read_published(path, other.study, {n: _values(other, n) for n in other.parameters})
        cells = Cells.of(other.study, points, run=Run(path.name, path))
        tests = {text: read_conditions(text, other.schema.placed) for text in where}
        where = [
            text
            for text, read in tests.items()
            if all(ref.name in points for test in read for ref in test.refs)
        ]
    cells = cells.choose(*where).choose(*where_here, option=option)
    for text in values:
        if not (text.isidentifier() or text in cells.frame):
            cells = cells.with_column(text)
    return cells


def _values(side: Cells, name: str) -> list[Value]:
    """The distinct values of a parameter, in order; none where it has no column."""
    values = side.trained[name].dropna().unique().tolist() if name in side.frame else []
    return sorted({setting_key(value): value for value in values}.values())


def columns_with_numbers(side: Cells, values: Sequence[str] = ()) -> list[str]:
    """Return the measured columns with numbers, the headline first; without `seconds`.

    Those of expressions, which are among `values`, come last.
    """
    names = [side.study.headline, *(column.name for column in side.study.columns), "steps"]
    names += [text for text in values if not text.isidentifier()]
    present = [name for name in dict.fromkeys(names) if name in side.frame]
    return [name for name in present if finite_column(side.trained, name).notna().any()]


def _pair_parameters(sides: Mapping[str, Cells]) -> tuple[list[str], dict[str, Any]]:
    """The parameters that vary, and those with one value on each side that isn't the same."""
    names, settings = list[str](), dict[str, Any]()
    for name in dict.fromkeys(name for side in sides.values() for name in side.parameters):
        values = {letter: _values(side, name) for letter, side in sides.items()}
        keys = {setting_key(value) for taken in values.values() for value in taken}
        if max(map(len, values.values())) > 1:
            names.append(name)
        elif all(values.values()) and len(keys) > 1:
            settings[name] = {letter: taken[0] for letter, taken in values.items()}
    return names, settings


def _choose_columns(
    sides: Mapping[str, Cells], measured: Mapping[str, Sequence[str]], values: Sequence[str]
) -> list[str]:
    for name in values:
        for letter, side in sides.items():
            if name not in measured[letter] and not (name == "seconds" and name in side.frame):
                lack = f"{letter.upper()} has no such numbers; {suggestion(name, measured[letter])}"
                raise BadValue("value", name, lack)
    shared = [name for name in measured["a"] if name in measured["b"]]
    steps = (finite_column(side.trained, "steps") for side in sides.values() if "steps" in shared)
    if not any(numbers.any() for numbers in steps):
        shared = [name for name in shared if name != "steps"]
    if not shared and not values:
        lack = f"it has numbers of none of A's columns: {', '.join(measured['a'])}."
        raise UserError(f"B {path_of(sides['b'])}: {lack}")
    return list(dict.fromkeys(values)) or shared


def _no_pair(sides: Mapping[str, Cells], names: Sequence[str]) -> BadValue:
    apart = ""
    for name in names:
        a, b = (dict.fromkeys(map(setting_key, _values(side, name))) for side in sides.values())
        if a.keys().isdisjoint(b):
            here, there = (shorten(", ".join(map(str, each))) or "no column" for each in (a, b))
            apart += f"{name} is {here} in A and {there} in B; "
    lack = f"no cell of {path_of(sides['b'])} has a counterpart in A with the same"
    accepts = f"{lack} {', '.join(names)}; {apart}choose one value on each side."
    return BadValue("where_b", None, accepts)
