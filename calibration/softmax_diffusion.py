"""Made-up worlds for the claim that compares one network with two others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from calibration.rates import Worlds
from calibration.worlds import Numbers, Random, number_worlds_of
from overfit_cli.studies.softmax_network.claims.scores import CLAIMS


def _ratios(design: pd.DataFrame, ratios: Numbers, random: Random) -> pd.DataFrame:
    """Cells of which those of softmax have so many times the errors of the others."""
    errors = np.where(design["model"] == "softmax", ratios, 1.0)
    return design.assign(steps=400, score_error=errors, denoiser_error=errors)


WORLDS: Mapping[str, Worlds] = {
    "diffusion-alike": number_worlds_of(CLAIMS)("diffusion-alike", _ratios, 0.2, logs=True)
}
