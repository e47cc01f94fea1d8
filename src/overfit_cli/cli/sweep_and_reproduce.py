"""The commands `sweep`, `train` and `reproduce`: cells, and the figures and claims of papers."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import overfit_cli
from overfit_cli.cli import options as cli
from overfit_cli.cli.judge_and_report import Asked, write_and_say
from overfit_cli.cli.list_and_runs import parameter_table
from overfit_cli.cli.proposals import plot_words, train_words
from overfit_cli.core import text
from overfit_cli.core.errors import MissingError, Told, UserError
from overfit_cli.core.files import results_folder, set_data_folder
from overfit_cli.core.options import ProfileName, SweepOptions

if TYPE_CHECKING:
    from overfit_cli.sweeps.executors import Executor
    from overfit_cli.sweeps.presets import Preset
    from overfit_cli.sweeps.run import Session
    from overfit_cli.sweeps.worker import Summary


@cli.with_options(SweepOptions)
def sweep(
    context: typer.Context,
    words: list[str] = cli.SUBJECT_AND_PARAMETERS,
    settings: list[str] = cli.SETTINGS,
    *,
    show_help: bool = cli.flag("Show this message and the study's parameters.", "--help", "-h"),
    **options: Any,
) -> int:
    """Train a grid of cells in parallel, and reuse finished cells.

    The argument is a study or a preset (see `overfit list`), or a function: FILE.py, FILE.py:NAME
    or package.module:NAME. Without one, the default study is swept. A program is a command line in
    quotes, with its parameters in braces: 'python train.py --lr {lr} --seed {seed}' --lr 0.01,0.1

    Every parameter of the study is an option: --n 2:20 --snr 0.1:16. A range is 2:20, 2:20:3,
    0.1:16 (40 points), 0.1:16:100:log (of whole numbers too), a,b,c, one value, or an expression
    in other parameters: --n '2*d'.

    With --dry-run it says how many seeds would decide the claims.
    """
    from overfit_cli.sweeps.presets import find_subject

    typed, given = cli.read_words(words, settings)
    how, output = SweepOptions(**options), text.console()
    subject = find_subject(typed, how.profile, cli.values_of(given), how.read)
    study = subject.study
    if show_help:
        about = ["", *study.description.splitlines()] if study.description else []
        heading = f"Parameters of {study.name} (--NAME RANGE)"
        for line in [*context.get_help().splitlines(), *about, "", heading]:
            output.print(line)
        output.print(parameter_table(study))
        return 0
    from overfit_cli.report import judge
    from overfit_cli.sweeps.run import open_sweep

    with open_sweep(subject, cli.texts_by_name(context, given, study), how, output) as session:
        if how.dry_run:
            session.outline()
            session.say(*judge.lines_on_claims(session.directory, session.grid, session.sentences))
            return 0
        total = session.run()
        if study.identity.function and total.trained and (session.stated or study.claims()):
            session.say(judge.problem_with_claims(session.directory))
        session.say(*text.proposed_command(_following(session, total)))
    return 1 if total.failed or total.earlier else 0


def _following(session: Session, total: Summary) -> list[str]:
    """The command that comes next: a picture, or verdicts; or a cell that failed, alone."""
    path, refined, failed = session.directory.path, session.refinement, total.example
    if not total.trained + total.reused:  # of failed cells alone nothing can be drawn
        study = session.subject.study
        return train_words(study, failed.parameters.model_dump(), failed.seed) if failed else []
    if refined is not None:
        level = f"{refined.search.threshold:g}"
        return text.command_words("plot", refined.figure, from_=path, threshold=level)
    return ["judge", str(path)] if session.stated else next_command(session)


def next_command(session: Session) -> list[str]:
    """Return a command for what was swept: the preset's figure, one over its axes, a report.

    Empty where none makes sense.
    """
    grid, path, chosen = session.grid, session.directory.path, session.subject
    wanted = chosen.preset.figures if chosen.preset else ()
    count, logged = len(grid.free_axes), chosen.trajectories
    words = plot_words(chosen.study, path, wanted, grid.axes, count, logged=logged)
    return words or (["report", str(path)] if chosen.study.claims() else [])


@cli.with_options(SweepOptions, "read", "data", "device")
def train(
    context: typer.Context,
    words: list[str] = cli.SUBJECT_AND_PARAMETERS,
    settings: list[str] = cli.SETTINGS,
    seed: int = cli.option("SEED", "The cell's seed.", default=0),
    out: Path | None = cli.option("DIR", "Run directory.  [default: results/NAME-SETTINGS]"),
    **options: Any,
) -> int:
    """Train one cell, show some of its steps, and save all of them.

    The argument is a study or a preset (see `overfit list`), or a function: FILE.py, FILE.py:NAME
    or package.module:NAME, or a command line as `sweep` takes it; without one, it is the default
    study. Every parameter of the study is an option: --n 20 --snr 10.

    `python -m pdb -m overfit_cli train ...` opens Python's debugger where a function raises.
    """
    from overfit_cli.core.registry import figures_of
    from overfit_cli.sweeps.presets import find_subject
    from overfit_cli.sweeps.run import train_cell
    from overfit_cli.sweeps.worker import FAILURE_PREFIXES

    named, given = cli.read_words(words, settings)
    how, output = SweepOptions(out=out, **options), text.console()
    subject = find_subject(named, None, cli.values_of(given), how.read)
    watch = train_cell(subject, cli.texts_by_name(context, given, subject.study), seed, how, output)
    result, error = watch.result, watch.error
    for line in result.traceback.splitlines():
        output.print(line, soft_wrap=True)
    failed = f"The cell failed: {result.reason}."
    if isinstance(error, Exception) and not isinstance(error, Told):
        # It passes as it is, so that Python's debugger opens where it was raised.
        sys.excepthook = lambda *_: typer.echo(text.visible(f"overfit: {failed}"), err=True)
        raise error
    if result.reason and (result.reason.startswith(FAILURE_PREFIXES) or not result.measurements):
        raise UserError(failed, exit_code=1)
    for line in subject.study.summary(result).splitlines():
        output.print(line)
    output.print(f"Took {text.duration(result.seconds)}.")
    figures = figures_of(subject.study).values()
    of_steps = [figure.name for figure in figures if figure.reads == "trajectories"]
    following = ["report", str(watch.path)] if subject.study.claims() else []
    if result.trajectory and of_steps:
        following = text.command_words("plot", of_steps[0], from_=watch.path)
    for line in text.proposed_command(following):
        output.print(line)
    return 1 if result.reason else 0


@cli.with_options(SweepOptions, "jobs", "backend", "address", "device", "data", "dry_run")
def reproduce(
    names: list[str] = cli.argument(
        "PAPER|FIGURE",
        "Papers (jiang2024), figures (jiang2024/fig1) or presets.  [default: all]",
        "presets",
        default=[],
    ),
    profile: ProfileName = cli.option("quick|paper", "Size of the presets.", default="quick"),
    *,
    strict: bool = cli.STRICT,
    expect: list[Path] = cli.EXPECT,
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

    how, output = SweepOptions(**options), text.console()
    set_data_folder(how.data)
    wanted = reproducible(names)
    read_expected(expect, results_folder() / "report")  # what is wrong is said before hours
    with executor_of(how.backend, how.jobs, how.device, how.address) as executor:
        left = [_seconds(preset, profile) / executor.requested_jobs for preset in wanted]
        if how.dry_run:
            for preset, seconds in zip(wanted, left, strict=True):
                needs = preset.profile(profile).needs
                needed = f"; needs {needs}" if needs else ""
                output.print(f"{preset.address}: {preset.name}, {_time(seconds)}{needed}")
            jobs = text.plural(executor.requested_jobs, "job")
            size = f"{text.plural(len(wanted), 'preset')} on {jobs}"
            output.print(f"{size}: {_time(sum(left))} for all.")
            return 0
        done = Reproduction(profile, executor)
        folders = [_folder(preset, profile) for preset in wanted]
        for number, (preset, folder) in enumerate(zip(wanted, folders, strict=True)):
            position, remaining = f"{number + 1} of {len(wanted)}", _time(sum(left[number:]))
            output.print(f"[{position}] {preset.address}: {remaining} for all.")
            done.run(preset, is_named=not {*preset.names}.isdisjoint(names))
            if folder in done.directories and folder not in folders[number + 1 :]:
                done.draw(folder, [one for one in wanted if _folder(one, profile) == folder])
    if not done.directories:
        raise UserError("Nothing was run, so there is nothing to report.", exit_code=1)
    presets = {preset.name for preset in wanted} if names else None
    about: Any = {"presets": presets, "directories": done.directories, "profile": profile}
    code = write_and_say(Asked(**about, strict=strict, expect=expect))
    for sentence in done.left_out:
        output.print(sentence)
    return code or int(done.failed)


@dataclass
class Reproduction:
    """Presets that are run and drawn, one after the other.

    Attributes:
        left_out: a sentence for each preset that could not be run.
        failed: whether a cell failed that neither diverged nor ended at its step limit, a figure
            could not be drawn, or a preset could not be run.
    """

    profile: str
    executor: Executor
    directories: list[Path] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    failed: bool = False

    def run(self, preset: Preset, *, is_named: bool) -> None:
        """Train the cells of a preset; one that can't be run and isn't named is left out."""
        from overfit_cli.core.study import has_missed
        from overfit_cli.sweeps import presets, run, store

        profile = None if self.profile == "quick" else self.profile
        directory = store.RunDirectory(_folder(preset, self.profile), "run directory")
        output = text.console()
        try:
            subject = presets.find_subject(preset.name, self.profile)
            with text.as_command(text.command_words("sweep", preset.name, profile=profile)):
                run.Session(subject, run.grid_of(subject), output, directory, self.executor).run()
            cells = directory.load_cells()
            self.failed |= bool((cells["status"].eq("failed") & ~has_missed(cells)).any())
            self.directories.append(directory.path)
        except UserError as error:
            if is_named or error.exit_code != 2:
                raise
            needs = preset.profile(self.profile).needs
            missing = bool(needs) and isinstance(error, MissingError)
            why = f"{cli.error_as_option(error)}{f' It needs {needs}.' * missing}"
            self.left_out.append(f"Left out: {preset.address} ({preset.name}): {why}")
            output.print(self.left_out[-1])
            self.failed |= not missing

    def draw(self, directory: Path, presets: Sequence[Preset]) -> None:
        """Draw the figures of the presets that were run into a directory."""
        for name in dict.fromkeys(name for preset in presets for name in preset.figures):
            path = directory / "figures" / f"{name}.png"
            try:
                with text.as_command(text.command_words("plot", name, from_=directory)):
                    overfit_cli.draw(name, directory, out=path)
                cli.say_drawn(text.console(), path)
            except UserError as error:
                self.failed = True
                text.console().print(f"Not drawn: {path}: {cli.error_as_option(error)}")


def _folder(preset: Preset, profile: str) -> Path:
    return results_folder() / preset.run_name(profile)


def _seconds(preset: Preset, profile: str) -> float:
    """The seconds that a preset should still take with one job, as recorded; nan without."""
    from overfit_cli.sweeps import plan, presets, run, store

    folder, missing = _folder(preset, profile), 1.0
    if folder.exists():
        grid = run.grid_of(presets.find_subject(preset.name, profile))
        how, directory = SweepOptions(trajectories=preset.trajectories), store.RunDirectory(folder)
        planned = plan.make_plan(grid, directory, "cpu", how)
        missing = planned.to_run / max(1, len(planned.cells))
    minutes = preset.profile(profile).minutes
    if minutes is None:
        return math.nan if missing else 0.0
    return 60 * minutes * presets.MEASURED_ON * missing


def _time(seconds: float) -> str:
    return "time not known" if math.isnan(seconds) else text.duration_estimate(seconds)
