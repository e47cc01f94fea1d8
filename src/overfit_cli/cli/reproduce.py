"""The command `overfit reproduce`: the sweeps behind papers' figures, and the report on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overfit_cli.cli import completion
from overfit_cli.cli.options import EXPECT, STRICT, argument, error_as_option, option, with_options
from overfit_cli.cli.report import Asked, write_and_say
from overfit_cli.core.errors import MissingError, UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.files import results_folder, set_data_folder
from overfit_cli.core.options import ProfileName, SweepOptions
from overfit_cli.core.text import (
    command_words,
    console,
    duration_estimate,
    plural,
    shell_line,
    spelled,
)

if TYPE_CHECKING:
    from rich.console import Console

    from overfit_cli.sweeps.executors import Executor
    from overfit_cli.sweeps.presets import Preset
    from overfit_cli.sweeps.store import RunDirectory


@with_options(SweepOptions, "jobs", "backend", "address", "device", "data", "dry_run")
def reproduce(
    names: list[str] | None = argument(
        "PAPER|FIGURE",
        "Papers (jiang2024), figures (jiang2024/fig1) or presets.  [default: all]",
        completion.reproducible,
        default=None,
    ),
    profile: ProfileName = option("quick|paper", "Size of the presets.", default="quick"),
    *,
    strict: bool = STRICT,
    expect: Path | None = EXPECT,
    **options: Any,
) -> int:
    """Run the sweeps behind the papers' figures, draw them, and report on the claims.

    Finished cells are reused: the same command continues where it stopped. The terminal
    shows the verdicts on what you name, and the page in results/report those on every run in
    results/.
    """
    from overfit_cli.report.verdict_files import read_expected
    from overfit_cli.sweeps.clusters import executor_of
    from overfit_cli.sweeps.presets import reproducible

    how = SweepOptions(**options)
    set_data_folder(how.data)
    wanted = reproducible(names or [])
    if expect is not None:
        read_expected(expect)  # a name that is wrong is said before hours of training
    with executor_of(how.backend, how.jobs, how.device, how.address) as executor:
        reproduction = Reproduction(console(), wanted, profile, executor, names or ())
        if how.dry_run:
            reproduction.outline()
            return 0
        reproduction.run()
    if not reproduction.directories:
        raise UserError("Nothing was run, so there is nothing to report.", exit_code=1)
    presets = frozenset(preset.name for preset in wanted) if names else None
    asked = Asked(
        presets=presets,
        directories=reproduction.directories,
        profile=profile,
        strict=strict,
        expect=expect,
    )
    code = write_and_say(asked, results_folder() / "report", "the report")
    for sentence in reproduction.left_out:
        reproduction.output.print(sentence)
    return code or int(reproduction.failed)


@dataclass
class Reproduction:
    """Presets that are run and drawn, one after the other.

    Attributes:
        asked: the names by which the user asked for them; none for all.
        left_out: a sentence for each preset that could not be run.
        failed: whether a cell failed that neither diverged nor ended at its step limit, a figure
            could not be drawn, or a preset could not be run.
    """

    output: Console
    wanted: Sequence[Preset]
    profile: str
    executor: Executor
    asked: Sequence[str] = ()
    directories: list[Path] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    failed: bool = False

    def outline(self) -> None:
        """Say what would run, and how long it takes on this many jobs."""
        seconds = [self._seconds(preset) for preset in self.wanted]
        for preset, left in zip(self.wanted, seconds, strict=True):
            needs = preset.profile(self.profile).needs
            time = "time not known" if left is None else duration_estimate(left) if left else "done"
            needed = f"; needs {needs}" if needs else ""
            self.output.print(f"{preset.address}: {preset.name}, {time}{needed}")
        jobs = plural(self.executor.requested_jobs, "job")
        size = f"{plural(len(self.wanted), 'preset')} on {jobs}"
        self.output.print(f"{size}: {_time_in_words(seconds)}.")

    def _seconds(self, preset: Preset) -> float | None:
        """The seconds that a preset should still take, from its recorded minutes; None without."""
        from overfit_cli.sweeps.plan import make_plan
        from overfit_cli.sweeps.presets import MEASURED_ON, find_subject
        from overfit_cli.sweeps.run import grid_of

        directory, missing = self._directory(preset), 1.0
        if directory.path.exists():
            grid = grid_of(find_subject(preset.name, self.profile))
            plan = make_plan(grid, directory, "cpu", SweepOptions(trajectories=preset.trajectories))
            missing = plan.to_run / max(1, len(plan.cells))
        minutes = preset.profile(self.profile).minutes
        if minutes is None:
            return None if missing else 0.0
        return 60 * minutes * MEASURED_ON / self.executor.requested_jobs * missing

    def run(self) -> None:
        """Run and draw one preset after the other; what can't be run is left out and said."""
        left = [self._seconds(preset) for preset in self.wanted]
        for number, preset in enumerate(self.wanted):
            position = f"{number + 1} of {len(self.wanted)}"
            self.output.print(f"[{position}] {preset.address}: {_time_in_words(left[number:])}.")
            directory, needs = self._directory(preset).path, preset.profile(self.profile).needs
            try:
                self.failed |= self._sweep(preset)
                self.directories.append(directory)
            except UserError as error:
                if {*preset.names} & {*self.asked} or error.exit_code != 2:
                    raise
                missing = bool(needs) and isinstance(error, MissingError)
                needed = f" It needs {needs}." if missing else ""
                why = f"{error_as_option(error)}{needed}"
                self.left_out.append(f"Left out: {preset.address} ({preset.name}): {why}")
                self.output.print(self.left_out[-1])
                self.failed |= not missing
            later = [self._directory(other).path for other in self.wanted[number + 1 :]]
            if directory in self.directories and directory not in later:
                self._draw(directory)

    def _directory(self, preset: Preset) -> RunDirectory:
        from overfit_cli.sweeps.store import RunDirectory

        return RunDirectory(results_folder() / preset.run_name(self.profile), "run directory")

    def _sweep(self, preset: Preset) -> bool:
        """Train the cells of a preset; whether one failed, but by what its training came to."""
        from overfit_cli.core.study import has_missed
        from overfit_cli.sweeps.presets import find_subject
        from overfit_cli.sweeps.run import Session, grid_of

        subject = find_subject(preset.name, self.profile)
        profile = None if self.profile == "quick" else self.profile
        session = Session(
            subject,
            grid_of(subject),
            self.output,
            self._directory(preset),
            self.executor,
            command=["overfit", *command_words("sweep", preset.name, profile=profile)],
            spell=spelled,
        )
        session.run()
        cells = session.directory.load_cells()
        return bool((cells["status"].eq("failed") & ~has_missed(cells)).any())

    def _draw(self, directory: Path) -> None:
        """Draw the figures of the presets that were run into a directory."""
        from overfit_cli.figures.draw import draw_figure
        from overfit_cli.figures.picture import save
        from overfit_cli.sweeps.store import RunDirectory

        presets = [one for one in self.wanted if self._directory(one).path == directory]
        names = dict.fromkeys(name for preset in presets for name in preset.figures)
        for name in names:
            path = directory / "figures" / f"{name}.png"
            command = shell_line(command_words("plot", name, from_=directory))
            source = [RunDirectory(directory, "run directory")]
            try:
                asked = FigureOptions()
                save(draw_figure(name, source, asked, command=command, out=path), path)
                self.output.print(f"Drawn: {path}")
            except UserError as error:
                self.failed = True
                self.output.print(f"Not drawn: {path}: {error_as_option(error)}")


def _time_in_words(seconds: Sequence[float | None]) -> str:
    """About how long presets still take, or of how many that isn't known."""
    known = [each for each in seconds if each is not None]
    if len(known) == len(seconds):
        return f"{duration_estimate(sum(known))} for all"
    return f"time not known for {len(seconds) - len(known)} of {len(seconds)}"
