"""The command `overfit sweep`: a grid of cells."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from overfit_cli.cli.options import (
    Address,
    BackendName,
    DataFolder,
    DeviceName,
    Jobs,
    Settings,
    SubjectAndParameters,
    declared_options,
    read_words,
    texts_by_name,
)
from overfit_cli.core.console import console, proposed_command
from overfit_cli.core.values import ProfileName

if TYPE_CHECKING:
    from overfit_cli.core.figure import Figure
    from overfit_cli.sweeps.grid import Grid
    from overfit_cli.sweeps.plan import Plan
    from overfit_cli.sweeps.session import Session
    from overfit_cli.sweeps.store import RunDirectory
    from overfit_cli.sweeps.subject import Subject


Together = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME,NAME",
        help="Step through the lists of these parameters together; may be repeated.",
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION",
        help="Only points of the grid that meet this, such as 'n >= 2*d'; may be repeated.",
    ),
]
Seeds = Annotated[
    str | None,
    typer.Option(
        metavar="SEEDS",
        help="Number of seeds (5), or a list (3:7 or 0,4,9).  [default: 3, or the preset's]",
    ),
]
Profile = Annotated[
    ProfileName | None,
    typer.Option(metavar="quick|paper", help="Size of a preset.  [default: quick]"),
]
Out = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Run directory.  [default: results/NAME]")
]
ShardName = Annotated[
    str | None,
    typer.Option("--shard", metavar="I/N", help="Run the I-th of N equal parts of the sweep."),
]
Trajectories = Annotated[bool, typer.Option("--trajectories", help="Log every step of every cell.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the plan with an estimate; run nothing.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Run finished cells again.")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Run failed cells again.")]
FailFast = Annotated[
    bool,
    typer.Option("--fail-fast", help="Stop at the first failed cell; running cells finish."),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="SECONDS",
        help="Longest time of a cell; a slower one fails.",
    ),
]
Refine = Annotated[
    int | None,
    typer.Option(
        metavar="ROUNDS",
        help="Run the grid with two seeds, then add cells where the boundary is uncertain.",
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        metavar="T", help="With --refine: the value at the boundary.  [default: the study's]"
    ),
]
Claims = Annotated[
    list[str] | None,
    typer.Option(
        "--claim",
        metavar="SENTENCE",
        help="A claim, such as 'test_error < 0.05 where snr > 2', to write into the manifest "
        "before the first cell; may be repeated.",
    ),
]
Help = Annotated[
    bool,
    typer.Option("--help", "-h", help="Show this message and the study's parameters."),
]


def sweep(
    context: typer.Context,
    words: SubjectAndParameters = None,
    settings: Settings = None,
    together: Together = None,
    only: Only = None,
    seeds: Seeds = None,
    profile: Profile = None,
    out: Out = None,
    data: DataFolder = None,
    jobs: Jobs = -1,
    backend: BackendName = "loky",
    address: Address = None,
    shard: ShardName = None,
    device: DeviceName = "auto",
    trajectories: Trajectories = False,
    dry_run: DryRun = False,
    fresh: Fresh = False,
    retry_failed: RetryFailed = False,
    fail_fast: FailFast = False,
    time_limit: TimeLimit = None,
    refine: Refine = None,
    threshold: Threshold = None,
    claim: Claims = None,
    show_help: Help = False,
) -> int:
    """Train a grid of cells in parallel, and reuse finished cells.

    The argument is a study or a preset (see `overfit list`), or a function: FILE.py, FILE.py:NAME
    or package.module:NAME. The default is benign-vit.

    Every parameter of the study is an option: --n 2:20 --snr 0.1:16. A range is 2:20, 2:20:3,
    0.1:16 (40 points), 0.1:16:100:log (of whole numbers too), a,b,c, one value, or an expression
    in other parameters: --n '2*d'.

    With --dry-run it says how many seeds would decide the claims.
    """
    from overfit_cli.sweeps.subject import find_subject, take_data_folder

    began = time.monotonic()
    subject, given = read_words(context, words, settings)
    chosen = find_subject(subject, profile)
    if show_help:
        _print_help(context, chosen)
        return 0
    from overfit_cli.sweeps.refine import refinement_of
    from overfit_cli.sweeps.session import open_sweep, outline
    from overfit_cli.sweeps.session import refine as run_rounds

    texts = texts_by_name(context, given, chosen.study)
    take_data_folder(chosen.study, data)
    grid = grid_of(chosen, seeds, texts, together or (), only or ())
    refinement = refinement_of(grid, refine, threshold)
    with open_sweep(
        chosen,
        grid,
        console(),
        out=out,
        shard=shard,
        refinement=refinement,
        jobs=jobs,
        backend=backend,
        address=address,
        device=device,
        trajectories=trajectories,
        fresh=fresh,
        retry_failed=retry_failed,
        fail_fast=fail_fast,
        time_limit=time_limit,
        claims=claim or (),
    ) as session:
        if dry_run:
            elapsed = time.monotonic() - began
            outline(session, grid, refinement, refine or 0, elapsed)
            _print_on_claims(session, grid)
            return 0
        if refinement is not None and refine is not None:
            total = run_rounds(session, refinement, refine)
            target = refinement.target
            following = ["plot", target.figure, "--from", str(session.directory.path)]
            for line in proposed_command([*following, "--threshold", f"{target.threshold:g}"]):
                session.output.print(line)
            return 1 if total.failed or total.earlier else 0
        return _run(session, grid, chosen)


def _print_help(context: typer.Context, chosen: Subject) -> None:
    from overfit_cli.cli.list import parameter_table

    output, declared = console(), declared_options(context)
    for line in context.get_help().splitlines():
        output.print(line)
    if chosen.study.description:
        output.print()
    for line in chosen.study.description.splitlines():
        output.print(line)
    output.print(parameter_table(chosen.study))
    for name in chosen.study.parameters.model_fields:
        if f"--{name.replace('_', '-')}" in declared:
            output.print(
                f"For the parameter {name} write --set {name}=RANGE: "
                f"--{name.replace('_', '-')} is an option of overfit."
            )


def _print_on_claims(session: Session, grid: Grid) -> None:
    from overfit_cli.core.text import visible
    from overfit_cli.report.decision import lines_on_claims

    stated = {**session.sentences, **session.stated}
    for line in lines_on_claims(session.directory, grid, stated):
        session.output.print(visible(line))


def _run(session: Session, grid: Grid, chosen: Subject) -> int:
    from overfit_cli.core.text import visible

    plan, summary = session.sweep(grid)
    is_function = chosen.study.identity.function is not None
    if summary.trained and (session.stated or (is_function and chosen.study.claims())):
        from overfit_cli.report.decision import problem_with_claims

        if problem := problem_with_claims(session.directory.path):
            session.output.print(visible(problem))
    if session.stated and (summary.trained or plan.done):
        following = ["judge", str(session.directory.path)]
    elif summary.trained or plan.done:  # of failed cells alone nothing can be drawn
        following = next_command(plan, session.directory, chosen)
    else:
        following = _training_of(summary.example, plan, chosen)
    for line in proposed_command(following):
        session.output.print(line)
    return 1 if summary.failed or summary.earlier else 0


def _training_of(key: str, plan: Plan, chosen: Subject) -> list[str]:
    from overfit_cli.core.parameters import describe

    cell = next((cell for cell in plan.cells if cell.key == key), None)
    if cell is None:
        return []
    values, infos = cell.parameters.model_dump(), describe(chosen.study.parameters)
    usual = {name: (info.default,) for name, info in infos.items()} | dict(chosen.grid().values)
    words = ["train", chosen.typed]
    for name, value in values.items():
        if usual[name] != (value,):
            words += ["--set", f"{name}={value}"]
    return words + (["--seed", str(cell.seed)] if cell.seed else [])


def grid_of(
    chosen: Subject,
    seeds: str | None = None,
    texts: Mapping[str, str] | None = None,
    together: Sequence[str] = (),
    only: Sequence[str] = (),
) -> Grid:
    """Return the grid of a subject.

    Args:
        seeds: the text of `--seeds`; None for the seeds of the study or preset.
        texts: the values that the user gives, by parameter; they come before the preset's.
    """
    from overfit_cli.core.errors import BadValue, UserError
    from overfit_cli.sweeps.grid import check_seeds, make_grid
    from overfit_cli.sweeps.ranges import parse_seeds

    numbers = parse_seeds(chosen.seeds if seeds is None else seeds)
    check_seeds(chosen.study, numbers)
    given = {**chosen.texts, **(texts or {})}
    try:
        return make_grid(
            chosen.study,
            given,
            numbers,
            [*chosen.together, *together],
            [*chosen.only, *only],
        )
    except BadValue as error:
        if error.name == "together" and error.value in chosen.together:
            raise UserError(f"{chosen.typed} ties {error.value}: {error.accepts}") from error
        raise


def next_command(plan: Plan, directory: RunDirectory, chosen: Subject) -> list[str]:
    """Return a command for what was swept: the preset's figure, one over its axes, a report.

    Empty where none makes sense.
    """
    from overfit_cli.core.registry import figures_of

    figures = figures_of(chosen.study)
    wanted = chosen.preset.content.figures if chosen.preset else ()
    axes, free = plan.grid.axes, plan.grid.free_axes

    def drawable(name: str) -> bool:
        if figures[name].reads == "trajectories":
            return chosen.trajectories
        options = figures[name].options
        return all(axis is None or axis in axes for axis in (options.x, options.y))

    names = [name for name in wanted if drawable(name)]
    of_steps = [name for name in names if figures[name].reads == "trajectories"]
    others = [name for name, figure in figures.items() if figure.axes == len(free) > 0]
    source = ["--from", str(directory.path)]
    for name in (*of_steps, *names, *others):
        return ["plot", name, *source]
    if len(free) > 2:
        return ["plot", "heatmap", *_of_more_axes(figures["heatmap"], plan.grid), *source]
    return ["report", str(directory.path)] if chosen.study.claims() else []


def _of_more_axes(heatmap: Figure, grid: Grid) -> list[str]:
    """Options for a heatmap of more than two axes: panels for one, and one value of each other.

    Those with the most values are the map's, unless the study's own figure says which. Of each
    other axis it is the value with most cells, the middle one where all have as many.
    """
    from overfit_cli.core.figure import MOST_PANELS

    axes = grid.axes
    by_size = sorted(axes, key=lambda name: -len(axes[name]))
    drawn = [name for name in (heatmap.options.x, heatmap.options.y) if name in axes]
    mapped = drawn if len(drawn) == 2 else by_size[:2]
    others = [name for name in by_size if name not in mapped]
    options = ["--by", others.pop()] if len(axes[others[-1]]) <= MOST_PANELS else []
    cells = () if grid.is_product else list(grid.cells())
    for name in others:
        values = axes[name]
        counts = Counter(getattr(cell.parameters, name) for cell in cells)
        most = max((values[len(values) // 2], *values), key=lambda value: counts[value])
        options += ["--where", f"{name}={most}"]
    return options
