"""Damaged worlds: lost cells, near copies of seeds, further rows, looks, gaps and heavy tails.

Each takes the cells of a made-up world and judges a claim on them. A claim that is true must not
fail there, and one that is false must not hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from pydantic import ValidationError

from overfit_cli.claims.cells import ABSENT
from overfit_cli.core.arrays import varying
from overfit_cli.core.cell import taken_columns
from overfit_cli.core.cells import Cells
from overfit_cli.core.claim import Claim, Verdict
from overfit_cli.core.parameters import describe
from overfit_cli.core.study import AnyStudy
from overfit_cli.report.runs import JudgedRun
from overfit_cli.stats.intervals import level_of_each, set_level

Judge: TypeAlias = Callable[[Claim, AnyStudy, pd.DataFrame, np.random.Generator], set[Verdict]]
"""From a claim, its study and a world to the verdicts that a user would see."""

SHARE = 0.02
"""The share of cells that fail, or are absent: at least one of them."""

INDEPENDENT = 3
"""The number of seeds of which the others are near copies."""

LOOKS = (0.5, 0.75, 1.0)
"""The shares of the seeds at which a user looks, one after the other."""


def _verdict(claim: Claim, study: AnyStudy, cells: pd.DataFrame) -> Verdict:
    return JudgedRun(Cells.of(study, cells)).judge(claim).verdict


def judge_failed(
    claim: Claim, study: AnyStudy, world: pd.DataFrame, random: np.random.Generator
) -> set[Verdict]:
    """Judge where some cells, chosen at random, ran out of memory."""
    lost = _some_cells(world, study, random)
    measured = [str(name) for name in world if name not in taken_columns(study.parameters)]
    damaged = world.assign(
        status=world["status"].mask(lost, "failed"),
        reason=world["reason"].mask(lost, "error: MemoryError"),
        **{name: world[name].astype(float).mask(lost) for name in _numbers(world, measured)},
    )
    return {_verdict(claim, study, damaged)}


def judge_absent(
    claim: Claim, study: AnyStudy, world: pd.DataFrame, random: np.random.Generator
) -> set[Verdict]:
    """Judge where some cells, chosen at random, were planned and never run."""
    lost = _some_cells(world, study, random)
    if "step" in world:
        return {_verdict(claim, study, world[~lost])}
    kept = [*describe(study.parameters), "seed", "study"]
    absent = world.loc[lost, kept].assign(status="failed", reason=ABSENT)
    damaged = pd.concat([world[~lost], absent], ignore_index=True)
    return {_verdict(claim, study, damaged)}


def judge_copies(
    claim: Claim, study: AnyStudy, world: pd.DataFrame, random: np.random.Generator
) -> set[Verdict]:
    """Judge where all seeds but a few are near copies of these."""
    seeds = np.sort(world["seed"].unique())
    rows = [np.flatnonzero(world["seed"] == seed) for seed in seeds[:INDEPENDENT]]
    copied = [rows[index % len(rows)] for index in range(len(seeds))]
    damaged = world.iloc[np.concatenate(copied)].reset_index(drop=True)
    damaged["seed"] = np.repeat(seeds, [len(one) for one in copied])
    measured = [str(name) for name in world if name not in taken_columns(study.parameters)]
    names = [name for name in _numbers(world, measured) if name != "step"]
    jitter = 1 + 1e-9 * random.standard_normal(len(damaged))
    damaged[names] = damaged[names].mul(jitter, axis=0)
    if "key" in damaged:
        damaged["key"] = damaged["key"].astype(str) + "-" + damaged["seed"].astype(str)
    return {_verdict(claim, study, damaged)}


def judge_further_row(
    claim: Claim, study: AnyStudy, world: pd.DataFrame, random: np.random.Generator
) -> set[Verdict]:
    """Judge beside one cell of another setting, which has no bearing on the claim."""
    cell = _cell_numbers(world, study) == 0
    other = world[cell].assign(**_other_setting(world, study))
    if "key" in other:
        other = other.assign(key="another")
    damaged = pd.concat([other, world], ignore_index=True)
    return {_verdict(claim, study, damaged)}


def judge_looks(
    claim: Claim, study: AnyStudy, world: pd.DataFrame, random: np.random.Generator
) -> set[Verdict]:
    """Judge after ever more seeds, each time at the level of that look."""
    seeds = np.sort(world["seed"].unique())
    verdicts = set[Verdict]()
    for look, share in enumerate(LOOKS):
        seen = world[world["seed"].isin(seeds[: max(1, math.ceil(share * len(seeds)))])]
        with set_level(level_of_each(2**look)):
            verdicts.add(_verdict(claim, study, seen))
    return verdicts


def judge_unbalanced(
    claim: Claim, study: AnyStudy, world: pd.DataFrame, random: np.random.Generator
) -> set[Verdict]:
    """Judge where one value of a parameter, chosen at random, has only every other seed."""
    varied = varying(world, describe(study.parameters))
    if not varied:
        return {_verdict(claim, study, world)}
    name = varied[random.integers(len(varied))]
    chosen = world[name] == random.choice(world[name].unique())
    return {_verdict(claim, study, world[~(chosen & (world["seed"] % 2 == 1))])}


class HeavyTails(np.random.Generator):
    """A stream whose normal numbers have Student's t of three degrees of freedom, of variance 1."""

    def standard_normal(self, size: Any = None, *_: Any, **__: Any) -> Any:
        """Draw t/√3, of this shape."""
        return self.standard_t(3, size) / math.sqrt(3)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Draw loc + scale·t/√3, of this shape or of that of `loc` and `scale` together."""
        shape = np.broadcast_shapes(np.shape(loc), np.shape(scale)) if size is None else size
        return loc + scale * self.standard_normal(shape)


def judge_as_it_is(
    claim: Claim, study: AnyStudy, world: pd.DataFrame, random: np.random.Generator
) -> set[Verdict]:
    """Judge a world that was drawn with `HeavyTails`."""
    return {_verdict(claim, study, world)}


DAMAGES: Mapping[str, Judge] = {
    "failed": judge_failed,
    "absent": judge_absent,
    "copies": judge_copies,
    "row": judge_further_row,
    "looks": judge_looks,
    "unbalanced": judge_unbalanced,
    "tails": judge_as_it_is,
}
"""Each damage by its name; `docs/verdicts.md` says what it is."""


def _cell_numbers(world: pd.DataFrame, study: AnyStudy) -> pd.Series[int]:
    """The number of the cell of each row."""
    varied = varying(world, describe(study.parameters))
    return world.groupby([*varied, "seed"], dropna=False, sort=False).ngroup()


def _some_cells(
    world: pd.DataFrame, study: AnyStudy, random: np.random.Generator
) -> pd.Series[bool]:
    """Which rows are of a few cells, chosen at random."""
    numbers = _cell_numbers(world, study)
    count = int(numbers.max()) + 1
    chosen = random.choice(count, max(1, round(SHARE * count)), replace=False)
    return numbers.isin(chosen)


def _numbers(world: pd.DataFrame, names: list[str]) -> list[str]:
    """Those of some columns that are numbers, without the steps, which tell rows apart."""
    numeric = world[names].select_dtypes("number")
    return [str(name) for name in numeric if name not in ("step", "steps", "seconds")]


def _other_setting(world: pd.DataFrame, study: AnyStudy) -> dict[str, int | float]:
    """Another value of a parameter that has one value in a world, and the study's others take."""
    row = {name: world[name].iloc[0] for name in describe(study.parameters)}
    for name, info in reversed(list(describe(study.parameters).items())):
        if world[name].nunique() > 1 or info.kind not in ("int", "float"):
            continue
        for factor in (2, 0.5):
            value = type(row[name])(row[name] * factor)
            try:
                study.parameters(**{**row, name: value})
            except (ValidationError, ValueError):
                continue
            if value != row[name]:
                return {name: value}
    raise ValueError(f"{study.name}: no parameter of these cells can have another value")
