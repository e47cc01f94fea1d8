"""Contents of a report: papers, their studies, claims with verdicts, and the runs behind them.

Runs are in the order of the paper's figures, then of claims.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from overfit_cli.claims.rules import MET
from overfit_cli.core.cell import Paper
from overfit_cli.core.claim import (
    KINDS,
    VERDICTS,
    Claim,
    Interval,
    Kind,
    Measurement,
    Verdict,
    number_with_interval,
)
from overfit_cli.core.registry import find_study
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import duration, natural_key, plural
from overfit_cli.report.judge import Judged
from overfit_cli.report.run_facts import RunFacts, run_facts
from overfit_cli.report.runs import LoadedRun
from overfit_cli.stats.intervals import LEVEL, level_of_each
from overfit_cli.sweeps.load import chosen_data, load_figure_data
from overfit_cli.sweeps.manifest import read_manifest
from overfit_cli.sweeps.presets import PROFILES, all_presets, find_preset
from overfit_cli.sweeps.store import RunDirectory


def claim_sentences(judged: Sequence[Judged]) -> list[str]:
    """Return a sentence on each claim: its number, its measurement, and when it holds."""
    return [
        " ".join(
            filter(
                None,
                [
                    f"{claim.name}:",
                    f"{number}." if (number := claim.measurement.number) != "–" else "",
                    describe_measurement(claim.measurement),
                    f"Holds where {claim.claim.holds_where}.",
                ],
            )
        )
        for claim in judged
    ]


def family_sentences(judged: Sequence[Judged]) -> list[str]:
    """Return a sentence on each family, of a study and a kind: its level, and what changes."""
    families = dict[tuple[str, Kind], list[Judged]]()
    for claim in judged:
        if claim.family:
            families.setdefault((claim.study, claim.claim.kind), []).append(claim)
    lines = []
    for (study, kind), claims in families.items():
        changed = [
            f"{claim.name} is {claim.joint_verdict}"
            for claim in claims
            if claim.joint_verdict != claim.measurement.verdict
        ]
        size = claims[0].family
        change = f": {', '.join(changed)}" if changed else " nothing changes"
        depend = "depends" if size == 1 else "depend"
        first = f"{100 * level_of_each(size):.4g}"
        lines.append(
            f"{study}: {plural(size, 'verdict')} of kind {kind} {depend} on seeds "
            f"({100 * LEVEL:.4g} % each). After Holm's correction (starting at {first} %){change}."
        )
    return lines


def detail_lines(details: Mapping[str, float]) -> list[str]:
    """Return the details, a line each: `power 2 [1.5, 2.5]`; see `detail_pairs`."""
    return [f"{name} {number}" for name, number in detail_pairs(details)]


def detail_pairs(details: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return the names of the details and their numbers in three digits.

    `…, from` and `…, to` are the interval of `…`; `…, least` and `…, most` are its range, which for
    a theorem is the distance to a hypothesis. A number may be undefined, such as the decades to a
    bound that is negative.
    """
    pairs = []
    for name, value in details.items():
        parent, _, end = name.rpartition(", ")
        if end in ("from", "to") and parent in details:
            continue
        least, most = f"{parent}, least", f"{parent}, most"
        if end in ("least", "most") and least in details and most in details:
            if end == "least":
                met = " (met at 0 or less)" if MET in details else ""
                pairs.append((f"{parent}{met}", _range_in_words(details[least], details[most])))
            continue
        ends = [details[f"{name}, {end}"] for end in ("from", "to") if f"{name}, {end}" in details]
        interval = Interval(ends[0], ends[1], "") if len(ends) == 2 else None
        number = "undefined" if math.isnan(value) else number_with_interval(value, interval)
        pairs.append((name, number))
    return pairs


def _range_in_words(least: float, most: float) -> str:
    ends = [number_with_interval(end, None) for end in (least, most) if not math.isnan(end)]
    return " to ".join(dict.fromkeys(ends)) or "undefined"


def describe_measurement(measurement: Measurement) -> str:
    """Return the note and the details of a measurement: `N·SNR² …; curves 640`."""
    details = "; ".join(detail_lines(measurement.details))
    if len(details.split(" ", 1)[0]) > 1:  # d and D are different symbols
        details = details[:1].upper() + details[1:]
    return f"{measurement.note} {details}{'.' if details else ''}".strip()


def reproduced_figures() -> dict[str, str]:
    """Return the figure of the paper that a run directory reproduces, by the directory's name.

    Of several presets with one directory, it is the paper's first figure.
    """
    figures = [
        (preset.run_name(profile), preset.content.reproduces)
        for preset in all_presets()
        for profile in PROFILES
        if preset.content.reproduces
    ]
    return dict(sorted(figures, key=lambda entry: natural_key(entry[1]), reverse=True))


def run_rank(figure: str, decides: bool, path: Path) -> tuple[object, ...]:
    """Return the sort key of a run in a study's report.

    Runs that reproduce a figure of the paper come first, then those that decide a claim.
    """
    rank = 0 if figure else 1 if decides else 2
    return (rank, natural_key(figure), path.resolve().name, str(path))


def short_names(paths: Iterable[Path]) -> dict[Path, str]:
    """Return a name for each run: the last part of its path, with a number if it is not unique."""
    names: dict[Path, str] = {}
    times: dict[str, int] = {}
    for path in paths:
        name = path.resolve().name
        times[name] = times.get(name, 0) + 1
        names[path] = name if times[name] == 1 else f"{name} ({times[name]})"
    return names


@dataclass(frozen=True)
class ReportedRun:
    """A run directory in a report.

    Attributes:
        name: a short name, unique in the report.
        figure: the figure of the paper that it reproduces, such as `fig1`; empty for none.
    """

    name: str
    loaded: LoadedRun
    facts: RunFacts
    figure: str
    decides: bool

    @property
    def directory(self) -> RunDirectory:
        """The run directory."""
        return self.loaded.directory

    @property
    def study(self) -> AnyStudy:
        """The study of its cells."""
        return self.loaded.study

    @property
    def path(self) -> Path:
        """The path of the run directory."""
        return self.directory.path


@dataclass(frozen=True)
class ReportedStudy:
    """A study in a report: its claims with their verdicts, and its runs."""

    study: AnyStudy
    judged: Sequence[Judged]
    runs: Sequence[ReportedRun]

    @property
    def stand_ins(self) -> list[str]:
        """The stand-ins for the paper's data in its runs; see `Study.stand_in`."""
        return list(dict.fromkeys(text for run in self.runs for text in run.facts.stand_ins))

    def of_kind(self, kind: Kind) -> list[Judged]:
        """Return its claims of a kind."""
        return [claim for claim in self.judged if claim.claim.kind == kind]


COUNTED = (
    "Counts use a stricter level, at which all verdicts of one study and kind are right together "
    "95 times in 100. A claim that holds by itself at 95 % may be inconclusive there."
)


@dataclass(frozen=True)
class ReportedPaper:
    """A paper in a report; None stands for studies without a paper."""

    paper: Paper | None
    studies: Sequence[ReportedStudy]

    @property
    def key(self) -> str:
        """Its name on the command line, and in addresses within the page."""
        return self.paper.key if self.paper else "own"

    @property
    def cited(self) -> str:
        """The citation of the paper."""
        return str(self.paper) if self.paper else "Other studies"

    @property
    def judged(self) -> Sequence[Judged]:
        """Every claim of its studies."""
        return [claim for study in self.studies for claim in study.judged]

    @cached_property
    def counts(self) -> Mapping[Kind, Mapping[Verdict, int]]:
        """The number of its claims of each kind with each verdict, at the level of all together.

        Kinds without a claim are left out.
        """
        counts = Counter((claim.claim.kind, claim.headline) for claim in self.judged)
        kinds = [kind for kind in KINDS if any(kind == counted for counted, _ in counts)]
        return {kind: {verdict: counts[kind, verdict] for verdict in VERDICTS} for kind in kinds}

    def restricted(self, judged: Sequence[Judged]) -> ReportedPaper:
        """Return the paper with those of its claims that are among these."""
        studies = [
            replace(study, judged=[claim for claim in study.judged if claim in judged])
            for study in self.studies
        ]
        return replace(self, studies=studies)


class ShownFinding(NamedTuple):
    """A finding on a paper with the claims that it rests on.

    Attributes:
        parts: its texts, with claims in between whose numbers stand there.
        others: further claims that it rests on.
    """

    parts: Sequence[str | Judged]
    others: Sequence[Judged]

    @property
    def is_ours(self) -> bool:
        """Whether none of its claims is a sentence of the paper."""
        judged = [part for part in (*self.parts, *self.others) if isinstance(part, Judged)]
        return all(claim.claim.kind not in ("paper", "sharp") for claim in judged)


def shown_findings(paper: ReportedPaper) -> list[ShownFinding]:
    """Return the findings on a paper whose verdicts are as they say, none after selection."""
    judged = {claim.claim.name: claim for claim in paper.judged}
    shown = []
    for finding in paper.paper.findings if paper.paper else ():
        verdicts = {name: judged[name].headline for name in finding.verdicts if name in judged}
        selected = any(judged[name].decided_after_selection for name in verdicts)
        if verdicts == finding.verdicts and not selected:
            texts = re.split(r"\{([\w.-]+)\}", finding.text)
            parts = [judged[text] if index % 2 else text for index, text in enumerate(texts)]
            others = [judged[name] for name in verdicts if name not in texts[1::2]]
            shown.append(ShownFinding(parts, others))
    return shown


def count_kinds(papers: Sequence[ReportedPaper]) -> dict[Kind, dict[Verdict, int]]:
    """Return the number of claims of each kind with each verdict, over all papers."""
    totals = dict[Kind, dict[Verdict, int]]()
    for _, kind, counts in count_rows(papers):
        total = totals.setdefault(kind, dict.fromkeys(VERDICTS, 0))
        for verdict, count in counts.items():
            total[verdict] += count
    return {kind: totals[kind] for kind in KINDS if kind in totals}


def count_rows(papers: Sequence[ReportedPaper]) -> list[tuple[str, Kind, Mapping[Verdict, int]]]:
    """Return the rows of a table of counts: citation, kind, and the claims with each verdict."""
    return [
        (paper.cited, kind, counts) for paper in papers for kind, counts in paper.counts.items()
    ]


@dataclass(frozen=True)
class Repetition:
    """The repetition of a claim's measurement.

    Attributes:
        minutes: the measured time on two cores; None where it is not known.
        needs: its requirements in words; empty without any.
    """

    command: str
    minutes: float | None
    needs: str

    @property
    def time(self) -> str:
        """The time in words; empty where it is not known."""
        return f"about {duration(60 * self.minutes).removesuffix(' 00 s')}" if self.minutes else ""


def contents(
    judged: Sequence[Judged], runs: Sequence[LoadedRun], conditions: Sequence[str]
) -> list[ReportedPaper]:
    """Return the contents of a report: every claim under its study and paper, and every run."""
    reported = _report_runs(judged, runs, conditions)
    studies = {run.study.name: run.study for run in runs}
    studies |= {
        name: find_study(name) for name in {claim.study for claim in judged} - studies.keys()
    }
    papers: dict[str, list[ReportedStudy]] = {}
    papers_by_key: dict[str, Paper | None] = {}
    for name in sorted(studies):
        study = studies[name]
        study_runs = [run for run in reported if run.study.name == name]
        key = study.paper.key if study.paper else ""
        papers_by_key[key] = study.paper
        claims = [claim for claim in judged if claim.study == name]
        papers.setdefault(key, []).append(ReportedStudy(study, claims, study_runs))
    ordered = sorted(papers, key=lambda key: not key)  # by their studies; those without one last
    return [ReportedPaper(papers_by_key[key], papers[key]) for key in ordered]


def _report_runs(
    judged: Sequence[Judged], runs: Sequence[LoadedRun], conditions: Sequence[str]
) -> list[ReportedRun]:
    deciding = {claim.directory for claim in judged}
    figures = reproduced_figures()
    names = short_names(sorted(run.directory.path for run in runs))
    reported = []
    for run in runs:
        path = run.directory.path
        data = chosen_data(load_figure_data(run.directory, run.every_cell), conditions)
        facts = run_facts(data, read_manifest(path))
        figure = figures.get(path.resolve().name, "")
        reported.append(ReportedRun(names[path], run, facts, figure, path in deciding))
    return sorted(reported, key=lambda run: run_rank(run.figure, run.decides, run.path))


def repetition(claim: Claim) -> Repetition | None:
    """Return the repetition of a claim by its preset; None without a preset."""
    preset = find_preset(claim.preset) if claim.preset else None
    if preset is None:
        return None
    profile = preset.profile(claim.profile)
    options = "" if claim.profile == "quick" else f" --profile {claim.profile}"
    return Repetition(f"overfit reproduce {preset.name}{options}", profile.minutes, profile.needs)
