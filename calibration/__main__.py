"""Error rates of all claims, as `docs/error-rates.md`: `python -m calibration`.

Each claim is judged many times in its made-up worlds, whole and damaged, at the design of its
preset. It takes an hour or two, so the page is made when a claim, a rule or a preset has changed,
for the studies that are named or for all; a test says where it lists other claims than there are.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from joblib import Parallel, delayed

from calibration.damage import DAMAGES
from calibration.rates import MOST_ERRORS, Calibration, Rates, calibrate, worlds_of
from overfit_cli.core.registry import claims_of, installed_studies
from overfit_cli.core.study import AnyStudy

PAGE = Path(__file__).parents[1] / "docs" / "error-rates.md"
RUNS = 200
DAMAGED = 0.3
"""The share of these runs in each damaged world."""

HEADINGS = (
    "claim",
    "kind",
    "cells",
    "seeds",
    "true: holds",
    "true: fails",
    "false: holds",
    "false: fails",
    "open: holds or fails",
    *(f"{name}: fails, holds" for name in DAMAGES),
)

INTRODUCTION = """# Error rates of the verdicts

Every claim is judged in three made-up worlds, {runs} times in each. The cells and seeds are those
of the claim's preset. Seeds differ by as much as was measured.

- *True*: the number lies in the middle of the margin, or well inside a margin with one end.
- *False*: the number lies at an end of the margin. This is the hardest false case for "holds". It
  is also the hardest true case for "fails", so the column "false: fails" is an upper bound on how
  often "fails" is wrong. A claim "without exception" is broken on a third of the seeds there, so
  that "fails" is right.
- *Open*: as false, but with half of the seeds, or the fewest that the claim takes, and with twice
  the noise. A claim "without exception" is not broken, but has one seed too few. A claim that one
  cell decides has no number.

These verdicts are errors: "holds" in a false or open world, and "fails" in a true or open one. Up
to 5 % of them are allowed; with {runs} runs this may show as up to {most:.0f} %. All other
runs are `inconclusive`. This is common for true claims too: the column "true: holds" says how often
a true claim is confirmed.

The last columns are damaged worlds, {damaged} runs each: 2 % of the cells ran out of memory
(failed) or were never run (absent); all seeds but three are near copies of these (copies); one
cell of another setting stands beside (row); a user looks after half, three quarters and all of the
seeds (looks); one value of a parameter has only every other seed (unbalanced); normal numbers are
drawn from Student's t of three degrees of freedom (tails). Each column has the share of true worlds
in which the claim fails, and of false ones in which it holds, at any look. With {damaged} runs 5 %
may show there as up to {most_damaged:.0f} %.

`python -m calibration` makes this page with 200 runs, and `python -m calibration 50 STUDY` one
study's table with 50.
[verdicts.md](verdicts.md) explains the rules, and
`overfit_cli.judge(cells)` judges worlds of your own.
"""


def page(runs: int, chosen: Collection[str] = ()) -> str:
    """Return the page, from so many runs in each world.

    Args:
        runs: how many.
        chosen: the studies to measure; the sections of others stay. Empty for all.
    """
    damaged = max(1, round(DAMAGED * runs))
    most, most_damaged = (100 * _most_errors(number) for number in (runs, damaged))
    introduction = INTRODUCTION.format(
        runs=runs, most=most, damaged=damaged, most_damaged=most_damaged
    )
    parts = [introduction]
    before = dict(re.findall(r"^## (\S+)\n\n(.*?)(?=\n## |\Z)", PAGE.read_text(), re.S | re.M))
    for study in studies():
        table = before.get(study.name, "")
        if not chosen or study.name in chosen:
            names = [claim.name for claim in claims_of(study)]
            rows = Parallel(n_jobs=-1)(delayed(row)(study.name, name, runs) for name in names)
            lines = [HEADINGS, ["---"] * len(HEADINGS), *rows]
            table = "".join("| " + " | ".join(line) + " |\n" for line in lines)
        parts.append(f"\n## {study.name}\n\n{table}")
    return "".join(parts)


def _most_errors(runs: int) -> float:
    """The share of errors that an error rate of 5 % exceeds once in a thousand times."""
    from scipy.stats import binom

    return float(binom.ppf(0.999, runs, MOST_ERRORS)) / runs


def studies() -> list[AnyStudy]:
    """Return the studies that make claims."""
    return [study for study in installed_studies() if worlds_of(study)]


def row(study_name: str, claim_name: str, runs: int) -> Sequence[str]:
    """Return a claim's row of the table."""
    study = next(study for study in studies() if study.name == study_name)
    names = frozenset({claim_name})
    [calibrated] = calibrate(study, runs, names, damaged_runs=max(1, round(DAMAGED * runs)))
    return cells_of_row(calibrated)


def cells_of_row(calibrated: Calibration) -> Sequence[str]:
    """Return the cells of a claim's row."""
    true, false, undecidable = (calibrated.rates[truth] for truth in ("true", "false", "open"))
    shares = [
        true.share("holds"),
        true.share("fails"),
        false.share("holds"),
        false.share("fails"),
        _decided(undecidable),
    ]
    counts = (calibrated.claim.kind, f"{calibrated.cells}", f"{calibrated.seeds}")
    damaged = [
        f"{100 * fails:.0f}, {100 * holds:.0f} %" for fails, holds in calibrated.damaged.values()
    ]
    return (
        calibrated.claim.name,
        *counts,
        *(f"{100 * share:.1f} %" for share in shares),
        *damaged,
    )


def _decided(rates: Rates) -> float:
    return rates.share("holds") + rates.share("fails")


if __name__ == "__main__":
    named = [word for word in sys.argv[1:] if not word.isdecimal()]
    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    PAGE.write_text(page(numbers[0] if numbers else RUNS, named))
