"""A comparison as JSON: everything that the terminal shows, and each published point."""

from __future__ import annotations

import json
from typing import Any

from overfit_cli.analysis.intervals import Estimate
from overfit_cli.claim import Measurement
from overfit_cli.report.claims_json import finite_or_null, interval_or_null
from overfit_cli.report.comparison.columns import Difference, Point
from overfit_cli.report.comparison.compare import Comparison
from overfit_cli.report.comparison.sides import Side

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
