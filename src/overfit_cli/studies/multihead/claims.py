"""Pieces of claims of several studies, and the scaling with H of the steps to the target loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from overfit_cli.claims.parts import Margin
from overfit_cli.claims.stated import Choose, stated_claim
from overfit_cli.core.claim import Claim, Kind, Measurement, not_run
from overfit_cli.studies.multihead.parameters import MultiheadParameters

PAPER_NAME = "Deora et al. 2024"


def place_in_paper(kind: Kind, source: str) -> str:
    """Return the source of a claim: a place in the paper, or ours on it."""
    return f"{'ours, on ' if kind == 'ours' else ''}{PAPER_NAME}, {source}"


def claim_on(
    prefix: str,
    kind: Kind,
    name: str,
    source: str,
    statement: str,
    hypotheses: str,
    holds_where: str,
    measure: Callable[[pd.DataFrame], Measurement],
    preset: str,
    figure: str,
) -> Claim:
    """Return a claim on a place of the paper; the source of one of ours says that it is."""
    return Claim(
        name=f"{prefix}-{name}",
        kind=kind,
        source=place_in_paper(kind, source),
        statement=statement,
        hypotheses=hypotheses,
        holds_where=holds_where,
        measure=measure,
        figure=figure,
        preset=preset,
    )


def numbers(cells: pd.DataFrame, name: str) -> pd.Series[float]:
    """Return a measured column, nan where a cell has no finite number."""
    if name not in cells:
        return pd.Series(np.nan, cells.index)
    return cells[name].astype(float).replace([np.inf, -np.inf], np.nan)


REACHED = Margin(least=0.95, because="within a twentieth of γ_attn", fewest_seeds=10, target=1.0)
FEWEST_HEADS = 4
"""Numbers of heads that tell a trend, and its end."""

ALL_HEADS = {"heads": (1, 50)}
"""Numbers of heads that must be among the cells of a claim on all of them."""

STEPS = "steps_to_target"
BETWEEN = {STEPS: ("least_steps", "most_steps")}
"""The columns with the ends of the steps that a cell takes."""

NO_CHANGE = "0 is no change"


def speed_claim(
    choose: Choose,
    model: type[MultiheadParameters],
    *,
    faster: bool,
    number: str = "the power of H in the steps to the target loss",
    average: str = "median",
    to_the_end: bool = False,
    **fields: Any,
) -> Claim:
    """Return a claim that training takes fewer steps the more heads there are, or more.

    Args:
        choose: the cells of one setting but for H.
        average: over seeds; a median where some cells never come to the target.
        to_the_end: whether the trend must not turn at the largest H.
    """
    sign, throughout = "<" if faster else ">", " throughout" if to_the_end else ""

    def chosen(cells: pd.DataFrame) -> pd.DataFrame:
        held = choose(cells)
        if held["heads"].nunique() < FEWEST_HEADS:
            raise not_run(f"It needs {FEWEST_HEADS} numbers of heads.")
        return with_step_ends(held)

    return stated_claim(
        chosen,
        model,
        f"{average} of power of heads in {STEPS} {sign} 0{throughout} with at least 10 seeds",
        number=number,
        because=NO_CHANGE,
        between=BETWEEN,
        **fields,
    )


def with_step_ends(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells with the least and the most steps to the target that each may take.

    A cell that trained and stayed above the target takes at least the steps that it took, and one
    that is absent or failed may take any number.
    """
    arrived, taken = numbers(cells, STEPS).clip(lower=1.0), numbers(cells, "steps")
    ended = (cells["status"] == "done") | (cells["reason"] == "step limit")
    above_target = numbers(cells, "train_loss") >= cells["target_loss"].astype(float)
    least = arrived.fillna(taken.where(ended & above_target)).fillna(1.0).clip(lower=1.0)
    ends = {"least_steps": least, "most_steps": arrived.fillna(np.inf)}
    return cells.assign(**{STEPS: arrived, **ends})
