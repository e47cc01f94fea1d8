"""Appendix G, figures 2 to 6: how fast heads learn, how well they generalise, and with what margin.

The text names neither the losses up to which steps are counted, nor the c of steps c √H, nor the
numbers of heads and of steps: those are this tool's.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import add_absent
from overfit_cli.claims.papers import Claims, on
from overfit_cli.core.claim import not_run
from overfit_cli.stats.pairs import best_of_sweep
from overfit_cli.studies.multihead.parameters import (
    MultiheadMixtureParameters,
    MultiheadPlantedParameters,
    MultiheadSst2Parameters,
)
from overfit_cli.studies.multihead.study import mixture as dm1
from overfit_cli.studies.multihead.study import planted as dm2
from overfit_cli.studies.multihead.study import sst2 as figure6

PAPER = "Deora et al. 2024"
FREE = ("certify", "test_samples")
DM1 = (
    "DM1 with the sizes of appendix G, 100 samples, zero initialisation; H from 1 to 50; places "
    "of relevant tokens are drawn for each sample"
)
HEADS = (1, 2, 5, 10, 20, 50)
CONSTANT, ROOTS, ADAM, NORMALISED = (
    on(f"heads-{name}", alike=FREE, heads=HEADS)
    for name in ("fig2", "fig3-sqrt", "fig3-adam", "normalised")
)
ROOT = ROOTS.where(learning_rate=1.0)
MORE = "log(steps_to_target) rises along heads with at least 10 seeds"
FEWER = "log(steps_to_target) falls along heads with at least 10 seeds"
WAY = "no power of H is meant: steps go one way, and no turn of their logarithms is half as large"
C_DECIDES = "c = 1 is this tool's, and decides"
SEEN = "the thresholds were chosen after cells of earlier seeds were seen"

mixture = Claims("mixture", PAPER, MultiheadMixtureParameters, dm1.columns, figure="heads")


def arrivals(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells with the steps to their target, or those that they took without arriving."""
    ended = cells["steps"].where(cells["status"] == "done")
    return cells.assign(steps_to_target=cells["steps_to_target"].astype(float).fillna(ended))


mixture.paper(
    "constant-slower",
    "appendix G, figure 2",
    "Overparameterization slows down gradient descent with constant step size: with η = 1 the "
    "training loss takes more steps to 0.001 the more heads there are.",
    MORE,
    on=CONSTANT,
    cells=arrivals,
    hypotheses=f"{DM1}; the training loss of 0.001 is this tool's; {WAY}",
)
mixture.ours(
    "sqrt-faster",
    "appendix G, figure 3, at one c of steps c √H",
    "With step sizes √H convergence speeds up for larger H: the training loss takes fewer steps to "
    "0.001 with more heads.",
    FEWER,
    on=ROOT,
    cells=arrivals,
    hypotheses=f"{DM1}; {C_DECIDES}; {WAY}",
)
mixture.paper(
    "adam-faster",
    "appendix G, figure 3",
    "With Adam at the constant step size 0.06 convergence speeds up for larger H: the training "
    "loss takes fewer steps to 0.001 with more heads.",
    FEWER,
    on=ADAM,
    cells=arrivals,
    hypotheses=f"{DM1}; the training loss of 0.001 is this tool's; {WAY}",
)


def at_ten(rows: pd.DataFrame) -> pd.DataFrame:
    """Return of each cell its row of step 10, with the largest training loss on the way."""
    early = rows[rows["step"] <= 10]
    peak = early.groupby(["heads", "seed"])["train_loss"].transform("max")
    return early.assign(peak=peak)[early["step"] == 10]


mixture.ours(
    "sqrt-catapult",
    "appendix G, figure 3, at one c of steps c √H",
    "With step sizes √H and 5 heads or more the training loss first rises above 2, the higher the "
    "more heads, and is at 0.001 or below after ten steps.",
    "peak > 2; peak rises along heads; train_loss <= 0.001 with at least 10 seeds where heads >= 5",
    on=ROOT,
    cells=at_ten,
    reads="trajectories",
    because=SEEN,
    hypotheses=f"{DM1}; c = 1",
)


def gain(c: str, most: int = 50, least: int = 1) -> str:
    """Return the steps with most heads over those with the least, at a c of steps c √H."""
    over, under = (f"steps_to_target[heads={H}, learning_rate={c}]" for H in (most, least))
    return f"{over} / {under}"


mixture.ours(
    "sqrt-by-five",
    "appendix G, figure 3, at one c of steps c √H",
    "With step sizes √H all that is gained is gained by 5 heads: these take at most a quarter of "
    "one head's steps to a training loss of 0.001, and 50 heads no fewer than 0.8 times theirs.",
    {
        "50 over 5": f"{gain('1', 50, 5)} >= 0.8 with at least 10 seeds",
        "5 over 1": f"{gain('1', 5)} <= 0.25 with at least 10 seeds",
    },
    on=ROOTS.where(learning_rate=(0.1, 1.0)),
    cells=arrivals,
    because=SEEN,
    hypotheses=f"{DM1}; c = 1",
)
mixture.ours(
    "sqrt-smaller",
    "appendix G, figure 3, at a smaller c of steps c √H",
    "With step sizes 0.1 √H less is gained: 50 heads take at least half of one head's steps to a "
    "training loss of 0.001.",
    f"{gain('0.1')} >= 0.5 with at least 10 seeds",
    on=ROOTS.where(learning_rate=(0.1, 1.0)),
    cells=arrivals,
    because=SEEN,
    hypotheses=f"{DM1}; c = 0.1",
)


def steps_to_test_loss(rows: pd.DataFrame, mark: float = 0.001) -> pd.DataFrame:
    """Return of each cell, as steps to its target, those to a test loss, interpolated in logs."""
    by_cell = rows.sort_values("step").groupby(["heads", "seed"], as_index=False)
    last = by_cell.last().set_index(["heads", "seed"])
    arrivals = pd.Series({key: _arrival(cell, mark) for key, cell in by_cell})
    return last.assign(steps_to_target=arrivals).reset_index()


def _arrival(cell: pd.DataFrame, mark: float) -> float:
    steps, loss = (np.asarray(cell[name], np.float64) for name in ("step", "test_loss"))
    below = np.flatnonzero(loss < mark)
    if not len(below):
        return math.nan
    ends = [below[0] - 1, below[0]]  # falling losses, so that they ascend with the sign changed
    if below[0] == 0 or steps[ends[0]] <= 0:
        return max(float(steps[below[0]]), 1.0)
    return math.exp(np.interp(-math.log(mark), -np.log(loss[ends]), np.log(steps[ends])))


for make, name, words, cells, hypotheses in (
    (mixture.ours, "sqrt", "gradient descent with steps of √H", ROOT, C_DECIDES),
    (mixture.paper, "adam", "Adam with constant steps of 0.06", ADAM, "the loss is this tool's"),
):
    make(
        f"{name}-test-faster",
        "caption of figure 3",
        f"Under {words} the test loss too falls faster with more heads: the steps to a test loss "
        "of 0.001 fall with H, from 1 to 50.",
        FEWER,
        on=cells,
        cells=steps_to_test_loss,
        reads="trajectories",
        hypotheses=f"{DM1}; {hypotheses}; {WAY}",
    )


def late_powers(rows: pd.DataFrame) -> pd.DataFrame:
    """Return of each cell the power of the step in the training loss, from step 500 on."""
    late = rows[rows["step"] >= 500]
    logs = late.assign(x=np.log10(late["step"].astype(float)), y=late["log10_train_loss"])
    by_cell = logs.groupby(["heads", "seed"])
    powers = pd.Series({key: cell["x"].cov(cell["y"]) / cell["x"].var() for key, cell in by_cell})
    return by_cell.last().assign(power=powers).reset_index()


mixture.ours(
    "constant-rate",
    "Corollary 2's rate of 1/K, at numbers of heads that it does not cover",
    "With constant steps of 1 the training loss falls at least as fast as 1/t, up to a tenth of "
    "the power, from step 500 to 1000, for each H from 1 to 50.",
    "power <= -0.9 with at least 10 seeds",
    on=CONSTANT,
    target=-1.0,
    cells=late_powers,
    reads="trajectories",
)


def highest(rows: pd.DataFrame) -> pd.DataFrame:
    """Return of each cell, absent ones too, its row with the largest training loss."""
    peaks = rows.sort_values("train_loss", na_position="first").drop_duplicates("key", keep="last")
    return add_absent(peaks.drop(columns="step"), MultiheadMixtureParameters.model_fields)


mixture.paper(
    "loss-below-one",
    "equation 24",
    "The logistic loss L̂ is at most 1.",
    "train_loss <= 1 on all seeds",
    on=ROOT,
    cells=highest,
    reads="trajectories",
    hypotheses="it is stated for all θ, and judged on the cells of figure 3 at every logged step. "
    "Nothing depends on it: the proofs use L̂′ ≤ min(1, L̂), which is true",
)

# Margins

MARGINS = on("heads-margin", alike=FREE, heads=(1, 2, 5))

mixture.ours(
    "margin-approached",
    "appendix G, where smaller H achieve γ_attn, in a number of steps that the text leaves open",
    "With 1, 2 and 5 heads gradient descent with η = 1 comes nearer to the margin γ_attn from 1000 "
    "to 10,000 steps.",
    "(1 - margin_share[training_steps=10000]) / (1 - margin_share[training_steps=1000]) <= 1 "
    "at worst with at least 10 seeds",
    on=MARGINS,
)
mixture.ours(
    "margin-10000",
    "appendix G",
    "One head comes within a twentieth of the margin γ_attn in 10,000 steps of gradient descent "
    "with η = 1.",
    "mean of margin_share >= 0.95 with at least 10 seeds where heads = 1",
    on=on("heads-margin", alike=FREE, training_steps=10_000),
)
mixture.ours(
    "normalised-margin",
    "section 7, a question",
    "Gradient descent on the logarithm of the loss comes within a twentieth of the margin γ_attn "
    "in 3000 steps, for every H from 1 to 50.",
    "mean of margin_share >= 0.95 at worst with at least 10 seeds",
    on=NORMALISED,
    target=1.0,
)
mixture.paper(
    "sqrt-margin-falls",
    "appendix G",
    "With step sizes c √H the margin attained by gradient descent falls away from γ_attn for "
    "larger H, here with c = 1 and after 1000 steps.",
    "mean of margin_share falls along heads with at least 10 seeds",
    on=ROOT,
    hypotheses=f"{DM1}; c = 1 and the 1000 steps are this tool's",
)

# Figures 4 and 5: a planted head

planted = Claims("planted", PAPER, MultiheadPlantedParameters, dm2.columns, figure="heads")
DESCENT, MOMENTUM = (on(f"heads-{name}", alike=FREE, heads=HEADS) for name in ("fig4", "fig5"))
GAP = on("heads-gap", alike=FREE, heads=(1, 5, 50))

DM2 = (
    "DM2 with the sizes of appendix G, 1000 samples, zero initialisation; the law of the planted "
    "heads, c = 1 in steps of c √H, H from 1 to 50, 1000 steps and the training loss of 0.02 are "
    "this tool's"
)

planted.paper(
    "gd-faster",
    "appendix G, on figure 4",
    "Under gradient descent with steps of √H overparameterization somewhat improves the speed of "
    "convergence: the steps to a training loss of 0.02 fall with H.",
    FEWER,
    on=DESCENT,
    cells=arrivals,
    hypotheses=f"{DM2}; {WAY}. A planted head that is missed takes more than 1000 steps",
)
planted.paper(
    "momentum-sooner",
    "appendix G, on figure 5",
    "Momentum of 0.9 takes fewer steps to a training loss of 0.02 than gradient descent, both with "
    "steps of √H, at each H from 1 to 50.",
    "steps_to_target[optimiser=momentum] / steps_to_target[optimiser=gd] < 1 "
    "with at least 10 seeds",
    on=MOMENTUM,
    hypotheses=f"{DM2}, and so is the momentum of 0.9",
)


def gap_power(first: int) -> str:
    """Return the power of n in the generalisation gap, from `first` samples to 2000."""
    return f"log(gap[n=2000] / gap[n={first}]) / log({2000 / first:g})"


def with_gap(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells with their gap; one of 0 or less has a logarithm as low as any."""
    return cells.assign(gap=(cells["test_loss"] - cells["train_loss"]).clip(lower=1e-300))


planted.ours(
    "gap-rate",
    "Theorem 2 and Corollary 2, at numbers of heads that these do not cover",
    "With 1, 5 and 50 heads the test loss less the training loss falls from 500 to 2000 samples at "
    "least as fast as 1/n does, 1000 steps of √H.",
    f"{gap_power(500)} <= -1 with at least 10 seeds",
    on=GAP,
    cells=with_gap,
    figure="gap",
)
planted.sharp(
    "gap-power",
    "Theorem 2 and Corollary 2, the bound read as an equality",
    "With 1, 5 and 50 heads the test loss less the training loss falls as 1/n from 1000 to 2000 "
    "samples, 1000 steps of √H.",
    f"{gap_power(1000)} is -1 within 0.25 with at least 10 seeds",
    on=GAP,
    cells=with_gap,
    figure="gap",
)

# Figure 6

FEWEST_HEADS = 3
"""Numbers of heads that tell a slope from a difference of two."""

sst2 = Claims("sst2", PAPER, MultiheadSst2Parameters, figure6.columns, figure="curves")


def slopes(cells: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return of each seed by how much a column grows with a doubling of H, at best step sizes.

    Where the best of the most heads lies at the edge of the sweep, the slope may be lower; where
    that of fewer does, higher.
    """
    if cells["heads"].nunique() < FEWEST_HEADS or cells["learning_rate"].nunique() < 2:
        raise not_run(f"It needs {FEWEST_HEADS} numbers of heads at two step sizes.")
    best = best_of_sweep(cells, "learning_rate", ["heads"], column)
    table = best.pivot(index="seed", columns="heads", values=column)
    doublings = np.log2(table.columns.to_numpy(float))
    centred = doublings - doublings.mean()
    slope: pd.Series[float] = table @ centred / (centred @ centred)
    rates = best.groupby("heads")["learning_rate"].first()
    *fewer, most = rates.isin(cells["learning_rate"].agg(["min", "max"])).tolist()
    least = slope.fillna(-np.inf) - (math.inf if most else 0.0)
    upper = slope.fillna(np.inf) + (math.inf if any(fewer) else 0.0)
    found = pd.DataFrame({"slope": slope.where(least == upper), "least": least, "most": upper})
    return found.reset_index()


for name, learned, column in (
    ("faster", "optimisation", "mean_train_loss"),
    ("generalises-faster", "generalisation", "mean_test_loss"),
):
    sst2.ours(
        name,
        "appendix G, figure 6, with another model",
        f"More heads speed up the {learned} on SST-2, each number of heads at its best step size: "
        "the loss averaged over the steps falls with H. In the quick profile encoders of two "
        "layers with random first weights stand in for roberta-base.",
        "mean of slope < 0 with at least 6 seeds",
        on=on("heads-fig6", alike=("weights",)),
        cells=partial(slopes, column=column),
        between={"slope": ("least", "most")},
        among=3,  # step sizes, of which the best is judged
    )
