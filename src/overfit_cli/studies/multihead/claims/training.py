"""Appendix G, figures 2 to 6: how fast heads learn, how well they generalise, and with what margin.

The text names neither the losses up to which steps are counted, nor the c of steps c √H, nor the
numbers of heads and of steps: those are this tool's.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.papers import Claims, on
from overfit_cli.core.claim import not_run
from overfit_cli.stats.intervals import middle
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
DM1 = "DM1 with the sizes of appendix G, 100 samples, zero initialisation; H from 1 to 50"
HEADS = (1, 2, 5, 10, 20, 50)
CONSTANT, ROOT, ADAM, NORMALISED = (
    on(f"heads-{name}", alike=FREE, heads=HEADS)
    for name in ("fig2", "fig3-sqrt", "fig3-adam", "normalised")
)
POWER = "power of heads in steps_to_target"

mixture = Claims("mixture", PAPER, MultiheadMixtureParameters, dm1.columns, figure="heads")

for name, words, cells, sign in (
    (
        "constant-slower",
        "Overparameterization slows down gradient descent with constant step size: with η = 1 the "
        "training loss takes more steps to 0.001 the more heads there are.",
        CONSTANT,
        ">",
    ),
    (
        "sqrt-faster",
        "With step sizes c √H convergence speeds up for larger H: with c = 1 the training loss "
        "takes fewer steps to 0.001.",
        ROOT,
        "<",
    ),
    (
        "adam-faster",
        "With Adam at the constant step size 0.06 convergence speeds up for larger H: the training "
        "loss takes fewer steps to 0.001.",
        ADAM,
        "<",
    ),
):
    mixture.paper(
        name,
        "appendix G, figures 2 and 3",
        words,
        f"mean of {POWER} {sign} 0 throughout with at least 10 seeds",
        on=cells,
        hypotheses=f"{DM1}; c = 1 and the training loss of 0.001 are this tool's",
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


for name, words, cells in (
    ("sqrt", "gradient descent with steps of √H", ROOT),
    ("adam", "Adam with constant steps of 0.06", ADAM),
):
    mixture.paper(
        f"{name}-test-faster",
        "caption of figure 3",
        f"Under {words} the test loss too falls faster with more heads: the steps to a test loss "
        "of 0.001 fall with H, from 1 to 50.",
        f"{POWER} < 0 with at least 10 seeds",
        on=cells,
        cells=steps_to_test_loss,
        reads="trajectories",
        hypotheses=f"{DM1}; c = 1 and the test loss of 0.001 are this tool's",
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
mixture.paper(
    "loss-below-one",
    "equation 24",
    "For the logistic loss L̂′ ≤ L̂ ≤ 1 and L̂″ ≤ 1/4.",
    "train_loss <= 1 on all seeds",
    on=ROOT,
    reads="trajectories",
    hypotheses="it is stated for all θ; L̂ ≤ 1 is judged, on the cells of figure 3 at every logged "
    "step: the other two hold of the logistic loss. Nothing depends on L̂ ≤ 1: the proofs use "
    "L̂′ ≤ min(1, L̂), which is true",
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

planted.paper(
    "gd-faster",
    "appendix G, on figure 4",
    "Under gradient descent with steps of √H overparameterization somewhat improves the speed of "
    "convergence: the steps to a training loss of 0.02 fall with H.",
    f"{POWER} < 0 with at least 10 seeds",
    on=DESCENT,
    hypotheses="DM2 with the sizes of appendix G, 1000 samples, zero initialisation; the law of "
    "the planted heads, c = 1 in steps of c √H, H from 1 to 50, 1000 steps and the training loss "
    "of 0.02 are this tool's",
)
planted.ours(
    "gd-ever-faster",
    "figure 4, with the step sizes and marks of this tool",
    "Under gradient descent with steps of √H training is faster the more heads there are: it takes "
    "fewer steps to a training loss of 0.02, up to 50 heads.",
    f"{POWER} < 0 throughout with at least 10 seeds",
    on=DESCENT,
)


def ratios_of_momentum(cells: pd.DataFrame) -> pd.DataFrame:
    """Return of each seed the middle H's steps with momentum over those without, and its ends.

    A cell that stayed above the target takes at least the steps that it took.
    """
    arrived = cells["steps_to_target"].astype(float)
    least = arrived.fillna(cells["steps"].where(cells["status"] == "done")).fillna(1.0)
    ended = cells.assign(least=least, most=arrived.fillna(np.inf)).set_index(["seed", "heads"])
    quick, slow = (ended[ended["optimiser"] == name] for name in ("momentum", "gd"))
    ends = {
        end: (quick[end] / slow[other]).groupby("seed").agg(middle)
        for end, other in (("least", "most"), ("most", "least"))
    }
    known = ends["least"] == ends["most"]
    return pd.DataFrame({**ends, "ratio": ends["least"].where(known)}).reset_index()


planted.ours(
    "momentum-sooner",
    "appendix G, with the step sizes, steps and marks of this tool",
    "Momentum of 0.9 takes fewer steps to a training loss of 0.02 than gradient descent, both with "
    "steps of √H.",
    "ratio < 1 with at least 10 seeds",
    on=MOMENTUM,
    cells=ratios_of_momentum,
    between={"ratio": ("least", "most")},
    after_selection=True,
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
    "With 1, 5 and 50 heads the test loss less the training loss falls at least as fast as 1/n, "
    "from 500 to 2000 samples, 1000 steps of √H.",
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
