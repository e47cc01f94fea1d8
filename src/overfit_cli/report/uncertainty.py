"""Uncertainty of published means: the columns beside a mean, and the standard error they give.

Beside a measured column, such as `loss`, stand `loss_low` and `loss_high`, the ends of its 95 %
interval, `loss_se`, its standard error, or `loss_sd`, the standard deviation over as many seeds as
the column `seeds` says. The first of these that is there counts, so that what `export` writes can
be read. Where seeds are not known, the error counts as exact: intervals are normal.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from overfit_cli.core.errors import UserError
from overfit_cli.stats.intervals import LEVEL, Summary

SEEDS, FAILED = "seeds", "failed"
"""The columns of how many seeds a mean is of, and of how many cells failed there."""

SUFFIXES = ("_sd", "_se", "_low", "_high")
"""What the columns of an uncertainty have behind the name of their measured column."""


def error_column(name: str) -> str:
    """Return the column of a measured column's standard errors; no file can call one so."""
    return f"standard error of {name}"


def freedom_column(name: str) -> str:
    """Return the column of the degrees of freedom of these errors."""
    return f"degrees of freedom of {name}"


def count_column(name: str) -> str:
    """Return the column of a point's `SEEDS` or `FAILED`."""
    return f"{name} of the point"


def uncertainty_columns(name: str) -> tuple[str, ...]:
    """Return the columns that tell of a point how uncertain a measured column is there."""
    return error_column(name), freedom_column(name), count_column(SEEDS), count_column(FAILED)


def has_uncertainty(points: pd.DataFrame, name: str) -> bool:
    """Return whether some point has a standard error of a measured column."""
    return error_column(name) in points and bool(points[error_column(name)].notna().any())


def summary_of_point(point: Mapping[Any, Any], name: str) -> Summary:
    """Return a published mean; its error is nan where it is not known."""
    error, freedom = (
        float(point.get(column(name), np.nan)) for column in (error_column, freedom_column)
    )
    seeds = float(point.get(count_column(SEEDS), np.nan))
    return Summary(float(point[name]), error, freedom, 0 if np.isnan(seeds) else int(seeds))


def measured_name(column: str) -> str:
    """Return the measured column that an uncertainty stands beside."""
    return column.rpartition("_")[0]


def standard_errors(path: Path, points: pd.DataFrame, beside: pd.DataFrame) -> pd.DataFrame:
    """Return the standard errors and degrees of freedom of each measured column, and the counts.

    Args:
        points: one row per point, with the measured columns; its index counts rows from 1.
        beside: the columns of uncertainties and counts that the file has, of the same rows.
    """
    counts = {name: beside[name] for name in (SEEDS, FAILED) if name in beside}
    for name, numbers in counts.items():
        wrong = (numbers < 0) | (numbers != numbers.round()) & numbers.notna()
        _refuse(path, wrong, f"{name} takes a whole number of at least 0.")
    columns = {count_column(name): numbers for name, numbers in counts.items()}
    uncertain = [str(name) for name in beside if name not in counts]
    if uncertain and "seed" in points:
        raise UserError(
            f"{path}: a row for each seed has no {uncertain[0]}; leave out the column seed, or "
            f"{uncertain[0]}."
        )
    for name in dict.fromkeys(measured_name(column) for column in uncertain):
        given = {suffix: beside[name + suffix] for suffix in SUFFIXES if name + suffix in uncertain}
        if name not in points:
            lack = f"{name}{next(iter(given))} is there without {name}"
            raise UserError(f"{path}: {lack}; add the column {name}.")
        errors, freedom = _errors(path, name, points[name], given, counts.get(SEEDS))
        columns |= {error_column(name): errors, freedom_column(name): freedom}
    return pd.DataFrame(columns, index=points.index)


def _errors(
    path: Path,
    name: str,
    means: pd.Series[float],
    given: Mapping[str, pd.Series[float]],
    seeds: pd.Series[float] | None,
) -> tuple[pd.Series[float], pd.Series[float]]:
    from scipy.special import stdtrit

    if given.keys() >= {"_sd", "_se"}:
        raise UserError(f"{path}: {name}_sd and {name}_se give one number twice; keep one of them.")
    for end, other in (("_low", "_high"), ("_high", "_low")):
        if end in given and other not in given:
            raise UserError(f"{path}: {name}{end} requires a column {name}{other}.")
    for suffix in given.keys() & {"_sd", "_se"}:
        words = f"{name}{suffix} takes a number of at least 0, not {{:g}}."
        _refuse(path, given[suffix] < 0, words, given[suffix])
    counts = pd.Series(np.nan, means.index) if seeds is None else seeds
    stated = pd.DataFrame(given).notna().any(axis=1)
    words = f"{name}{next(iter(given))} needs at least 2 seeds, not {{:g}}."
    _refuse(path, stated & (counts < 2), words, counts)
    freedom = (counts - 1).where(counts.notna(), np.inf)
    if "_low" in given:
        low, high = given["_low"], given["_high"]
        _refuse(
            path, low.notna() != high.notna(), f"a row has {name}_low and {name}_high, or neither."
        )
        _refuse(path, low > high, f"{name}_low lies above {name}_high.")
        outside = (means < low) | (means > high)
        _refuse(path, outside, f"{name} lies outside {name}_low and {name}_high.")
        return (high - low) / 2 / stdtrit(freedom, (1 + LEVEL) / 2), freedom
    if "_se" in given:
        return given["_se"], freedom
    if seeds is None:
        raise UserError(f"{path}: {name}_sd needs a column seeds, the number of seeds of a mean.")
    _refuse(path, given["_sd"].notna() & counts.isna(), f"{name}_sd needs a number of seeds.")
    return given["_sd"] / np.sqrt(counts), freedom


def _refuse(
    path: Path, wrong: pd.Series[bool], words: str, numbers: pd.Series[float] | None = None
) -> None:
    if wrong.any():
        row: Any = wrong.idxmax()
        told = words if numbers is None else words.format(numbers.loc[row])
        raise UserError(f"{path}: row {row}: {told}")
