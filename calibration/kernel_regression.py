"""Made-up worlds for the study's claims, with noise as it was measured on twenty seeds.

Conditions (8) and (12) are met in them, unlike in the cells that are run: else no theorem would say
anything, and its claim could not be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from calibration.rates import Worlds
from calibration.worlds import (
    Bools,
    Random,
    exception_worlds,
    few_seed_world,
    share_worlds,
    worlds_from,
)
from overfit_cli.studies.attention_kernel.regression.claims.bounds import FROM_BELOW, LEMMAS
from overfit_cli.studies.attention_kernel.regression.claims.convergence import AT_FLOOR
from overfit_cli.studies.attention_kernel.regression.claims.rates import ON_MOST_DRAWS

STEPS = 3000

ABOVE_FLOOR = (
    *(0.0001, 0.0001, 0.0002, 0.0003, 0.0006, 0.0006, 0.0011, 0.0016, 0.0063, 0.0090),
    *(0.0106, 0.0141, 0.0142, 0.0172, 0.0416, 0.0442, 0.0466, 0.0486, 0.0672, 0.2286),
)
"""By which share softmax's loss ended above its floor, for labels below the hull, seed by seed."""

_MET_CONDITIONS = {"condition_8": -1.0, "condition_12": -1.0}


def bound_cells(design: pd.DataFrame, broken: Bools, random: Random) -> pd.DataFrame:
    """Return cells whose bound bites, and is broken at the largest step size alone."""
    largest = (design["learning_rate"] == design["learning_rate"].max()).to_numpy()
    counts = np.where(broken & largest, random.integers(1, 1000, len(design)), 0)
    return design.assign(
        **_MET_CONDITIONS,
        steps=STEPS,
        stability=0.5,
        relative_loss=1e-9,
        rate_paper=0.05,
        rate_corrected=0.05,
        violations_paper=counts,
        violations_corrected=counts,
    )


def reached_zero(design: pd.DataFrame, zero: Bools, random: Random) -> pd.DataFrame:
    """Return cells that go to zero at one step size; at the others half of all do, by chance."""
    rates = np.sort(design["learning_rate"].unique())
    best = (design["learning_rate"] == rates[len(rates) // 2]).to_numpy()
    chance = random.random(len(design)) < ON_MOST_DRAWS.least
    loss = np.where(np.where(best, zero, chance), 1e-9, 0.1)
    return design.assign(**_MET_CONDITIONS, relative_loss=loss, floor=0.0)


def condition_cells(design: pd.DataFrame, broken: Bools, _: Random) -> pd.DataFrame:
    """Return cells that miss the conditions by a hundredth of a decade, or meet them."""
    decades = np.where(broken, 0.01, -1.0)
    return design.assign(condition_8=decades, condition_12=decades)


def floor_cells(design: pd.DataFrame, random: Random, *, zero: float, above: float) -> pd.DataFrame:
    """Return softmax's cells, of which some seeds go to zero, and others end above their floor.

    Inside the hull floors are 0 and no cell has a ratio to its floor.

    Args:
        design: parameters and seeds.
        random: the source of noise.
        zero: the share of seeds that go to zero at some step size.
        above: by which share of its floor a loss ends above it, in the median over seeds.
    """
    count = int(design["seed"].max()) + 1
    shares = above / np.median(ABOVE_FLOOR) * random.choice(ABOVE_FLOOR, count)
    gone = (random.random(count) < zero)[design["seed"].to_numpy()]
    ratio = 1 + shares[design["seed"].to_numpy()]
    return design.assign(
        relative_loss=np.where(gone, 1e-9, 0.1),
        floor=np.where(design["target"] == "inside", 0.0, 0.1),
        floor_ratio=np.where(design["target"] == "inside", np.nan, ratio),
    )


def below_gamma(design: pd.DataFrame, broken: Bools, _: Random) -> pd.DataFrame:
    """Return cells whose squared gradient is, or isn't, as large as a γ that could be broken."""
    return design.assign(
        **_MET_CONDITIONS,
        relative_loss=1e-9,
        log10_gamma=-3.0,
        pl_ratio_min=np.where(broken, 1e-4, 0.1),
    )


def little_descent(design: pd.DataFrame, broken: Bools, _: Random) -> pd.DataFrame:
    """Return cells whose loss falls by all, or by too little, of what equation (14) says."""
    return design.assign(
        descent=np.where(broken, 0.45, 0.99), lipschitz_gradients=0.7, gradient_query_start=1.0
    )


def example(design: pd.DataFrame, broken: Bools, _: Random) -> pd.DataFrame:
    """Return cells of the example in which gradients and losses are as claimed, or not.

    Where values are equal softmax's gradient is exactly 0; where broken it is 1e-17, and the others
    have none.
    """
    stuck = ((design["kernel"] == "softmax") & (design["value_gap"] == 0)).to_numpy()
    gradient = np.where(stuck, np.where(broken, 1e-17, 0.0), np.where(broken, 0.0, 1.0))
    return design.assign(
        **_MET_CONDITIONS,
        steps=STEPS,
        delta=0.07,
        gradient_query_start=gradient,
        gradient_key_start=gradient,
        start_loss=1.0,
        train_loss=np.where(stuck, 1.0, 0.1),
        relative_loss=np.where(stuck, 1.0, 0.1),
    )


def exact_example(design: pd.DataFrame, random: Random, *, broken: bool) -> pd.DataFrame:
    """Return the example's cells with nothing drawn."""
    return example(design, np.full(len(design), broken), random)


def unmeasured_example(design: pd.DataFrame, random: Random) -> pd.DataFrame:
    """Return the example's cells without numbers: nothing else leaves them open."""
    cells = exact_example(design, random, broken=False)
    measured = ("gradient_query_start", "gradient_key_start", "train_loss", "relative_loss")
    return cells.assign(**dict.fromkeys(measured, np.nan))


def singular_values(design: pd.DataFrame, broken: Bools, _: Random, *, wide: bool) -> pd.DataFrame:
    """Return cells with λ_B and δ above zero where the sizes are `wide`, and zero else; or not."""
    above = np.where(broken, 0.0, 1e-3) if wide else np.where(broken, 1e-3, 0.0)
    return design.assign(lambda_b=above, delta=above)


def lemma(design: pd.DataFrame, broken: Bools, _: Random, *, column: str) -> pd.DataFrame:
    """Return cells on the right side of a lemma's bound, or on the wrong one."""
    right, wrong = (5.0, 0.99) if column == FROM_BELOW else (0.2, 1.01)
    return design.assign(**{column: np.where(broken, wrong, right)})


_BOUND = exception_worlds(bound_cells)
_ZERO = share_worlds(reached_zero, ON_MOST_DRAWS)
_SIZES = exception_worlds(partial(singular_values, wide=True))
_FAR = exception_worlds(example)
_EXACT = Worlds(
    partial(exact_example, broken=False), partial(exact_example, broken=True), unmeasured_example
)
_FLOOR = Worlds(
    partial(floor_cells, zero=0.0, above=float(np.median(ABOVE_FLOOR))),
    partial(floor_cells, zero=0.0, above=AT_FLOOR.most - 1),
    few_seed_world(partial(floor_cells, zero=0.5, above=AT_FLOOR.most - 1), AT_FLOOR.fewest_seeds),
)
_FLOOR_OF_ZERO = worlds_from(
    partial(floor_cells, zero=0.0, above=0.0),
    partial(floor_cells, zero=0.5, above=0.0),
    AT_FLOOR.fewest_seeds,
)
_NAMES_OF_RATES = ("theorem1", "theorem2", "theorem2-gaussian")

WORLDS: Mapping[str, Worlds] = {
    **{
        f"{name}-{kind}-{heads}": _BOUND
        for name in _NAMES_OF_RATES
        for kind in ("paper", "corrected")
        for heads in ("one", "several")
    },
    **dict.fromkeys(("theorem2-zero", "zero-softmax-all"), _ZERO),
    **dict.fromkeys(("theorem2-gaussian-zero", "zero-gaussian-all"), _ZERO),
    **{
        f"{name}-gaussian-{target}": _ZERO
        for name in ("theorem3", "zero")
        for target in ("below", "inside", "mixed-sign")
    },
    "floor-softmax-below": _FLOOR,
    "floor-softmax-mixed-sign": _FLOOR,
    "floor-softmax-inside": _FLOOR_OF_ZERO,
    "theorem3-rate": exception_worlds(below_gamma),
    "theorem3-descent": exception_worlds(little_descent),
    **dict.fromkeys(("condition-8", "condition-12"), exception_worlds(condition_cells)),
    **dict.fromkeys(("example-gradient", "example-gaussian", "example-escape"), _EXACT),
    **dict.fromkeys(("example-gradient-far", "example-gaussian-far", "example-escape-far"), _FAR),
    **dict.fromkeys(("sizes-lambda-b", "sizes-delta"), _SIZES),
    "sizes-delta-needed": exception_worlds(partial(singular_values, wide=False)),
    **{bound.name: exception_worlds(partial(lemma, column=bound.column)) for bound in LEMMAS},
}
