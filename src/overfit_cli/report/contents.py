"""Contents of a report: papers, their studies, claims with verdicts, and the runs behind them."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from overfit_cli.claim import VERDICTS, Claim, Verdict
from overfit_cli.paper import Paper
from overfit_cli.registry import figures_of, find_study
from overfit_cli.report.diagrams import Diagram, explorable
from overfit_cli.report.judge import LoadedRun
from overfit_cli.report.judged import Judged
from overfit_cli.report.pictures import PagePicture, pictures_of
from overfit_cli.report.run_facts import RunFacts, facts_of
from overfit_cli.study import AnyStudy
from overfit_cli.sweeps.loading import load_figure_data
from overfit_cli.sweeps.manifest import read_manifest
from overfit_cli.sweeps.presets import find_preset
from overfit_cli.sweeps.selection import chosen_data
from overfit_cli.words import duration

MOST_PICTURED = 4_000_000
"""Characters of pictures in a report; with the rest its page stays below 5 MB."""


@dataclass(frozen=True)
class ReportedRun:
    """A run directory in a report, with what can be drawn of it.

    Attributes:
        name: a short name, its own in the report.
        path: where it lies.
        facts: its cells, settings and commands.
        pictures: its figures.
        left_out: whether there was no room for all of them.
        diagram: its phase diagram as numbers; None where it has none.
    """

    name: str
    path: Path
    facts: RunFacts
    pictures: Sequence[PagePicture]
    left_out: bool
    diagram: Diagram | None


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
    deciding = {one.directory for one in judged}
    # What decides claims comes first: the page has room for so many pictures.
    runs = sorted(
        runs, key=lambda run: (run.directory.path not in deciding, str(run.directory.path))
    )
    names, room = _short_names([run.directory.path for run in runs]), _Room()
    reported = [_reported(names[run.directory.path], run, where, room) for run in runs]
    studies = {run.study.name: run.study for run in runs}
    studies |= {name: find_study(name) for name in {one.study for one in judged} - studies.keys()}
    papers: dict[str, list[ReportedStudy]] = {}
    kept: dict[str, Paper | None] = {}
    for name in sorted(studies):
        study = studies[name]
        own = [shown for run, shown in zip(runs, reported, strict=True) if run.study.name == name]
        key = study.paper.key if study.paper else ""
        kept[key] = study.paper
        claims = [one for one in judged if one.study == name]
        papers.setdefault(key, []).append(ReportedStudy(study, claims, own))
    ordered = sorted(papers, key=lambda key: (not key, key))  # what is no paper's comes last
    return [ReportedPaper(kept[key], papers[key]) for key in ordered]


def again(claim: Claim) -> Again | None:
    """Return how a claim is measured again by its preset; None where it has none."""
    return _again(claim.preset) if claim.preset else None


@functools.cache
def _again(name: str) -> Again | None:
    preset = find_preset(name)
    if preset is None:
        return None
    quick = preset.profile("quick")
    return Again(f"overfit reproduce {preset.name}", quick.minutes, quick.needs)


def _short_names(paths: Sequence[Path]) -> dict[Path, str]:
    """A name for each run: the last part of its path, with a number where two share it."""
    times = Counter[str]()
    names = {}
    for path in paths:
        name = path.resolve().name
        times[name] += 1
        names[path] = name if times[name] == 1 else f"{name} ({times[name]})"
    return names


class _Room:
    """Room for pictures that is left in a report."""

    def __init__(self) -> None:
        self._left = MOST_PICTURED

    def filled_with(self, pictures: Iterator[PagePicture]) -> tuple[list[PagePicture], bool]:
        """Take pictures while there is room; say whether one was left out."""
        taken: list[PagePicture] = []
        while self._left > 0 and (one := next(pictures, None)):
            self._left -= len(one.address)
            if self._left > 0:
                taken.append(one)
        return taken, self._left <= 0


def _reported(name: str, run: LoadedRun, where: Sequence[str], room: _Room) -> ReportedRun:
    """A run with its facts, its figures and its phase diagram."""
    directory = run.directory
    data = chosen_data(load_figure_data(directory), where)
    heatmap = figures_of(run.study).get("heatmap")
    pictures, left_out = room.filled_with(pictures_of(directory, run.study, where))
    return ReportedRun(
        name,
        directory.path,
        facts_of(data, read_manifest(directory.path)),
        pictures,
        left_out,
        explorable(data, heatmap) if heatmap else None,
    )
