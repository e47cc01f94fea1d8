"""Error rates of all claims, as `experiments/error-rates.csv`: `python -m calibration`.

Each claim is judged many times in its made-up worlds, at the design of its preset. It takes an
hour or two, so the table is made when a claim, a rule or a preset has changed, for what is named
or for all:

    python -m calibration 60 fig1-exponent softmax-diffusion

judges one claim and the claims of a study 60 times, beside claims that the table lacks. With 0
times the rates stay, and the worlds that break one clause of a claim are judged anew: that takes
minutes. A test says where the table lists other claims than there are.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Collection, Mapping

from joblib import Parallel, delayed

from calibration.clauses import caught
from calibration.rates import MOST_ERRORS, design, rates, told, worlds_of
from overfit_cli.core.errors import UserError
from overfit_cli.core.files import preset_folder
from overfit_cli.core.registry import claims_of, find_study, installed_studies
from overfit_cli.core.study import AnyStudy
from overfit_cli.sweeps.presets import ERROR_RATES

RUNS = 200
COLUMNS = ("study", "claim", "runs", "true: fails", "false: holds", "worlds", "caught")


def table(before: str, runs: int, chosen: Collection[str] = ()) -> str:
    """Return the table as CSV.

    Args:
        before: the table so far.
        runs: how often each claim is judged in each world; with 0 the rates of before stay, and
            claims that the table lacks are left out.
        chosen: the studies and claims to judge, beside claims that the table lacks; the rows of
            others stay. Empty for all.
    """
    rows = {(row["study"], row["claim"]): row for row in csv.DictReader(io.StringIO(before))}
    claims = [(study.name, claim.name) for study in studies() for claim in claims_of(study)]
    claims = [claim for claim in claims if runs or claim in rows]
    judged = [claim for claim in claims if not chosen or claim not in rows or {*claim} & {*chosen}]
    for found in Parallel(n_jobs=-1)(delayed(row)(*one, runs) for one in judged):
        key = found["study"], found["claim"]
        rows[key] = rows.get(key, {}) | found
    written = io.StringIO()
    writer = csv.DictWriter(written, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows[claim] for claim in claims)
    return written.getvalue()


def row(study_name: str, claim_name: str, runs: int) -> Mapping[str, str | int]:
    """Return a claim's row of the table: how many of its runs err, in either world.

    It has the worlds that break a clause, and how many are caught; without runs these alone.
    """
    study = find_study(study_name)
    if claim_name not in told(study):
        raise UserError(f"The claim {claim_name} has no made-up worlds to be calibrated in.")
    found = dict(zip(("worlds", "caught"), caught(claim_name), strict=True))
    if runs:
        claim, worlds = told(study)[claim_name]
        cells = design(claim.preset)
        wrong = (
            rates(claim, worlds.true, cells, runs, "true").verdicts.get("fails", 0),
            rates(claim, worlds.false, cells, runs, "false").verdicts.get("holds", 0),
        )
        found |= zip(COLUMNS[2:5], (runs, *wrong), strict=True)
    return {"study": study_name, "claim": claim_name, **found}


def most_errors(runs: int, rate: float = MOST_ERRORS) -> int:
    """Return the number of errors that an error rate exceeds once in a thousand times."""
    from scipy.stats import binom

    return int(binom.ppf(0.999, runs, rate))


def studies() -> list[AnyStudy]:
    """Return the studies that make claims."""
    return [study for study in installed_studies() if worlds_of(study)]


if __name__ == "__main__":
    named = [word for word in sys.argv[1:] if not word.isdecimal()]
    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    path = preset_folder() / ERROR_RATES
    path.write_text(table(path.read_text(), numbers[0] if numbers else RUNS, named))
