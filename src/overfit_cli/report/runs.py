"""Runs to judge: their cells and logged steps as tables, and a claim's verdict on one of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from overfit_cli.claims.cells import add_planned, repeated_seeds
from overfit_cli.claims.designs import Design, design_of
from overfit_cli.claims.quantities import Part
from overfit_cli.claims.rates import Rates
from overfit_cli.claims.rates import rates as rates_of
from overfit_cli.claims.seals import looks_in_words
from overfit_cli.claims.stated import Measure
from overfit_cli.claims.stated import claim as claim_of
from overfit_cli.core.claim import Claim, Measurement, UndecidedError, not_run
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.parameters import build, describe
from overfit_cli.core.registry import claims_of
from overfit_cli.core.study import AnyStudy, stand_ins_of
from overfit_cli.core.text import most_alike
from overfit_cli.stats.intervals import level_of_each, set_level
from overfit_cli.sweeps.load import (
    chosen_cells,
    load_logged_steps,
    load_study_and_cells,
    read_selections,
    usable_directories,
)
from overfit_cli.sweeps.manifest import Manifest, planned_cells, read_manifest, stated_claims
from overfit_cli.sweeps.presets import find_preset
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.subject import check_claims_of_preset


@dataclass(frozen=True)
class Table:
    """A table that claims are judged on.

    Attributes:
        rows: one per cell, or per cell and logged step.
    """

    rows: pd.DataFrame
    study: AnyStudy

    @functools.cached_property
    def repeated_seeds(self) -> list[int]:
        """The seeds whose numbers equal those of another seed."""
        return repeated_seeds(self.rows, self.study.parameters)

    def judge(self, claim: Claim) -> Measurement:
        """Judge a claim; with repeated seeds a statistical verdict is `inconclusive`."""
        measurement = claim.judge(self.rows)
        if not (measurement.by_chance and self.repeated_seeds):
            return measurement
        seeds = ", ".join(map(str, self.repeated_seeds))
        note = f"Seeds {seeds} repeat all numbers of another seed: they are no further draws."
        return replace(
            measurement, verdict="inconclusive", note=f"{measurement.note} {note}".strip()
        )

    def parts(self, claim: Claim) -> list[Part]:
        """Return the numbers of a sentence; none without draws, or of another claim."""
        measure = claim.measure
        if not isinstance(measure, Measure) or not self.study.seeded:
            return []
        try:
            return measure.parts(self.rows)
        except (UndecidedError, UserError, KeyError):  # older cells lack a column
            return []

    def design(self, claim: Claim) -> Design | None:
        """Return the cells that a sentence is judged on; None of another claim, or without any."""
        if not isinstance(claim.measure, Measure):
            return None
        try:
            return design_of(claim.measure, self.rows)
        except (UndecidedError, UserError, KeyError):
            return None

    def rates(self, claim: Claim) -> Rates | None:
        """Return how often a sentence would be judged wrongly; None where that isn't known."""
        parts = self.parts(claim)
        if not parts or len(parts[0].low) < max(part.margin.fewest_seeds for part in parts):
            return None
        return rates_of(parts)


def complete_cells(cells: pd.DataFrame, study: AnyStudy) -> pd.DataFrame:
    """Return cells with all columns that cells of a run have; rows of steps have a key."""
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
    completed = cells.assign(**{name: value for name, value in absent.items() if name not in cells})
    identity = [*described, "seed"]
    if repeated := int(
        completed.duplicated([*identity, *(["step"] if "step" in cells else [])]).sum()
    ):
        raise UserError(
            f"{repeated} of the {len(cells)} rows have the parameters and seed of another."
        )
    _check_values(completed, study)
    if "step" not in cells:
        return completed
    key = completed.groupby(identity, dropna=False).ngroup().astype(str)
    completed = completed.assign(key=cells.get("key", key))
    last = completed.groupby("key")["step"].transform("max")
    return completed.assign(steps=cells.get("steps", last))


def _check_values(cells: pd.DataFrame, study: AnyStudy) -> None:
    names = list(describe(study.parameters))
    for row in cells[names].drop_duplicates().to_dict("records"):
        try:
            build(study.parameters, {str(name): value for name, value in row.items()})
        except BadValue as error:
            raise UserError(f"The cells' {error.name} {error.value}: {error.accepts}") from error


def unknown_name(claim: Claim, table: Table) -> BadValue | None:
    """Return the error of a sentence that names what the cells do not have; None without one."""
    if isinstance(claim.measure, Measure):
        try:
            claim.measure.parts(table.rows)
        except BadValue as error:
            return error
        except UndecidedError:
            pass
    return None


def _claim_of_wording(name: str, text: str, study: AnyStudy) -> Claim:
    def unknown(_: pd.DataFrame) -> Measurement:
        raise not_run("The code that measured it is gone.")

    try:
        return claim_of(text, study, name=name)
    except UserError:
        return Claim(name=name, source="", statement=text, holds_where="", measure=unknown)


AFTER_THE_FIRST_CELL = "after the first cell was trained"
"""The words in the note of a claim that was changed, added or removed then."""

NO_STEPS = "It needs logged steps: sweep with --trajectories."


def load_runs(
    sources: Sequence[Path], root: Path, conditions: Sequence[str] = ()
) -> list[LoadedRun]:
    """Load the run directories to judge.

    Args:
        sources: the run directories; empty for the usable ones in `root`.
        conditions: conditions on parameters that choose cells, such as `n=5:20`; they require
            `sources`.
    """
    if conditions and not sources:
        raise BadValue("where", conditions[0], "name the run directory that it is about.")
    directories = [RunDirectory(path, "run") for path in dict.fromkeys(sources)]
    directories = directories or sorted(
        usable_directories(root), key=lambda directory: str(directory.path)
    )
    return [
        LoadedRun(directory, *_load_study_and_cells(directory, conditions), bool(conditions))
        for directory in directories
    ]


def _load_study_and_cells(
    directory: RunDirectory, conditions: Sequence[str]
) -> tuple[AnyStudy, pd.DataFrame]:
    study, every = load_study_and_cells(directory)
    cells = chosen_cells(every, read_selections(conditions, study))
    directory.warn_of_sources(cells)
    return study, cells


@dataclass(frozen=True)
class LoadedRun:
    """A run directory and its cells; its logged steps are read when a claim needs them.

    Attributes:
        is_chosen: whether conditions chose these cells of the run's.
    """

    directory: RunDirectory
    study: AnyStudy
    cells: pd.DataFrame
    is_chosen: bool = False

    @property
    def every_cell(self) -> pd.DataFrame | None:
        """All cells of its directory; None where conditions chose some, and they must be read."""
        return None if self.is_chosen else self.cells

    def judge(self, claim: Claim) -> Measurement:
        """Judge a claim on its cells, or on their logged steps.

        The level is that of this look at the run's seeds, and the note says whether the claim was
        changed since its first cell: see `claims.seals`.
        """
        measurement = self._measured(claim)
        with self.looks_level():
            words = looks_in_words(self._further_looks, level_of_each(1))
        looks = words if measurement.by_chance else ""
        parts = [measurement.note, looks, self._seal_in_words(claim)]
        if measurement.verdict != "not run":
            parts += self._stand_ins
        return replace(measurement, note=" ".join(filter(None, parts)))

    def _measured(self, claim: Claim) -> Measurement:
        frame = self.table(claim)
        if claim.reads == "trajectories" and frame.rows.empty:
            return Measurement(verdict="not run", note=NO_STEPS)
        with self.looks_level():
            return frame.judge(claim)

    def _seal_in_words(self, claim: Claim) -> str:
        if self._manifest is None:
            return ""
        seals, after = self._manifest.seals, AFTER_THE_FIRST_CELL
        if any(claim is removed for removed in self._removed):
            return f"This claim was removed {after}; it is judged as it was then."
        state = seals.state(claim)
        if state not in ("changed", "added"):
            return ""
        words, before = f"This claim was {state} {after}.", seals.wordings.get(claim.name, "")
        if state == "added" or not before:
            return words
        try:
            verdict = self._measured(claim_of(before, self.study, name=claim.name)).verdict
        except UserError:  # it was no sentence
            return f"{words} It was: {before}"
        verb = verdict if verdict in ("holds", "fails") else f"is {verdict}"
        return f"{words} It was '{before}', which {verb}."

    def claims(self) -> list[Claim]:
        """Return the claims of its study, and those of `sentences`."""
        return [*claims_of(self.study), *self.sentences()]

    def sentences(self) -> list[Claim]:
        """Return the claims of its presets, those stated with it, and those removed since.

        A function, or a preset, cannot get rid of a claim that was sealed.
        """
        return [*self.stated, *self._removed]

    def claim(self, text: str) -> Claim:
        """Return a claim of the run by its name, or the claim of a sentence."""
        named = {claim.name: claim for claim in self.claims()}
        if text in named:
            return named[text]
        try:
            return claim_of(text, self.study)
        except BadValue as error:
            if near := most_alike(text, named, cutoff=0.7):
                raise BadValue("claim", text, f"did you mean {near!r}?") from error
            raise

    @functools.cached_property
    def stated(self) -> list[Claim]:
        """The claims of its presets, of a file that is gone as they were; and those of its user."""
        if self._manifest is None:
            return []
        texts, gone = dict[str, str](), not self._manifest.presets
        for path in self._manifest.presets:
            try:
                preset = find_preset(path)
            except UserError:
                gone = True
                continue
            if preset is not None:
                check_claims_of_preset(preset)
                texts |= preset.content.claims
        stated = {**(self._manifest.sentences if gone else {}), **texts}
        return stated_claims(self.study, {**stated, **self._manifest.stated})

    @functools.cached_property
    def _removed(self) -> list[Claim]:
        """The sealed claims that neither its function nor its presets have any more.

        One that names what no cell has, a misspelt column, could never be judged: it is left out.
        """
        if self._manifest is None or self._manifest.claims is None:
            return []
        present = [*claims_of(self.study), *self.stated]
        removed = self._manifest.seals.removed(present)
        claims = [_claim_of_wording(name, text, self.study) for name, text in removed.items()]
        if not (self.cells["status"] == "done").any():
            return claims
        return [each for each in claims if unknown_name(each, self.table(each)) is None]

    def table(self, claim: Claim) -> Table:
        """Return the table that a claim is judged on: of cells, or of logged steps."""
        return self._cells if claim.reads == "cells" else self._logged

    @property
    def _further_looks(self) -> int:
        return 0 if self._manifest is None else self._manifest.further_looks

    def looks_level(self, later: int = 0) -> AbstractContextManager[None]:
        """Give intervals the level of this look at the run's seeds, or of a later one."""
        return set_level(level_of_each(2 ** (self._further_looks + later)))

    @functools.cached_property
    def _stand_ins(self) -> list[str]:
        return stand_ins_of(self.study, self.cells)

    @functools.cached_property
    def _manifest(self) -> Manifest | None:
        return read_manifest(self.directory.path)

    @functools.cached_property
    def _cells(self) -> Table:
        manifest = self._manifest
        if manifest is None or manifest.refined or self.is_chosen:
            return Table(self.cells, self.study)
        planned = planned_cells(self.directory.path, self.study)
        return Table(add_planned(self.cells, planned), self.study)

    @functools.cached_property
    def _logged(self) -> Table:
        return Table(load_logged_steps(self.directory, self.cells), self.study)
