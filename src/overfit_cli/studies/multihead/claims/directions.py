"""Whether W converges in direction to the attention support vector machine's solution."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, done, numbers
from overfit_cli.claims.rules import Margin, judged
from overfit_cli.core.claim import Claim, Measurement, inconclusive
from overfit_cli.stats.intervals import mean_estimate
from overfit_cli.studies.multihead.mixture.parameters import MultiheadMixtureParameters

NEAR = Margin(least=0.99, because="an angle of 8°", fewest_seeds=10)

_PRESET = "heads-machine"
_LATER_WORK = "Tarzanagh et al. 2023 and Vasudeva et al. 2024"


def _direction(cells: pd.DataFrame, trained: str) -> Measurement:
    """Measure the cosine at the last step, at each seed's worst H."""
    at = {"optimiser": "gradient-normalised", "trained": trained, "machine": True}
    alike = set(MultiheadMixtureParameters.model_fields) - {"heads"} - set(at)
    chosen = done(
        Selection(
            MultiheadMixtureParameters,
            at={**at, "first_phase": "positive"},
            vary={"heads"},
            alike=alike - {"first_phase"},
            preset=_PRESET,
        ).of(cells)
    )
    without = (numbers(chosen, "machine_margin") <= 0).groupby(chosen["seed"]).any()
    known = chosen[~chosen["seed"].map(without)]
    if known.empty:
        raise inconclusive("On no seed does some W separate the best tokens from the others.")
    found = numbers(known, "machine_cosine")
    by_heads = found.groupby(known["heads"])
    return judged(
        mean_estimate(found.groupby(known["seed"]).min()),
        NEAR,
        details={
            **{f"mean cosine, H = {heads}": float(one) for heads, one in by_heads.mean().items()},
            **{f"least cosine, H = {heads}": float(one) for heads, one in by_heads.min().items()},
            "steps": float(known["steps"].max()),
            "seeds on which no W separates the best tokens": float(np.sum(without)),
        },
        note="The cosine of W with the solution for U as it stands, at each seed's worst H.",
    )


def _claim(name: str, trained: str, source: str, how: str) -> Claim:
    return Claim(
        name=f"mixture-machine-{name}",
        source=source,
        statement=f"Under gradient-normalised descent {how}, W comes to point where the attention "
        "support vector machine's solution does.",
        holds_where=NEAR.in_words("their cosine, at the worst H,"),
        measure=partial(_direction, trained=trained),
        figure="heads",
        preset=_PRESET,
    )


DIRECTION_CLAIMS = (
    _claim("fixed", "attention", _LATER_WORK, "on W, with U as the first phase leaves it"),
    _claim("both", "all", f"beyond {_LATER_WORK}; ours", "on both U and W"),
)
