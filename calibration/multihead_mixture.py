"""Made-up worlds for the claim that compares three numbers of heads with each other."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from calibration.rates import Worlds
from calibration.worlds import Random, worlds_from


def _gained(design: pd.DataFrame, random: Random, *, is_false: bool) -> pd.DataFrame:
    """Cells whose 5 heads take a share of one head's steps, and 50 heads a share of theirs.

    Where it is false one of the shares is the margin's end, 0.25 or 0.8.
    """
    of_one, of_five = 0.15, 0.95
    if is_false:
        of_one, of_five = (0.25, of_five) if random.random() < 1 / 2 else (of_one, 0.8)
    share = design["heads"].map({1: 1.0, 5: of_one, 50: of_one * of_five}).fillna(of_one)
    steps: pd.Series[float] = 100 * share * np.exp(0.02 * random.standard_normal(len(design)))
    return design.assign(steps=steps, steps_to_target=steps)


WORLDS: Mapping[str, Worlds] = {
    "mixture-sqrt-by-five": worlds_from(
        partial(_gained, is_false=False), partial(_gained, is_false=True), 10
    )
}
