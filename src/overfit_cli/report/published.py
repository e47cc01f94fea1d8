"""Published numbers: a CSV file with a column for each parameter, and for each measured column.

A missing number is an empty field, or one of `NOTHING`. Columns that only cells have are ignored.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from overfit_cli.core.cell import ROW_COLUMNS
from overfit_cli.core.files import error_text, read_bounded
from overfit_cli.core.parameters import ParameterInfo, describe, parameter_named, parse_value
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import BadValue, UserError, is_plain_number, nearest, shorten
from overfit_cli.stats.pairs import setting_keys

MOST_BYTES = 1 << 26
NOTHING = frozenset({"", "nan", "na", "null", "none"})
"""The spellings of a missing number."""

_SEED = ParameterInfo("seed", "int", 0, "seed", "", "", (), "a whole number of at least 0")
_IGNORED = frozenset({"key", "study", "version", "reason"})
"""Columns of cells that a CSV file may have, and that are ignored."""


@dataclass(frozen=True)
class _Sheet:
    """A file's columns as they are written, and the lines of its header and of each row."""

    path: Path
    top: int
    columns: Mapping[str, Sequence[str]]
    lines: Sequence[int]


def read_published(path: Path, study: AnyStudy) -> pd.DataFrame:
    """Return the points of a CSV file as cells: parameters, `status`, measured columns.

    There is a `seed` where the file has one. Parameters may be called by their symbols. Columns
    that only cells have (`key`, `reason`, ...) are ignored; a `status` says which rows failed.

    Raises:
        UserError: if the file can't be read, has no column that the study measures, has one of
            another name, holds what is no value of a parameter or no number, or has a point twice.
    """
    sheet = _read(path)
    parameters = {**describe(study.parameters), "seed": _SEED}
    measured = [*(column.name for column in study.columns), "steps", "seconds"]
    named = _named(sheet, study, [*parameters, *measured, "status", *_IGNORED])
    points: dict[str, Any] = {
        name: _values(sheet, written, parameters[name])
        for name, written in named.items()
        if name in parameters
    }
    numbers = {
        name: _numbers(sheet, written) for name, written in named.items() if name in measured
    }
    if not numbers:
        raise UserError(
            f"{path}: none of its columns is one that {study.name} measures, such as "
            f"{study.headline or 'steps'}."
        )
    status = sheet.columns.get(named.get("status", ""), ["done"] * len(sheet.lines))
    failed = ["failed" if one.strip() == "failed" else "done" for one in status]
    found = pd.DataFrame({**points, "status": failed, **numbers})
    _refuse_repeated(sheet, setting_keys(found, list(points)).tolist())
    return found


def _read(path: Path) -> _Sheet:
    """The file's columns; every row has as many fields as the header."""
    try:
        text = read_bounded(path, MOST_BYTES).decode("utf-8-sig")
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        rows = [(reader.line_num, row) for row in reader if any(field.strip() for field in row)]
    except OSError as error:
        raise UserError(f"{path}: it can't be read ({error_text(error)}).") from error
    except UnicodeDecodeError:
        raise UserError(f"{path}: it isn't text in UTF-8; save it as CSV in UTF-8.") from None
    except csv.Error as error:
        raise UserError(f"{path}: it is no CSV file ({error}).") from None
    if len(rows) < 2:
        raise UserError(f"{path}: it has no row; write a header and a row for each point.")
    top, header = rows[0][0], [name.strip() for name in rows[0][1]]
    if len(header) == 1 and ";" in header[0]:
        raise UserError(f"{path}: semicolons separate its columns; write commas.")
    for line, row in rows:
        if len(row) != len(header):
            raise UserError(
                f"{path}: line {line} has {len(row)} fields, and the header {len(header)}: "
                f"{shorten(', '.join(header))}."
            )
    columns = zip(*(row for _, row in rows[1:]), strict=True)
    for name, times in Counter(header).items():
        if times > 1 or not name:
            unnamed = f"column {header.index(name) + 1} has no name"
            what = f"{times} columns are called {shorten(name)}" if name else unnamed
            raise UserError(f"{path}: line {top}: {what}; give each its own.")
    by_name = dict(zip(header, columns, strict=True))
    return _Sheet(path, top, by_name, [line for line, _ in rows[1:]])


def _named(sheet: _Sheet, study: AnyStudy, known: Sequence[str]) -> dict[str, str]:
    """The names of the columns as they are written, by what each of them is."""
    found: dict[str, str] = {}
    for written in sheet.columns:
        name = written if written in known else parameter_named(study.parameters, written)
        if name not in known:
            hint = nearest(written, set(known) - (ROW_COLUMNS - {"seed", "steps"}))
            raise UserError(
                f"{sheet.path}: line {sheet.top}: {study.name} has no parameter and no measured "
                f"column {shorten(written)!r}; {hint}"
            )
        if name in found:
            raise UserError(
                f"{sheet.path}: line {sheet.top}: the columns {found[name]} and {written} are "
                f"both {name}."
            )
        found[name] = written
    return found


def _values(sheet: _Sheet, written: str, info: ParameterInfo) -> list[Any]:
    """A parameter's column, or that of seeds."""
    read: dict[str, Any] = {}
    for line, text in zip(sheet.lines, sheet.columns[written], strict=True):
        if text in read:
            continue
        said = f"{sheet.path}: line {line}: {written}"
        if not text.strip():
            raise UserError(f"{said} is empty; it takes {info.accepts}.")
        try:
            read[text] = parse_value(info, text)
        except BadValue as error:
            raise UserError(f"{said} {shorten(text)}: {error.accepts}") from error
        if info is _SEED and int(read[text]) < 0:
            raise UserError(f"{said} {shorten(text)}: it takes {info.accepts}.")
    return [read[text] for text in sheet.columns[written]]


def _numbers(sheet: _Sheet, written: str) -> list[float]:
    """A measured column; nan where it is empty."""
    found = []
    for line, text in zip(sheet.lines, sheet.columns[written], strict=True):
        short = text.strip()
        try:
            number = math.nan if short.lower() in NOTHING else float(short)
        except ValueError:
            number = math.inf
        if math.isinf(number) or not is_plain_number(short):
            raise UserError(
                f"{sheet.path}: line {line} has {shorten(text)!r} in the column {written}; it "
                "takes a finite number, or nothing."
            )
        found.append(number)
    return found


def _refuse_repeated(sheet: _Sheet, points: Sequence[Any]) -> None:
    first: dict[Any, int] = {}
    for line, point in zip(sheet.lines, points, strict=True):
        if point in first:
            raise UserError(f"{sheet.path}: lines {first[point]} and {line} have the same point.")
        first[point] = line
