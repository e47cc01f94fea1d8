"""The commands `report` and `reproduce`.

A report as commands give it: verdicts are said, files written, and expectations held to.

The command `overfit report`: every measured claim beside the paper's.

The command `overfit reproduce`: the sweeps behind papers' figures, and the report on them.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from overfit_cli.cli import completion
from overfit_cli.cli.options import (
    Address,
    BackendName,
    DataFolder,
    DeviceName,
    Expect,
    Jobs,
    Scheduler,
    Strict,
    Where,
    read_executor,
    read_one_of,
    read_path,
    use_data,
)
from overfit_cli.core.console import console
from overfit_cli.core.files import make_folder
from overfit_cli.core.text import MissingError, UserError, about, plural

if TYPE_CHECKING:
    from rich.console import Console

    from overfit_cli.report.contents import ReportedPaper
    from overfit_cli.report.judge import Comparison, Judged, LoadedRun
    from overfit_cli.sweeps.executors import Executor
    from overfit_cli.sweeps.presets import Preset, Reproducible


MOST_LISTED = 20
"""More claims than these, measured in `results/`, are counted by their verdicts."""


@dataclass(frozen=True)
class Asked:
    """What a report is asked to be about.

    Attributes:
        sources: run directories, on each of which claims are judged; empty for all in `results/`,
            of which one decides each claim.
        where: the conditions that choose cells.
        presets: those whose claims are asked for; None for all. The page has every claim.
        directories: where these presets were run; claims without a preset are asked for there.
        profile: which run of a claim's preset decides, if there are several.
    """

    sources: Sequence[Path] = ()
    where: Sequence[str] = ()
    presets: Collection[str] | None = None
    directories: Collection[Path] = ()
    profile: str = "quick"

    def of(self, judged: Sequence[Judged]) -> list[Judged] | None:
        """Return the claims that are asked for; None for all."""
        if self.presets is not None:
            return [one for one in judged if self._includes(one, self.presets)]
        if self.sources:
            own = _presets_of(self.sources)
            return [one for one in judged if one.is_measured or one.claim.preset in own]
        return None

    def _includes(self, one: Judged, presets: Collection[str]) -> bool:
        preset = one.claim.preset
        return preset in presets if preset else one.directory in self.directories


@dataclass(frozen=True)
class Held:
    """What a report is held to, and where it goes.

    Attributes:
        folder: where to write.
        flag: what names the folder, for messages.
        expect: a file of expected verdicts; None for none.
        strict: whether a claim that fails, or an unexpected verdict, gives the code 1; so does a
            report in which nothing is judged.
    """

    folder: Path
    flag: str
    expect: Path | None
    strict: bool


def write_and_say(output: Console, asked: Asked, held: Held) -> int:
    """Judge claims, say the verdicts, write the report, and return the exit code.

    Raises:
        UserError: if the runs can't be judged, or the report can't be written.
    """
    from overfit_cli.core.files import RESULTS
    from overfit_cli.report.contents import contents
    from overfit_cli.report.judge import compare, judge_runs, load_runs, read_expected
    from overfit_cli.report.writers import write_report

    if held.folder.exists():  # what is wrong with it is said before minutes of work
        make_folder(held.folder, held.flag)
    expected = None if held.expect is None else read_expected(held.expect)
    runs = load_runs(asked.sources, RESULTS, asked.where)
    judged = judge_runs(runs, every=bool(asked.sources), profile=asked.profile)
    wanted = asked.of(judged)
    about = judged if wanted is None else wanted
    papers = contents(judged, runs, asked.where)
    _say_verdicts(output, asked, papers, about)
    compared = None if expected is None else compare(judged, expected, wanted)
    unexpected = None if compared is None else compared.unexpected
    if len(runs) > 1 and not asked.sources:  # with many figures it takes a minute
        output.print(f"Drawing the page of all {len(runs)} runs in {RESULTS}/.")
    for path in write_report(papers, held.folder, asked.where, unexpected, flag=held.flag):
        output.print(f"Written: {path}")
    return _say_outcome(output, held, runs, about, compared)


def _say_outcome(
    output: Console,
    held: Held,
    runs: Sequence[LoadedRun],
    about: Sequence[Judged],
    compared: Comparison | None,
) -> int:
    """Say what fails, what is unexpected and what isn't judged, and return the exit code."""
    failed = [one.name for one in about if one.measurement.verdict == "fails"]
    if failed:
        output.print(f"Claims that fail: {len(failed)} of {len(about)}: {', '.join(failed)}.")
    for sentence in () if compared is None else _comparison_in_words(compared):
        output.print(sentence)
    nothing = not any(one.is_measured for one in about)
    for sentence in _nothing_in_words(runs, nothing=nothing):
        output.print(sentence)
    wrong = bool(failed) if compared is None else not compared.is_fulfilled
    return int(held.strict and (wrong or nothing))


def _say_verdicts(
    output: Console, asked: Asked, papers: Sequence[ReportedPaper], about: Sequence[Judged]
) -> None:
    """Say the verdicts: of named runs in full, else in a table; many are counted."""
    from overfit_cli.cli.list import count_table, verdict_table
    from overfit_cli.report.contents import families, sentences
    from overfit_cli.report.judge import worth_showing

    whole = not asked.sources and asked.presets is None
    if whole and sum(one.is_measured for one in about) > MOST_LISTED:
        output.print(count_table(papers))
        return
    if asked.sources:
        about = [one for paper in papers for one in paper.judged]
    shown = worth_showing(about)
    if shown:
        output.print(verdict_table(shown))
    for sentence in (*sentences(shown), *families(shown)) if asked.sources else ():
        output.print(sentence, soft_wrap=False)
    if 0 < len(shown) < len(about):
        left = len(about) - len(shown)
        need = "needs" if left == 1 else "need"
        output.print(
            f"{plural(left, 'claim')} {need} other cells than these; report.md says which."
        )


def _presets_of(sources: Sequence[Path]) -> frozenset[str]:
    """The presets that are run into directories of these names."""
    from overfit_cli.sweeps.presets import presets_run_into

    names = [path.resolve().name for path in sources]
    return frozenset(preset.name for name in names for preset in presets_run_into(name))


def _comparison_in_words(compared: Comparison) -> Iterator[str]:
    """What differs from the expected verdicts, a line each, and how much was compared."""
    for claim, what in compared.unexpected.items():
        yield f"Unexpected: {claim}: {what}."
    for claim, meant in compared.unknown.items():
        hint = f"; did you mean {meant}?" if meant else "."
        yield f"Expected, but there is no such claim: {claim}{hint}"
    left = f"; {plural(compared.left_out, 'claim')} of other presets not compared"
    yield (
        f"{compared.compared - len(compared.unexpected)} of {compared.compared} verdicts are as "
        f"expected{left if compared.left_out else ''}."
    )


def _nothing_in_words(runs: Sequence[LoadedRun], *, nothing: bool) -> Iterator[str]:
    """Which runs have nothing to judge by, and whether no claim was judged."""
    from overfit_cli.core.files import RESULTS

    for run in runs:
        if (run.cells["status"] == "failed").all():
            cells = f"all {len(run.cells)} cells" if len(run.cells) > 1 else "its one cell"
            yield f"{run.directory.path}: {cells} failed, so there are no numbers to judge by."
    if nothing:
        none = f"no run directory in {RESULTS}/ can be used; `overfit reproduce` makes them."
        other = "these cells bear on none; `overfit list claims STUDY` names presets that do."
        yield f"No claim was judged: {other if runs else none}"


def report(
    sources: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="Run directory; may be repeated, and each is judged by itself.  [default: for "
            "each claim the run of its preset in results/, quick before paper, else the first by "
            "name with cells for it]",
            autocompletion=completion.run_directories,
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Folder for index.html, report.md, claims.json, junit.xml and verdicts.toml.  "
            "[default: results/report]",
        ),
    ] = None,
    where: Where = None,
    strict: Strict = False,
    expect: Expect = None,
    data_folder: DataFolder = None,
) -> int:
    """Judge the claims of the papers on your runs, and write a page about them."""
    from overfit_cli.core.files import RESULTS

    use_data(data_folder)
    named = [path for source in sources or [] if (path := read_path("--from", source))]
    folder = read_path("--out", out) or RESULTS / "report"
    held = Held(folder, "--out", read_path("--expect", expect), strict)
    return write_and_say(console(), Asked(named, where or []), held)


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PAPER|FIGURE",
            help="Papers (jiang2024), figures (jiang2024/fig1) or presets.  [default: all]",
            show_default=False,
            autocompletion=completion.reproducible,
        ),
    ] = None,
    profile: Annotated[
        str,
        typer.Option(
            metavar="quick|paper",
            help="Size of the presets.",
            autocompletion=completion.one_of("quick", "paper"),
        ),
    ] = "quick",
    jobs: Jobs = "-1",
    backend: BackendName = "loky",
    scheduler: Scheduler = None,
    address: Address = None,
    device: DeviceName = "auto",
    data: DataFolder = None,
    strict: Strict = False,
    expect: Expect = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would run, with the time it takes.")
    ] = False,
) -> int:
    """Run the sweeps behind the papers' figures, draw them, and report on the claims.

    Finished cells are reused: the same command continues where it stopped. The verdicts of what
    is named are said; the page results/report has those of every run in results/.
    """
    from overfit_cli.core.files import RESULTS
    from overfit_cli.report.judge import read_expected
    from overfit_cli.sweeps.presets import PROFILES, reproducible

    use_data(data)
    read_one_of("--profile", profile, PROFILES)
    wanted = reproducible(names or [])
    expected = read_path("--expect", expect)
    if expected is not None:
        read_expected(expected)  # a name that is wrong is said before hours of training
    with read_executor(backend, jobs, device, scheduler, address) as executor:
        how = _How(console(), profile, executor)
        if dry_run:
            _outline(how, wanted)
            return 0
        done = _run_all(how, wanted)
    if not done.directories:
        raise UserError("Nothing was run, so there is nothing to report.", exit_code=1)
    presets = frozenset(one.preset.name for one in wanted) if names else None
    asked = Asked(presets=presets, directories=done.directories, profile=profile)
    code = write_and_say(
        how.output, asked, Held(RESULTS / "report", "the report", expected, strict)
    )
    for sentence in done.left_out:
        how.output.print(sentence)
    return code or int(done.failed)


@dataclass(frozen=True)
class _How:
    """How sweeps are run."""

    output: Console
    profile: str
    executor: Executor


@dataclass
class _Done:
    """What was run, what was left out and why, and whether anything failed."""

    directories: list[Path] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    failed: bool = False


def _outline(how: _How, wanted: Sequence[Reproducible]) -> None:
    """Say what would run, and how long it takes on this many jobs."""
    from overfit_cli.sweeps.progress import jobs_in_words

    remaining = _remaining(how, wanted, how.executor.jobs_asked)
    for one in wanted:
        profile, left = one.preset.profile(how.profile), remaining.of(one.preset)
        time = "time not known" if left is None else about(left) if left else "done"
        needs = f"; needs {profile.needs}" if profile.needs else ""
        how.output.print(f"{one.address}: {one.preset.name}, {time}{needs}")
    size = f"{plural(len(wanted), 'preset')} on {jobs_in_words(how.executor)}"
    how.output.print(f"{size}: {remaining.in_words()}.")


def _remaining(how: _How, wanted: Sequence[Reproducible], jobs: int) -> Remaining:

    from overfit_cli.core.files import RESULTS

    return Remaining([one.preset for one in wanted], how.profile, jobs, RESULTS)


def _run_all(how: _How, wanted: Sequence[Reproducible]) -> _Done:
    """Run and draw one preset after the other; what can't be run is left out and said.

    Raises:
        UserError: if a preset that the user named can't be run, or nothing more can be written.
        KeyboardInterrupt: when interrupted; what is finished is kept.
    """
    from overfit_cli.core.files import RESULTS

    done, remaining = _Done(), _remaining(how, wanted, how.executor.jobs)
    for number, one in enumerate(wanted, start=1):
        place = f"{number} of {len(wanted)}"
        how.output.print(f"[{place}] {one.address}: {remaining.in_words()}.")
        directory = RESULTS / one.preset.run_name(how.profile)
        with remaining.running(one.preset, place):
            try:
                done.failed |= _run(how, one, directory, remaining)
                done.directories.append(directory)
            except UserError as error:
                if one.asked or error.exit_code != 2:
                    raise
                _leave_out(how, one, error, done)
            after = wanted[number:]
            shared = any(other.preset.run_name(how.profile) == directory.name for other in after)
            if directory in done.directories and not shared:
                done.failed |= not _draw(how.output, _figures(wanted, one), directory)
    return done


def _leave_out(how: _How, one: Reproducible, error: UserError, done: _Done) -> None:
    """Say why a preset isn't run: what it needs isn't here, or else something is wrong."""
    needs = one.preset.profile(how.profile).needs
    missing = bool(needs) and isinstance(error, MissingError)
    needed = f" It needs {needs}." if missing else ""
    done.left_out.append(f"Left out: {one.address} ({one.preset.name}): {error}{needed}")
    how.output.print(done.left_out[-1])
    done.failed |= not missing


def _figures(wanted: Sequence[Reproducible], one: Reproducible) -> list[str]:
    """The figures of a preset, and of those that are run into its directory."""
    shared = [other.preset.content for other in wanted if _directory(other) == _directory(one)]
    return list(dict.fromkeys(name for content in shared for name in content.figures))


def _directory(one: Reproducible) -> str:
    return one.preset.content.directory or one.preset.name


def _run(how: _How, one: Reproducible, path: Path, remaining: Remaining) -> bool:
    """Run a preset into its directory, and return whether a cell failed."""
    from overfit_cli.cli.sweep import grid_of
    from overfit_cli.sweeps.presets import find_subject
    from overfit_cli.sweeps.runner import Runner
    from overfit_cli.sweeps.store import RunDirectory

    subject = find_subject(one.preset.name, how.profile)
    of_profile = [] if how.profile == "quick" else ["--profile", how.profile]
    runner = Runner(
        output=how.output,
        directory=RunDirectory(path, "run directory"),
        executor=how.executor,
        trajectories=subject.trajectories,
        of_all=remaining.after,
        command=["overfit", "sweep", one.preset.name, *of_profile],
    )
    _, summary = runner.sweep(grid_of(subject))
    return bool(summary.failed)


def _draw(output: Console, names: Sequence[str], directory: Path) -> bool:
    """Draw figures into a run directory; say which can't be, and return whether all could."""
    from overfit_cli.core.figure import FigureOptions
    from overfit_cli.figures.draw import Request, draw_figure
    from overfit_cli.figures.picture import save_with_caption
    from overfit_cli.sweeps.store import RunDirectory

    drawn = True
    for name in names:
        path = directory / "figures" / f"{name}.png"
        command = f"overfit plot {name} --from {directory}"
        source = [RunDirectory(directory, "run directory")]
        request = Request(name, source, FigureOptions(), command=command, out=path)
        try:
            save_with_caption(draw_figure(request), path)
        except UserError as error:
            drawn = False
            output.print(f"Not drawn: {path}: {error}")
        else:
            output.print(f"Drawn: {path}")
    return drawn


MEASURED_ON = 2
"""The jobs on which the minutes of presets were measured."""


_PRIOR = 300.0
"""Seconds of work at the measured speed that stand beside what this machine has done: the first
presets are short, and their time is that of workers that start."""


class Remaining:
    """The time that presets still take, one after the other.

    Args:
        presets: what is run, in this order.
        profile: how much of each.
        jobs: cells trained at a time.
        results: where the run directories lie.
    """

    def __init__(self, presets: Sequence[Preset], profile: str, jobs: int, results: Path) -> None:
        self._left: dict[str, float | None] = {}
        for preset in presets:
            minutes = preset.profile(profile).minutes
            missing = _missing(preset, profile, results)
            known = None if minutes is None else 60 * minutes * MEASURED_ON / jobs
            self._left[preset.name] = 0.0 if missing == 0 else known and known * missing
        self._current = self._place = ""
        self._share = 0.0
        self._expected = self._took = 0.0
        self._began = 0.0

    def of(self, preset: Preset) -> float | None:
        """Return how many seconds a preset still takes; None where that isn't known."""
        return self._left[preset.name]

    @contextmanager
    def running(self, preset: Preset, place: str) -> Iterator[None]:
        """Take the time of a preset that runs inside; `place` says which it is of all."""
        self._current, self._place, self._share = preset.name, place, 0.0
        self._began = time.monotonic()
        yield
        self._took += time.monotonic() - self._began
        self._expected += self._left[preset.name] or 0.0
        self._left[preset.name], self._current = 0.0, ""

    def after(self, share: float) -> str:
        """Return what is left in words, after this share of the preset that runs."""
        self._share = share
        return f"{self._place}: {self.in_words()}"

    def in_words(self) -> str:
        """Return about how long all of them still take, or of how many that isn't known."""
        current = self._left.get(self._current) or 0.0
        known = sum(left for left in self._left.values() if left is not None)
        known -= self._share * current
        expected = self._expected + self._share * current
        now = time.monotonic() - self._began if self._current else 0.0
        known *= (self._took + now + _PRIOR) / (expected + _PRIOR)
        unknown = sum(left is None for left in self._left.values())
        if not unknown:
            return f"{about(known)} for all"
        others = f", {about(known)} for the others" if known else ""
        return f"time not known for {unknown} of {len(self._left)}{others}"


def _missing(preset: Preset, profile: str, results: Path) -> float:
    """The share of a preset's cells that its run directory lacks."""
    from overfit_cli.cli.sweep import grid_of
    from overfit_cli.sweeps.plan import make_plan
    from overfit_cli.sweeps.presets import find_subject
    from overfit_cli.sweeps.store import RunDirectory

    directory = RunDirectory(results / preset.run_name(profile), "run directory")
    if not directory.path.exists():
        return 1.0
    grid, steps = grid_of(find_subject(preset.name, profile)), preset.content.trajectories
    plan = make_plan(grid, directory, "cpu", trajectories=steps, outlined=True)
    return plan.to_run / max(1, len(plan.cells))
