"""The command `overfit reproduce`: the sweeps behind papers' figures, and the report on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from overfit_cli.cli import completion
from overfit_cli.cli.common import RESULTS, console
from overfit_cli.cli.options import (
    DataFolder,
    DeviceName,
    Expect,
    Strict,
    read_one_of,
    read_path,
    use_data,
)
from overfit_cli.cli.reporting import Asked, Held, write_and_say
from overfit_cli.cli.where import Address, BackendName, Jobs, Scheduler, read_executor
from overfit_cli.errors import MissingError, UserError
from overfit_cli.words import about, plural

if TYPE_CHECKING:
    from rich.console import Console

    from overfit_cli.cli.remaining import Remaining
    from overfit_cli.sweeps.executors.executor import Executor
    from overfit_cli.sweeps.reproducible import Reproducible


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
    from overfit_cli.report.expected import read_expected
    from overfit_cli.sweeps.presets import PROFILES
    from overfit_cli.sweeps.reproducible import reproducible

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
    from overfit_cli.cli.sentences import jobs_in_words

    remaining = _remaining(how, wanted, how.executor.jobs_asked)
    for one in wanted:
        profile, left = one.preset.profile(how.profile), remaining.of(one.preset)
        time = "time not known" if left is None else about(left) if left else "done"
        needs = f"; needs {profile.needs}" if profile.needs else ""
        how.output.print(f"{one.address}: {one.preset.name}, {time}{needs}")
    size = f"{plural(len(wanted), 'preset')} on {jobs_in_words(how.executor)}"
    how.output.print(f"{size}: {remaining.in_words()}.")


def _remaining(how: _How, wanted: Sequence[Reproducible], jobs: int) -> Remaining:
    from overfit_cli.cli.remaining import Remaining

    return Remaining([one.preset for one in wanted], how.profile, jobs, RESULTS)


def _run_all(how: _How, wanted: Sequence[Reproducible]) -> _Done:
    """Run and draw one preset after the other; what can't be run is left out and said.

    Raises:
        UserError: if a preset that the user named can't be run, or nothing more can be written.
        KeyboardInterrupt: when interrupted; what is finished is kept.
    """
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
    from overfit_cli.cli.running import Runner
    from overfit_cli.cli.subject import find_subject
    from overfit_cli.cli.sweep import grid_of
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
    from overfit_cli.drawing import Request, draw_figure
    from overfit_cli.figure import FigureOptions
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
