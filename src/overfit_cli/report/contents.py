"""Contents of a report: papers, their studies, claims with verdicts, and the runs behind them.

Runs stand in the order of the paper's figures, and then as claims need them. A run has facts:
cells, settings, versions and commands, in words for a reader and as data for programs.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from overfit_cli.core.cell import Paper
from overfit_cli.core.claim import VERDICTS, Claim, Interval, Measurement, Verdict
from overfit_cli.core.parameters import describe
from overfit_cli.core.registry import find_study
from overfit_cli.core.study import AnyStudy, FigureData
from overfit_cli.core.text import as_numbered, duration, plural, visible
from overfit_cli.figures.caption import cells_in_words, fixed_parameters, settings_in_words
from overfit_cli.figures.labels import parameter_values, typeset
from overfit_cli.report.judge import Judged, LoadedRun
from overfit_cli.stats.intervals import LEVEL, level_of_each
from overfit_cli.sweeps.load import chosen_data, load_figure_data
from overfit_cli.sweeps.manifest import Manifest, Run, read_manifest
from overfit_cli.sweeps.presets import PROFILES, all_presets, find_preset
from overfit_cli.sweeps.store import RunDirectory


def sentences(judged: Sequence[Judged]) -> list[str]:
    """Return what was measured for each claim, in words, and what it takes to hold."""
    return [
        f"{one.name}: {in_words(one.measurement)} Holds where {one.claim.holds_where}."
        for one in judged
    ]


def families(judged: Sequence[Judged]) -> list[str]:
    """Return a sentence on each study's claims together: their level, and which verdicts change."""
    found = []
    for study in dict.fromkeys(one.study for one in judged if one.family):
        own = [one for one in judged if one.study == study and one.family]
        changed = [
            f"{one.name} is {one.together}"
            for one in own
            if one.together != one.measurement.verdict
        ]
        but = f" but {', '.join(changed)}" if changed else ""
        found.append(
            f"{study}: seeds decide {plural(own[0].family, 'verdict')}, at {LEVEL:.0%} each. At "
            f"{LEVEL:.0%} for all together (Holm, from {level_of_each(own[0].family):.2%} each) "
            f"every verdict stays{but}."
        )
    return found


def number_in_words(measurement: Measurement) -> str:
    """Return the measured value with its interval: `2.03 [1.95, 2.11] 95 % t over 10 seeds`."""
    found = measurement.interval
    kind = found.kind if found is not None and measurement.value is not None else ""
    return f"{with_interval(measurement.value, found)} {kind}".strip()


def with_interval(value: float | None, interval: Interval | None) -> str:
    """Return a number with its interval: `2.03 [1.95, 2.11]`; a dash where there is none."""
    if value is None:
        return "–"
    return f"{value:.4g} [{interval.low:.4g}, {interval.high:.4g}]" if interval else f"{value:.4g}"


def details_in_words(details: Mapping[str, float]) -> list[str]:
    """Return further numbers, a line each; `…, from` and `…, to` are the interval of `…`."""
    lines = []
    for name, value in details.items():
        of, _, end = name.rpartition(", ")
        if end in ("from", "to") and of in details:
            continue
        ends = [details[f"{name}, {end}"] for end in ("from", "to") if f"{name}, {end}" in details]
        interval = Interval(ends[0], ends[1], "") if len(ends) == 2 else None
        lines.append(f"{name} {with_interval(value, interval)}")
    return lines


def in_words(measurement: Measurement) -> str:
    """Return what must be known of a number, and further numbers: `N·SNR² …; curves 640`."""
    details = "; ".join(f"{name} {number:.4g}" for name, number in measurement.details.items())
    if len(details.split(" ", 1)[0]) > 1:  # d and D are different symbols
        details = details[:1].upper() + details[1:]
    return f"{measurement.note} {details}{'.' if details else ''}".strip()


def reproduced() -> dict[str, str]:
    """Return the figure of its paper that a run directory reproduces, by the directory's name.

    Where several presets are run into one directory, it is the paper's first.
    """
    found = [
        (preset.run_name(profile), preset.content.reproduces)
        for preset in all_presets()
        for profile in PROFILES
        if preset.content.reproduces
    ]
    return dict(sorted(found, key=lambda one: as_numbered(one[1]), reverse=True))


def place(figure: str, decides: bool, path: Path) -> tuple[object, ...]:
    """Return what sorts the runs of a study as a report shows them.

    Those that reproduce a figure of the paper come first, then those that decide a claim.

    Args:
        figure: the figure that it reproduces; empty for none.
        decides: whether a claim was measured on it.
        path: where it lies.
    """
    rank = 0 if figure else 1 if decides else 2
    return (rank, as_numbered(figure), path.resolve().name, str(path))


def short_names(paths: Iterable[Path]) -> dict[Path, str]:
    """Return a name for each run: the last part of its path, numbered where several share it."""
    names: dict[Path, str] = {}
    times: dict[str, int] = {}
    for path in paths:
        name = path.resolve().name
        times[name] = times.get(name, 0) + 1
        names[path] = name if times[name] == 1 else f"{name} ({times[name]})"
    return names


_PACKAGES = ("overfit-cli", "torch", "numpy")
_MOST_REASONS = 3


@dataclass(frozen=True)
class RunFacts:
    """What a reader must know of a run, in words, and as data for programs.

    Attributes:
        cells: how many are done and failed, their seeds and axes.
        settings: the parameters that have one value.
        failures: why cells failed; empty where none did.
        made: when, with which versions, on what.
        commands: those that made the cells; empty where they were made from Python.
        done: how many cells are done.
        reasons: how many cells failed, by reason.
        seeds: those of its cells.
        axes: the parameters that take several values, with them.
        parameters: those that have one value, with it.
        sweeps: what was run into the directory, the first one first.
    """

    cells: str
    settings: str
    failures: str
    made: str
    commands: Sequence[str]
    done: int
    reasons: Mapping[str, int]
    seeds: Sequence[int]
    axes: Mapping[str, Sequence[Any]]
    parameters: Mapping[str, Any]
    sweeps: Sequence[Run]


def facts_of(data: FigureData, manifest: Manifest | None) -> RunFacts:
    """Return what is known of a run, from its cells and its manifest."""
    sweeps = manifest.runs if manifest else ()
    typed = dict.fromkeys(shlex.join(run.command) for run in sweeps if run.command)
    failed = data.cells.loc[data.cells["status"] == "failed", "reason"].astype(str)
    reasons = dict(Counter(failed).most_common())
    described = describe(data.study.parameters)
    return RunFacts(
        cells=typeset(cells_in_words(data)),
        settings=typeset(settings_in_words(data)),
        failures=_failures(reasons),
        made=_made(sweeps),
        commands=list(typed),
        done=int((data.cells["status"] == "done").sum()),
        reasons=reasons,
        seeds=sorted(data.cells["seed"].unique().tolist()),
        axes={
            name: list(values)
            for name, values in parameter_values(data).items()
            if len(values) > 1 and name in described
        },
        parameters=fixed_parameters(data),
        sweeps=sweeps,
    )


def _failures(reasons: Mapping[str, int]) -> str:
    if not reasons:
        return ""
    told = [f"{count} {visible(why)}" for why, count in list(reasons.items())[:_MOST_REASONS]]
    others = len(reasons) - len(told)
    return f"Failed cells: {', '.join(told)}{f' and {others} other reasons' if others else ''}."


def _made(sweeps: Sequence[Run]) -> str:
    """When a run was made, and with what: the last one where there were several."""
    if not sweeps:
        return ""
    last = sweeps[-1]
    versions = [
        f"{name} {version}" for name in _PACKAGES if (version := last.packages.get(name, ""))
    ]
    commit = [f"commit {last.git_commit[:10]}"] if last.git_commit else []
    what = [*versions, *commit, f"Python {last.python}" if last.python else "", last.platform]
    when = f"{last.started[:10]}: " if last.started else ""
    return f"{when}{', '.join(visible(one) for one in what if one)}."


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
