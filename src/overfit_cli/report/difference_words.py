"""A comparison in words and in rows: what commands print of it, and what a notebook shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from overfit_cli.core.claim import Interval, number_with_interval
from overfit_cli.core.text import brief, plural, three_digits
from overfit_cli.report.equivalence import (
    places_that_differ,
    seeds_in_words,
    what_places_lack,
)

if TYPE_CHECKING:
    from overfit_cli.report.differences import Comparison


def opening_lines(comparison: Comparison) -> Iterator[str]:
    """Yield sentences on the two sides, and on what is paired with what."""
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
    if any(alone.values()):
        a, b = plural(alone["a"], unit), plural(alone["b"], unit)
        sentence += f" Without a counterpart: {a} of A, {b} of B."
    yield sentence
    for letter, failed in comparison.failed.items():
        if failed:
            yield f"Failed only in {letter.upper()}: {plural(failed, unit)}."


def leading_lines(comparison: Comparison) -> Iterator[str]:
    """Yield what a reader asks first: how many pairs differ and by how much, and the verdicts."""
    yield from _tolerance_lines(comparison)
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
    return _place(record["largest"]["at"])


def _place(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {brief(value)}" for name, value in values.items())


def _tolerance_lines(comparison: Comparison) -> Iterator[str]:
    columns, within = comparison.differences, comparison.tolerance
    if within is None:
        return
    words = {
        "differs": "Different by more than",
        "equivalent": "Equivalent within",
        "open": "Open at",
    }
    for verdict, said in words.items():
        names = [record["column"] for record in columns if record["verdict"] == verdict]
        if names:
            yield f"{said} {within}: {', '.join(names)}."
    for record in columns:
        if record.get("points"):
            yield from _lines_on_places(record)


def _lines_on_places(record: Mapping[str, Any]) -> Iterator[str]:
    counts, points = record["verdicts"], record["points"]
    line = (
        f"{record['column']}: {counts['equivalent']} of {plural(len(points), 'point')} equivalent"
    )
    line += f" (90 % Welch, {seeds_in_words(points)})"
    lacking = what_places_lack(points)
    line += f", {counts['open']} open{f' ({lacking})' if lacking else ''}"
    yield f"{line}, {counts['differs']} {'differs' if counts['differs'] == 1 else 'differ'} (95 %)."
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


def merge_equal(rows: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """Return the rows with those that show the same numbers as one, of all their columns."""
    names = dict[tuple[tuple[str, str], ...], list[str]]()
    for row in rows:
        names.setdefault(tuple(row.items())[1:], []).append(row["column"])
    return [{"column": ", ".join(alike), **dict(cells)} for cells, alike in names.items()]


def verdict_rows(comparison: Comparison) -> Iterator[dict[str, str]]:
    """Yield the claims whose verdicts differ, with both sides'."""
    for claim in comparison.changed:
        a, b = (f"{side.verdict}: {side.number}" for side in comparison.verdicts[claim])
        yield {"claim": claim, "in A": a, "in B": b}
