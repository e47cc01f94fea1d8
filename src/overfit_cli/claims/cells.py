"""Selection of the cells that a claim is judged on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from overfit_cli.core.arrays import varying
from overfit_cli.core.cell import taken_columns
from overfit_cli.core.cells import Cells
from overfit_cli.core.claim import add_remark, inconclusive, not_run
from overfit_cli.core.parameters import StudyParameters
from overfit_cli.core.study import has_missed
from overfit_cli.core.text import list_numbers, plural
from overfit_cli.stats.intervals import NEAR_COPY, is_short_decimal

Values = Mapping[str, object]
"""Values of parameters; a tuple stands for any of its values."""


def select_values(cells: pd.DataFrame, values: Values) -> pd.DataFrame:
    """Return the cells with these values of their parameters."""
    keep = np.ones(len(cells), dtype=bool)
    for name, value in values.items():
        keep &= cells[name].isin(value if isinstance(value, tuple) else (value,)).to_numpy()
    return cells[keep]


def require_values(cells: pd.DataFrame, **values: Iterable[object]) -> pd.DataFrame:
    """Return the cells, where these are among the values of their parameters."""
    for name, needed in values.items():
        if lacking := tuple(value for value in needed if value not in {*cells[name]}):
            raise not_run(f"It needs cells of {describe_values({name: lacking})}.")
    return cells


def describe_values(values: Values) -> str:
    """Write values as the command line takes them: `kernel=softmax, heads=1,2,4`."""
    return ", ".join(
        f"{name}={','.join(map(str, value)) if isinstance(value, tuple) else value}"
        for name, value in values.items()
    )


def one_setting(cells: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """Return the cells of one setting of parameters: that with most cells.

    The note of the claim says how many cells of other settings are left out.
    """
    varied = varying(cells, names)
    if not varied:
        return cells
    settings = cells.groupby(varied, dropna=False).ngroup().to_numpy()
    chosen: pd.DataFrame = cells[settings == np.bincount(settings).argmax()]
    values = describe_values({name: chosen[name].iloc[0] for name in varied})
    left_out = len(cells) - len(chosen)
    add_remark(f"Judged at {values}; {plural(left_out, 'cell')} of other settings left out.")
    return chosen


ABSENT = "absent"
"""The reason of a cell that a design has and that there is no row of."""


def add_absent(
    cells: pd.DataFrame, names: Iterable[str], free: Iterable[str] | None = None
) -> pd.DataFrame:
    """Return the cells, with a failed one for each setting that a seed lacks and another has.

    Logged steps are returned as they are. `free` parameters may take several values; by default
    all.
    """
    if "step" in cells:
        return cells
    varied = varying(cells, names if free is None else free)
    keys = [*varied, "seed"]
    settings, design = cells[varied].drop_duplicates(), cells[["seed"]].drop_duplicates()
    design = settings.merge(design, how="cross") if varied else design
    is_there = pd.concat([cells[keys], design]).duplicated().to_numpy()[len(cells) :]
    if is_there.all():
        return cells
    fixed = {name: cells[name].iloc[0] for name in names if name not in varied}
    rows = design[~is_there].assign(**fixed, status="failed", reason=ABSENT)
    return pd.concat([cells, rows], ignore_index=True)


def rows_with_absent(cells: Cells) -> pd.DataFrame:
    """Return the rows of cells, each missing one as one that failed."""
    frame, missing = cells.frame, cells.frame["status"] == "missing"
    if not missing.any():
        return frame
    return frame.assign(
        status=frame["status"].mask(missing, "failed"), reason=frame["reason"].mask(missing, ABSENT)
    )


def is_unknown(cells: pd.DataFrame) -> pd.Series[bool]:
    """Return which cells failed for reasons that say nothing of their training, or are absent."""
    failed: pd.Series[bool] = cells["status"] != "done"
    return failed & ~has_missed(cells) if failed.any() else failed


def repeated_seeds(cells: pd.DataFrame, parameters: type[StudyParameters]) -> list[int]:
    """Return the seeds whose numbers are those of a smaller seed, wherever both have cells.

    Numbers are equal up to `NEAR_COPY`. Whole numbers and short decimals agree by chance: columns
    of such numbers alone are not compared. Seeds that take other numbers of steps repeat nothing.
    """
    done = cells[cells["status"] == "done"]
    excluded = taken_columns(parameters) | {"step"}
    numbers = done[[name for name in done if name not in excluded]].select_dtypes("number")
    columns = [numbers[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in numbers]
    long = [column for column in columns if not is_short_decimal(column).all()]
    if not long:
        return []
    long.append(np.where(np.isnan(long).all(axis=0), np.nan, done.get("steps", 0)))
    seeds, of_seed = np.unique(done["seed"].to_numpy(), return_inverse=True)
    varied = varying(done, [name for name in (*parameters.model_fields, "step") if name in done])
    setting = done.groupby(varied or np.zeros(len(done)), dropna=False, sort=False).ngroup()
    table = np.full((setting.max() + 1, len(long), len(seeds)), np.nan)
    table[setting.to_numpy(), :, of_seed] = np.stack(long, axis=1)
    flat = table.reshape(-1, len(seeds))
    earlier, later = np.triu_indices(len(seeds), 1)
    shares = np.zeros(len(earlier), dtype=bool)
    for rows in np.array_split(flat, range(8, len(flat), max(8, len(flat) // 8))):
        first, second = rows[:, earlier], rows[:, later]  # of the pairs that are alike so far
        missing = np.isnan(first) | np.isnan(second)
        with np.errstate(invalid="ignore", over="ignore"):  # between infinities
            near = np.abs(first - second) <= NEAR_COPY * np.abs(second)
        alike = (near | (first == second) | missing).all(axis=0)
        shares = (shares | ~missing.all(axis=0))[alike]
        earlier, later = earlier[alike], later[alike]
    return [int(seeds[index]) for index in np.unique(later[shares])]


def repeats_in_words(seeds: Sequence[int]) -> str:
    """Say of seeds that they repeat others; nothing of none."""
    many, named = "s" * (len(seeds) > 1), list_numbers(seeds)
    said = "all numbers of another seed: they are no further draws, and more wouldn't be."
    return f"Seed{many} {named} repeat{'' if many else 's'} {said}" if named else ""


def finite_numbers(cells: pd.DataFrame, name: str) -> pd.Series[float]:
    """Return a measured column."""
    column: pd.Series[float] = cells[name].astype(float)
    if (missing := int((~np.isfinite(column)).sum())) > 0:
        raise inconclusive(f"{missing} of {plural(len(cells), 'cell')} have no number of {name}.")
    return column


def require_done(cells: pd.DataFrame, most_failed: float = 0.0) -> pd.DataFrame:
    """Return the cells that are done; up to a share of them may have failed."""
    failed = int((cells["status"] != "done").sum())
    if failed > most_failed * len(cells):
        words = f"{failed} of {plural(len(cells), 'cell')} failed or are absent"
        raise inconclusive(f"{words}, and those may differ from the rest.")
    return cells[cells["status"] == "done"]
