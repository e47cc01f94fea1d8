"""Digests of cells: which they are, and which numbers they hold, however they lie in files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


def key_of_cells(cells: pd.DataFrame) -> str:
    """Return a name for a choice of cells, in 20 hexadecimal digits, as their own keys have.

    It is the SHA-256 of the cells' keys, sorted, one a line.
    """
    return hashlib.sha256("\n".join(sorted(cells["key"])).encode()).hexdigest()[:20]


def digest_of_numbers(
    cells: pd.DataFrame, steps: pd.DataFrame | None = None, *, seconds: bool = False
) -> str:
    """Return the SHA-256 of everything that cells hold, and of their logged steps.

    Neither the order of rows and columns matters, nor a column that holds nothing, nor whether
    whole numbers are stored as real ones. Of each table it takes the number of rows, and of each
    column, in the order of their names, the name and the values: numbers as float64,
    little-endian, texts as a list in JSON.

    Args:
        cells: one row per cell.
        steps: one row per cell and logged step; None where they don't matter.
        seconds: whether the time that a cell took matters.
    """
    found = hashlib.sha256()
    left_out = set() if seconds else {"seconds"}
    for content in _content(cells.drop(columns=left_out, errors="ignore"), ["key"]):
        found.update(content)
    for content in () if steps is None else _content(steps, ["key", "step"]):
        found.update(content)
    return found.hexdigest()


def _content(table: pd.DataFrame, order: Sequence[str]) -> Iterator[bytes]:
    """What a table holds, its rows in the order of these columns."""
    yield f"{len(table)} rows\n".encode()
    table = table.sort_values(list(order), kind="stable")
    for name in sorted(table.columns):
        if not table[name].isna().all():
            yield f"{name}\n".encode()
            yield _values(table[name])


def _values(column: pd.Series[Any]) -> bytes:
    if column.dtype.kind in "biuf":
        numbers = column.to_numpy(dtype="<f8", na_value=np.nan)
        return np.where(np.isnan(numbers), np.nan, numbers).astype("<f8").tobytes()
    texts = column.astype(object).where(column.notna(), None).tolist()
    return json.dumps(texts, default=str).encode()
