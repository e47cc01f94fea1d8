"""One claim of several parts: the same sentence at other settings, or on other columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from overfit_cli.claims.everywhere import counts_that_refute
from overfit_cli.claims.rules import joint_verdict
from overfit_cli.core.claim import Claim, Measurement
from overfit_cli.core.text import plural
from overfit_cli.stats.intervals import level_of_each, set_level


@dataclass(frozen=True)
class JointMeasure:
    """The function that measures a claim of several parts.

    Attributes:
        parts: the claims that it joins, by what tells them apart: `H = 2`, `exp`.
    """

    parts: Mapping[str, Claim]

    def __call__(self, cells: pd.DataFrame) -> Measurement:
        """Return the measurement of the part that decides, with the numbers of all in its details.

        It holds where all parts do (Berger 1982). It fails where one part fails at the level of all
        together, or half of them, or all, at a lower one (Simes 1986).
        """
        measured = {label: claim.judge(cells) for label, claim in self.parts.items()}
        verdict = joint_verdict(part.verdict for part in measured.values())
        if verdict == "fails" and not self._refuted(cells):
            verdict = "inconclusive"
        shares = verdict if verdict in {part.verdict for part in measured.values()} else "fails"
        deciding = [label for label, part in measured.items() if part.verdict == shares]
        decisive = min(deciding, key=lambda label: _slack(measured[label]))
        details = {}
        for label, part in measured.items():
            if part.value is not None:
                details[label] = part.value
            if part.interval is not None:
                details |= {f"{label}, from": part.interval.low, f"{label}, to": part.interval.high}
        shown = measured[decisive]
        note = f"Of {plural(len(measured), 'part')} this is {decisive}. {shown.note}".strip()
        return replace(shown, verdict=verdict, details={**details, **shown.details}, note=note)

    def _refuted(self, cells: pd.DataFrame) -> bool:
        for fewest in counts_that_refute(len(self.parts)):
            with set_level(level_of_each(len(self.parts) / fewest)):
                verdicts = [claim.judge(cells).verdict for claim in self.parts.values()]
            if verdicts.count("fails") >= fewest:
                return True
        return False


def _slack(measured: Measurement) -> float:
    """How far inside its margin an interval lies, in its own width: −∞ without one."""
    if measured.interval is None or measured.margin is None:
        return -math.inf
    low, high = measured.interval.low, measured.interval.high
    least, most = measured.margin
    width = high - low
    return min(low - least, most - high) / width if 0 < width < math.inf else -math.inf


def joined(parts: Mapping[str, Claim], **fields: Any) -> Claim:
    """Return one claim of several, which are true or false together.

    Args:
        parts: of one kind, on the cells of one run, by what tells them apart: `H = 2`, `exp`.
        **fields: attributes of the claim, such as its name and statement; the others, and the
            margin, are those of the first part.
    """
    return replace(next(iter(parts.values())), measure=JointMeasure(parts), **fields)
