"""Verdicts of the installed studies' claims on cells, for tests."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import pytest

from calibration import rates
from calibration.rates import told, worlds_of
from overfit_cli import Claim, Measurement
from overfit_cli.claims.stated import JointMeasure
from overfit_cli.core.claim import UndecidedError, Verdict
from overfit_cli.core.registry import claims_of, find_study, installed_studies
from overfit_cli.core.training import named_rng


def claims_by_name(*studies: str) -> Mapping[str, Claim]:
    """The claims of studies by their names."""
    return {claim.name: claim for study in studies for claim in claims_of(find_study(study))}


@functools.cache
def all_claims() -> Mapping[str, Claim]:
    """The claims of all installed studies by their names, as made-up worlds have them."""
    named = claims_by_name(*(study.name for study in installed_studies()))
    made = {name: each for study in installed_studies() for name, (each, _) in told(study).items()}
    return {**named, **made}


def design(preset: str, profile: str = "quick") -> pd.DataFrame:
    """The cells of a preset, with seeds from 0 on."""
    return from_0(rates.design(preset, profile))


def from_0(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells with seeds from 0 on."""
    return cells.assign(seed=cells["seed"] - cells["seed"].min())


def measure(name: str, cells: pd.DataFrame) -> Measurement:
    """Judge the claim of this name, or the part of it whose label is behind a colon."""
    name, _, part = name.partition(": ")
    claim = all_claims()[name]
    if part:
        assert isinstance(claim.measure, JointMeasure)
        return claim.measure.parts[part].judge(cells)
    return claim.judge(cells)


def check_undecided(verdict: Verdict, words: str, function: Callable[[], object]) -> None:
    """Expect that cells decide nothing, with this verdict and these words."""
    with pytest.raises(UndecidedError) as error:
        function()
    assert error.value.measurement.verdict == verdict
    assert words in error.value.measurement.note


@functools.cache
def true_cells(name: str) -> pd.DataFrame:
    """Cells of the claim's preset in a made-up world in which it is true."""
    worlds = {of: one for study in installed_studies() for of, one in worlds_of(study).items()}
    planned = rates.design(all_claims()[name].preset)
    return from_0(worlds[name].true(planned, named_rng(0, "doctored", name)))


def lines(table: str) -> list[str]:
    """The lines of a table of cases without its comments; a backslash continues a line."""
    joined = re.sub(r"\\\n +", "", table).splitlines()
    return [line for line in joined if line and not line.startswith("#")]


def changed(cells: pd.DataFrame, changes: str) -> pd.DataFrame:
    """The cells after changes, with commas between: `a=1 b=2 where QUERY` or `drop where QUERY`."""
    cells = cells.reset_index(drop=True)
    for change in filter(None, changes.split(", ")):
        given, _, where = change.partition(" where ")
        rows: Any = cells.eval(where) if where else cells["seed"] >= 0
        if given == "drop":
            cells, given = cells[~rows], ""
        for each in given.split():
            column, _, value = each.partition("=")
            cells[column] = cells[column].astype(object).mask(rows, _number_or_word(value))
    return cells.infer_objects()


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text.replace("_", " ")
