"""Worlds of broken clauses as lines of a table.

A line has the run, the claims, the clause, and what is changed where, which leads to a verdict:

    drift | softmax-linear-rate | at every step | rate_ratio = 1.1 where seed == 3 => fails

A change is a column and what it comes to, an expression of its columns, or `drop` of rows. Several
have semicolons between them, and are made one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pandas as pd

from calibration.clauses import Broken, Change
from overfit_cli.core.claim import Verdict


def tabled(table: str, study: str) -> Iterator[Broken]:
    """Yield the worlds of a table, of runs whose names begin with that of a study."""
    for line in table.replace("\\\n", "").strip().splitlines():
        run, claims, clause, told = (part.strip() for part in line.split(" | "))
        changes, verdict = told.split(" => ")
        right = (cast("Verdict", verdict),)
        yield Broken(claims, clause, f"{study}-{run}-quick", _changed(changes), right)


def _changed(text: str) -> Change:
    def change(frame: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
        for each in text.split("; "):
            done, _, where = each.partition(" where ")
            rows: Any = frame.eval(where or "seed >= 0")
            if done == "drop":
                frame = frame[~rows]
                continue
            name, _, value = done.partition(" = ")
            new: Any = np.nan if value == "nan" else frame.eval(value or name)
            column = name.split()[0]
            frame[column] = frame[column].mask(rows, new)
        return frame

    return change
