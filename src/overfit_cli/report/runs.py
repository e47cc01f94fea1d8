"""Runs to judge: their cells and logged steps, what was planned, and a claim's verdict on them."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from overfit_cli.claims import stated
from overfit_cli.claims.cells import ABSENT, repeated_seeds, repeats_in_words, rows_with_absent
from overfit_cli.claims.sentences import chosen
from overfit_cli.core import files, parameters, registry
from overfit_cli.core.arrays import varying
from overfit_cli.core.cells import Cells
from overfit_cli.core.claim import Claim, Measurement, UndecidedError, not_run
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.study import AnyStudy, stand_ins_of
from overfit_cli.core.text import command_words, most_alike, shell_line
from overfit_cli.functions.function_study import FunctionStudy
from overfit_cli.stats.intervals import level_of_each, set_level
from overfit_cli.sweeps import load, presets
from overfit_cli.sweeps.manifest import (
    NO_MANIFEST,
    Manifest,
    differing_in_words,
    stated_claims,
    warn_of_sources,
)
from overfit_cli.sweeps.store import RunDirectory

T = TypeVar("T")

AFTER_THE_FIRST_CELL = "after the first cell was trained"
"""The words in the note of a claim that was changed, added or removed then."""

OTHER_DESIGN = "It was sealed for other cells:"
"""The words in the note of a sealed claim that is judged on other cells than planned."""

NO_STEPS = "It needs logged steps: those of a sweep with trajectories."


@dataclass(frozen=True)
class JudgedRun:
    """Cells that claims are judged on: those of a run directory, or from anywhere.

    Attributes:
        data: the cells that are there and those that were planned; from anywhere there may be a row
            per cell and logged step.
        source: the run directory; None for cells from anywhere, of which no look is counted.
        conditions: those that chose the cells.
    """

    data: Cells
    source: RunDirectory | None = None
    conditions: tuple[str, ...] = ()
    _repeated: dict[str, list[int]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def study(self) -> AnyStudy:
        """The study of the cells."""
        return self.data.study

    @property
    def cells(self) -> pd.DataFrame:
        """One row per cell that was trained."""
        return self.data.trained

    @property
    def directory(self) -> RunDirectory:
        """The run directory, of cells that have one."""
        assert self.source is not None
        return self.source

    @property
    def manifest(self) -> Manifest:
        """The manifest of the run directory."""
        return NO_MANIFEST if self.source is None else self.source.manifest

    # Verdicts

    def judge(self, claim: Claim) -> Measurement:
        """Judge a claim on the run's cells, or on their logged steps.

        The level is that of this look at the run's seeds, and the note says whether the claim was
        changed since its first cell.
        """
        try:
            rows = self.rows(claim)
        except UndecidedError as undecided:
            return undecided.measurement
        if claim.reads == "trajectories" and rows.empty:
            measured = Measurement(verdict="not run", note=NO_STEPS)
        else:
            with self.looks_level():
                measured = claim.judge(rows)
        if self.source and measured.needed_seeds:  # seeds that are added are a further look
            with self.looks_level(1):
                needed = claim.judge(rows)
            measured = replace(measured, needed_seeds=needed.needed_seeds, note=needed.note)
        words = [measured.note]
        if void := self.why_void(claim, measured):
            measured = replace(measured, verdict="inconclusive")
            words += void
        if self.source is not None:
            if measured.by_chance and (looks := self.manifest.further_looks):
                times = "once" if looks == 1 else f"{looks} times"
                with self.looks_level():
                    level = f"{100 * level_of_each(1):.4g} %"
                words.append(f"Seeds were added {times}, so that intervals have the level {level}.")
            words += [self._seal_in_words(claim), self._design_in_words(claim, measured, rows)]
            words += self._stand_ins if measured.verdict != "not run" else []
        return replace(measured, note=" ".join(filter(None, words)))

    def why_void(self, claim: Claim, measured: Measurement) -> list[str]:
        """Return why the numbers of cells decide nothing, in sentences: copies, or other ones."""
        words = list[str]()
        if measured.by_chance and (seeds := self._repeated_seeds(claim)):
            words.append(repeats_in_words(seeds))
        if measured.verdict not in ("vacuous", "not run") and (told := self._differing(claim)):
            words.append(f"Cells that were trained a second time gave other numbers: {told}.")
        return words

    def _repeated_seeds(self, claim: Claim) -> list[int]:
        if claim.reads not in self._repeated:
            self._repeated[claim.reads] = repeated_seeds(self.rows(claim), self.study.parameters)
        return self._repeated[claim.reads]

    def _differing(self, claim: Claim) -> str:
        """What differs, in words, in cells that were trained a second time; empty without any.

        Of a sentence on cells only the columns count that it names: another may be a time.
        """
        names, measure = None, claim.measure
        if isinstance(measure, stated.Measure) and claim.reads == "cells":
            words = {word for text in measure.sentence.where for word in re.findall(r"\w+", text)}
            words |= {ref.name for ref in measure.sentence.references}
            known = words & {*self.data.schema.names}
            names = words | {self.data.schema[word].name for word in known}
        return differing_in_words(self.manifest.differing, self.cells, names)

    def rows(self, claim: Claim) -> pd.DataFrame:
        """Return what a claim is judged on: cells, absent ones included, or logged steps."""
        names = claim.measure.of_steps if isinstance(claim.measure, stated.Measure) else []
        if names:
            return stated.with_steps(*self._with_steps, names)
        return self._logged if self.source and claim.reads != "cells" else self._planned

    @functools.cached_property
    def _with_steps(self) -> tuple[pd.DataFrame, Cells]:
        """The cells, and their logged steps with parameters."""
        if self.source is None and "step" in self.cells:
            return self.cells.drop_duplicates("key", keep="last"), self.data
        steps = self.data.by_step()
        if steps.frame.empty:
            raise not_run(NO_STEPS)
        return self._planned, steps

    @functools.cached_property
    def _planned(self) -> pd.DataFrame:
        return self.cells if self.data.refined or self.conditions else rows_with_absent(self.data)

    @functools.cached_property
    def _logged(self) -> pd.DataFrame:
        return load.with_settings(self.data.steps, self.cells)

    @functools.cached_property
    def _stand_ins(self) -> list[str]:
        return stand_ins_of(self.study, self.cells)

    def looks_level(self, later: int = 0, together: int = 1) -> AbstractContextManager[None]:
        """Give intervals the level of this look at the run's seeds, or of a later one.

        The k-th further look has the error α/2^(k + 1): all of them together err in at most half as
        many cases as the first.

        Args:
            together: the number of verdicts that have the level together.
        """
        looks = self.manifest.further_looks + (later if self.source else 0)
        return set_level(level_of_each(together * (2 ** (looks + 1) if looks else 1)))

    def of_sentence(
        self, claim: Claim, read: Callable[[stated.Measure, pd.DataFrame], T]
    ) -> T | None:
        """Return what is read of a sentence on its rows; None where there is nothing to read."""
        if isinstance(claim.measure, stated.Measure):
            with suppress(UndecidedError, UserError, KeyError):  # older cells lack a column
                return read(claim.measure, self.rows(claim))
        return None

    # Claims

    def claims(self) -> list[Claim]:
        """Return the claims of its study, and those of `sentences`."""
        return [*registry.claims_of(self.study), *self.sentences()]

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
            return stated.claim(text, self.study)
        except BadValue as error:
            if near := most_alike(text, named, cutoff=0.7):
                raise BadValue("claim", text, f"did you mean {near!r}?") from error
            raise

    @functools.cached_property
    def stated(self) -> list[Claim]:
        """The claims of its presets, of a file that is gone as they were; and those of its user."""
        files = [path for path in self.manifest.presets if Path(path).is_file()]
        are_here = 0 < len(files) == len(self.manifest.presets)
        texts = {} if are_here else dict(self.manifest.sentences)
        for preset in filter(None, map(presets.find_preset, files)):
            texts |= preset.claims
        return stated_claims(self.study, {**texts, **self.manifest.stated})

    @functools.cached_property
    def _removed(self) -> list[Claim]:
        """The sealed claims that neither its function nor its presets have any more.

        One that names what no cell has, a misspelt column, could never be judged: it is left out.
        """
        if self.manifest.claims is None:
            return []
        removed = self.manifest.removed([*registry.claims_of(self.study), *self.stated])
        claims = [stated.recorded_claim(name, text, self.study) for name, text in removed.items()]
        has_cells = (self.cells["status"] == "done").any()
        return [one for one in claims if not has_cells or self.unknown_name(one) is None]

    def unknown_name(self, claim: Claim) -> BadValue | None:
        """Return the error of a sentence that names what its cells do not have; None without."""
        if isinstance(claim.measure, stated.Measure):
            try:
                with suppress(UndecidedError):
                    claim.measure.parts(self.rows(claim))
            except BadValue as error:
                return error
        return None

    @functools.cached_property
    def _sealed_cells(self) -> pd.DataFrame:
        """The cells that the first sweep was to cover."""
        return self.manifest.model_copy(update={"runs": self.manifest.runs[:1]}).planned(self.study)

    def _design_in_words(self, claim: Claim, measured: Measurement, rows: pd.DataFrame) -> str:
        """Say where a user's claim is judged on other cells than those that it was sealed for."""
        measure = claim.measure
        if not isinstance(measure, stated.Measure) or measure.choose or self.data.refined:
            return ""
        sealed, state = self._sealed_cells, self.manifest.state_of(claim)
        if state != "sealed" or measured.verdict == "not run" or sealed.empty:
            return ""
        lost = sealed.assign(status="failed", reason=ABSENT)
        with suppress(UndecidedError):
            here, there = (
                chosen(measure.cells(each), measure.sentence.where).frame[[*sealed]]
                for each in (rows, lost)
            )
            marks = here.merge(there, "outer", indicator=True)["_merge"]
            if (marks == "left_only").any() or (self.conditions and (marks == "right_only").any()):
                varied = varying(there, map(str, there))
                differs = (name for name in map(str, there) if {*there[name]} != {*here[name]})
                design = "; ".join(
                    stated.values_in_words(there, dict.fromkeys([*varied, *differs]))
                )
                own = f" Judged on those alone: {claim.judge(rows.merge(sealed)).verdict}."
                return f"{OTHER_DESIGN} {design}.{own * (not self.conditions)}"
        return ""

    def _seal_in_words(self, claim: Claim) -> str:
        if any(claim is removed for removed in self._removed):
            return f"This claim was removed {AFTER_THE_FIRST_CELL}; it is judged as it was then."
        study = self.study
        is_recorded = isinstance(study, FunctionStudy) and study.loaded is None
        if is_recorded and claim.name in {one.name for one in study.claims()}:
            return ""  # it is judged as it was then
        state = self.manifest.state_of(claim)
        if state not in ("changed", "added"):
            return ""
        before = self.manifest.sealed.get(claim.name, "") if state == "changed" else ""
        words = f"This claim was {state} {AFTER_THE_FIRST_CELL}."
        return f"{words} It was: '{before}'." if before else words


def load_runs(
    directories: Sequence[RunDirectory] = (),
    conditions: Sequence[str] = (),
    study: FunctionStudy | None = None,
) -> list[JudgedRun]:
    """Load the run directories to judge.

    Args:
        directories: by default the usable ones in `results/`.
        conditions: conditions on parameters that choose cells, such as `n=5:20`; they require
            `directories`.
        study: that of the function which the user named, to judge its claims as they are now.
    """
    if conditions and not directories:
        raise BadValue("where", conditions[0], "name the run directory that it is about.")
    found = [*{one.path: one for one in directories}.values()]
    usable = [] if found else load.usable_directories(files.results_folder())
    found += sorted(usable, key=lambda one: str(one.path))
    runs, loaded = list[JudgedRun](), list[FunctionStudy | None]()
    for directory in found:
        run = JudgedRun(load.load_run(directory).choose(*conditions), directory, tuple(conditions))
        warn_of_sources(directory.path, run.data.run.sources, run.cells)
        runs.append(run)
        if isinstance(run.study, FunctionStudy):
            loaded.append(run.study.loaded)
            if run.study.record.claims and loaded[-1] is None:
                file = "FILE.py" if ".py:" in run.study.record.reference else "MODULE:FUNCTION"
                how = shell_line(command_words("judge", directory.path, study=file))
                if not run.study.record.reference:
                    how = f"overfit_cli.judge({str(directory.path)!r}, study=FUNCTION)"
                why = "its claims are judged as they were recorded: its function is not loaded"
                warnings.warn(f"{directory.path}: {why}; `{how}` loads it.", stacklevel=2)
    if study is not None and study.record not in [one.record for one in loaded if one]:
        names = ", ".join(sorted({run.study.name for run in runs})) or "none"
        accepts = f"no run here is of this function with its parameters; here is {names}."
        raise BadValue("study", study.name, accepts)
    return runs


def run_of_cells(cells: pd.DataFrame, study: AnyStudy) -> JudgedRun:
    """Return cells from any source, to be judged, with the columns that they lack."""
    return JudgedRun(Cells.of(study, _complete(cells, study)))


def _complete(cells: pd.DataFrame, study: AnyStudy) -> pd.DataFrame:
    """Cells with all columns that cells of a run have; rows of steps have a key."""
    if "seed" not in cells or cells["seed"].isna().any():
        raise UserError("The cells have no column 'seed', or some of them no seed.")
    described, cells = parameters.describe(study.parameters), cells.reset_index(drop=True)
    for name, info in described.items():
        if name in cells and info.kind in ("int", "float") and not is_numeric_dtype(cells[name]):
            raise UserError(f"The cells' column {name!r} has {cells[name].iloc[0]!r}: no number.")
    usual: dict[str, Any] = {column.name: np.nan for column in study.columns}
    usual |= {"status": "done", "reason": "", "study": study.name}
    usual |= {name: info.default for name, info in described.items()}
    completed = cells.assign(**{name: value for name, value in usual.items() if name not in cells})
    identity, steps = [*described, "seed"], ["step"] if "step" in cells else []
    if repeated := int(completed.duplicated([*identity, *steps]).sum()):
        rows = f"{repeated} of the {len(cells)} rows"
        raise UserError(f"{rows} have the parameters and seed of another.")
    for row in completed[[*described]].drop_duplicates().to_dict("records"):
        try:
            parameters.build(study.parameters, {str(name): value for name, value in row.items()})
        except BadValue as error:
            raise UserError(f"The cells' {error.name} {error.value}: {error.accepts}") from error
    if not steps:
        return completed
    key = completed.groupby(identity, dropna=False).ngroup().astype(str)
    completed = completed.assign(key=cells.get("key", key))
    last = completed.groupby("key")["step"].transform("max")
    return completed.assign(steps=cells.get("steps", last))
