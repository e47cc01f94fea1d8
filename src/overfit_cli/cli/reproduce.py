"""The command `overfit reproduce`: the sweeps behind papers' figures, and the report on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
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
        failed: whether a cell failed that neither diverged nor ended at its step limit, a figure
            could not be drawn, or a preset could not be run.
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

        seconds = dict[str, float | None]()
        for item in self.wanted:
            left = self._seconds(item)
            if item.asked and left != 0.0 and (probed := self._estimate(item)) is not None:
                left = probed
            profile, seconds[item.preset.name] = item.preset.profile(self.profile), left
            time = "time not known" if left is None else duration_estimate(left) if left else "done"
            needs = f"; needs {profile.needs}" if profile.needs else ""
            self.output.print(f"{item.address}: {item.preset.name}, {time}{needs}")
        size = f"{plural(len(self.wanted), 'preset')} on {jobs_in_words(self.executor)}"
        self.output.print(f"{size}: {_time_in_words(seconds)}.")

    def _seconds(self, item: Reproducible) -> float | None:
        """The seconds that a preset should still take, from its recorded minutes; None without."""
        from overfit_cli.core.files import results_folder
        from overfit_cli.sweeps.presets import MEASURED_ON

        minutes = item.preset.profile(self.profile).minutes
        missing = _missing(item.preset, self.profile, results_folder())
        if minutes is None:
            return None if missing else 0.0
        return 60 * minutes * MEASURED_ON / self.executor.requested_jobs * missing

    def _estimate(self, item: Reproducible) -> float | None:
        """The seconds that a preset should take here, from the probe of `overfit sweep --dry-run`.

        None where none ended in time, or where something that it needs is missing.
        """
        session, subject = self._session(item)
        with suppress(UserError):
            plan = session.plan(subject.grid())
            session.prepare(plan)
            return session.estimate(plan).seconds if plan.batches else 0.0
        return None

    def run(self) -> None:
        """Run and draw one preset after the other; what can't be run is left out and said."""
        from overfit_cli.core.files import results_folder

        left = {item.preset.name: self._seconds(item) for item in self.wanted}
        for number, item in enumerate(self.wanted, start=1):
            position = f"{number} of {len(self.wanted)}"
            self.output.print(f"[{position}] {item.address}: {_time_in_words(left)}.")
            del left[item.preset.name]
            directory = results_folder() / item.preset.run_name(self.profile)
            try:
                self.failed |= self._sweep(item)
                self.directories.append(directory)
            except UserError as error:
                if item.asked or error.exit_code != 2:
                    raise
                self._leave_out(item, error)
            later = [other.preset.run_name(self.profile) for other in self.wanted[number:]]
            if directory in self.directories and directory.name not in later:
                self.failed |= not _draw(self.output, self._figures(item), directory)

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

    def _sweep(self, item: Reproducible) -> bool:
        """Train the cells of a preset; whether one failed, but by what its training came to."""
        from overfit_cli.claims.cells import OUTCOMES

        session, subject = self._session(item)
        session.sweep(subject.grid())
        cells = session.directory.load_cells()
        return bool((cells["status"].eq("failed") & ~cells["reason"].isin(OUTCOMES)).any())

    def _session(self, item: Reproducible) -> tuple[Session, Subject]:
        from overfit_cli.core.files import results_folder
        from overfit_cli.sweeps.session import Session
        from overfit_cli.sweeps.store import RunDirectory
        from overfit_cli.sweeps.subject import find_subject

        subject = find_subject(item.preset.name, self.profile)
        profile = [] if self.profile == "quick" else ["--profile", self.profile]
        session = Session(
            output=self.output,
            directory=RunDirectory(
                results_folder() / item.preset.run_name(self.profile), "run directory"
            ),
            executor=self.executor,
            trajectories=subject.trajectories,
            cell_seconds=subject.cell_seconds,
            command=["overfit", "sweep", item.preset.name, *profile],
            sentences=subject.sentences,
            preset=item.preset.path,
        )
        return session, subject


def _time_in_words(seconds: Mapping[str, float | None]) -> str:
    """About how long presets still take, or of how many that isn't known."""
    known = [each for each in seconds.values() if each is not None]
    unknown = len(seconds) - len(known)
    if not unknown:
        return f"{duration_estimate(sum(known))} for all"
    others = f", {duration_estimate(sum(known))} for the others" if sum(known) else ""
    return f"time not known for {unknown} of {len(seconds)}{others}"


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
