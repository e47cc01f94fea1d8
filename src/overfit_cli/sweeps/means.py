"""Means over seeds, with intervals: one row for each place of a grid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from overfit_cli.analysis.intervals import t_half_width
from overfit_cli.errors import UserError
from overfit_cli.parameters import describe
from overfit_cli.study import AnyStudy

if TYPE_CHECKING:
    import pandas as pd


def varying_parameters(study: AnyStudy, cells: pd.DataFrame) -> list[str]:
    """Return the parameters that take several values in the cells, in the order of the study."""
    return [name for name in describe(study.parameters) if cells[name].nunique() > 1]


def measured_columns(cells: pd.DataFrame) -> list[str]:
    """Return the columns of numbers that training gave, with `steps` and `seconds` before them."""
    names = [str(name) for name in cells.columns]
    return names[names.index("reason") + 1 :]


def in_order(study: AnyStudy, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells sorted by the parameters that vary, and then by seed.

    Words that are chosen from stand in the order in which the study names them.
    """
    described = describe(study.parameters)

    def places(column: pd.Series[Any]) -> pd.Series[Any]:
        info = described.get(str(column.name))
        if info is None or info.kind != "literal":
            return column
        return column.map({choice: place for place, choice in enumerate(info.choices)})

    names = [*varying_parameters(study, cells), "seed"]
    return cells.sort_values(names, key=places, ignore_index=True)


def means_over_seeds(
    study: AnyStudy,
    cells: pd.DataFrame,
    parameters: Sequence[str] = (),
    measured: Sequence[str] = (),
) -> pd.DataFrame:
    """Return a row for each combination of the parameters that vary, in their order.

    Args:
        study: the study.
        cells: its cells, failed ones too.
        parameters: which of them stand in the row, and in which order; those that vary and aren't
            named stand before them.
        measured: the columns to take means of; by default all that were measured.

    Returns:
        The parameters; `seeds`, how many cells are done, and `failed`, how many failed. Then for
        each measured column, such as `loss`, its mean over the cells that are done and have it,
        the ends `loss_low` and `loss_high` of its 95 % t interval, and the standard deviation
        `loss_sd`. These three are nan for a single seed.

    Raises:
        UserError: if no cell is done, or two columns would have the same name.
    """
    import pandas as pd

    varying = varying_parameters(study, cells)
    names = [*(name for name in varying if name not in parameters), *parameters]
    cells = in_order(study, cells)
    done = cells["status"] == "done"
    if not done.any():
        raise UserError(_without_means(cells))
    place = cells.groupby(varying, sort=False).ngroup() if varying else 0 * cells["seed"]
    columns = [cells.groupby(place)[names].first()] if names else []
    columns.append(pd.DataFrame({"seeds": done, "failed": ~done}).groupby(place).sum())
    for name in measured or measured_columns(cells):
        columns.append(_summary(cells[name].where(done), place))
    means = pd.concat(columns, axis=1).reset_index(drop=True)
    for name, times in Counter(means.columns).items():
        if times > 1:
            raise UserError(f"The means have two columns {name!r}; choose others with --columns.")
    return means


def _summary(values: pd.Series[Any], place: pd.Series[int]) -> pd.DataFrame:
    """The mean of a column at each place, the ends of its interval, and its deviation."""
    import pandas as pd

    groups = values.astype(np.float64).groupby(place)
    mean, deviation, count = groups.mean(), groups.std(), groups.count()
    half = t_half_width(deviation, count.where(count > 1))
    name = values.name
    return pd.DataFrame(
        {
            name: mean,
            f"{name}_low": mean - half,
            f"{name}_high": mean + half,
            f"{name}_sd": deviation,
        }
    )


def _without_means(cells: pd.DataFrame) -> str:
    """Why there are no means: every cell failed."""
    reasons = cells["reason"].value_counts()
    first = reasons.index[0]
    others = f", and {len(reasons) - 1} other reasons" if len(reasons) > 1 else ""
    return f"All {len(cells)} cells failed ({first}{others}), so there are no means over seeds."
