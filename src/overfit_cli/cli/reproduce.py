"""The command `overfit reproduce`: the sweeps behind papers' figures, and the report on them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
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
    Strict,
    error_as_option,
    set_data_option,
)
from overfit_cli.cli.report import Asked, write_and_say
from overfit_cli.core.console import console
from overfit_cli.core.errors import MissingError, UserError
from overfit_cli.core.text import duration_estimate, plural
from overfit_cli.core.values import ProfileName, number_of_jobs

if TYPE_CHECKING:
    from rich.console import Console

    from overfit_cli.sweeps.executors import Executor
    from overfit_cli.sweeps.presets import Preset, Reproducible
    from overfit_cli.sweeps.session import Session
    from overfit_cli.sweeps.subject import Subject


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
        ProfileName, typer.Option(metavar="quick|paper", help="Size of the presets.")
    ] = "quick",
    jobs: Jobs = -1,
    backend: BackendName = "loky",
    address: Address = None,
    device: DeviceName = "auto",
    data: DataFolder = None,
    strict: Strict = False,
    expect: Expect = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would run and for how long; run nothing.")
    ] = False,
) -> int:
    """Run the sweeps behind the papers' figures, draw them, and report on the claims.

    Finished cells are reused: the same command continues where it stopped. The terminal
    shows the verdicts on what you name, and the page in results/report those on every run in
    results/.
    """
    from overfit_cli.core.files import results_folder
    from overfit_cli.report.expected import read_expected
    from overfit_cli.sweeps.clusters import executor_of
    from overfit_cli.sweeps.presets import reproducible

    set_data_option(data)
    wanted = reproducible(names or [])
    if expect is not None:
        read_expected(expect)  # a name that is wrong is said before hours of training
    with executor_of(backend, number_of_jobs(jobs), device, address) as executor:
        reproduction = Reproduction(console(), wanted, profile, executor)
        if dry_run:
            reproduction.outline()
            return 0
        reproduction.run()
    if not reproduction.directories:
        raise UserError("Nothing was run, so there is nothing to report.", exit_code=1)
    presets = frozenset(item.preset.name for item in wanted) if names else None
    asked = Asked(presets=presets, directories=reproduction.directories, profile=profile)
    folder = results_folder() / "report"
    code = write_and_say(console(), asked, folder, "the report", expect=expect, strict=strict)
    for sentence in reproduction.left_out:
        console().print(sentence)
    return code or int(reproduction.failed)


@dataclass
class Reproduction:
    """Presets that are run and drawn, one after the other.

    Attributes:
        left_out: a sentence for each preset that could not be run.
        failed: whether a cell failed, a figure could not be drawn, or a preset could not be run.
    """

    output: Console
    wanted: Sequence[Reproducible]
    profile: str
    executor: Executor
    directories: list[Path] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    failed: bool = False

    def outline(self) -> None:
        """Say what would run, and how long it takes on this many jobs."""
        from overfit_cli.sweeps.progress import jobs_in_words

        time_left = self._measure_time(self.executor.requested_jobs)
        for item in self.wanted:
            if item.asked and time_left.seconds(item.preset) != 0.0:
                time_left.expect(item.preset, self._estimate(item))
            profile, left = item.preset.profile(self.profile), time_left.seconds(item.preset)
            time = "time not known" if left is None else duration_estimate(left) if left else "done"
            needs = f"; needs {profile.needs}" if profile.needs else ""
            self.output.print(f"{item.address}: {item.preset.name}, {time}{needs}")
        size = f"{plural(len(self.wanted), 'preset')} on {jobs_in_words(self.executor)}"
        self.output.print(f"{size}: {time_left.sentence()}.")

    def _estimate(self, item: Reproducible) -> float | None:
        """The seconds that a preset should take here, from the probe of `overfit sweep --dry-run`.

        None where none ended in time, or where something that it needs is missing.
        """
        from overfit_cli.core.files import results_folder

        session, subject = self._session(
            item, results_folder() / item.preset.run_name(self.profile)
        )
        with suppress(UserError):
            plan = session.plan(subject.grid())
            session.prepare(plan)
            return session.estimate(plan).seconds if plan.batches else 0.0
        return None

    def run(self) -> None:
        """Run and draw one preset after the other; what can't be run is left out and said."""
        from overfit_cli.core.files import results_folder

        time_left = self._measure_time(self.executor.jobs)
        for number, item in enumerate(self.wanted, start=1):
            position = f"{number} of {len(self.wanted)}"
            self.output.print(f"[{position}] {item.address}: {time_left.sentence()}.")
            directory = results_folder() / item.preset.run_name(self.profile)
            with time_left.running(item.preset, position):
                try:
                    self.failed |= self._sweep(item, directory, time_left)
                    self.directories.append(directory)
                except UserError as error:
                    if item.asked or error.exit_code != 2:
                        raise
                    self._leave_out(item, error)
                later = [other.preset.run_name(self.profile) for other in self.wanted[number:]]
                if directory in self.directories and directory.name not in later:
                    self.failed |= not _draw(self.output, self._figures(item), directory)

    def _measure_time(self, jobs: int) -> TimeLeft:
        from overfit_cli.core.files import results_folder

        return TimeLeft([item.preset for item in self.wanted], self.profile, jobs, results_folder())

    def _leave_out(self, item: Reproducible, error: UserError) -> None:
        """Say why a preset isn't run: data or a package that it needs is missing, or an error."""
        needs = item.preset.profile(self.profile).needs
        missing = bool(needs) and isinstance(error, MissingError)
        needed = f" It needs {needs}." if missing else ""
        reason = error_as_option(error)
        self.left_out.append(f"Left out: {item.address} ({item.preset.name}): {reason}{needed}")
        self.output.print(self.left_out[-1])
        self.failed |= not missing

    def _figures(self, item: Reproducible) -> list[str]:
        shared = [other for other in self.wanted if _directory(other) == _directory(item)]
        names = [name for other in shared for name in other.preset.content.figures]
        return list(dict.fromkeys(names))

    def _sweep(self, item: Reproducible, path: Path, time_left: TimeLeft) -> bool:
        session, subject = self._session(item, path, time_left)
        _, summary = session.sweep(subject.grid())
        return bool(summary.failed or summary.earlier)

    def _session(
        self, item: Reproducible, path: Path, time_left: TimeLeft | None = None
    ) -> tuple[Session, Subject]:
        from overfit_cli.sweeps.session import Session
        from overfit_cli.sweeps.store import RunDirectory
        from overfit_cli.sweeps.subject import find_subject

        subject = find_subject(item.preset.name, self.profile)
        profile = [] if self.profile == "quick" else ["--profile", self.profile]
        session = Session(
            output=self.output,
            directory=RunDirectory(path, "run directory"),
            executor=self.executor,
            trajectories=subject.trajectories,
            time_left=None if time_left is None else time_left.report,
            cell_seconds=subject.cell_seconds,
            command=["overfit", "sweep", item.preset.name, *profile],
            sentences=subject.sentences,
            preset=item.preset.path,
        )
        return session, subject


def _directory(item: Reproducible) -> str:
    return item.preset.content.directory or item.preset.name


def _draw(output: Console, names: Sequence[str], directory: Path) -> bool:
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
            output.print(f"Not drawn: {path}: {error_as_option(error)}")
        else:
            output.print(f"Drawn: {path}")
    return drawn


_PRIOR = 300.0
"""Seconds of work at the measured speed that are added to what this machine has done: the first
presets are short, and most of their time is the start of workers."""


class TimeLeft:
    """The time that presets still take, one after the other.

    The cost of a preset is the seconds that it should take; their speed corrects them.
    """

    def __init__(self, presets: Sequence[Preset], profile: str, jobs: int, results: Path) -> None:
        from overfit_cli.sweeps.presets import MEASURED_ON
        from overfit_cli.sweeps.speed import Speed

        self._left: dict[str, float | None] = {}
        for preset in presets:
            minutes = preset.profile(profile).minutes
            missing = _missing(preset, profile, results)
            cost = None if minutes is None else 60 * minutes * MEASURED_ON / jobs
            self._left[preset.name] = 0.0 if missing == 0 else cost and cost * missing
        self._speed = Speed(_PRIOR, _PRIOR)
        self._position = self._current = ""
        self._cost = self._timed_at = 0.0

    def seconds(self, preset: Preset) -> float | None:
        """Return how many seconds a preset should still take; None where that isn't known."""
        return self._left[preset.name]

    def expect(self, preset: Preset, seconds: float | None) -> None:
        """Take in how long a preset should take here; None changes nothing."""
        if seconds is not None:
            self._left[preset.name] = seconds

    @contextmanager
    def running(self, preset: Preset, position: str) -> Iterator[None]:
        """Take the time of a preset that runs inside; `position` says which it is of all."""
        self._current, self._position = preset.name, position
        self._cost, self._timed_at = self._left[preset.name] or 0.0, time.monotonic()
        yield
        self._advance(1.0)
        self._left[preset.name] = 0.0

    def report(self, share: float) -> str:
        """Return what is left in words, after this share of the preset that runs."""
        self._advance(share)
        return f"{self._position}: {self.sentence()}"

    def _advance(self, share: float) -> None:
        left, now = (1 - share) * self._cost, time.monotonic()
        if self._left[self._current] is not None:
            self._speed.add((self._left[self._current] or 0.0) - left, now - self._timed_at)
            self._left[self._current] = left
        self._timed_at = now

    def sentence(self) -> str:
        """Return about how long all of them still take, or of how many that isn't known."""
        costs = [cost for cost in self._left.values() if cost is not None]
        left = self._speed.time(sum(costs)) or 0.0
        unknown = len(self._left) - len(costs)
        if not unknown:
            return f"{duration_estimate(left)} for all"
        others = f", {duration_estimate(left)} for the others" if left else ""
        return f"time not known for {unknown} of {len(self._left)}{others}"


def _missing(preset: Preset, profile: str, results: Path) -> float:
    from overfit_cli.sweeps.plan import make_plan
    from overfit_cli.sweeps.store import RunDirectory
    from overfit_cli.sweeps.subject import find_subject

    directory = RunDirectory(results / preset.run_name(profile), "run directory")
    if not directory.path.exists():
        return 1.0
    grid, steps = find_subject(preset.name, profile).grid(), preset.content.trajectories
    plan = make_plan(grid, directory, "cpu", trajectories=steps)
    return plan.to_run / max(1, len(plan.cells))
