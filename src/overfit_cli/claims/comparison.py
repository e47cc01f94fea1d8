"""Comparison of settings, each at its best value of a swept parameter."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pandas as pd

from overfit_cli.claims.cells import finite_numbers, one_setting, require_trained
from overfit_cli.core.claim import Measurement, inconclusive, not_run
from overfit_cli.stats.pairs import best_of_sweep

Setting: TypeAlias = str | int
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
        if len(self.tried) == 1:
            return f"{self.name} at {self.value:g}"
        tried = ", ".join(f"{value:g}" for value in self.tried)
        edge = ", at the edge of the sweep" if self.at_edge else ""
        return f"{self.name} at {self.value:g} of {tried}{edge}"


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

    def at_best(self, cells: pd.DataFrame, setting: Setting) -> BestSetting | None:
        """Return a setting at its best value; None where no value has all seeds done."""
        chosen = cells[cells[self.compared] == setting]
        if chosen.empty:
            return None
        finite_numbers(chosen[chosen["status"] == "done"], self.best_in)
        tried = tuple(sorted(chosen[self.swept].unique().tolist()))
        best = best_of_sweep(chosen, self.swept, [], self.best_in)
        if (best["status"] == "failed").any():
            return None
        value = float(best[self.swept].iloc[0])
        return BestSetting(setting, value, tried, best.set_index("seed"))

    def several(
        self, cells: pd.DataFrame, parameters: Collection[str], settings: Sequence[Setting]
    ) -> list[BestSetting]:
        """Return settings at their best of two values or more; otherwise as `at_any`."""
        best = self.at_any(cells, parameters, settings)
        counts = [len(setting.tried) for setting in best]
        if min(counts) < 2:
            raise inconclusive(
                f"The {self.compared}s were tried at {' and '.join(map(str, counts))} "
                f"{self.swept_in_words}s; it takes 2, so that the verdict depends on no single one."
            )
        return best

    def at_any(
        self, cells: pd.DataFrame, parameters: Collection[str], settings: Sequence[Setting]
    ) -> list[BestSetting]:
        """Return settings at their best of any number of values, on the seeds of all.

        Nothing else may vary.
        """
        cells = cells[cells[self.compared].isin(settings)]
        if cells[self.compared].nunique() < len(settings):
            raise not_run(f"It needs cells of {self.compared}={','.join(map(str, settings))}.")
        fixed = [name for name in parameters if name not in (self.compared, self.swept)]
        cells = one_setting(cells, fixed)
        self._check_whole(require_trained(cells))
        best = [each for name in settings if (each := self.at_best(cells, name)) is not None]
        if len(best) < len(settings):
            raise inconclusive(
                f"A {self.compared} has no {self.swept_in_words} at which all seeds are done."
            )
        seeds = set.intersection(*({*each.cells.index} for each in best))
        return [replace(each, cells=each.cells[each.cells.index.isin(seeds)]) for each in best]

    def _check_whole(self, cells: pd.DataFrame) -> None:
        tried = cells.groupby([self.compared, self.swept])["seed"].nunique().unstack()
        places = f"{self.swept_in_words}s"
        if tried.isna().to_numpy().any():
            raise inconclusive(f"The {self.compared}s weren't tried at the same {places}.")
        if (tried.nunique(axis=1) > 1).any():
            raise inconclusive(f"Some {places} were tried with fewer seeds than others.")
