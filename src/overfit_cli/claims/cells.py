"""Selection of the cells that a claim is judged on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from overfit_cli.core.arrays import varying
from overfit_cli.core.cell import taken_columns
from overfit_cli.core.cells import Cells
from overfit_cli.core.claim import Measurement, add_remark, inconclusive, not_run
from overfit_cli.core.parameters import StudyParameters
from overfit_cli.core.study import has_missed
from overfit_cli.core.text import plural
from overfit_cli.stats.intervals import NEAR_COPY, is_short_decimal
from overfit_cli.stats.pairs import best_of_sweep

Values = Mapping[str, object]
"""Values of parameters; a tuple stands for any of its values."""


@dataclass(frozen=True)
class Selection:
    """The cells that a claim is judged on: settings times seeds.

    Attributes:
        model: the study's parameters; those that are not named below have their defaults.
        vary: parameters that may take several values.
        alike: parameters that may take any value, the same in all cells.
        includes: values of a parameter that must be among the cells.
        balanced: whether settings that a seed lacks are added as failed cells, with the reason
            `ABSENT`.
    """

    model: type[StudyParameters]
    at: Values = field(default_factory=dict)
    vary: Collection[str] = ()
    alike: Collection[str] = ()
    fewest: Mapping[str, int] = field(default_factory=dict)
    includes: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    preset: str = ""
    balanced: bool = True

    def of(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return the selected cells, failed cells included."""
        single = {name: value for name, value in self.at.items() if not isinstance(value, tuple)}
        free = {*self.vary, *self.alike, *self.fewest, *self.includes, *self.at.keys() - single}
        defaults = self.model.model_validate(single).model_dump()
        fixed = {name: value for name, value in defaults.items() if name not in free}
        selected = select_values(cells, fixed | dict(self.at))
        names = list(self.model.model_fields)
        example = f", as in `overfit sweep {self.preset}`" if self.preset else ""
        if selected.empty:
            these = f" of {describe_values(self.at)}" if self.at else ""
            raise not_run(f"It needs cells{these}{example}.")
        selected = one_setting(selected, [name for name in names if name in self.alike])
        for name, need in self.fewest.items():
            if (got := selected[name].nunique()) < need:
                raise not_run(f"It needs {need} values of {name}; these cells have {got}{example}.")
        for name, values in self.includes.items():
            if lacking := tuple(value for value in values if value not in {*selected[name]}):
                raise not_run(f"It needs cells of {describe_values({name: lacking})} too{example}.")
        varied = [name for name in names if name in free]
        return add_absent(selected, names, varied) if self.balanced else selected


def select_values(cells: pd.DataFrame, values: Values) -> pd.DataFrame:
    """Return the cells with these values of their parameters."""
    keep = np.ones(len(cells), dtype=bool)
    for name, value in values.items():
        keep &= cells[name].isin(value if isinstance(value, tuple) else (value,)).to_numpy()
    return cells[keep]


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


def require_trained(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells, if each is done, diverged or reached the step limit.

    A killed worker or an error says nothing about the parameters.
    """
    strange = is_unknown(cells)
    if strange.any():
        reasons = ", ".join(sorted(set(cells.loc[strange, "reason"].astype(str))))
        raise inconclusive(
            f"{int(strange.sum())} of {plural(len(cells), 'cell')} failed for reasons that say "
            f"nothing of their training ({reasons}); retry_failed runs them again."
        )
    return cells


def repeated_seeds(cells: pd.DataFrame, parameters: type[StudyParameters]) -> list[int]:
    """Return the seeds whose numbers are those of a smaller seed, wherever both have cells.

    Numbers are equal up to `NEAR_COPY`. Whole numbers and short decimals agree by chance: columns
    of such numbers alone are not compared.
    """
    done = cells[cells["status"] == "done"]
    excluded = taken_columns(parameters) | {"step"}
    numbers = done[[name for name in done if name not in excluded]].select_dtypes("number")
    columns = [numbers[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in numbers]
    long = [column for column in columns if not is_short_decimal(column).all()]
    if not long:
        return []
    seeds, of_seed = np.unique(done["seed"].to_numpy(), return_inverse=True)
    varied = varying(done, [name for name in (*parameters.model_fields, "step") if name in done])
    setting = (
        done.groupby(varied, dropna=False, sort=False).ngroup() if varied else 0 * done["seed"]
    )
    table = np.full((setting.max() + 1, len(long), len(seeds)), np.nan)
    table[setting.to_numpy(), :, of_seed] = np.stack(long, axis=1)
    table = table.reshape(-1, len(seeds))
    earlier, later = np.triu_indices(len(seeds), 1)
    shares = np.zeros(len(earlier), dtype=bool)
    for rows in np.array_split(table, range(8, len(table), max(8, len(table) // 8))):
        first, second = rows[:, earlier], rows[:, later]  # of the pairs that are alike so far
        missing = np.isnan(first) | np.isnan(second)
        with np.errstate(invalid="ignore"):  # between infinities
            near = np.abs(first - second) <= NEAR_COPY * np.abs(second)
        alike = (near | (first == second) | missing).all(axis=0)
        shares = (shares | ~missing.all(axis=0))[alike]
        earlier, later = earlier[alike], later[alike]
    return [int(seeds[index]) for index in np.unique(later[shares])]


def finite_numbers(cells: pd.DataFrame, name: str) -> pd.Series[float]:
    """Return a measured column."""
    column: pd.Series[float] = cells[name].astype(float)
    if (missing := int((~np.isfinite(column)).sum())) > 0:
        raise inconclusive(f"{missing} of {plural(len(cells), 'cell')} have no number of {name}.")
    return column


def positive_numbers(cells: pd.DataFrame, name: str) -> pd.Series[float]:
    """Return a measured column of positive numbers, to take its logarithm."""
    column = finite_numbers(cells, name)
    positive = int((column > 0).sum())
    if positive < max(len(cells), 1):
        raise inconclusive(
            f"Of {plural(len(cells), 'cell')} {positive} have a {name} above 0; others have no "
            "logarithm."
        )
    return column


def require_done(cells: pd.DataFrame, most_failed: float = 0.0) -> pd.DataFrame:
    """Return the cells that are done; up to a share of them may have failed."""
    failed = int((cells["status"] != "done").sum())
    if failed > most_failed * len(cells):
        raise inconclusive(
            f"{failed} of {plural(len(cells), 'cell')} failed or are absent, and those may differ "
            "from the rest."
        )
    return cells[cells["status"] == "done"]


# Two settings, each at its best

Setting = str | int
"""A value of the compared parameter."""


@dataclass(frozen=True)
class BestSetting:
    """A setting at the best of the values that were `tried`; its cells are indexed by seed."""

    name: Setting
    value: float
    tried: tuple[float, ...]
    cells: pd.DataFrame

    def column(self, name: str) -> pd.Series[float]:
        """Return a measured column by seed."""
        return finite_numbers(self.cells, name)

    @property
    def at_edge(self) -> bool:
        """Whether the best value is the least or the greatest of several."""
        return len(self.tried) > 1 and self.value in (self.tried[0], self.tried[-1])

    def in_words(self) -> str:
        """Write the setting, its best value, the sweep, and whether the value lies at the edge."""
        of = f" of {', '.join(f'{value:g}' for value in self.tried)}" if len(self.tried) > 1 else ""
        edge = ", at the edge of the sweep" if self.at_edge else ""
        return f"{self.name} at {self.value:g}{of}{edge}"


def check_edge(measured: Measurement, first: BestSetting, second: BestSetting) -> Measurement:
    """Return `inconclusive` where the best value of the worse setting is at the sweep's edge."""
    worse = {"holds": second, "fails": first}.get(measured.verdict)
    if worse is None or not worse.at_edge:
        return measured
    note = f"{measured.note} Beyond the edge {worse.name} may be better."
    return replace(measured, verdict="inconclusive", note=note)


@dataclass(frozen=True)
class Comparison:
    """The settings to compare, and the parameter of which each has its best value.

    The best value of `swept` has the lowest mean over seeds of the column `best_in`.
    """

    compared: str
    swept: str
    swept_in_words: str
    best_in: str

    def at_best(
        self,
        cells: pd.DataFrame,
        parameters: Collection[str],
        settings: Sequence[Setting],
        fewest: int = 2,
    ) -> list[BestSetting]:
        """Return settings at their best of so many values or more, on the seeds of all.

        Nothing else may vary.
        """
        cells = cells[cells[self.compared].isin(settings)]
        if cells[self.compared].nunique() < len(settings):
            raise not_run(f"It needs cells of {self.compared}={','.join(map(str, settings))}.")
        fixed = [name for name in parameters if name not in (self.compared, self.swept)]
        cells = require_trained(one_setting(cells, fixed))
        seeds = cells.groupby([self.compared, self.swept])["seed"].nunique().unstack()
        if (seeds.nunique(axis=1, dropna=False) > 1).any() or seeds.isna().to_numpy().any():
            raise inconclusive(
                f"Each {self.compared} has to be tried at the same {self.swept_in_words}s, with "
                "all of its seeds at each."
            )
        if len(seeds.columns) < fewest:
            raise inconclusive(
                f"It was tried at one {self.swept_in_words} alone; it takes {fewest}, so that the "
                "verdict depends on no single one."
            )
        best = [self._best(cells[cells[self.compared] == name], name) for name in settings]
        shared = set.intersection(*({*each.cells.index} for each in best))
        return [replace(each, cells=each.cells[each.cells.index.isin(shared)]) for each in best]

    def _best(self, cells: pd.DataFrame, setting: Setting) -> BestSetting:
        finite_numbers(cells[cells["status"] == "done"], self.best_in)
        best = best_of_sweep(cells, self.swept, [], self.best_in)
        if (best["status"] == "failed").any():
            raise inconclusive(
                f"A {self.compared} has no {self.swept_in_words} at which all seeds are done."
            )
        tried = tuple(sorted(cells[self.swept].unique().tolist()))
        return BestSetting(setting, float(best[self.swept].iloc[0]), tried, best.set_index("seed"))
