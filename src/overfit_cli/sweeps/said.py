"""Sentences on a sweep: its plan and time, what was done and what failed, where a boundary lies.

Each function takes numbers and returns sentences. Those that name an argument take `spell`, which
writes it as the reader gives it: as an option, or as an argument in Python.
"""

from __future__ import annotations

from collections.abc import Callable

from overfit_cli.core.failures import count_alike
from overfit_cli.core.text import duration, duration_estimate, percent, plural, size
from overfit_cli.stats.boundary_search import CONFIDENCE
from overfit_cli.sweeps.executors import Executor
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.plan import Estimate, Plan
from overfit_cli.sweeps.refine import Refinement
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import Summary

Spell = Callable[[str], str]

MOST_REASONS = 4
"""Of more reasons why cells failed, a sentence says the number."""


def planned(plan: Plan, directory: RunDirectory, executor: Executor, spell: Spell) -> list[str]:
    """Return what a sweep covers, what is there already, and what will run."""
    grid, name = plan.grid, plan.grid.study.name
    shard = "" if plan.shard is None else f" of {grid.size}, shard {plan.shard}"
    cells = plural(len(plan.cells), "cell")
    covers = f"{name}: {cells}{shard} ({_shape(grid)}), {directory.path}"
    if plan.shard is not None and not plan.cells:
        return [f"{covers}.", "This shard has no cell: there are more shards than cells."]
    counts = {
        "there already": plan.done,
        f"there as failed ({spell('retry_failed')} runs them)": plan.failed,
        "run again": len(plan.again),
        "stale, of another version of the study": plan.stale,
    }
    kept = "".join(f"{count} {words}; " for words, count in counts.items() if count)
    to_run = f"{kept}{plan.to_run} to run, {executor.description}."
    return [covers, to_run, *_of_earlier_code(plan, spell)]


def _of_earlier_code(plan: Plan, spell: Spell) -> list[str]:
    """How many cells that are kept another version of the study has trained."""
    name, sentences = plan.grid.study.name, list[str]()
    before = {
        f"by an earlier version of the code of {name}": plan.of_other_source,
        f"before the digest changed that tells versions of {name} apart": plan.before_digest,
    }
    add = f"Add {spell('fresh')} to train all again, or another {spell('out')} to keep both."
    for when, count in before.items():
        were = f"{plural(count, 'cell')} {'was' if count == 1 else 'were'} trained {when}"
        sentences += [f"{were}, and kept. {add}"] if count else []
    if plan.parameters_changed:
        changed = f"have changed since cells there were trained ({plan.parameters_changed})"
        stay = "those cells stay, and figures leave them out"
        sentences.append(f"The parameters of {name} {changed}; {stay}.")
    return sentences


def _shape(grid: Grid) -> str:
    """The factors of a grid, and what ties, derives or leaves out its points."""
    lengths = [(" with ".join(group), len(grid.given[group[0]])) for group in grid.groups]
    axes = [f"{names} {length}" for names, length in lengths if length > 1]
    rules = [f"{name} = {', '.join(map(str, several))}" for name, several in grid.derived.items()]
    if grid.only:
        conditions = " and ".join(grid.only)
        rules.append(f"{conditions} at {grid.points} of {plural(grid.full_points, 'point')}")
    return "; ".join([" × ".join([*axes, f"seeds {len(grid.seeds)}"]), *rules])


def jobs_in_words(executor: Executor) -> str:
    """Return how many jobs an estimate is for, and how many of them a cluster has now."""
    jobs = executor.jobs
    fewer = f" ({jobs} there now)" if jobs != executor.requested_jobs else ""
    return f"{plural(executor.requested_jobs, 'job')}{fewer}"


def estimated(likely: Estimate, executor: Executor, within: float) -> str:
    """Return what a plan would take, from a batch that was timed or cut."""
    if likely.seconds is None:
        begin, time = f"No batch ended within {duration(within)}", "how long it takes isn't known"
    else:
        begin, time = "From one timed batch", duration_estimate(likely.seconds)
    takes = [f"{time} on {jobs_in_words(executor)}"]
    takes += ["as long as the longest batch"] if likely.is_longest else []
    takes += [f"{size(likely.memory)} of memory"] if likely.memory else []
    takes += [f"{size(likely.disk)} on disk"] if likely.disk else []
    return f"{begin}: {', '.join(takes)}. Nothing was run or written."


def interrupted(cells: int, count: str, directory: RunDirectory) -> str:
    """Return what an interrupt leaves: so many cells."""
    if not cells:
        return "Interrupted before the first result; the same command starts again."
    kept = f"they are kept in {directory.path}"
    return f"Interrupted after {count}; {kept}, and the same command goes on from there."


def done(summary: Summary, directory: RunDirectory, spell: Spell) -> str:
    """Return what a sweep did: how many cells are done, and why others failed."""
    words = f"{summary.trained} trained in {duration(summary.seconds)}, {summary.reused} reused"
    if summary.failed:
        kinds = count_alike(summary.failed)
        reasons = [f"{kind.count} {kind.words}" for kind in kinds[:MOST_REASONS]]
        if others := kinds[MOST_REASONS:]:
            count = sum(kind.count for kind in others)
            reasons.append(f"{count} for {plural(len(others), 'other reason')}")
        words += f", {summary.failed.total()} failed ({', '.join(reasons)})"
    if summary.earlier:
        words += f", {summary.earlier} failed earlier; {spell('retry_failed')} runs them again"
    if summary.restarts:
        restarts = plural(summary.restarts, "time")
        words += f"; workers were killed and started again {restarts}"
    return f"Done: {words}. The cells are in {directory.path}/cells."


def failures(summary: Summary, spell: Spell) -> list[str]:
    """Return lines on where failed cells raised, and on how many cells were left for it."""
    lines = list[str]()
    for kind in count_alike(summary.failed, summary.tracebacks)[:MOST_REASONS]:
        if kind.traceback:
            lines.append(f"Failed ({plural(kind.count, 'cell')}):")
            lines += [f"  {line}" for line in kind.traceback.splitlines()]
    if summary.left:
        left = f"{plural(summary.left, 'cell')} {'was' if summary.left == 1 else 'were'} not run."
        again = f"Correct the function and repeat the command with {spell('retry_failed')}."
        stopped = f"Stopped: {summary.stopped}. {left} {again}" if summary.stopped else ""
        lines.append(stopped or f"Stopped after a failed cell ({spell('fail_fast')}): {left}")
    return lines


# Refinement


def round_begins(plan: Plan, number: int, spell: Spell) -> list[str]:
    """Return what a round of a refinement runs, and at the first what is kept."""
    what = "The coarse grid" if number == 0 else f"Round {number}"
    to_run = f"{what}: {plural(len(plan.cells), 'cell')}, {plan.to_run} to run."
    return [to_run] if number else [to_run, *_of_earlier_code(plan, spell)]


def rounds_to_come(refinement: Refinement) -> str:
    """Return what a dry run of the coarse grid leaves out."""
    first, seeds = len(refinement.coarse_grid.seeds), len(refinement.grid.seeds)
    of = f"with {first} of {plural(seeds, 'seed')}"
    return (
        f"That is the coarse grid, {of}; up to {refinement.rounds} rounds of fewer cells follow it."
    )


def boundary(refinement: Refinement) -> list[str]:
    """Return where the boundary lies, at what cost, and at which values that isn't known."""
    search, found, x, y = refinement.search, refinement.estimates, refinement.x, refinement.y
    spacings = round((search.coarse[-1] - search.coarse[0]) / search.tolerance)
    full = len(search.y) * len(search.seeds) * (spacings + 1)
    known = sum(bool(point.crossing_seeds) and point.converged for point in found)
    sentences = [
        f"A grid with the tolerance's spacing would have {full} cells: these are "
        f"{percent(len(refinement.asked) / full, 1)} of it.",
        f"The crossing of {refinement.value} = {search.threshold:g} along {x}, the median of "
        f"{plural(len(search.seeds), 'seed')}, is known to ±{search.tolerance:.3g} "
        f"({percent(CONFIDENCE)}) at {known} of {plural(len(found), 'value')} of {y}.",
    ]
    for point in found:
        name = f"{y} = {point.y:g}"
        if not point.crossing_seeds:
            side = f"stay {point.side}" if point.side else "have no number"
            sentences.append(f"{name}: no crossing; its seeds {side}.")
        elif not point.converged:
            sentences.append(f"{name}: {point.crossing:.4g} ± {point.half_width:.3g} only.")
    return sentences
