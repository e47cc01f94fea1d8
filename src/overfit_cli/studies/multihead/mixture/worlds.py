"""Made-up worlds for the study's claims, with noise as it was measured on ten seeds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.calibration import Worlds
from overfit_cli.claims.trends import FALLING
from overfit_cli.claims.worlds import (
    Bools,
    Random,
    exception_worlds,
    number_worlds,
    with_few_seeds,
)
from overfit_cli.studies.multihead.claims.bounds import BOUNDS
from overfit_cli.studies.multihead.claims.speed import FASTER, SLOWER
from overfit_cli.studies.multihead.claims.worlds import (
    above_theorem,
    beyond_bounds,
    taking_steps,
    with_margin,
)
from overfit_cli.studies.multihead.mixture.claims import ALIKE_UP_TO, REACHED


def _spread(design: pd.DataFrame, broken: Bools, random: Random) -> pd.DataFrame:
    """Cells whose heads drift apart by a little more than is taken for none, where broken."""
    return design.assign(
        steps=300, head_spread=np.where(broken, 2 * ALIKE_UP_TO, 0.001 * ALIKE_UP_TO)
    )


def _margins(design: pd.DataFrame, random: Random, *, slope: float = 0.0) -> pd.DataFrame:
    """Cells whose margins fall with H by `slope`, on a seed more and on another less."""
    seeds = int(design["seed"].max()) + 1
    own = 0.1 * random.standard_normal(seeds)[design["seed"].to_numpy()] - slope
    noise = 0.02 * random.standard_normal(len(design))
    shares = 0.6 + own * np.log(design["heads"].to_numpy(float)) / 4 + noise
    return design.assign(steps=1000, margin_share=shares)


WORLDS: Mapping[str, Worlds] = {
    "mixture-constant-slower": number_worlds(taking_steps, SLOWER, 0.03),
    "mixture-sqrt-faster": number_worlds(taking_steps, FASTER, 0.1),
    "mixture-adam-faster": number_worlds(taking_steps, FASTER, 0.02),
    "mixture-margin-1000": number_worlds(with_margin, REACHED, 0.01),
    "mixture-margin-10000": number_worlds(with_margin, REACHED, 0.01),
    "mixture-normalised-margin": number_worlds(with_margin, REACHED, 0.01),
    "mixture-sqrt-margin-falls": Worlds(
        partial(_margins, slope=0.5), _margins, with_few_seeds(_margins, FALLING.fewest_seeds)
    ),
    "mixture-identical-heads": exception_worlds(_spread),
    **{f"mixture-{name}": exception_worlds(partial(beyond_bounds, name=name)) for name in BOUNDS},
    **{
        f"mixture-theorem{number}": exception_worlds(partial(above_theorem, number=number))
        for number in ("1", "2")
    },
}
