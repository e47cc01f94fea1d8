"""Worlds of broken clauses as lines of a table, below the names of their runs in brackets.

A line has the claims, the clause, how cells are changed, and the verdict that is right, `fails`
where none stands:

    lemma3-outputs | at most Z times | lemma_outputs=1.1 where heads==4 and seed==3 | fails
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pandas as pd

from calibration.clauses import Broken
from overfit_cli.core.claim import Verdict


def tabled(table: str) -> Iterator[Broken]:
    """Yield the worlds of a table."""
    run = ""
    for line in re.sub(r"\\\n *", "", table).split("\n"):
        if line.startswith("["):
            run = line[1:-1]
        elif line:
            claims, clause, changes, *right = line.split(" | ")
            verdicts = cast("tuple[Verdict, ...]", tuple(right) or ("fails",))
            yield Broken(claims, clause, run, functools.partial(changed, changes=changes), verdicts)


def changed(cells: pd.DataFrame, _: np.random.Generator, changes: str) -> pd.DataFrame:
    """Return cells with columns changed: `a=1, b=2*a where QUERY; only where QUERY`."""
    for change in changes.split("; "):
        given, _where, query = change.partition(" where ")
        rows: Any = cells.eval(query) if query else cells["seed"] >= 0
        if given == "only":
            cells = cells[rows]
            continue
        new = {name: value for name, _, value in (one.partition("=") for one in given.split(", "))}
        values = {
            name: np.nan if value == "nan" else cells.eval(value) for name, value in new.items()
        }
        cells = cells.assign(**{name: cells[name].mask(rows, to) for name, to in values.items()})
    return cells
