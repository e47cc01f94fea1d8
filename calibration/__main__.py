"""Error rates of all claims, as `docs/error-rates.md`: `python -m calibration`.

The rates that the page of a report shows beside a claim stand in `experiments/error-rates.csv`.

Each claim is judged many times in its made-up worlds, whole and damaged, at the design of its
preset. It takes an hour or two, so the page is made when a claim, a rule or a preset has changed,
for what is named or for all; a test says where it lists other claims than there are.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from joblib import Parallel, delayed

from calibration.damage import DAMAGES
from calibration.rates import MOST_ERRORS, Calibration, Rates, calibrate, worlds_of
from overfit_cli.core.registry import claims_of, installed_studies
from overfit_cli.core.study import AnyStudy
from overfit_cli.sweeps.presets import ERROR_RATES, preset_folder

PAGE = Path(__file__).parents[1] / "docs" / "error-rates.md"
RUNS = 200
DAMAGED = 0.3
"""The share of these runs in each damaged world."""

RUNS_COLUMN = 5
"""The number of runs, after a row's first bar."""

HEADINGS = (
    "claim",
    "kind",
    "cells",
    "seeds",
    "runs",
    "true: holds",
    "true: fails",
    "false: holds",
    "false: fails",
    "open: holds or fails",
    *(f"{name}: fails, holds" for name in DAMAGES),
)

SHIPPED = ("runs", "true: fails", "false: holds")
"""The columns that a report shows."""

INTRODUCTION = """# Error rates of the verdicts

Every claim is judged in three simulated worlds. The column "runs" says how often in each. The cells
and seeds are those of the claim's preset. Seeds differ by as much as was measured.

- *True*: the number lies in the middle of the margin, or well inside a margin with one end.
- *False*: the number lies at an end of the margin. This is the hardest false case for "holds". It
  is also the hardest true case for "fails", so the column "false: fails" is an upper bound on how
  often "fails" is wrong. In this world a third of the seeds break a claim "without exception", so
  that "fails" is right.
- *Open*: as the false world, but with half of the seeds, or the fewest that the claim needs, and
  with twice the noise. No seed breaks a claim "without exception", but there is one seed too few. A
  claim that one cell decides has no number.

These verdicts are errors: "holds" in a false or open world, and "fails" in a true or open one. Up
to 5 % of them are allowed; this may show as up to {most}. In an open
world both are errors. At one end of a margin with two ends, "holds" is allowed in 5 % and "fails"
in 2.5 %: together this may show as up to {most_open}.
All other runs are `inconclusive`. This is common for true claims too: the column "true: holds" says
how often a true claim is confirmed.

The last columns are damaged worlds, with {share:.0f} % of the runs each: 2 % of the cells ran out
of memory (failed) or were never run (absent); all seeds but three are near copies of these
(copies); there is a cell of another setting (row); a user looks after half, three quarters and all
of the seeds (looks); one value of a parameter has only every other seed (unbalanced);
normal numbers are drawn from Student's t of three degrees of freedom (tails). Each column has the
share of true worlds in which the claim fails, and of false worlds in which it holds, at any look.
There 5 % may show as up to {most_damaged}.

`python -m calibration` makes this page with 200 runs, and `python -m calibration 50 NAME ...` only
the rows of these studies or claims, and those that it lacks, with 50.
[verdicts.md](verdicts.md) explains the rules, and
`overfit_cli.judge(cells)` judges worlds of your own.
"""


def page(runs: int, chosen: Collection[str] = ()) -> str:
    """Return the page, from so many runs in each world.

    Args:
        runs: how many.
        chosen: the studies and claims to measure, beside claims that the page lacks; the rows of
            others stay. Empty for all.
    """
    before = dict(
        re.findall(r"^\| (\S+) (\| (?:paper|sharp|ours|identity) .*)$", PAGE.read_text(), re.M)
    )
    claims = [(study.name, claim.name) for study in studies() for claim in claims_of(study)]
    kept = {
        name
        for study, name in claims
        if chosen and name in before and not {study, name} & set(chosen)
    }
    measured = [(study, name) for study, name in claims if name not in kept]
    rows = Parallel(n_jobs=-1)(delayed(row)(study, name, runs) for study, name in measured)
    lines = {name: f"| {name} {before[name]}\n" for name in kept}
    lines |= {cells[0]: _line(cells) for cells in rows}
    heading = _line(HEADINGS) + _line(["---"] * len(HEADINGS))
    tables = [
        f"\n## {study.name}\n\n{heading}{''.join(lines[claim.name] for claim in claims_of(study))}"
        for study in studies()
    ]
    return _introduction(lines.values()) + "".join(tables)


def table(text: str) -> str:
    """Return the rates of a page's text as CSV: how often a claim holds and fails wrongly."""
    columns = ("study", "claim", *SHIPPED)
    lines = [",".join(columns)]
    for study, rows in re.findall(r"^## (\S+)\n\n((?:\|.*\n)+)", text, re.M):
        for row in rows.splitlines()[2:]:
            cells = dict(zip(HEADINGS, (cell.strip() for cell in row.split("|")[1:]), strict=False))
            lines.append(",".join([study, cells["claim"], *(cells[name] for name in SHIPPED)]))
    return "\n".join(lines) + "\n"


def _introduction(lines: Iterable[str]) -> str:
    """The page's text, with what an error rate of 5 % may show at the numbers of runs there are."""
    numbers = sorted({int(line.split("|")[RUNS_COLUMN]) for line in lines}, reverse=True)
    most, most_open, most_damaged = (
        ", ".join(f"{100 * most_errors(count(runs), rate):.0f} % ({runs} runs)" for runs in numbers)
        for count, rate in (
            (int, MOST_ERRORS),
            (int, 1.5 * MOST_ERRORS),
            (damaged_runs, MOST_ERRORS),
        )
    )
    return INTRODUCTION.format(
        most=most, most_open=most_open, most_damaged=most_damaged, share=100 * DAMAGED
    )


def damaged_runs(runs: int) -> int:
    """Return how often a claim is judged in each damaged world, of its runs in whole ones."""
    return max(1, round(DAMAGED * runs))


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"


def most_errors(runs: int, rate: float = MOST_ERRORS) -> float:
    """Return the share of errors that an error rate exceeds once in a thousand times."""
    from scipy.stats import binom

    return float(binom.ppf(0.999, runs, rate)) / runs


def studies() -> list[AnyStudy]:
    """Return the studies that make claims."""
    return [study for study in installed_studies() if worlds_of(study)]


def row(study_name: str, claim_name: str, runs: int) -> Sequence[str]:
    """Return a claim's row of the table."""
    study = next(study for study in studies() if study.name == study_name)
    names = frozenset({claim_name})
    [calibrated] = calibrate(study, runs, names, damaged_runs=damaged_runs(runs))
    return cells_of_row(calibrated, runs)


def cells_of_row(calibrated: Calibration, runs: int) -> Sequence[str]:
    """Return the cells of a claim's row."""
    true, false, undecidable = (calibrated.rates[truth] for truth in ("true", "false", "open"))
    shares = [
        true.share("holds"),
        true.share("fails"),
        false.share("holds"),
        false.share("fails"),
        _decided(undecidable),
    ]
    counts = (calibrated.claim.kind, f"{calibrated.cells}", f"{calibrated.seeds}", f"{runs}")
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
    (preset_folder() / ERROR_RATES).write_text(table(PAGE.read_text()))
