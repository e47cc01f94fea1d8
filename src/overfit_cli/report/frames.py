"""Claims judged on a frame: the cells or logged steps of a run, or of a made-up world."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from overfit_cli.claim import Claim, Measurement
from overfit_cli.claims.cells import repeated_seeds
from overfit_cli.errors import UserError
from overfit_cli.parameter_values import build
from overfit_cli.parameters import describe
from overfit_cli.registry import claims_of
from overfit_cli.report.judged import Judged, as_a_family
from overfit_cli.study import AnyStudy


@dataclass(frozen=True)
class Frame:
    """What claims are judged on.

    Attributes:
        rows: one per cell, or per cell and logged step.
        study: whose cells they are.
    """

    rows: pd.DataFrame
    study: AnyStudy

    @functools.cached_property
    def repeated(self) -> list[int]:
        """The seeds that have all the numbers of another."""
        return repeated_seeds(self.rows, self.study.parameters)

    def judge(self, claim: Claim) -> Measurement:
        """Judge a claim; seeds that repeat another's numbers leave open what seeds decide."""
        found = claim.judge(self.rows)
        if not (found.by_chance and self.repeated):
            return found
        which = ", ".join(map(str, self.repeated))
        note = f"Seeds {which} have all the numbers of another: they are no draws of their own."
        return replace(found, verdict="inconclusive", note=f"{found.note} {note}".strip())


def judge_cells(cells: pd.DataFrame, study: AnyStudy) -> list[Judged]:
    """Judge every claim of a study by cells from anywhere, such as a made-up world.

    Args:
        cells: one row per cell, with `seed` and the study's columns. A parameter that is absent has
            its default, and cells without a `status` are done. With a column `step`, one row per
            cell and logged step: then claims on trajectories are judged, and else those on cells.
        study: whose cells they are.

    Raises:
        UserError: without a seed for every row, with several rows of one cell, or with values that
            a parameter doesn't take.
    """
    whole = _whole(cells.reset_index(drop=True), study)  # claims index by row
    reads = "trajectories" if "step" in cells else "cells"
    claims = [claim for claim in claims_of(study) if claim.reads == reads]
    frame = Frame(whole, study)
    judged = [Judged(study.name, claim, frame.judge(claim), None) for claim in claims]
    return as_a_family(judged, lambda one: frame.judge(one.claim))


def _whole(cells: pd.DataFrame, study: AnyStudy) -> pd.DataFrame:
    """The cells with all columns that cells of a run have; a key tells those of steps apart."""
    if "seed" not in cells:
        raise UserError("The cells have no column 'seed'.")
    if cells["seed"].isna().any():
        raise UserError("Some cells have no seed.")
    described = describe(study.parameters)
    for name, info in described.items():
        if name in cells and info.kind in ("int", "float") and not is_numeric_dtype(cells[name]):
            raise UserError(f"The cells' column {name!r} has {cells[name].iloc[0]!r}: no number.")
    absent: dict[str, Any] = {"status": "done", "reason": "", "study": study.name}
    absent |= {name: info.default for name, info in described.items()}
    whole = cells.assign(**{name: one for name, one in absent.items() if name not in cells})
    own = [*described, "seed"]
    if repeated := int(whole.duplicated([*own, *(["step"] if "step" in cells else [])]).sum()):
        raise UserError(
            f"{repeated} of the {len(cells)} rows have the parameters and seed of another."
        )
    _check_values(whole, study)
    if "step" not in cells:
        return whole
    key = whole.groupby(own, dropna=False).ngroup().astype(str)
    whole = whole.assign(key=cells.get("key", key))
    last = whole.groupby("key")["step"].transform("max")
    return whole.assign(steps=cells.get("steps", last))


def _check_values(cells: pd.DataFrame, study: AnyStudy) -> None:
    """Refuse values of parameters that the study doesn't take."""
    flags = {name: f"The cells' {name}" for name in describe(study.parameters)}
    for row in cells[list(flags)].drop_duplicates().to_dict("records"):
        build(study.parameters, {str(name): value for name, value in row.items()}, flags)
