"""Made-up worlds for the claims on gradient descent's path, with noise as it was measured."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from calibration.rates import Worlds
from calibration.worlds import Bools, Numbers, Random, exception_worlds, number_worlds
from overfit_cli.studies.multihead.paths.stability_claims import WITHIN_BOUND

MET: Mapping[str, float] = {
    "descent": 1.9,
    "theorem1_heads": -1.0,
    "theorem2_heads": -1.0,
    "lemma9_heads": -9.0,
    "theorem_step_size": 9.0,
    "train_loss": 0.2,
    "mean_train_loss": 0.3,
    "target_loss": 0.01,
    "theorem1_bound": 0.6,
}
"""Columns of cells that meet all conditions, also with one head; bounds are below log 2."""


def _over_bound(
    design: pd.DataFrame, broken: Bools, random: Random, *, column: str, bound: float = 1.0
) -> pd.DataFrame:
    """Cells of which a column is half of its bound, or a little above it where broken."""
    cells = design.assign(steps=10_000, **MET)
    cells[column] = np.where(broken, 1.01, 0.5) * bound
    return cells


def _descents(design: pd.DataFrame, broken: Bools, random: Random) -> pd.DataFrame:
    least = np.where(broken, 0.99, 1.5)
    return design.assign(steps=200, descent_share=0.5, descent_allowed=least, descent=least)


def _rises(design: pd.DataFrame, broken: Bools, random: Random) -> pd.DataFrame:
    return design.assign(steps=200, segment_rise=np.where(broken, 1.01, 0.5))


def _gaps(design: pd.DataFrame, excess: Numbers, random: Random, *, column: str) -> pd.DataFrame:
    """Cells whose gap is so much larger than its bound."""
    cells = design.assign(steps=10_000, **MET, test_loss=MET["train_loss"] + 1.0 + excess)
    cells[column] = 1.0
    return cells


WORLDS: Mapping[str, Worlds] = {
    "paths-descent": exception_worlds(_descents),
    "paths-quasi-convexity": exception_worlds(_rises),
    **{
        f"paths-{name}": exception_worlds(partial(_over_bound, column=name))
        for name in ("lemma8", "lemma9", "lemma10")
    },
    "paths-theorem1": exception_worlds(
        partial(_over_bound, column="mean_train_loss", bound=MET["theorem1_bound"])
    ),
    "paths-theorem2": number_worlds(partial(_gaps, column="theorem2_bound"), WITHIN_BOUND, 0.01),
    "paths-lemma3": number_worlds(partial(_gaps, column="lemma3_bound"), WITHIN_BOUND, 0.01),
}
