"""Selection of the cells that a claim is judged on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from overfit_cli.core.cell import taken_columns
from overfit_cli.core.claim import inconclusive, not_run
from overfit_cli.core.parameters import StudyParameters
from overfit_cli.core.text import plural

Values = Mapping[str, object]
"""Values of parameters; a tuple stands for any of its own."""


@dataclass(frozen=True)
class Selection:
    """Which cells a claim is about.

    Attributes:
        model: the study's parameters. Those that aren't named below have their defaults.
        at: values of parameters.
        vary: parameters that may take several values.
        alike: parameters that may take any value, the same in all cells.
        fewest: how many values of a parameter it takes, at least.
        preset: one that has such cells.
    """

    model: type[StudyParameters]
    at: Values = field(default_factory=dict)
    vary: Collection[str] = ()
    alike: Collection[str] = ()
    fewest: Mapping[str, int] = field(default_factory=dict)
    preset: str = ""

    def of(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return those of the cells, failed ones too.

        Raises:
            UndecidedError: `not run` where they are none, or not the grid that it takes.
        """
        free = {*self.vary, *self.alike, *self.fewest}
        single = {name: one for name, one in self.at.items() if not isinstance(one, tuple)}
        others = self.model.model_validate(single).model_dump()
        fixed = {name: value for name, value in others.items() if name not in free}
        chosen = at_values(cells, fixed | dict(self.at))
        if chosen.empty:
            raise not_run(f"It needs cells{self._in_words()}{self._for_example()}.")
        check_alike(chosen, [name for name in self.model.model_fields if name in self.alike])
        for name, count in self.fewest.items():
            if (there := chosen[name].nunique()) < count:
                raise not_run(
                    f"It needs {count} values of {name}; these cells have {there}"
                    f"{self._for_example()}."
                )
        return chosen

    def _in_words(self) -> str:
        return f" of {values_in_words(self.at)}" if self.at else ""

    def _for_example(self) -> str:
        return f", as in `overfit sweep {self.preset}`" if self.preset else ""


def at_values(cells: pd.DataFrame, values: Values) -> pd.DataFrame:
    """Return the cells that have these values of their parameters."""
    keep = np.ones(len(cells), dtype=bool)
    for name, value in values.items():
        keep &= cells[name].isin(value if isinstance(value, tuple) else (value,)).to_numpy()
    return cells[keep]


def values_in_words(values: Values) -> str:
    """Write values as they are set: `kernel=softmax, heads=1,2,4`."""
    each = {
        name: ",".join(map(str, value)) if isinstance(value, tuple) else value
        for name, value in values.items()
    }
    return ", ".join(f"{name}={value}" for name, value in each.items())


def varying(cells: pd.DataFrame, names: Iterable[str]) -> list[str]:
    """Return those of the columns that take several values, in their order."""
    return [name for name in names if cells[name].nunique() > 1]


def check_alike(cells: pd.DataFrame, names: Iterable[str]) -> None:
    """Refuse cells of several values of parameters that must take one.

    Raises:
        UndecidedError: `not run`, naming those.
    """
    if several := varying(cells, names):
        raise not_run(f"It needs cells of one value of {', '.join(several)}.")


def trained(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells, if training itself ended all of them: done, diverged, or steps spent.

    What a killed worker or an error left behind says nothing of the parameters.

    Raises:
        UndecidedError: `inconclusive` where something else ended some of them.
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
    """Return the seeds that have all the numbers of a smaller seed, wherever both have cells.

    Whole numbers and short decimals agree by chance, such as counts and accuracies: columns that
    have no others don't tell.

    Args:
        cells: one row per cell, or per cell and logged step.
        parameters: the study's; what else is measured counts.
    """
    done = cells[cells["status"] == "done"]
    place = [name for name in (*parameters.model_fields, "step") if name in done]
    others = [name for name in taken_columns(parameters) | {"step"} if name in done]
    numbers = done.drop(columns=others).select_dtypes("number").astype(float)
    long = [name for name, one in numbers.items() if (one.dropna() * 1e4 % 1 != 0).any()]
    if not long:
        return []
    hashes = done[["seed"]].assign(
        place=pd.util.hash_pandas_object(done[place], index=False),
        found=pd.util.hash_pandas_object(numbers[long], index=False).astype(str),
    )
    table = hashes.pivot_table(index="place", columns="seed", values="found", aggfunc="first")
    return [
        int(seed)
        for at, seed in enumerate(table.columns)
        if _repeats(table.iloc[:, :at], table.iloc[:, at])
    ]


def _repeats(others: pd.DataFrame, own: pd.Series[str]) -> bool:
    """Whether a seed agrees with one of several others wherever both have cells."""
    both = others.notna() & own.notna().to_numpy()[:, None]
    alike = others.eq(own, axis=0) | ~both
    return bool((alike.all() & both.any()).any())


def numbers(cells: pd.DataFrame, name: str) -> pd.Series[float]:
    """Return a measured column.

    Raises:
        UndecidedError: `inconclusive` where a cell has no finite number there.
    """
    found: pd.Series[float] = cells[name].astype(float)
    if (missing := int((~np.isfinite(found)).sum())) > 0:
        raise inconclusive(f"{missing} of {plural(len(cells), 'cell')} have no number of {name}.")
    return found


def positive(cells: pd.DataFrame, name: str) -> pd.Series[float]:
    """Return a measured column whose logarithm is wanted.

    Raises:
        UndecidedError: `inconclusive` where a cell has no number above 0 there, or there is none.
    """
    found = numbers(cells, name)
    if found.empty:
        raise inconclusive(f"There is no cell with a number of {name}.")
    if (without := int((found <= 0).sum())) > 0:
        raise inconclusive(
            f"{without} of {plural(len(cells), 'cell')} have a {name} of 0 or less, which has no "
            "logarithm."
        )
    return found


STEP_LIMIT = "step limit"
OUTCOMES = ("diverged", STEP_LIMIT)
"""Reasons of failed cells that are what training came to."""


def done(cells: pd.DataFrame, most_failed: float = 0.0) -> pd.DataFrame:
    """Return the cells that are done.

    Args:
        cells: one row per cell.
        most_failed: the share of cells that may have failed: those that fail aren't like the rest.

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
    """Return the cells of the values of `x` at which most of a grid was run, of whole seeds alone.

    A refined sweep has many more values, each with a few cells near the boundary, and most of its
    seeds have no others: as parts of a grid those would count too much.
    """
    values = cells.groupby(x)[y].transform("nunique")
    columns: pd.DataFrame = cells[values >= values.max() / 2]
    return of_whole_seeds(columns)


def of_whole_seeds(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of the seeds that have most: those of others may be easy ones."""
    sizes = cells.groupby("seed")["seed"].transform("size")
    whole: pd.DataFrame = cells[sizes == sizes.max()]
    return whole
