"""`overfit sweep`: train a grid of cells."""

from __future__ import annotations

import enum
import time
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
    read_whole,
    use_data,
)
from overfit_cli.cli.naming import sweep_name
from overfit_cli.errors import UserError

if TYPE_CHECKING:
    from overfit_cli.sweep.grid import Grid
    from overfit_cli.sweep.refine import Refinement

DEFAULT_SEEDS = "3"
LONGEST_DRY_RUN = 8.0
LEAST_FOR_PROBE = 3.0


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
    refine: Annotated[
        str | None,
        typer.Option(
            metavar="ROUNDS",
            help="Begin with the grid, for two seeds, and go on where the boundary is uncertain.",
        ),
    ] = None,
    tolerance: Annotated[
        str | None,
        typer.Option(
            metavar="T",
            help="With --refine: how well to know the boundary, as ± along its axis.  "
            "[default: 1/99 of the axis]",
        ),
    ] = None,
    show_help: Annotated[
        bool, typer.Option("--help", help="Show this message and the study's parameters.")
    ] = False,
) -> int:
    """Train a grid of cells in parallel; what is there already is kept."""
    began = time.monotonic()
    use_data(data)
    chosen = find_subject(subject)
    output = console()
    if show_help:
        from overfit_cli.cli.tables import parameter_table

        for line in context.get_help().splitlines():
            output.print(line)
        output.print(parameter_table(chosen.study))
        return 0

    from overfit_cli.cli.running import Runner
    from overfit_cli.cli.sentences import estimate_in_words, summary_in_words
    from overfit_cli.device import resolve_device
    from overfit_cli.sweep.plan import make_plan
    from overfit_cli.sweep.store import RunDirectory

    if profile is not None and chosen.preset is None:
        raise UserError(f"--profile {profile}: {subject} is no preset; only presets have profiles.")
    profile = profile or "quick"
    trajectories = trajectories or (
        chosen.preset is not None and chosen.preset.content.trajectories
    )
    grid = _grid(chosen, profile, seeds, settings or [], {"n": n, "snr": snr})
    rounds = None if refine is None else read_whole("--refine", refine, 0)
    refinement = _refinement(grid, rounds, tolerance)
    name = sweep_name(chosen, profile, grid) + ("-refined" if refinement is not None else "")
    directory = RunDirectory(read_path("--out", out) or RESULTS / name, "--out")
    where = resolve_device(device.value)
    runner = Runner(
        output, directory, _jobs(jobs, where), backend.value, where, trajectories, fail_fast
    )
    if refinement is not None and rounds is not None and not dry_run:
        from overfit_cli.cli.refining import refine as run_rounds

        total = run_rounds(runner, refinement, rounds, fresh=fresh, retry_failed=retry_failed)
        return 1 if total.failed else 0
    plan = make_plan(
        grid if refinement is None else refinement.coarse_grid,
        directory,
        where,
        fresh=fresh,
        retry_failed=retry_failed,
        trajectories=trajectories,
        outlined=dry_run,
    )
    read = runner.prepare(plan)
    runner.describe(plan)
    if dry_run:
        left = max(LEAST_FOR_PROBE, LONGEST_DRY_RUN - (time.monotonic() - began))
        output.print(estimate_in_words(plan, runner.workforce(plan), where, left))
        if refinement is not None:
            output.print(
                f"That is the coarse grid, with {len(refinement.coarse_grid.seeds)} of "
                f"{len(grid.seeds)} seeds; up to {rounds} rounds of fewer cells follow it."
            )
        return 0
    runner.record(plan, read)
    summary = runner.run(plan)
    for sentence in summary_in_words(plan, directory, summary, chosen):
        output.print(sentence)
    return 1 if summary.failed else 0


def _refinement(grid: Grid, rounds: int | None, tolerance: str | None) -> Refinement | None:
    """What `--refine` asks for; None where it isn't given."""
    if rounds is None:
        if tolerance is not None:
            raise UserError(f"--tolerance {tolerance}: it goes with --refine ROUNDS.")
        return None
    from overfit_cli.sweep.refine import Refinement, question_of  # scipy: only where asked for

    accepts = "a number above 0"
    half_width = None if tolerance is None else read_number("--tolerance", tolerance, accepts)
    if half_width is not None and half_width <= 0:
        raise UserError(f"--tolerance {tolerance}: it takes {accepts}.")
    return Refinement(grid, question_of(grid.study), half_width)


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
