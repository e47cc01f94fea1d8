"""A comparison of two runs in words, and as JSON.

The sentences stand before and after the table of the columns that differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from overfit_cli.core.claim import Measurement
from overfit_cli.core.parameters import Value
from overfit_cli.core.text import plural, visible
from overfit_cli.report.differences import Comparison, Difference, Point, why_not_judged
from overfit_cli.report.interpolated import Interpolated
from overfit_cli.report.judge import finite_or_null, interval_or_null
from overfit_cli.report.sides import (
    Side,
    names_of,
)
from overfit_cli.stats.intervals import Estimate

_WITHOUT_SEEDS = "means over seeds: no seed is on both sides."


def opening_lines(found: Comparison) -> list[str]:
    """Return sentences on the two sides, and on what is paired with what."""
    names = names_of(found.a, found.b)
    sides = zip((found.a, found.b), names, strict=True)
    lines = [f"{one.letter}: {name}, {_cells_in_words(one)}." for one, name in sides]
    lines += [
        f"{name}: {_written(first)} in A, {_written(second)} in B."
        for name, (first, second) in found.settings.items()
    ]
    return [*lines, _paired_in_words(found), *_unlike(found)]


def closing_lines(found: Comparison) -> list[str]:
    """Return sentences on intervals, columns without a difference, and verdicts."""
    lines = [*_intervals(found.differences)]
    same = [one for one in found.differences if one.is_none]
    for pairs in dict.fromkeys(one.pairs for one in same):
        named = ", ".join(one.column for one in same if one.pairs == pairs)
        every = f"all {pairs} {noun(found)}s" if pairs > 1 else f"the one {noun(found)}"
        lines.append(f"The same in {every}: {named}.")
    for one in found.differences:
        if one.lone:
            said = f"{plural(one.lone, 'pair')} with a number on one side alone; left out."
            lines.append(f"{one.column}: {said}")
        known = [point for point in one.points if point.difference.bounded]
        if known and not one.is_none:
            inside = sum(point.is_inside for point in known)
            said = f"B lies inside the interval of A's mean at {inside} of {len(known)} points."
            lines.append(f"{one.column}: {said}")
    for letter, columns in (("A", found.only_in_a), ("B", found.only_in_b)):
        if columns:
            lines.append(f"Measured in {letter} alone: {', '.join(columns)}.")
    return [*lines, *_verdict_lines(found)]


def _verdict_lines(found: Comparison) -> Iterator[str]:
    if sentence := why_not_judged(found.a, found.b):
        yield sentence
    if found.verdicts:
        judged, changed = len(found.verdicts), len(found.changed)
        on_both = f"{plural(judged, 'claim')} judged on both sides"
        yield f"Verdicts that change: {changed or 'none'} of {on_both}."


def _cells_in_words(side: Side) -> str:
    """How many cells there are, and of what: `40 cells of toy, 2 failed`."""
    failed = int((side.cells["status"] == "failed").sum())
    what = "point" if side.is_published else "cell"
    older = f", of version {side.version}" if side.is_of_another_version else ""
    more = f", {failed} failed" if failed else ""
    published = "published, " if side.is_published else ""
    return f"{published}{plural(len(side.cells), what)} of {side.study.name}{older}{more}"


def _paired_in_words(found: Comparison) -> str:
    """What has a counterpart, by what, and what has none."""
    pairs, axes = found.pairs, [*found.names]
    if pairs.by == "seed":
        said = f"{plural(pairs.both, 'pair')} of cells with the same {_listed([*axes, 'seed'])}."
    else:
        same = f" with the same {_listed(axes)}" if axes else ""
        said = f"Compared at {plural(pairs.both, 'place')}{same}, "
        said += "B beside the mean over A's seeds." if pairs.by == "point" else _WITHOUT_SEEDS
    if found.between is not None:
        said += f" {interpolated_in_words(found.between)}"
    if found.alone_in_a or found.alone_in_b:
        said += (
            f" Without a counterpart: {plural(found.alone_in_a, found.unit)} of A, "
            f"{plural(found.alone_in_b, found.unit)} of B."
        )
    return said


def interpolated_in_words(between: Interpolated) -> str:
    """Say at how many points A is interpolated, along what, and at how many nothing is known."""
    axes = [f"{'log ' if log else ''}{name}" for name, log in between.axes.items()]
    said = f"A is interpolated at {between.between} of {plural(between.points, 'point')} of B"
    lie = f"{between.unknown} {'lies' if between.unknown == 1 else 'lie'}"
    beyond = f"; {lie} beyond A's cells or beside a gap in them" if between.unknown else ""
    return f"{said}, linearly in {_listed(axes)}{beyond}."


def _unlike(found: Comparison) -> Iterator[str]:
    """What else is unlike: cells that failed on one side, and the data."""
    means = found.pairs.by == "means"
    for count, failed, done in ((found.failed_in_b, "B", "A"), (found.failed_in_a, "A", "B")):
        if count:
            are, what = "is" if count == 1 else "are", found.unit if means else "cell"
            yield f"{plural(count, what)} failed in {failed} that {are} done in {done}."
    for name in sorted(found.a.data.keys() & found.b.data.keys()):
        if found.a.data[name] != found.b.data[name]:
            yield f"A and B were trained on different data: {name} held something else."


def _intervals(differences: Sequence[Difference]) -> Iterator[str]:
    """What the intervals are, and of which columns, where they aren't all of one kind."""
    kinds: dict[str, list[str]] = {}
    for one in differences:
        if one.pairs and not one.is_none:
            kind = one.estimate.kind if one.estimate.bounded else "none, of one seed"
            kinds.setdefault(kind, []).append(one.column)
    for kind, columns in kinds.items():
        which = f" ({', '.join(columns)})" if len(kinds) > 1 else ""
        yield f"Intervals of B − A{which}: {kind}."


def estimate_in_words(one: Estimate) -> str:
    """Return a mean difference with its interval, if it has one: `0.05 [0.01, 0.09]`."""
    interval = f" [{one.low:.4g}, {one.high:.4g}]" if one.bounded else ""
    return f"{one.value:.4g}{interval}"


def largest_in_words(one: Difference) -> str:
    """Return the largest difference with its place: `0.3 at n 5, snr 0.1, seed 2`."""
    at = ", ".join(f"{name} {_written(value)}" for name, value in one.at.items())
    return f"{one.largest:.4g} at {visible(at)}" if at else f"{one.largest:.4g}"


def _written(value: Value) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _listed(names: Sequence[str]) -> str:
    """Names with commas and an and: `n, snr and seed`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def noun(found: Comparison) -> str:
    """Return what is counted of a column: a `pair`, a `place` or a `point`."""
    return {"seed": "pair", "means": "place", "point": "point"}[found.pairs.by]


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
