"""The command `overfit reproduce`: the sweeps behind papers' figures, and the report on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import overfit_cli
from overfit_cli.cli import options as cli
from overfit_cli.cli.judge_and_report import Asked, write_and_say
from overfit_cli.cli.plot_and_verify import say_drawn
from overfit_cli.core import text
from overfit_cli.core.errors import MissingError, UserError
from overfit_cli.core.files import results_folder, set_data_folder
from overfit_cli.core.options import ProfileName, SweepOptions

if TYPE_CHECKING:
    from rich.console import Console

    from overfit_cli.sweeps.executors import Executor
    from overfit_cli.sweeps.presets import Preset
    from overfit_cli.sweeps.store import RunDirectory


@cli.with_options(SweepOptions, "jobs", "backend", "address", "device", "data", "dry_run")
def reproduce(
    names: list[str] = cli.argument(
        "PAPER|FIGURE",
        "Papers (jiang2024), figures (jiang2024/fig1) or presets.  [default: all]",
        cli.complete_presets,
        default=[],
    ),
    profile: ProfileName = cli.option("quick|paper", "Size of the presets.", default="quick"),
    *,
    strict: bool = cli.STRICT,
    expect: Path | None = cli.EXPECT,
    **options: Any,
) -> int:
    """Run the sweeps behind the papers' figures, draw them, and report on the claims.

    Finished cells are reused: the same command continues where it stopped. The terminal
    shows the verdicts on what you name, and the page in results/report those on every run in
    results/.
    """
    from overfit_cli.report.contents import read_expected
    from overfit_cli.sweeps.clusters import executor_of
    from overfit_cli.sweeps.presets import reproducible

    how = SweepOptions(**options)
    set_data_folder(how.data)
    wanted = reproducible(names)
    if expect is not None:
        read_expected(expect)  # a name that is wrong is said before hours of training
    with executor_of(how.backend, how.jobs, how.device, how.address) as executor:
        reproduction = Reproduction(text.console(), wanted, profile, executor, names)
        if how.dry_run:
            reproduction.outline()
            return 0
        reproduction.run()
    if not reproduction.directories:
        raise UserError("Nothing was run, so there is nothing to report.", exit_code=1)
    asked = Asked(
        presets={preset.name for preset in wanted} if names else None,
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
            needed = f"; needs {needs}" if needs else ""
            self.output.print(f"{preset.address}: {preset.name}, {_time(left)}{needed}")
        jobs = text.plural(self.executor.requested_jobs, "job")
        size = f"{text.plural(len(self.wanted), 'preset')} on {jobs}"
        self.output.print(f"{size}: {_time(sum(seconds))} for all.")

    def _seconds(self, preset: Preset) -> float:
        """The seconds that a preset should still take, from its recorded minutes; nan without."""
        from overfit_cli.sweeps import plan, presets, run

        directory, missing = self._directory(preset), 1.0
        if directory.path.exists():
            grid = run.grid_of(presets.find_subject(preset.name, self.profile))
            how = SweepOptions(trajectories=preset.trajectories)
            planned = plan.make_plan(grid, directory, "cpu", how)
            missing = planned.to_run / max(1, len(planned.cells))
        minutes = preset.profile(self.profile).minutes
        if minutes is None:
            return math.nan if missing else 0.0
        return 60 * minutes * presets.MEASURED_ON / self.executor.requested_jobs * missing

    def run(self) -> None:
        """Run and draw one preset after the other; what can't be run is left out and said."""
        left = [self._seconds(preset) for preset in self.wanted]
        for number, preset in enumerate(self.wanted):
            position = f"{number + 1} of {len(self.wanted)}"
            self.output.print(
                f"[{position}] {preset.address}: {_time(sum(left[number:]))} for all."
            )
            directory, needs = self._directory(preset), preset.profile(self.profile).needs
            try:
                self._sweep(preset, directory)
                self.directories.append(directory.path)
            except UserError as error:
                if {*preset.names} & {*self.asked} or error.exit_code != 2:
                    raise
                missing = bool(needs) and isinstance(error, MissingError)
                why = f"{cli.error_as_option(error)}{f' It needs {needs}.' * missing}"
                self.left_out.append(f"Left out: {preset.address} ({preset.name}): {why}")
                self.output.print(self.left_out[-1])
                self.failed |= not missing
            later = [self._directory(other).path for other in self.wanted[number + 1 :]]
            if directory.path in self.directories and directory.path not in later:
                self._draw(directory)

    def _directory(self, preset: Preset) -> RunDirectory:
        from overfit_cli.sweeps.store import RunDirectory

        return RunDirectory(results_folder() / preset.run_name(self.profile), "run directory")

    def _sweep(self, preset: Preset, directory: RunDirectory) -> None:
        """Train the cells of a preset, and note whether one failed that did not diverge."""
        from overfit_cli.core.study import has_missed
        from overfit_cli.sweeps import presets, run

        subject = presets.find_subject(preset.name, self.profile)
        profile = None if self.profile == "quick" else self.profile
        where = (self.output, directory, self.executor)
        with text.as_command(text.command_words("sweep", preset.name, profile=profile)):
            run.Session(subject, run.grid_of(subject), *where).run()
        cells = directory.load_cells()
        self.failed |= bool((cells["status"].eq("failed") & ~has_missed(cells)).any())

    def _draw(self, directory: RunDirectory) -> None:
        """Draw the figures of the presets that were run into a directory."""
        presets = [one for one in self.wanted if self._directory(one).path == directory.path]
        for name in dict.fromkeys(name for preset in presets for name in preset.figures):
            path = directory.path / "figures" / f"{name}.png"
            try:
                with text.as_command(text.command_words("plot", name, from_=directory.path)):
                    overfit_cli.draw(name, directory.path, out=path)
                say_drawn(self.output, path)
            except UserError as error:
                self.failed = True
                self.output.print(f"Not drawn: {path}: {cli.error_as_option(error)}")


def _time(seconds: float) -> str:
    return "time not known" if math.isnan(seconds) else text.duration_estimate(seconds)
