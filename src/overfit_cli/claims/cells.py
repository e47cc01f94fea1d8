"""Selection of the cells that a claim is judged on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from overfit_cli.core.arrays import varying
from overfit_cli.core.cell import taken_columns
from overfit_cli.core.claim import inconclusive, not_run
from overfit_cli.core.parameters import StudyParameters
from overfit_cli.core.text import plural

Values = Mapping[str, object]
"""Values of parameters; a tuple stands for any of its values."""


@dataclass(frozen=True)
class Selection:
    """The cells that a claim is judged on.

    Attributes:
        model: the study's parameters; those that are not named below have their defaults.
        at: values of parameters.
        vary: parameters that may take several values.
        alike: parameters that may take any value, the same in all cells.
        fewest: the least number of values of a parameter.
        preset: a preset that has such cells.
    """

    model: type[StudyParameters]
    at: Values = field(default_factory=dict)
    vary: Collection[str] = ()
    alike: Collection[str] = ()
    fewest: Mapping[str, int] = field(default_factory=dict)
    preset: str = ""

    def of(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return the selected cells, failed cells included.

        Raises:
            UndecidedError: `not run` without such cells, or where they do not form the grid.
        """
        free = {*self.vary, *self.alike, *self.fewest}
        single = {name: value for name, value in self.at.items() if not isinstance(value, tuple)}
        defaults = self.model.model_validate(single).model_dump()
        fixed = {name: value for name, value in defaults.items() if name not in free}
        selected = select_values(cells, fixed | dict(self.at))
        if selected.empty:
            raise not_run(f"It needs cells{self._in_words()}{self._for_example()}.")
        check_alike(selected, [name for name in self.model.model_fields if name in self.alike])
        for name, count in self.fewest.items():
            if (count_here := selected[name].nunique()) < count:
                raise not_run(
                    f"It needs {count} values of {name}; these cells have {count_here}"
                    f"{self._for_example()}."
                )
        return selected

    def _in_words(self) -> str:
        return f" of {describe_values(self.at)}" if self.at else ""

    def _for_example(self) -> str:
        return f", as in `overfit sweep {self.preset}`" if self.preset else ""


def select_values(cells: pd.DataFrame, values: Values) -> pd.DataFrame:
    """Return the cells with these values of their parameters."""
    keep = np.ones(len(cells), dtype=bool)
    for name, value in values.items():
        keep &= cells[name].isin(value if isinstance(value, tuple) else (value,)).to_numpy()
    return cells[keep]


def describe_values(values: Values) -> str:
    """Write values as the command line takes them: `kernel=softmax, heads=1,2,4`."""
    texts = {
        name: ",".join(map(str, value)) if isinstance(value, tuple) else value
        for name, value in values.items()
    }
    return ", ".join(f"{name}={value}" for name, value in texts.items())


def check_alike(cells: pd.DataFrame, names: Iterable[str]) -> None:
    """Refuse cells of several values of parameters that must take one.

    Raises:
        UndecidedError: `not run`, with the names of these parameters.
    """
    if varied := varying(cells, names):
        raise not_run(f"It needs cells of one value of {', '.join(varied)}.")


def require_trained(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells, if each is done, diverged or reached the step limit.

    A killed worker or an error says nothing about the parameters.

    Raises:
        UndecidedError: `inconclusive` where some failed for another reason.
    """
    failed = cells["status"] != "done"
    if not failed.any():
        return cells
    strange = failed & ~cells["reason"].isin(OUTCOMES)
    if strange.any():
        reasons = ", ".join(sorted(set(cells.loc[strange, "reason"].astype(str))))
        raise inconclusive(
            f"{int(strange.sum())} of {plural(len(cells), 'cell')} failed for reasons that say "
            f"nothing of their training ({reasons}); `--retry-failed` runs them again."
        )
    return cells


def repeated_seeds(cells: pd.DataFrame, parameters: type[StudyParameters]) -> list[int]:
    """Return the seeds whose numbers equal those of a smaller seed, wherever both have cells.

    Whole numbers and short decimals, such as counts and accuracies, agree by chance: columns of
    such numbers alone are not compared.

    Args:
        cells: one row per cell, or per cell and logged step.
        parameters: the study's parameters; all other columns are measured.
    """
    done = cells[cells["status"] == "done"]
    setting_names = [name for name in (*parameters.model_fields, "step") if name in done]
    excluded = [name for name in taken_columns(parameters) | {"step"} if name in done]
    numbers = done.drop(columns=excluded).select_dtypes("number").astype(float)
    long = [name for name, column in numbers.items() if (column.dropna() * 1e4 % 1 != 0).any()]
    if not long:
        return []
    hashes = done[["seed"]].assign(
        setting=pd.util.hash_pandas_object(done[setting_names], index=False),
        numbers=pd.util.hash_pandas_object(numbers[long], index=False).astype(str),
    )
    table = hashes.pivot_table(index="setting", columns="seed", values="numbers", aggfunc="first")
    return [
        int(seed)
        for index, seed in enumerate(table.columns)
        if _repeats(table.iloc[:, :index], table.iloc[:, index])
    ]


def _repeats(earlier: pd.DataFrame, column: pd.Series[str]) -> bool:
    """Whether a seed agrees with an earlier one wherever both have cells."""
    shared = earlier.notna() & column.notna().to_numpy()[:, None]
    equal = earlier.eq(column, axis=0) | ~shared
    return bool((equal.all() & shared.any()).any())


def finite_numbers(cells: pd.DataFrame, name: str) -> pd.Series[float]:
    """Return a measured column.

    Raises:
        UndecidedError: `inconclusive` where a cell has no finite number in it.
    """
    column: pd.Series[float] = cells[name].astype(float)
    if (missing := int((~np.isfinite(column)).sum())) > 0:
        raise inconclusive(f"{missing} of {plural(len(cells), 'cell')} have no number of {name}.")
    return column


def positive_numbers(cells: pd.DataFrame, name: str) -> pd.Series[float]:
    """Return a measured column of positive numbers, to take its logarithm.

    Raises:
        UndecidedError: `inconclusive` where a cell has no number above 0, or there is no cell.
    """
    column = finite_numbers(cells, name)
    if column.empty:
        raise inconclusive(f"There is no cell with a number of {name}.")
    if (nonpositive := int((column <= 0).sum())) > 0:
        raise inconclusive(
            f"{nonpositive} of {plural(len(cells), 'cell')} have a {name} of 0 or less, which has "
            "no logarithm."
        )
    return column


STEP_LIMIT = "step limit"
OUTCOMES = ("diverged", STEP_LIMIT)
"""Reasons of failed cells that are outcomes of training."""


def require_done(cells: pd.DataFrame, most_failed: float = 0.0) -> pd.DataFrame:
    """Return the cells that are done.

    Args:
        cells: one row per cell.
        most_failed: the share of cells that may have failed: failed cells differ from the others.

    Raises:
        UndecidedError: `inconclusive` where more of them failed.
    """
    failed = int((cells["status"] != "done").sum())
    if failed > most_failed * len(cells):
        raise inconclusive(
            f"{failed} of {plural(len(cells), 'cell')} failed, and those aren't like the rest."
        )
    return cells[cells["status"] == "done"]


def whole_grid(cells: pd.DataFrame, x: str, y: str) -> pd.DataFrame:
    """Return the grid in a refined sweep: the values of `x` with most cells, and complete seeds.

    A refined sweep has many further values of `x`, each with a few cells near the boundary, and
    most of its seeds have no other cells. In a mean over a grid these would count too much.
    """
    values = cells.groupby(x)[y].transform("nunique")
    columns: pd.DataFrame = cells[values >= values.max() / 2]
    return complete_seeds(columns)


def complete_seeds(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of the seeds with most cells: those of other seeds may be the easy ones."""
    sizes = cells.groupby("seed")["seed"].transform("size")
    complete: pd.DataFrame = cells[sizes == sizes.max()]
    return complete
