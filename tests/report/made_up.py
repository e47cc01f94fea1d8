"""Made-up claims with their verdicts."""

from __future__ import annotations

import math

from overfit_cli import Claim, Measurement
from overfit_cli.core.claim import Interval, Verdict
from overfit_cli.report.judge import Judged


def judged(
    name: str,
    verdict: Verdict,
    *,
    study: str = "one",
    has_cells: bool = True,
    value: float = 1.0,
    preset: str = "quick",
) -> Judged:
    interval = Interval(-math.inf, math.inf, "95 % t")
    measurement = Measurement(verdict=verdict, value=value, interval=interval, note="Measured.")
    if verdict == "not run":
        measurement = Measurement(verdict=verdict, note="It needs other cells.")
    claim = Claim(
        name=name,
        source="nowhere",
        statement="It is so.",
        holds_where="it is above 0",
        preset=preset,
        measure=lambda cells: measurement,
    )
    return Judged(study, claim, measurement, has_cells=has_cells)
