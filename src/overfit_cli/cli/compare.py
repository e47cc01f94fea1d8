"""The command `overfit compare`: what changes from one run to another, or to published numbers."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from overfit_cli.cli.completion import columns, conditions, run_directories
from overfit_cli.cli.export import print_content
from overfit_cli.cli.options import Where
from overfit_cli.core.claim import Interval, number_with_interval
from overfit_cli.core.console import (
    WIDEST,
    console,
    print_folded,
    proposed_command,
    typed_command,
)
from overfit_cli.core.text import brief, plural, three_digits, visible
from overfit_cli.core.values import finite_number

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod

    from overfit_cli.core.claim import Measurement
    from overfit_cli.report.differences import Comparison
    from overfit_cli.report.sides import Side


def opening_lines(comparison: Comparison) -> Iterator[str]:
    """Yield sentences on the two sides, and on what is paired with what."""
    from overfit_cli.report.differences import describe_interpolation

    for side, label in zip((comparison.a, comparison.b), comparison.labels, strict=True):
        count = plural(len(side.cells), "point" if side.is_published else "cell")
        yield (
            f"{side.letter}: {label}, {'published, ' if side.is_published else ''}{count} of "
            f"{side.study.name}{f', of version {side.version}' * side.is_of_another_version}"
            f"{f', {side.failed} failed' if side.failed else ''}."
        )
    for name, values in comparison.settings.items():
        yield f"{name}: {brief(values['a'], 6)} in A, {brief(values['b'], 6)} in B."
    yield from comparison.notes
    pairs, alone, unit = comparison.pairs, comparison.alone, comparison.unit
    agreeing = " and ".join(filter(None, [", ".join(pairs.keys[:-1]), *pairs.keys[-1:]]))
    same = f" with the same {agreeing}" if agreeing else ""
    points = plural(pairs.both, "point") + (f" ({', '.join(pairs.keys)})" if agreeing else "")
    sentence = {
        "seed": f"{plural(pairs.both, 'pair')} of cells{same}.",
        "means": f"{points} in common; means over seeds are compared: no seed is on both sides.",
        "point": f"{points} in common; B is compared with A's mean over seeds.",
    }[pairs.by]
    if comparison.interpolation is not None:
        sentence += f" {describe_interpolation(comparison.interpolation)}"
    if any(alone.values()):
        a, b = plural(alone["a"], unit), plural(alone["b"], unit)
        sentence += f" Without a counterpart: {a} of A, {b} of B."
    yield sentence
    for letter, failed in comparison.failed.items():
        if failed:
            yield f"Failed in {letter.upper()} alone: {plural(failed, unit)}."


def leading_lines(comparison: Comparison) -> Iterator[str]:
    """Yield what a reader asks first: how many pairs differ and by how much, and the verdicts."""
    yield from _equivalence_lines(comparison)
    columns = comparison.differences
    unlike = [record for record in columns if record["equal"] < record["pairs"]]
    if columns and not unlike:
        every = columns[0]["column"] if len(columns) == 1 else f"all {len(columns)} columns"
        yield f"No difference: A and B are equal in {every}."
    for record in unlike[:1]:
        noun = "pair" if comparison.pairs.by == "seed" else "point"
        differ = f"{record['pairs'] - record['equal']} of {plural(record['pairs'], noun)}"
        most = three_digits(record["largest"]["difference"])
        at = f" at {location}" if (location := _place_of_largest(record)) else ""
        yield f"{record['column']} differs at {differ}, most by {most}{at}."
    if len(unlike) == len(columns) > 1:
        yield f"All {len(columns)} columns differ."
    elif unlike and len(columns) > 1:
        verb = "differs" if len(unlike) == 1 else "differ"
        yield f"{len(unlike)} of {len(columns)} columns {verb}."
    yield from _verdict_lines(comparison)


def _place_of_largest(record: Mapping[str, Any]) -> str:
    """Return the point of the largest difference of a column."""
    return _place(record["largest"]["at"])


def _place(values: Mapping[str, Any]) -> str:
    """Write a place: `n 10, snr 12.91, seed 5`."""
    return ", ".join(f"{name} {brief(value)}" for name, value in values.items())


def _equivalence_lines(comparison: Comparison) -> Iterator[str]:
    """Yield how many places agree with published means within a margin, and which differ."""
    from overfit_cli.report.equivalence import (
        places_that_differ,
        seeds_in_words,
        what_places_lack,
        where_they_differ,
    )

    for record in comparison.differences:
        counts, points = record.get("verdicts"), record.get("points", [])
        if counts is None:
            continue
        agree = f"{counts['agrees']} of {plural(len(points), 'point')} agree"
        levels = f"90 % Welch, {seeds_in_words(points)}"
        line = f"{record['column']}: {agree} within {comparison.equivalent} ({levels})"
        lacking = what_places_lack(points)
        line += f", {counts['open']} open{f' ({lacking})' if lacking else ''}"
        line += f", {counts['differs']} {'differs' if counts['differs'] == 1 else 'differ'}"
        common = where_they_differ(points)
        yield f"{line} (95 %){f': all at {common}' if common else ''}."
        differing = places_that_differ(points)
        listed = [
            f"{_place(point['at'])} (B − A {three_digits(point['difference']['value'])}"
            + (f", z {three_digits(point['z'])})" if math.isfinite(point["z"]) else ")")
            for point in differing[:MOST_LISTED]
        ]
        more = len(differing) - len(listed)
        if listed:
            yield f"  {'; '.join(listed)}{f'; and {more} more' if more else ''}."


MOST_LISTED = 5
"""The number of places that differ which are listed of a column, the furthest first."""


def _verdict_lines(comparison: Comparison) -> Iterator[str]:
    if comparison.a.is_of_another_version or comparison.b.is_of_another_version:
        yield (
            "Verdicts aren't compared: the claims are of the installed version of the study, and "
            "the cells of another."
        )
    if comparison.verdicts:
        judged = f"{plural(len(comparison.verdicts), 'claim')} judged on both sides"
        changed = len(comparison.changed)
        change = f"{plural(changed, 'verdict')} {'changes' if changed == 1 else 'change'}"
        yield f"{change if changed else 'No verdict changes'} ({judged})."


def closing_lines(comparison: Comparison) -> Iterator[str]:
    """Yield sentences on intervals, and on columns of one side."""
    estimates = [record["difference"] for record in comparison.differences]
    kinds = {number["kind"]: 0 for number in estimates if math.isfinite(number["low"])}
    yield f"Intervals of B − A: {'; '.join(kinds) or 'none, there is only one seed'}."
    within = "B lies inside the interval of A's mean"
    for record in comparison.differences:
        column, unpaired = record["column"], record["numbers_on_one_side"]
        if unpaired:
            have = "has" if unpaired == 1 else "have"
            pairs = f"{plural(unpaired, 'pair')} {have} a number only on one side"
            yield f"{column}: {pairs}, and {'is' if unpaired == 1 else 'are'} left out."
        points = [point["difference"] for point in record.get("points", [])]
        if points := [number for number in points if math.isfinite(number["low"])]:
            inside = sum(number["low"] <= 0 <= number["high"] for number in points)
            count = f"{inside} of {len(points)} points"
            is_uncertain = "z" in record["points"][0]
            contains = "the interval of B − A contains 0" if is_uncertain else within
            yield f"{column}: {contains} at {count}."
    for letter, names in comparison.only_in.items():
        if names:
            yield f"Measured only in {letter.upper()}: {', '.join(names)}."


LARGEST = "largest"
"""The heading of the largest difference of a pair."""


def difference_rows(comparison: Comparison) -> Iterator[dict[str, str]]:
    """Yield the compared columns with the mean on each side and the differences."""
    for record in comparison.differences:
        largest, change = record["largest"]["difference"], record["difference"]
        location = _place_of_largest(record) if largest else ""
        interval = Interval(change["low"], change["high"], "")
        yield {
            "column": record["column"],
            "mean of A": three_digits(record["mean_a"]),
            "mean of B": three_digits(record["mean_b"]),
            "B − A": number_with_interval(change["value"], interval),
            LARGEST: f"{three_digits(largest)}{f' at {location}' if location else ''}",
        }


def verdict_rows(comparison: Comparison) -> Iterator[dict[str, str]]:
    """Yield the claims that were asked for, and those whose verdicts differ, with both sides'."""
    for claim in dict.fromkeys([*comparison.asked, *comparison.changed]):
        a, b = (f"{side.verdict}: {side.number}" for side in comparison.verdicts[claim])
        yield {"claim": claim, "in A": a, "in B": b}


def _print_comparison(output: Console, comparison: Comparison) -> None:
    """Print the answer, then what is compared, a table of columns, and a table of verdicts."""
    for line in leading_lines(comparison):
        print_folded(output, line)
    output.print()
    for line in opening_lines(comparison):
        print_folded(output, line)
    _print_differences(output, comparison)
    for line in closing_lines(comparison):
        print_folded(output, line)
    verdicts = _table(verdict_rows(comparison))
    if verdicts.rows:
        output.print(verdicts)


def _print_differences(output: Console, comparison: Comparison) -> None:
    """Print a row for each column; on a narrow terminal what is largest has a line below."""
    rows = merge_equal(difference_rows(comparison))
    table, whole = _table(rows), output.options.update(width=WIDEST)
    if not rows:
        return
    if not output.is_terminal or output.measure(table, options=whole).maximum <= output.width:
        output.print(table)
        return
    output.print()
    headings = {name: name for name in rows[0]} | {LARGEST: f"{LARGEST} difference of a pair"}
    lines = [[*map(visible, row.values())] for row in (headings, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    widths[0] = min(widths[0], WIDEST_NAME)
    for name, mean_a, mean_b, change, largest in lines:
        first = f"  {name:{widths[0]}}  {mean_a:>{widths[1]}}  {mean_b:>{widths[2]}}  "
        if len(name) > widths[0]:
            print_folded(output, name, "  ", "    ")
            first = f"{'':{widths[0] + 4}}{mean_a:>{widths[1]}}  {mean_b:>{widths[2]}}  "
        print_folded(output, change, first, " " * len(first))
        print_folded(
            output, largest if name == "column" else f"{LARGEST} {largest}", "    ", " " * 6
        )
    output.print()


WIDEST_NAME = 26
"""The columns that names of columns have on a narrow terminal."""


def merge_equal(rows: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """Return the rows with those that show the same numbers as one, of all their columns."""
    names = dict[tuple[tuple[str, str], ...], list[str]]()
    for row in rows:
        names.setdefault(tuple(row.items())[1:], []).append(row["column"])
    return [{"column": ", ".join(alike), **dict(cells)} for cells, alike in names.items()]


def _table(rows: Iterable[dict[str, str]]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        for heading in () if table.columns else row:
            is_mean = heading.startswith("mean")
            justify: JustifyMethod = "right" if is_mean else "left"
            table.add_column(heading, justify=justify, overflow="fold", no_wrap=is_mean)
        table.add_row(*map(visible, row.values()))
    return table


def as_json(comparison: Comparison, tolerance: float | None = None) -> str:
    """Return a comparison as JSON, with what differs by more than a tolerance, if there is one.

    Numbers that aren't finite are null.
    """
    content = {
        "schema": 1,
        "difference": "B - A",
        "a": _side_content(comparison.a),
        "b": _side_content(comparison.b),
        "settings": comparison.settings,
        "notes": comparison.notes,
        "paired_by": comparison.pairs.keys,
        "pairs": comparison.pairs.both,
        "alone": comparison.alone,
        "failed_on_one_side": comparison.failed,
        "means_over_seeds": comparison.pairs.by != "seed",
        "interpolated": comparison.interpolation,
        "equivalent": None if comparison.equivalent is None else str(comparison.equivalent),
        "columns": comparison.differences,
        "columns_on_one_side": comparison.only_in,
        "verdicts": [
            {
                "claim": claim,
                "asked": claim in comparison.asked,
                "changed": claim in comparison.changed,
                "a": _measurement_content(a),
                "b": _measurement_content(b),
            }
            for claim, (a, b) in comparison.verdicts.items()
        ],
        "tolerance": tolerance,
        "beyond": None if tolerance is None else comparison.beyond(tolerance),
    }
    finite = json.loads(json.dumps(content), parse_constant=lambda _: None)
    return json.dumps(finite, indent=2) + "\n"


def _side_content(side: Side) -> dict[str, Any]:
    return {
        "path": str(side.path),
        "where": side.where,
        "published": side.is_published,
        "study": side.study.name,
        "version": side.version,
        "cells": len(side.cells),
        "failed": side.failed,
    }


def _measurement_content(measurement: Measurement) -> dict[str, Any]:
    from overfit_cli.report.judge import interval_or_null

    interval = interval_or_null(measurement.interval)
    return {"verdict": measurement.verdict, "value": measurement.value, "interval": interval}


def _where_of(side: str) -> Any:
    """An option that chooses the cells of one side."""
    return typer.Option(
        f"--where-{side.lower()}",
        metavar="NAME=RANGE",
        help=f"As --where, only for {side}.",
        autocompletion=conditions,
    )


def compare(
    a: Annotated[
        Path,
        typer.Argument(metavar="A", help="Run directory.", autocompletion=run_directories),
    ],
    b: Annotated[
        Path,
        typer.Argument(
            metavar="B",
            help="Another run directory, or a CSV or parquet file of published numbers with a "
            "column for each parameter that varies and for each measured column; or the name of a "
            "file that the study has, such as `published.csv`.",
            autocompletion=run_directories,
        ),
    ],
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--value",
            metavar="COLUMN",
            help="Measured column to compare; may be repeated.  [default: all that both have]",
            autocompletion=columns,
        ),
    ] = None,
    where: Where = None,
    where_a: Annotated[list[str] | None, _where_of("A")] = None,
    where_b: Annotated[list[str] | None, _where_of("B")] = None,
    claims: Annotated[
        list[str] | None,
        typer.Option(
            "--claim",
            metavar="CLAIM",
            help="Claim to judge on both runs, as a sentence or by its name; may be repeated.",
        ),
    ] = None,
    interpolate: Annotated[
        bool,
        typer.Option(
            "--interpolate", help="Interpolate A between its cells, at the points that only B has."
        ),
    ] = False,
    equivalent: Annotated[
        str | None,
        typer.Option(
            metavar="MARGIN",
            help="Judge at each point whether the run agrees with a published mean that has an "
            "uncertainty: within 10% of the mean, or within 0.01 in the column's unit. Exit with "
            "code 1 if a point differs.",
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="T",
            help="Exit with code 1 if a pair differs by more than T; between two runs, also "
            "if a verdict or a status differs, or a cell has no counterpart.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="PNG, PDF or SVG file for a figure of the difference in the first column, with "
            "--equivalent in standard errors; a caption is written beside it, as FILE.txt.",
        ),
    ] = None,
    json_file: Annotated[
        Path | None,
        typer.Option(
            "--json", metavar="FILE", help="JSON file for all numbers; - prints only the JSON."
        ),
    ] = None,
) -> int:
    """Compare a run with another run, or with published numbers.

    Cells are paired by their parameters and seed; every difference is B − A.
    """
    limit = None if tolerance is None else finite_number("tolerance", tolerance)
    from overfit_cli.core.figure import MOST_AXES
    from overfit_cli.core.files import write_user_file
    from overfit_cli.report.differences import compare_sides

    conditions = (where or [], where_a or [], where_b or [])
    comparison = compare_sides(
        a,
        b,
        values or [],
        *conditions,
        interpolated=interpolate,
        claims=claims or [],
        equivalent=equivalent,
    )
    to_stdout = json_file == Path("-")
    output = console(quiet=to_stdout)
    if out is not None:
        from overfit_cli.figures.picture import save_with_caption
        from overfit_cli.report.difference_figure import draw_difference

        save_with_caption(draw_difference(comparison, typed_command(), out), out)
    if json_file is not None:
        content = as_json(comparison, limit).encode()
        if to_stdout:
            print_content(content)
        else:
            write_user_file(json_file, content, "json_file")
    _print_comparison(output, comparison)
    if out is not None:
        output.print(f"Drawn: {out}, and its caption in {out.with_suffix('.txt').name}")
    if json_file is not None:
        output.print(f"Written: {json_file}")
    if limit is not None:
        beyond = comparison.beyond(limit)
        differs = f"Beyond the tolerance of {limit:g}: {'; '.join(beyond)}."
        output.print(differs if beyond else f"Within the tolerance of {limit:g}.")
        return 1 if beyond or comparison.places_differ else 0
    if comparison.places_differ:
        return 1
    if out is None and 0 < len(comparison.names) <= MOST_AXES:
        for line in proposed_command([*sys.argv[1:], "--out", "difference.png"]):
            output.print(line)
    return 0
