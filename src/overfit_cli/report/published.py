"""Published numbers: a CSV or parquet file with a column for each parameter and measured column.

A missing number is an empty field, or one of `MISSING`. Columns that only cells have are ignored.
`report.uncertainty` says which columns beside a measured one give its uncertainty.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from overfit_cli.core.cell import ROW_COLUMNS
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.files import error_text, read_bounded
from overfit_cli.core.parameters import (
    SEED,
    ParameterInfo,
    Value,
    describe,
    parameter_named,
    parse_value,
)
from overfit_cli.core.spreadsheet import csv_text, unquoted
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import shorten, suggestion
from overfit_cli.report.uncertainty import FAILED, SEEDS, SUFFIXES, standard_errors
from overfit_cli.stats.pairs import nearest_values, setting_keys

ENDINGS = (".csv", ".parquet")
"""The endings of files of published numbers."""

MOST_BYTES = 1 << 26
MISSING = frozenset({"", "nan", "na", "null", "none"})
"""The spellings of a missing number, in small letters."""

_NUMBER = ParameterInfo("it", "float", None, "", "", "", (), "a finite number, or nothing")


def read_published(
    path: Path, study: AnyStudy, grid: Mapping[str, Sequence[Value]] | None = None
) -> pd.DataFrame:
    """Return the points of a file as cells: parameters, `status`, measured columns, their errors.

    There is a `seed` where the file has one. Parameters may be called by their symbols. Columns
    that only cells have (`key`, `reason`, ...) are ignored; a `status` says which rows failed.

    Args:
        grid: values of parameters in a run: a real number in the file that agrees with one of them
            to a millionth is that one, as decimals in print are rounded.
    """
    parameters = {**describe(study.parameters), "seed": SEED}
    measured = [*(column.name for column in study.columns), "steps", "seconds"]
    table = _read_table(path)
    names = [*parameters, *measured, *ROW_COLUMNS.difference(parameters, measured)]
    besides = {SEEDS, FAILED, *(name + suffix for name in measured for suffix in SUFFIXES)}
    besides -= {*names}
    table.columns = pd.Index([_full_name(path, str(name), study, names, besides) for name in table])
    if table.columns.has_duplicates:
        name = table.columns[table.columns.duplicated()][0]
        raise UserError(f"{path}: two columns are {name}; keep one of them.")
    if not set(measured) & set(table):
        raise UserError(
            f"{path}: none of its columns is one that {study.name} measures, such as "
            f"{study.headline or 'steps'}."
        )
    columns = {
        name: _parse(path, table[name], parameters.get(name))
        for name in [*parameters, *measured]
        if name in table
    }
    for name, values in (grid or {}).items():
        if name in columns and parameters[name].kind == "float":
            columns[name] = nearest_values(columns[name], values)
    cells = pd.DataFrame(columns, index=table.index)
    failed = table["status"].str.strip() == "failed" if "status" in table else False
    cells["status"] = np.where(failed, "failed", "done")
    given = [name for name in parameters if name in cells]
    point = setting_keys(cells, given)
    if point.duplicated().any():
        first, second = point.index[point == point[point.duplicated()].iloc[0]][:2]
        same = f"the same {' and '.join(given)}" if given else "no parameter"
        raise UserError(
            f"{path}: rows {first} and {second} have {same}; give each row its own point, with a "
            "column for each parameter that varies."
        )
    beside = {name: _parse(path, table[name], None) for name in table if name in besides}
    errors = standard_errors(path, cells, pd.DataFrame(beside, index=table.index, dtype=float))
    return pd.concat([cells, errors], axis=1)


def _read_table(path: Path) -> pd.DataFrame:
    try:
        text = _read_text(path)
        first_line = text.partition("\n")[0]
        if ";" in first_line and "," not in first_line:
            raise UserError(f"{path}: semicolons separate its columns; write commas.")
        lines = io.StringIO(text, newline=None)
        # The header is read as a row, so that pandas renames no column and takes none for an index.
        rows = pd.read_csv(lines, header=None, dtype=str, keep_default_na=False, engine="python")
    except OSError as error:
        raise UserError(f"{path}: it can't be read ({error_text(error)}).") from error
    except UnicodeDecodeError:
        raise UserError(f"{path}: it isn't text in UTF-8; save it as CSV in UTF-8.") from None
    except pd.errors.EmptyDataError:
        rows = pd.DataFrame()
    except ValueError as error:
        raise UserError(f"{path}: it is no CSV file ({error}).") from None
    rows = rows[(rows != "").any(axis=1)].map(unquoted, na_action="ignore")
    if len(rows) < 2:
        raise UserError(f"{path}: it has no row; write a header and a row for each point.")
    header = rows.iloc[0].str.strip()
    if (header == "").any():
        raise UserError(f"{path}: a column has no name; give each its own.")
    short = rows.index[rows.isna().any(axis=1)]
    if len(short):
        raise UserError(f"{path}: row {short[0]} has fewer fields than the header.")
    return rows.iloc[1:].set_axis(header.to_list(), axis="columns")


def _read_text(path: Path) -> str:
    content = read_bounded(path, MOST_BYTES)
    if path.suffix.lower() != ".parquet":
        return content.decode("utf-8-sig")
    try:
        rows = pq.read_table(io.BytesIO(content)).to_pandas(ignore_metadata=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UserError(f"{path}: it is no parquet file ({error}).") from None
    return csv_text(rows)


def _full_name(
    path: Path, written: str, study: AnyStudy, names: Sequence[str], besides: Collection[str]
) -> str:
    name = written if written in names else parameter_named(study.parameters, written)
    if name not in names and (name in besides or name == "n"):
        return SEEDS if name == "n" else name
    if name not in names:
        hint = suggestion(written, set(names) - (ROW_COLUMNS - {"seed", "steps"}))
        raise UserError(
            f"{path}: {study.name} has no parameter and no measured column {shorten(written)!r}; "
            f"{hint} Commas separate columns."
        )
    return name


def _parse(path: Path, texts: pd.Series[str], info: ParameterInfo | None) -> list[Value]:
    values: list[Value] = []
    for row, text in texts.items():
        missing = info is None and text.strip().lower() in MISSING
        try:
            values.append(np.nan if missing else parse_value(info or _NUMBER, text))
        except BadValue as error:
            raise UserError(f"{path}: row {row}: {texts.name}: {error.accepts}") from None
        if info is SEED and int(values[-1]) < 0:
            raise UserError(f"{path}: row {row}: seed {text}: it takes {SEED.accepts}.")
    return values
