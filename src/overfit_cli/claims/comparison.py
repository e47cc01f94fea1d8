"""Comparison of two settings, each at its best value of a swept parameter, or both at one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
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

    def on(self, seeds: pd.Index[int]) -> BestSetting:
        """Return the setting on some of its seeds."""
        return replace(self, cells=self.cells.loc[seeds])

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
class Place:
    """One value of a swept parameter, the same for both settings."""

    value: float
    preset: str


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

    def pair(
        self, cells: pd.DataFrame, parameters: Collection[str], settings: tuple[Setting, Setting]
    ) -> tuple[BestSetting, BestSetting]:
        """Return both settings at their best, on the seeds of both; nothing else may vary."""
        first, second = self.several(cells, parameters, settings)
        return first, second

    def several(
        self, cells: pd.DataFrame, parameters: Collection[str], settings: Sequence[Setting]
    ) -> list[BestSetting]:
        """Return settings at their best, on the seeds of all; see `pair`."""
        best = self.at_any(cells, parameters, settings)
        counts = [len(setting.tried) for setting in best]
        if min(counts) < 2:
            raise inconclusive(
                f"The {self.compared}s were tried at {' and '.join(map(str, counts))} "
                f"{self.swept_in_words}s; it takes 2, so that the verdict depends on no single one."
            )
        return best

    def pair_at(
        self,
        cells: pd.DataFrame,
        parameters: Collection[str],
        settings: tuple[Setting, Setting],
        place: Place,
    ) -> tuple[BestSetting, BestSetting]:
        """Return both settings at one value of the swept parameter, on the seeds of both."""
        chosen = cells[(cells[self.swept] == place.value) & cells[self.compared].isin(settings)]
        if chosen[self.compared].nunique() < 2:
            raise not_run(
                f"It needs cells of {self.compared}={','.join(map(str, settings))} at "
                f"{self.swept}={place.value:g}, as in `overfit sweep {place.preset}`."
            )
        first, second = self.at_any(chosen, parameters, settings)
        return first, second

    def at_any(
        self, cells: pd.DataFrame, parameters: Collection[str], settings: Sequence[Setting]
    ) -> list[BestSetting]:
        """Return settings at their best of any number of values; otherwise as `several`."""
        cells = cells[cells[self.compared].isin(settings)]
        if cells[self.compared].nunique() < len(settings):
            raise not_run(f"It needs cells of {self.compared}={','.join(map(str, settings))}.")
        fixed = [name for name in parameters if name not in (self.compared, self.swept)]
        cells = one_setting(cells, fixed)
        self._check_whole(require_trained(cells))
        best = [
            candidate
            for setting in settings
            if (candidate := self.at_best(cells, setting)) is not None
        ]
        if len(best) < len(settings):
            raise inconclusive(
                f"A {self.compared} has no {self.swept_in_words} at which all seeds are done."
            )
        seeds = best[0].cells.index
        for candidate in best[1:]:
            seeds = seeds.intersection(candidate.cells.index)
        return [candidate.on(seeds) for candidate in best]

    def _check_whole(self, cells: pd.DataFrame) -> None:
        tried = cells.groupby([self.compared, self.swept])["seed"].nunique().unstack()
        if tried.isna().to_numpy().any():
            raise inconclusive(
                f"The {self.compared}s weren't tried at the same {self._swept_plural}."
            )
        if (tried.nunique(axis=1) > 1).any():
            raise inconclusive(
                f"Some {self._swept_plural} were tried with fewer seeds than others."
            )

    @property
    def _swept_plural(self) -> str:
        return f"{self.swept_in_words}s"

    def judged_by(
        self,
        judge: Callable[[BestSetting, BestSetting, pd.DataFrame], Measurement],
        parameters: Collection[str],
        settings: tuple[Setting, Setting],
        place: Place | None = None,
    ) -> Callable[[pd.DataFrame], Measurement]:
        """Return the function that measures two settings; see `pair` and `pair_at`.

        `judge` takes both settings and all cells. Without a place each has its best.
        """
        if place is None:
            return lambda cells: judge(*self.pair(cells, parameters, settings), cells)
        return lambda cells: judge(*self.pair_at(cells, parameters, settings, place), cells)

    def at_shared_values(
        self, cells: pd.DataFrame, settings: tuple[Setting, Setting]
    ) -> dict[str, float]:
        """Count the values that both settings have, and those at which the first is lower."""
        completed = cells[(cells["status"] == "done") & cells[self.compared].isin(settings)]
        values = completed[self.best_in].astype(float)
        table = values.groupby([completed[self.swept], completed[self.compared]]).mean().unstack()
        shared = table[list(settings)].dropna()
        lower = int((shared[settings[0]] < shared[settings[1]]).sum())
        return {
            f"{self.swept_in_words}s of both": len(shared),
            f"{self.swept_in_words}s of both at which {settings[0]} is lower": lower,
        }
