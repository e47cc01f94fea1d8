"""`overfit sweep`: train a grid of cells."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from overfit_cli.cli.common import (
    DEFAULT_STUDY,
    RESULTS,
    DataFolder,
    DeviceName,
    Subject,
    console,
    find_subject,
    read_number,
    read_path,
    read_settings,
    use_data,
)
from overfit_cli.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console

    from overfit_cli.sweep.execute import Summary, Workforce
    from overfit_cli.sweep.grid import Grid
    from overfit_cli.sweep.plan import Plan
    from overfit_cli.sweep.store import RunDirectory

DEFAULT_SEEDS = "3"


class BackendName(enum.StrEnum):
    """The joblib backends that a sweep can run on."""

    LOKY = "loky"
    THREADING = "threading"


def sweep(
    context: typer.Context,
    subject: Annotated[
        str,
        typer.Argument(metavar="STUDY|PRESET", help="What to sweep; `overfit list` names them."),
    ] = DEFAULT_STUDY,
    n: Annotated[str | None, typer.Option(metavar="RANGE", help="Short for --set n=RANGE.")] = None,
    snr: Annotated[
        str | None, typer.Option(metavar="RANGE", help="Short for --set snr=RANGE.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=RANGE",
            help="A parameter's values: 2:20, 2:20:3, 0.1:16 (40 points), 0.1:16:100:log, a,b,c, "
            "or one. Give it once a parameter.",
        ),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(metavar="SEEDS", help="How many (5), or which (3:7 or 0,4,9).  [default: 3]"),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(metavar="quick|paper", help="How much of a preset to run.  [default: quick]"),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Run directory.  [default: results/NAME]"),
    ] = None,
    data: DataFolder = None,
    jobs: Annotated[
        str, typer.Option(metavar="N", help="Cells trained at a time; -1 is one a core.")
    ] = "-1",
    backend: Annotated[BackendName, typer.Option(help="How jobs run.")] = BackendName.LOKY,
    device: Annotated[DeviceName, typer.Option(help="Where cells train.")] = DeviceName.AUTO,
    trajectories: Annotated[
        bool, typer.Option("--trajectories", help="Log every step of every cell.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan with an estimate; run nothing.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Run cells again that are there already.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run cells again that failed.")
    ] = False,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="Stop at the first cell that fails.")
    ] = False,
    show_help: Annotated[
        bool, typer.Option("--help", help="Show this message and the study's parameters.")
    ] = False,
) -> int:
    """Train a grid of cells in parallel; what is there already is kept."""
    use_data(data)
    chosen = find_subject(subject)
    output = console()
    if show_help:
        from overfit_cli.cli.tables import parameter_table

        output.print(context.get_help(), markup=False)
        output.print(parameter_table(chosen.study))
        return 0

    from overfit_cli.cli.sentences import estimate_in_words, plan_in_words, summary_in_words
    from overfit_cli.device import resolve_device
    from overfit_cli.files import reason_of
    from overfit_cli.sweep.execute import Workforce
    from overfit_cli.sweep.plan import make_plan
    from overfit_cli.sweep.provenance import check_data, record_run
    from overfit_cli.sweep.store import RunDirectory

    if profile is not None and chosen.preset is None:
        raise UserError(f"--profile {profile}: {subject} is no preset; only presets have profiles.")
    profile = profile or "quick"
    trajectories = trajectories or (
        chosen.preset is not None and chosen.preset.content.trajectories
    )
    grid = _grid(chosen, profile, seeds, settings or [], {"n": n, "snr": snr})
    name = chosen.name if chosen.preset is None else f"{chosen.name}-{profile}"
    directory = RunDirectory(read_path("--out", out) or RESULTS / name, "--out")
    where = resolve_device(device.value)
    number_of_jobs = _jobs(jobs, where)
    if not dry_run:
        for sentence in directory.prepare():
            output.print(sentence)
    plan = make_plan(
        grid, directory, where, fresh=fresh, retry_failed=retry_failed, trajectories=trajectories
    )
    # No more workers than batches, but two at least where two were asked for: a cell that kills
    # its worker is then a failed row, and in one job would be the end of this process.
    most = min(number_of_jobs, max(2, len(plan.batches)))
    workforce = Workforce(most, backend.value)
    data_read = chosen.study.prepare([cell for batch in plan.batches for cell in batch])
    check_data(directory.path, data_read)
    for sentence in plan_in_words(plan, directory, workforce):
        output.print(sentence)
    if dry_run:
        output.print(estimate_in_words(plan, workforce, where))
        return 0
    how = {"jobs": workforce.jobs, "backend": workforce.backend, "device": where}
    try:
        record_run(directory.path, plan.grid, how, data_read)
    except OSError as error:
        raise UserError(f"{directory.path} can't be written to ({reason_of(error)}).") from error
    summary = _run(
        output, plan, directory, workforce, where, trajectories=trajectories, fail_fast=fail_fast
    )
    for sentence in summary_in_words(plan, directory, summary, chosen):
        output.print(sentence)
    return 1 if summary.failed else 0


def _grid(
    chosen: Subject,
    profile: str,
    seeds: str | None,
    settings: list[str],
    short: dict[str, str | None],
) -> Grid:
    from overfit_cli.sweep.grid import make_grid
    from overfit_cli.sweep.presets import preset_texts
    from overfit_cli.sweep.ranges import parse_seeds

    texts, flags = read_settings(settings, short)
    default_seeds = DEFAULT_SEEDS
    if chosen.preset is not None:
        preset_values, places = preset_texts(chosen.preset, profile)
        texts, flags = preset_values | texts, places | flags
        default_seeds = str(chosen.preset.profile(profile).seeds)
    return make_grid(
        chosen.study, texts, parse_seeds(default_seeds if seeds is None else seeds), flags
    )


def _jobs(text: str, device: Literal["cpu", "cuda"]) -> int:
    """The number of jobs; on a GPU one, unless more are asked for: a batch fills it."""
    import joblib

    accepts = "a whole number of at least 1, or -1 for one a core"
    asked = int(read_number("--jobs", text, accepts, whole=True))
    if asked < -1 or asked == 0:
        raise UserError(f"--jobs {text}: it takes {accepts}.")
    if device == "cuda" and asked < 0:
        return 1
    return max(1, int(joblib.effective_n_jobs(asked)))


def _run(
    output: Console,
    plan: Plan,
    directory: RunDirectory,
    workforce: Workforce,
    device: Literal["cpu", "cuda"],
    *,
    trajectories: bool,
    fail_fast: bool,
) -> Summary:
    from overfit_cli.cli.progress import Progress
    from overfit_cli.study import Execution
    from overfit_cli.sweep.execute import execute

    execution = Execution(device=device, trajectories=trajectories)
    progress = Progress(plan, output)
    try:
        with progress.shown():
            return execute(
                plan, directory, execution, workforce, fail_fast=fail_fast, on_record=progress.add
            )
    except KeyboardInterrupt:
        output.print(
            f"Interrupted after {progress.count()}; they are kept in {directory.path}, "
            "and the same command goes on from there."
        )
        raise
