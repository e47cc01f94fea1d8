"""Contents of a report: papers, their studies, claims with verdicts, and the runs behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from overfit_cli.claim import VERDICTS, Claim, Verdict
from overfit_cli.paper import Paper
from overfit_cli.registry import find_study
from overfit_cli.report.judge import LoadedRun
from overfit_cli.report.judged import Judged
from overfit_cli.report.order import place, reproduced, short_names
from overfit_cli.report.run_facts import RunFacts, facts_of
from overfit_cli.study import AnyStudy
from overfit_cli.sweeps.loading import load_figure_data
from overfit_cli.sweeps.manifest import read_manifest
from overfit_cli.sweeps.presets import find_preset
from overfit_cli.sweeps.selection import chosen_data
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.words import duration


@dataclass(frozen=True)
class ReportedRun:
    """A run directory in a report.

    Attributes:
        name: a short name, its own in the report.
        directory: where it lies.
        study: whose cells it holds.
        facts: its cells, settings and commands.
        figure: the figure of the paper that it reproduces, such as `fig1`; empty for none.
        decides: whether a claim was measured on it.
    """

    name: str
    directory: RunDirectory
    study: AnyStudy
    facts: RunFacts
    figure: str
    decides: bool

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.directory.path


@dataclass(frozen=True)
class ReportedStudy:
    """A study in a report: its claims with their verdicts, and its runs."""

    study: AnyStudy
    judged: Sequence[Judged]
    runs: Sequence[ReportedRun]


@dataclass(frozen=True)
class ReportedPaper:
    """A paper in a report; None stands for studies that are no paper's."""

    paper: Paper | None
    studies: Sequence[ReportedStudy]

    @property
    def key(self) -> str:
        """Its name on the command line, and in addresses within the page."""
        return self.paper.key if self.paper else "own"

    @property
    def cited(self) -> str:
        """How it is cited."""
        return str(self.paper) if self.paper else "Other studies"

    @property
    def judged(self) -> Sequence[Judged]:
        """Every claim of its studies."""
        return [one for study in self.studies for one in study.judged]

    @cached_property
    def counts(self) -> Mapping[Verdict, int]:
        """How many of its claims have each verdict."""
        found = Counter(one.measurement.verdict for one in self.judged)
        return {verdict: found[verdict] for verdict in VERDICTS}


@dataclass(frozen=True)
class Again:
    """How a claim is measured again.

    Attributes:
        command: what runs its cells and judges it.
        minutes: how long that takes on two cores, as measured; None where that isn't known.
        needs: what must be there before, in words; empty where that is nothing.
    """

    command: str
    minutes: float | None
    needs: str

    @property
    def time(self) -> str:
        """How long it takes, in words; empty where that isn't known."""
        return f"about {duration(60 * self.minutes).removesuffix(' 00 s')}" if self.minutes else ""


def contents(
    judged: Sequence[Judged], runs: Sequence[LoadedRun], where: Sequence[str]
) -> list[ReportedPaper]:
    """Return what a report shows: every claim under its study and paper, and every run.

    Args:
        judged: every claim, judged.
        runs: the run directories that they were judged by.
        where: the conditions that chose their cells.
    """
    reported = _reported(judged, runs, where)
    studies = {run.study.name: run.study for run in runs}
    studies |= {name: find_study(name) for name in {one.study for one in judged} - studies.keys()}
    papers: dict[str, list[ReportedStudy]] = {}
    kept: dict[str, Paper | None] = {}
    for name in sorted(studies):
        study = studies[name]
        own = [run for run in reported if run.study.name == name]
        key = study.paper.key if study.paper else ""
        kept[key] = study.paper
        claims = [one for one in judged if one.study == name]
        papers.setdefault(key, []).append(ReportedStudy(study, claims, own))
    ordered = sorted(papers, key=lambda key: (not key, key))  # what is no paper's comes last
    return [ReportedPaper(kept[key], papers[key]) for key in ordered]


def _reported(
    judged: Sequence[Judged], runs: Sequence[LoadedRun], where: Sequence[str]
) -> list[ReportedRun]:
    """The runs with their facts, in the order in which a report shows them."""
    deciding = {one.directory for one in judged}
    figures = reproduced()
    names = short_names(sorted(run.directory.path for run in runs))
    found = []
    for run in runs:
        path = run.directory.path
        data = chosen_data(load_figure_data(run.directory), where)
        facts = facts_of(data, read_manifest(path))
        figure = figures.get(path.resolve().name, "")
        found.append(
            ReportedRun(names[path], run.directory, run.study, facts, figure, path in deciding)
        )
    return sorted(found, key=lambda run: place(run.figure, run.decides, run.path))


def again(claim: Claim) -> Again | None:
    """Return how a claim is measured again by its preset; None where it has none."""
    preset = find_preset(claim.preset) if claim.preset else None
    if preset is None:
        return None
    quick = preset.profile("quick")
    return Again(f"overfit reproduce {preset.name}", quick.minutes, quick.needs)
