"""Comparison of two settings, each at its best value of a swept parameter or at one value."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pandas as pd

from overfit_cli.claims.cells import check_alike, numbers, trained
from overfit_cli.core.claim import Measurement, inconclusive, not_run
from overfit_cli.stats.pairs import best_of_sweep

Setting: TypeAlias = str | int
"""A value of the compared parameter."""


@dataclass(frozen=True)
class BestSetting:
    """A setting at the best value of the swept parameter.

    Attributes:
        name: the setting, such as `gaussian`.
        value: the best value.
        tried: all values that were swept, increasing.
        cells: the cells at the best value, indexed by seed.
    """

    name: Setting
    value: float
    tried: tuple[float, ...]
    cells: pd.DataFrame

    def column(self, name: str) -> pd.Series[float]:
        """Return a measured column by seed.

        Raises:
            UndecidedError: `inconclusive` where a cell has no number there.
        """
        return numbers(self.cells, name)

    def on(self, seeds: pd.Index[int]) -> BestSetting:
        """Return the setting on some of its seeds."""
        return replace(self, cells=self.cells.loc[seeds])

    @property
    def at_edge(self) -> bool:
        """Whether the best is the smallest or the largest of several: beyond may be better."""
        return len(self.tried) > 1 and self.value in (self.tried[0], self.tried[-1])

    def in_words(self) -> str:
        """Name the value, the sweep, and whether the best lies at its edge."""
        if len(self.tried) == 1:
            return f"{self.name} at {self.value:g}"
        tried = ", ".join(f"{value:g}" for value in self.tried)
        edge = ", at the edge of the sweep" if self.at_edge else ""
        return f"{self.name} at {self.value:g} of {tried}{edge}"

    def mean_and_deviation(self, column: str) -> str:
        """Write a column's mean and standard deviation over seeds: `0.751 ± 0.012`."""
        values = self.column(column)
        return f"{values.mean():.3f} ± {values.std():.3f}"


def unless_at_edge(measured: Measurement, one: BestSetting, other: BestSetting) -> Measurement:
    """Leave open that `one` is better, or worse, where the worse one's best is at the sweep's edge.

    Args:
        measured: holds where `one` is better, fails where `other` is.
        one, other: both at their best.
    """
    worse = {"holds": other, "fails": one}.get(measured.verdict)
    if worse is None or not worse.at_edge:
        return measured
    note = f"{measured.note} Beyond the edge {worse.name} may be better."
    return replace(measured, verdict="inconclusive", note=note)


@dataclass(frozen=True)
class Place:
    """One value of a swept parameter, the same for both settings.

    Attributes:
        value: the value.
        preset: one that has cells there.
    """

    value: float
    preset: str


@dataclass(frozen=True)
class Comparison:
    """Which settings are compared, and what each is given its best value of.

    Attributes:
        compared: the parameter whose values are compared, such as `kernel`.
        swept: the parameter that each of them takes its best value of, such as `learning_rate`.
        swept_in_words: its name in sentences, such as `step size`.
        best_in: the column whose mean over seeds is lowest at the best value.
    """

    compared: str
    swept: str
    swept_in_words: str
    best_in: str

    def at_best(self, cells: pd.DataFrame, setting: Setting) -> BestSetting | None:
        """Return a setting at its best value; None where no value has all its seeds done.

        Raises:
            UndecidedError: `inconclusive` where a cell that is done has no number.
        """
        own = cells[cells[self.compared] == setting]
        if own.empty:
            return None
        numbers(own[own["status"] == "done"], self.best_in)
        tried = tuple(sorted(own[self.swept].unique().tolist()))
        best = best_of_sweep(own, self.swept, [], self.best_in)
        if (best["status"] == "failed").any():
            return None
        value = float(best[self.swept].iloc[0])
        return BestSetting(setting, value, tried, best.set_index("seed"))

    def pair(
        self, cells: pd.DataFrame, parameters: Collection[str], settings: tuple[Setting, Setting]
    ) -> tuple[BestSetting, BestSetting]:
        """Return both settings at their best, on the seeds of both.

        Args:
            cells: one row per cell.
            parameters: the study's, of which only the compared and the swept one may vary.
            settings: two values of the compared parameter.

        Raises:
            UndecidedError: where the cells don't have both, or one of them at a single value.
        """
        one, other = self.several(cells, parameters, settings)
        return one, other

    def several(
        self, cells: pd.DataFrame, parameters: Collection[str], settings: Sequence[Setting]
    ) -> list[BestSetting]:
        """Return settings at their best, on the seeds of all of them; see `pair`."""
        found = self.at_any(cells, parameters, settings)
        counts = [len(one.tried) for one in found]
        if min(counts) < 2:
            raise inconclusive(
                f"The {self.compared}s were tried at {' and '.join(map(str, counts))} "
                f"{self.swept_in_words}s; it takes 2, so that the verdict depends on no single one."
            )
        return found

    def pair_at(
        self,
        cells: pd.DataFrame,
        parameters: Collection[str],
        settings: tuple[Setting, Setting],
        place: Place,
    ) -> tuple[BestSetting, BestSetting]:
        """Return both settings at one value of the swept parameter, on the seeds of both.

        Args:
            cells, parameters, settings: as for `pair`.
            place: the value.

        Raises:
            UndecidedError: `not run` where the cells don't have both settings there.
        """
        there = cells[(cells[self.swept] == place.value) & cells[self.compared].isin(settings)]
        if there[self.compared].nunique() < 2:
            raise not_run(
                f"It needs cells of {self.compared}={','.join(map(str, settings))} at "
                f"{self.swept}={place.value:g}, as in `overfit sweep {place.preset}`."
            )
        one, other = self.at_any(there, parameters, settings)
        return one, other

    def at_any(
        self, cells: pd.DataFrame, parameters: Collection[str], settings: Sequence[Setting]
    ) -> list[BestSetting]:
        """Return settings at their best of however many values; else as `several`."""
        cells = cells[cells[self.compared].isin(settings)]
        if cells[self.compared].nunique() < len(settings):
            raise not_run(f"It needs cells of {self.compared}={','.join(map(str, settings))}.")
        others = [name for name in parameters if name not in (self.compared, self.swept)]
        check_alike(cells, others)
        self._check_whole(trained(cells))
        found = [one for setting in settings if (one := self.at_best(cells, setting)) is not None]
        if len(found) < len(settings):
            raise inconclusive(
                f"A {self.compared} has no {self.swept_in_words} at which all seeds are done."
            )
        seeds = found[0].cells.index
        for one in found[1:]:
            seeds = seeds.intersection(one.cells.index)
        return [one.on(seeds) for one in found]

    def _check_whole(self, cells: pd.DataFrame) -> None:
        """Refuse settings that weren't tried alike: the missing cells may be the better ones."""
        tried = cells.groupby([self.compared, self.swept])["seed"].nunique().unstack()
        if tried.isna().to_numpy().any():
            raise inconclusive(f"The {self.compared}s weren't tried at the same {self._several}.")
        if (tried.nunique(axis=1) > 1).any():
            raise inconclusive(f"Some {self._several} were tried with fewer seeds than others.")

    @property
    def _several(self) -> str:
        return f"{self.swept_in_words}s"

    def judged_by(
        self,
        judge: Callable[[BestSetting, BestSetting, pd.DataFrame], Measurement],
        parameters: Collection[str],
        settings: tuple[Setting, Setting],
        place: Place | None = None,
    ) -> Callable[[pd.DataFrame], Measurement]:
        """Return what measures two settings: see `pair`, and `pair_at`.

        Args:
            judge: from both, and all cells, to the measurement.
            parameters: the study's.
            settings: two values of the compared parameter.
            place: one value for both of the swept one; by default each is taken at its best.
        """
        if place is None:
            return lambda cells: judge(*self.pair(cells, parameters, settings), cells)
        return lambda cells: judge(*self.pair_at(cells, parameters, settings, place), cells)

    def at_shared_values(
        self, cells: pd.DataFrame, settings: tuple[Setting, Setting]
    ) -> dict[str, float]:
        """Return at how many of the values that both settings have the first one is lower."""
        done = cells[(cells["status"] == "done") & cells[self.compared].isin(settings)]
        values = done[self.best_in].astype(float)
        table = values.groupby([done[self.swept], done[self.compared]]).mean().unstack()
        both = table[list(settings)].dropna()
        lower = int((both[settings[0]] < both[settings[1]]).sum())
        return {
            f"{self.swept_in_words}s of both": len(both),
            f"{self.swept_in_words}s of both at which {settings[0]} is lower": lower,
        }
