"""Comparison of two runs, or of a run and published numbers: what changes from A to B.

Cells are paired by their parameters and seed. For each measured column a comparison has the mean
difference with its interval over seeds and the largest difference; for each claim that can be
judged on both sides, both verdicts. Every difference is B less A.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from overfit_cli.core.arrays import finite_column
from overfit_cli.core.claim import Measurement
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.html import html_table, paragraphs
from overfit_cli.core.parameters import Value
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import shorten, suggestion, visible
from overfit_cli.report.difference_words import (
    closing_lines,
    difference_rows,
    leading_lines,
    merge_equal,
    opening_lines,
    verdict_rows,
)
from overfit_cli.report.equivalence import (
    EquivalenceMargin,
    compare_places,
    count_verdicts,
    mean_difference,
    read_tolerance,
    require_uncertainty,
    rounded_difference,
    verdict_on_places,
)
from overfit_cli.report.judge import judge_run
from overfit_cli.report.published import ENDINGS
from overfit_cli.report.runs import LoadedRun
from overfit_cli.report.sides import Side, load_side
from overfit_cli.report.uncertainty import has_uncertainty
from overfit_cli.stats.intervals import Estimate, difference_estimate, mean_estimate
from overfit_cli.stats.pairs import Pairs, pair_up, setting_key, setting_keys
from overfit_cli.sweeps.manifest import read_manifest
from overfit_cli.sweeps.provenance import provenance_in_words
from overfit_cli.sweeps.store import RunDirectory


@dataclass(frozen=True)
class Comparison:
    """The changes from A to B; every difference is B − A. Mappings are as JSON has them.

    Attributes:
        settings: parameters with one value on each side that isn't the same: A's and B's.
        names: the parameters in whose values pairs agree.
        pairs: cells, or means over seeds, with their counterparts.
        alone: how many cells, or places, of each side have no counterpart.
        tolerance: the margin within which columns are judged; None without verdicts.
        differences: of each compared column: `pairs` with both numbers, of which so many are
            `equal`, and `numbers_on_one_side`;
            `mean_a` and `mean_b` over the pairs of each seed and then over seeds; their
            `difference` with its interval; the `largest` of a pair, and `at` which parameters and
            seed; `points` where B is published: `at`, the run's mean `a`, `b`, their `difference`,
            and, with an uncertainty, `z` and the `seeds`. With a tolerance the `verdict`; of
            published means each point has its own, of which `verdicts` are the counts.
        only_in: the measured columns of which one side alone has numbers.
        verdicts: by the name of each claim that can be measured on both sides: A's and B's.
        parts: the sides that are runs, by their letters, as figures have them.
    """

    a: Side
    b: Side
    where: tuple[str, ...]
    settings: Mapping[str, Mapping[str, Value]]
    names: tuple[str, ...]
    pairs: Pairs
    alone: Mapping[str, int]
    tolerance: EquivalenceMargin | None
    differences: tuple[Mapping[str, Any], ...]
    only_in: Mapping[str, list[str]]
    verdicts: Mapping[str, tuple[Measurement, Measurement]]
    parts: Mapping[str, FigureData]

    def __repr__(self) -> str:
        """Write it in a line: both sides, and what differs most."""
        a, b = map(visible, self.labels)
        return f"<Comparison of A {a} and B {b}: {' '.join(leading_lines(self))}>"

    def _repr_html_(self) -> str:
        tables = [
            html_table(heading, [*rows[0]], [[*row.values()] for row in rows])
            for heading, rows in (
                (
                    "Measured columns. Every difference is B less A.",
                    merge_equal(difference_rows(self)),
                ),
                ("Claims on both sides.", [*verdict_rows(self)]),
            )
            if rows
        ]
        above, below = (
            paragraphs(" ".join(lines) for lines in parts)
            for parts in ([leading_lines(self), opening_lines(self)], [closing_lines(self)])
        )
        return Markup().join([above, *tables, below])

    @property
    def notes(self) -> list[str]:
        """Sentences on cells of several sources, on data and on thresholds that differ."""
        return provenance_in_words(self.parts)

    @property
    def labels(self) -> tuple[str, str]:
        """The last part of the sides' paths, in full if they share it, and their conditions."""
        paths = [side.path.resolve() for side in (self.a, self.b)]
        alike = paths[0].name == paths[1].name and paths[0] != paths[1]
        a, b = (
            (str(side.path) if alike else path.name)
            + (f" ({', '.join(side.where)})" if side.where else "")
            for side, path in zip((self.a, self.b), paths, strict=True)
        )
        return a, b

    @property
    def unit(self) -> str:
        """The unit of comparison: a `cell`, or a `point` if means over seeds are compared."""
        return "cell" if self.pairs.by == "seed" else "point"

    @property
    def failed(self) -> dict[str, int]:
        """The number of pairs that failed only in A, and only in B."""
        a, b = (rows["status"] == "failed" for rows in (self.pairs.left, self.pairs.right))
        return {"a": int((a & ~b).sum()), "b": int((b & ~a & (self.pairs.by != "point")).sum())}

    @property
    def changed(self) -> list[str]:
        """The claims whose verdicts differ."""
        return [claim for claim, (a, b) in self.verdicts.items() if a.verdict != b.verdict]

    @property
    def differs(self) -> bool:
        """Whether some column differs by more than the tolerance."""
        return any(record.get("verdict") == "differs" for record in self.differences)

    def table(self) -> pd.DataFrame:
        """Return a row for each compared column."""
        frame = pd.json_normalize([dict(record) for record in self.differences])
        columns = ["column", "pairs", "mean_a", "mean_b", "difference", "low", "high", "largest"]
        columns += ["verdict"] if self.tolerance else []
        ends = {"difference.value": "difference", "largest.difference": "largest"}
        ends |= {"difference.low": "low", "difference.high": "high"}
        return frame.rename(columns=ends)[columns]

    def places(self) -> pd.DataFrame:
        """Return a row for each published point of each column: both means, and the verdict."""
        rows = [
            {"column": record["column"], **point["at"], "a": point["a"], "b": point["b"]}
            | {name: point["difference"][name] for name in ("value", "low", "high")}
            | {name: point[name] for name in ("z", "verdict") if name in point}
            for record in self.differences
            for point in record.get("points", [])
        ]
        return pd.DataFrame(rows).rename(columns={"value": "difference"})


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
    margin = None if tolerance is None else read_tolerance(tolerance)
    a_is_file, b_is_file = (
        path.suffix.lower() in ENDINGS and not path.is_dir() for path in (path_a, path_b)
    )
    if a_is_file:
        raise UserError(f"A {path_a}: A is a run directory; name the published file second.")
    a = load_side(path_a, "A", where, where_a)
    b = load_side(path_b, "B", where, where_b, other=a if b_is_file else None)
    names, settings = _pair_parameters(a, b)
    columns = _choose_columns(a, b, values)
    pairs = pair_up(a.cells, b.cells, names, columns)
    if not pairs.both:
        raise UserError(_explain_no_pair(a, b, names))
    lonely = set() if values else {*a.columns()} ^ {*b.columns()}
    if margin is not None and b_is_file:
        require_uncertainty(b.path, pairs.right, columns)
    return Comparison(
        a=a,
        b=b,
        where=tuple(where),
        settings=settings,
        names=tuple(names),
        pairs=pairs,
        alone={"a": pairs.here - pairs.both, "b": pairs.there - pairs.both},
        tolerance=margin,
        differences=tuple(_compare_column(name, pairs, a, b, margin) for name in columns),
        only_in={
            "a": [] if b.is_published else [name for name in a.columns() if name in lonely],
            "b": [name for name in b.columns() if name in lonely],
        },
        verdicts=_compare_verdicts(a, b),
        parts={side.letter: _as_figure_data(side) for side in (a, b) if not side.is_published},
    )


def _as_figure_data(side: Side) -> FigureData:
    manifest = read_manifest(side.path)
    return FigureData(
        side.study,
        side.cells,
        planned=pd.DataFrame(),
        trajectories=pd.DataFrame(),
        boundary=None if manifest is None else manifest.boundary,
        collections={} if manifest is None else manifest.data,
        sources=RunDirectory(side.path).sources(side.cells),
    )


def _pair_parameters(a: Side, b: Side) -> tuple[list[str], dict[str, dict[str, Value]]]:
    names, settings = list[str](), dict[str, dict[str, Value]]()
    for name in dict.fromkeys([*a.parameters, *b.parameters]):
        first, second = a.values(name), b.values(name)
        if len(first) > 1 or len(second) > 1:
            names.append(name)
            side, other = (b, a) if name in a.parameters else (a, b)
            if name not in side.parameters:
                choose = f"choose one value with --where-{other.letter.lower()}."
                lack = f"it has no column {name}, which varies in {other.letter}; {choose}"
                raise UserError(f"{side.letter} {side.path}: {lack}")
        elif first and second and setting_key(first[0]) != setting_key(second[0]):
            settings[name] = {"a": first[0], "b": second[0]}
    return names, settings


def _choose_columns(a: Side, b: Side, values: Sequence[str]) -> list[str]:
    in_a, in_b = a.columns(), b.columns()
    for name in values:
        for side, measured in ((a, in_a), (b, in_b)):
            if name not in measured and not (name == "seconds" and name in side.cells):
                lack = f"{side.letter} has no such numbers; {suggestion(name, measured)}"
                raise BadValue("value", name, lack)
    columns = [name for name in in_a if name in in_b]
    if "steps" in columns and not any(finite_column(side.cells, "steps").any() for side in (a, b)):
        columns.remove("steps")  # the study takes none
    if not columns and not values:
        lack = f"it has numbers of none of A's columns: {', '.join(in_a)}."
        raise UserError(f"B {b.path}: {lack}")
    return list(dict.fromkeys(values)) or columns


def _explain_no_pair(a: Side, b: Side, names: Sequence[str]) -> str:
    apart = ""
    for name in names:
        first, second = (
            [str(setting_key(value)) for value in side.values(name)] for side in (a, b)
        )
        if not set(first) & set(second):
            lists = [shorten(", ".join(texts)) for texts in (first, second)]
            apart += f"{name} is {lists[0]} in A and {lists[1]} in B; "
    return (
        f"B {b.path}: no cell of it has a counterpart in A with the same {', '.join(names)}; "
        f"{apart}choose one value on each side with --where-a and --where-b."
    )


def _compare_column(
    column: str, pairs: Pairs, a: Side, b: Side, margin: EquivalenceMargin | None
) -> dict[str, Any]:
    """Return how two sides differ in a column.

    Seeds are independent draws, and cells of one seed aren't: the mean difference is that of each
    seed's pairs, averaged over seeds. Without a seed in common it is the mean of B's seeds less
    that of A's.
    """
    left, right = finite_column(pairs.left, column), finite_column(pairs.right, column)
    done = (pairs.left["status"] == "done") & (pairs.right["status"] == "done")
    unpaired = int((done & (left.isna() != right.isna())).sum())
    paired = left.notna() & right.notna()
    points = compare_places(column, pairs, left, right, margin) if pairs.by == "point" else []
    rows, left, right = pairs.left[paired], left[paired], right[paired]
    first, second = (numbers.groupby(rows["seed"]).mean() for numbers in (left, right))
    if pairs.by == "means" and len(rows):
        middle = dict(zip(setting_keys(rows, pairs.keys), (left + right) / 2, strict=True))
        first, second = (_mean_by_seed(s.cells, column, pairs.keys, middle) for s in (a, b))

    def difference(scale: float = 1.0, shift: float = 0.0) -> Estimate:
        """The estimate of a multiple of B's mean plus a shift, less A's mean."""
        if pairs.by == "means":
            return difference_estimate(scale * second + shift, first)
        return mean_estimate(scale * second + shift - first)

    if not len(rows):
        estimate = Estimate(np.nan, np.nan, np.nan, "", 0)
    elif has_uncertainty(pairs.right[paired], column):
        each_once = pairs.right.loc[rows.index[~setting_keys(rows, pairs.keys).duplicated()]]
        estimate = mean_difference(column, each_once, second - first)
    else:
        estimate = difference()
    changes, located = right - left, rows[list(pairs.keys)]
    largest: dict[str, Any] = {"difference": np.nan, "at": {}}
    if points:
        changes = pd.Series([rounded_difference(point) for point in points])
        furthest = points[int(changes.abs().argmax())]
        largest = {"difference": rounded_difference(furthest), "at": furthest["at"]}
    elif len(rows):
        index: Any = changes.abs().idxmax()
        largest = {"difference": float(changes[index]), "at": _record(located, index)}
    record: dict[str, Any] = {
        "column": column,
        "pairs": len(changes),
        "equal": int((changes == 0).sum()),
        "numbers_on_one_side": unpaired,
        "mean_a": float(first.mean()),
        "mean_b": float(second.mean()),
        "difference": estimate._asdict(),
        "largest": largest,
        **({"points": points} if points else {}),
    }
    if margin is None:
        return record
    if pairs.by == "point":
        counts = count_verdicts(points)
        return record | {"verdicts": counts, "verdict": verdict_on_places(counts)}
    has_lost = not (pairs.left["status"] == pairs.right["status"]).all() or unpaired
    if has_lost or not len(rows):
        return record | {"verdict": "open"}
    equal = record["equal"] == record["pairs"]
    verdict = "equivalent" if equal else margin.verdict_on(record["mean_b"], difference)
    return record | {"verdict": verdict}


def _mean_by_seed(
    cells: pd.DataFrame, column: str, names: Sequence[str], middle: Mapping[Any, float]
) -> pd.Series[float]:
    """Return the mean of each seed at the places that both sides have.

    A seed may lack some places. So its numbers are taken relative to the middle of both sides at
    their place.
    """
    centre = setting_keys(cells, names).map(middle).astype(float)
    relative = (finite_column(cells, column) - centre).groupby(cells["seed"]).mean().dropna()
    means: pd.Series[float] = relative + float(np.mean(list(middle.values())))
    return means


def _record(rows: pd.DataFrame, index: Any) -> dict[str, Value]:
    [record] = rows.loc[[index]].to_dict("records")
    return {str(name): value for name, value in record.items()}


def _compare_verdicts(a: Side, b: Side) -> dict[str, tuple[Measurement, Measurement]]:
    outdated = a.is_of_another_version or b.is_of_another_version
    if outdated or b.is_published or a.study.name != b.study.name:
        return {}
    first, second = (
        {each.claim.name: each.measurement for each in judge_run(_run_of(side)) if each.is_measured}
        for side in (a, b)
    )
    return {claim: (first[claim], second[claim]) for claim in first if claim in second}


def _run_of(side: Side) -> LoadedRun:
    return LoadedRun(RunDirectory(side.path), side.study, side.cells, side.is_chosen)
