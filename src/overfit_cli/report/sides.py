"""Sides of a comparison: the cells of a run directory, or a file of published numbers.

Such a file is CSV, or parquet, with a column for each parameter and measured column.
A missing number is an empty field, or one of `MISSING`. Columns that only cells have are ignored.
Beside a measured column, such as `loss`, stand `loss_low` and `loss_high`, the ends of its 95 %
interval, `loss_se`, its standard error, or `loss_sd`, the standard deviation over as many seeds as
the column `seeds` says. The first of these that is there counts, so that what `export` writes can
be read. Where seeds are not known, the error counts as exact: intervals are normal.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from overfit_cli.core import expressions, files, text
from overfit_cli.core.arrays import finite_column
from overfit_cli.core.cell import ROW_COLUMNS
from overfit_cli.core.cells import Cells, Run
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.parameters import SEED, ParameterInfo, Value, describe, parameter_named
from overfit_cli.core.study import AnyStudy
from overfit_cli.stats import intervals, pairs
from overfit_cli.sweeps.load import load_run
from overfit_cli.sweeps.store import RunDirectory

ENDINGS = (".csv", ".parquet")
"""The endings of files of published numbers."""

MISSING = frozenset({"", "nan", "na", "null", "none"})
"""The spellings of a missing number, in small letters."""

SEEDS, FAILED = "seeds", "failed"
"""The columns of how many seeds a mean is of, and of how many cells failed there."""

SUFFIXES = ("_low", "_high", "_se", "_sd")
"""What the columns of an uncertainty have behind the name of their measured column."""

OWN_SEEDS = "_seeds"
"""What the column has of how many seeds a mean is, where others are of more."""

_NUMBER = ParameterInfo("it", accepts="a finite number, or nothing")


def path_of(side: Cells) -> Path:
    """Return the run directory, or the file, of one side."""
    return side.run.path or Path()


def is_published(side: Cells) -> bool:
    """Return whether a side is a file of published points, and no run."""
    return "version" not in side.frame


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
    if other is None:
        cells = load_run(RunDirectory(path, letter.lower()), any_version=True)
    else:
        cells = _load_published(path, other)
        tests = {each: expressions.read_conditions(each, other.schema.placed) for each in where}
        names = {*cells.frame}
        where = [each for each in tests if all(test.names <= names for test in tests[each])]
    cells = cells.choose(*where).choose(*where_here, option=f"where_{letter.lower()}")
    for name in values:
        if not (name.isidentifier() or name in cells.frame):
            cells = cells.with_column(name)
    return cells


def measured_columns(side: Cells, values: Sequence[str], *, steps: bool) -> list[str]:
    """Return the measured columns with numbers, the headline first, expressions last.

    `seconds` are compared where they are asked for, and `steps` where cells of a side took any.
    """
    names = [side.study.headline, *(column.name for column in side.study.columns)]
    names += ["steps"] if steps else []
    names += [name for name in values if name == "seconds" or not name.isidentifier()]
    numbers = {name: finite_column(side.trained, name) for name in names if name in side.frame}
    return [name for name, column in numbers.items() if column.notna().any()]


# Published numbers


def error_column(name: str) -> str:
    """Return the column of a measured column's standard errors; no file can call one so."""
    return f"standard error of {name}"


def _of_point(name: str) -> str:
    return f"{name} of the point"


def summary_of_point(point: pd.Series[Any], name: str) -> intervals.Summary:
    """Return a published mean; its error is nan where it is not known."""
    seeds = point.get(_of_point(name + OWN_SEEDS), point.get(_of_point(SEEDS), np.nan))
    error = point.get(error_column(name), np.nan)
    if np.isnan(seeds):
        return intervals.Summary(float(point[name]), error, np.inf, 0)
    return intervals.Summary(float(point[name]), error, seeds - 1, int(seeds))


def mean_of_points(points: pd.DataFrame, name: str) -> intervals.Summary:
    """Return the mean over published points, with its error.

    Whether published means share their seeds is not known. So their errors count as if they all
    went the same way, which makes the interval too wide rather than too short.
    """
    fewest = summary_of_point(points.min(numeric_only=True), name)
    error = float(points[error_column(name)].mean(skipna=False))
    return fewest._replace(value=float(points[name].mean()), error=error)


def has_failed(points: pd.DataFrame) -> bool:
    """Return whether cells of a published point failed, as the file says."""
    return _of_point(FAILED) in points and bool((points[_of_point(FAILED)] > 0).any())


def _load_published(path: Path, run: Cells) -> Cells:
    """The points of a file, or of the file of its name beside the code of a run's study."""
    module = sys.modules[type(run.study).__module__].__file__
    beside = Path(module).with_name(str(path)) if module and path.name == str(path) else path
    path = beside if beside.is_file() and not path.exists() else path
    grid = {name: values_of(run, name) for name in run.parameters}
    return Cells.of(run.study, read_published(path, run.study, grid), run=Run(path.name, path))


def values_of(cells: Cells, name: str) -> list[Value]:
    """Return the distinct values of a parameter, in order; none where it has no column."""
    values = cells.trained[name].dropna().unique().tolist() if name in cells.frame else []
    return sorted({pairs.setting_key(value): value for value in values}.values())


def read_published(path: Path, study: AnyStudy, grid: Mapping[str, Any]) -> pd.DataFrame:
    """Return the points of a file as cells: parameters, `status`, measured columns, their errors.

    There is a `seed` where the file has one. Parameters may be called by their symbols.

    Args:
        grid: values of parameters in a run: a real number in the file that agrees with one of them
            to a millionth is that one, as decimals in print are rounded.
    """
    parameters = {**describe(study.parameters), "seed": SEED}
    measured = [*(column.name for column in study.columns), "steps", "seconds"]
    known = {*parameters, *measured, *ROW_COLUMNS}
    besides = {SEEDS, FAILED, *(name + s for name in measured for s in (*SUFFIXES, OWN_SEEDS))}
    besides -= known
    table = _read_table(path)
    names = [_full_name(path, name, study, known | besides) for name in table.columns]
    table.columns = pd.Index(names)
    if table.columns.has_duplicates:
        name = table.columns[table.columns.duplicated()][0]
        raise UserError(f"{path}: two columns are {name}; keep one of them.")
    read = [name for name in table if name in {*parameters, *measured, *besides}]
    parsed = {name: _parse(path, table[name], parameters.get(name)) for name in read}
    columns = pd.DataFrame(parsed, table.index)
    counts = {"seed", SEEDS, FAILED, *(name + OWN_SEEDS for name in measured)}
    for name in counts & {*read} - {*measured}:
        wrong = columns[name].notna() & ((columns[name] < 0) | (columns[name] % 1 != 0))
        _refuse(path, wrong, f"{name} takes a whole number of at least 0.")
    for name, others in grid.items():
        if name in columns and parameters[name].kind == "float":
            columns[name] = pairs.nearest_values(columns[name].to_list(), others)
    given = [name for name in parameters if name in columns]
    failed = table["status"].str.strip() == "failed" if "status" in table else False
    cells = columns[[*given, *(name for name in measured if name in columns)]].assign(
        status=np.where(failed, "failed", "done")
    )
    same = pairs.setting_keys(cells, given).duplicated(keep=False)
    _refuse(path, same, f"another row has the same {' and '.join(given)}; give each its own point.")
    return pd.concat([cells, _errors(path, columns, measured)], axis=1)


def _read_table(path: Path) -> pd.DataFrame:
    """The texts of a file, by their headings; the index counts rows from 1."""
    try:
        content = files.read_bounded(path)
        if path.suffix.lower() == ".parquet":
            content = pd.read_parquet(io.BytesIO(content)).to_csv(index=False).encode()
        lines = io.StringIO(content.decode("utf-8-sig"), newline=None)
        # The header is read as a row, so that pandas renames no column and takes none for an index.
        rows = pd.read_csv(lines, header=None, dtype=str, keep_default_na=False, engine="python")
    except pd.errors.EmptyDataError:
        rows = pd.DataFrame()
    except (OSError, ValueError) as error:  # pyarrow's and pandas' own are of these
        reason = files.error_text(error) if isinstance(error, OSError) else text.shorten(str(error))
        raise UserError(f"{path}: it can't be read ({reason}).") from error
    rows = rows[(rows != "").any(axis=1)]
    if len(rows) < 2:
        raise UserError(f"{path}: it has no row; write a header and a row for each point.")
    _refuse(path, rows.isna().any(axis=1), "it has fewer fields than the header.")
    return rows.iloc[1:].set_axis(rows.iloc[0].str.strip().to_list(), axis="columns")


def _full_name(path: Path, written: str, study: AnyStudy, known: set[str]) -> str:
    name = written if written in known else parameter_named(study.parameters, written)
    if name in known or name == "n":
        return name if name in known else SEEDS
    hint = text.suggestion(written, known - (ROW_COLUMNS - {"seed", "steps"}))
    lack = f"no parameter and no measured column {text.shorten(written)!r}"
    raise UserError(f"{path}: {study.name} has {lack}; {hint} Commas separate columns.")


def _parse(path: Path, texts: pd.Series[str], info: ParameterInfo | None) -> list[Value]:
    values: list[Value] = []
    for row, written in texts.items():
        missing = info is None and written.strip().lower() in MISSING
        try:
            values.append(np.nan if missing else (info or _NUMBER).parse(written))
        except BadValue as error:
            raise UserError(f"{path}: row {row}: {texts.name}: {error.accepts}") from None
    return values


def _errors(path: Path, columns: pd.DataFrame, measured: Sequence[str]) -> pd.DataFrame:
    """The standard errors of each measured column, and the counts of seeds and failed cells."""
    counts = [SEEDS, FAILED, *(name + OWN_SEEDS for name in measured)]
    counts = [name for name in counts if name in columns and name not in measured]
    errors = columns[counts].rename(columns=_of_point)
    of_all = errors.get(_of_point(SEEDS), pd.Series(np.nan, columns.index))
    for name in measured:
        seeds = errors.get(_of_point(name + OWN_SEEDS), of_all)
        freedom = (seeds - 1).where(seeds.notna(), np.inf)
        given = {s: columns[name + s] for s in SUFFIXES if name + s in columns}
        if not given:
            continue
        if name not in columns or "seed" in columns or ("_low" in given) != ("_high" in given):
            beside = f"{name}{next(iter(given))} stands beside {name} in a file without seed"
            raise UserError(f"{path}: {beside}; {name}_low and {name}_high stand together.")
        if "_low" in given:
            half = (given["_high"] - given["_low"]) / 2
            error = half / intervals.t_quantile(freedom, intervals.LEVEL)
        else:
            error = given.get("_se", given.get("_sd", seeds) / np.sqrt(seeds))
        stated = pd.DataFrame(given).notna().all(axis=1)
        words = f"{name} has no usable uncertainty; it needs 2 seeds or more, and {name}_sd seeds."
        _refuse(path, stated & ~((error >= 0) & ~(seeds < 2)), words)
        errors[error_column(name)] = error
    return errors


def _refuse(path: Path, wrong: pd.Series[bool], words: str) -> None:
    if wrong.any():
        row: Any = wrong.idxmax()
        raise UserError(f"{path}: row {row}: {words}")
