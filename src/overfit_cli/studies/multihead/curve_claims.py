"""Claims on loss curves: the speed of the test loss, the rate in the step, and (24)'s L̂ ≤ 1."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, Values, is_unknown
from overfit_cli.claims.rules import THEOREM_RULE, judge_theorem
from overfit_cli.claims.sentences import read
from overfit_cli.claims.stated import stated_claim
from overfit_cli.core.arrays import Floats
from overfit_cli.core.claim import Claim, Measurement
from overfit_cli.studies.multihead.claims import ALL_HEADS, PAPER_NAME, numbers, speed_claim
from overfit_cli.studies.multihead.parameters import MultiheadParameters

LATE = 500
"""The step from which on the power of the step is measured, to the last one."""


def _select(
    rows: pd.DataFrame, model: type[MultiheadParameters], settings: Values, preset: str
) -> pd.DataFrame:
    return Selection(
        model,
        at=settings,
        vary={"heads"},
        alike={"certify", "test_samples"},
        includes=ALL_HEADS,
        preset=preset,
        balanced=False,
    ).of(rows)


def first_steps(rows: pd.DataFrame, mark: float) -> pd.DataFrame:
    """Return of each cell, as steps to its target, those to a test loss, interpolated in logs."""
    ordered = rows.sort_values(["heads", "seed", "step"])
    ends = np.flatnonzero(~ordered.duplicated(["heads", "seed"], keep="last"))
    losses, steps = (
        np.asarray(numbers(ordered, name), dtype=np.float64) for name in ("test_loss", "step")
    )
    starts = [0, *(ends[:-1] + 1)]
    arrivals = [
        _arrival(steps[start : end + 1], losses[start : end + 1], mark)
        for start, end in zip(starts, ends, strict=True)
    ]
    return ordered.iloc[ends].assign(
        steps_to_target=arrivals, train_loss=losses[ends], target_loss=mark, steps=steps[ends]
    )


def _arrival(steps: Floats, loss: Floats, mark: float) -> float:
    below = np.flatnonzero(loss < mark)
    if not len(below):
        return math.nan
    first = below[0]
    if first == 0 or steps[first - 1] <= 0:
        return float(max(steps[first], 1.0))
    ends = [first - 1, first]
    # falling losses, so that they are ascending the other way round
    return math.exp(np.interp(-math.log(mark), -np.log(loss[ends]), np.log(steps[ends])))


def speed_in_test_claim(
    model: type[MultiheadParameters],
    settings: Values,
    *,
    preset: str,
    words: str,
    mark: float,
    **fields: Any,
) -> Claim:
    """Return a claim that the test loss falls faster with more heads, in steps to a mark."""
    return speed_claim(
        partial(_test_steps, model=model, settings=settings, preset=preset, mark=mark),
        model,
        faster=True,
        number="the power of H in these steps",
        statement=f"Under {words} the test loss too falls faster with more heads: the steps to "
        f"a test loss of {mark:g} fall with H, from 1 to 50.",
        figure="heads",
        preset=preset,
        reads="trajectories",
        **fields,
    )


def _test_steps(
    rows: pd.DataFrame,
    model: type[MultiheadParameters],
    settings: Values,
    preset: str,
    mark: float,
) -> pd.DataFrame:
    return first_steps(_select(rows, model, settings, preset), mark)


def _late_powers(
    rows: pd.DataFrame, model: type[MultiheadParameters], settings: Values
) -> pd.DataFrame:
    chosen = _select(rows, model, settings, "heads-fig2")
    late = chosen[(chosen["step"] >= LATE) & ~is_unknown(chosen)]
    logs = late.assign(
        log_loss=numbers(late, "log10_train_loss"), log_step=np.log10(late["step"].astype(float))
    )
    cells = chosen[["heads", "seed"]].drop_duplicates().set_index(["heads", "seed"])
    cells["power"] = pd.Series({key: _slope(rows) for key, rows in logs.groupby(["heads", "seed"])})
    return cells.reset_index().assign(status="done")


def _slope(rows: pd.DataFrame) -> float:
    if len(rows) < 2 or rows["log_loss"].isna().any():
        return math.nan
    return float(np.polyfit(rows["log_step"], rows["log_loss"], 1)[0])


def _below_one(rows: pd.DataFrame) -> Measurement:
    loss = numbers(rows, "train_loss")
    return judge_theorem(
        loss > 1,
        rows["seed"],
        unknown=loss.isna(),
        details={"training loss, most": float(loss.max())},
    )


def curve_claims(model: type[MultiheadParameters], constant: Values) -> tuple[Claim, ...]:
    """Return the claims on the rate in the step, and on (24)."""
    return (
        stated_claim(
            partial(_late_powers, model=model, settings=constant),
            model,
            read("power <= -0.9 with at least 10 seeds").with_target(-1.0),
            number="for each H the median power of the step",
            because="a tenth less than the power of 1/t",
            name="mixture-constant-rate",
            kind="ours",
            source=f"{PAPER_NAME}, Corollary 2's rate of 1/K, at numbers of heads that it does not "
            "cover",
            statement="With constant steps of 1 the training loss falls at least as fast as 1/t, "
            f"up to a tenth of the power, from step {LATE} to 1000, for each H from 1 to 50.",
            figure="heads",
            preset="heads-fig2",
            reads="trajectories",
        ),
        Claim(
            name="mixture-loss-below-one",
            kind="paper",
            source=f"{PAPER_NAME}, equation 24",
            statement="For the logistic loss L̂′ ≤ L̂ ≤ 1 and L̂″ ≤ 1/4.",
            hypotheses="it is stated for all θ, without a condition; L̂ ≤ 1 is judged, on the cells "
            "of figure 3 at every logged step: the other two hold of the logistic loss. Nothing "
            "depends on L̂ ≤ 1: the proofs use L̂′ ≤ min(1, L̂), which is true",
            holds_where=THEOREM_RULE,
            measure=_below_one,
            figure="heads",
            preset="heads-fig3-sqrt",
            reads="trajectories",
        ),
    )
