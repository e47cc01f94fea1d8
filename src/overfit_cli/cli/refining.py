"""The rounds of `overfit sweep --refine`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from overfit_cli.analysis.boundary_curves import CONFIDENCE
from overfit_cli.analysis.boundary_search import Found
from overfit_cli.cli.common import next_lines
from overfit_cli.cli.running import Runner
from overfit_cli.cli.sentences import (
    failed_in_words,
    left_in_words,
    restarts_in_words,
    source_in_words,
)
from overfit_cli.sweeps.execute import Summary
from overfit_cli.sweeps.refine import Refinement
from overfit_cli.words import duration, plural


def refine(runner: Runner, refinement: Refinement, rounds: int) -> Summary:
    """Run the coarse grid and up to `rounds` rounds after it; say what is known at the end.

    Returns:
        What all rounds did together.
    """
    total, reused, found = Summary(), 0, list[Found]()
    recorded = False
    settings: dict[str, int | float] = {"refine": rounds, "tolerance": refinement.search.tolerance}
    for number in range(rounds + 1):
        cells = refinement.next_cells()
        if not cells:
            break
        plan = runner.plan(refinement.coarse_grid, cells)
        read = runner.prepare(plan)
        what = "The coarse grid" if number == 0 else f"Round {number}"
        runner.output.print(f"{what}: {plural(len(cells), 'cell')}, {plan.to_run} to run.")
        if number == 0:
            for sentence in source_in_words(plan):
                runner.output.print(sentence)
        if not recorded:
            runner.record(plan, read, **settings)
            recorded = bool(plan.batches)
        summary = runner.run(plan, read)
        total.add(summary)
        reused += plan.done
        found = refinement.learn(runner.directory)
        if runner.fail_fast and summary.failed:
            break
    place = runner.directory.path
    level = f"{refinement.target.threshold:g}"
    following = ["plot", refinement.target.figure, "--from", str(place), "--threshold", level]
    for sentence in [
        *([f"Stale cells there, of another version: {plan.stale}."] if plan.stale else []),
        _done(refinement, total, reused),
        *left_in_words(total),
        *_in_words(refinement, found),
        f"The cells are in {place}/cells.",
        *next_lines(following),
    ]:
        runner.output.print(sentence)
    return total


def _done(refinement: Refinement, total: Summary, reused: int) -> str:
    failed = f", {failed_in_words(total)}" if total.failed else ""
    failed += restarts_in_words(total)
    grid = len(refinement.search.y) * len(refinement.search.seeds)
    low, high = refinement.search.coarse[0], refinement.search.coarse[-1]
    full = grid * (round((high - low) / refinement.search.tolerance) + 1)
    return (
        f"Done: {total.trained} trained in {duration(total.seconds)}, {reused} reused{failed}. A "
        f"grid with the tolerance's spacing would have {full} cells: these are "
        f"{refinement.asked / full:.1%} of it."
    )


def _in_words(refinement: Refinement, found: Sequence[Found]) -> list[str]:
    """What is known of the boundary, and what isn't."""
    search, target = refinement.search, refinement.target
    crossing = [one for one in found if one.crossing_seeds]
    converged = [one for one in crossing if one.converged]
    sentences = [
        f"Where {target.value} crosses {target.threshold:g} along {target.x}, the median of "
        f"{plural(len(search.seeds), 'seed')}, is known to ±{search.tolerance:.3g} "
        f"({CONFIDENCE:.0%}) at {len(converged)} of {plural(len(found), 'value')} of {target.y}."
    ]
    for one in found:
        name = f"{target.y} = {one.y:g}"
        if not one.crossing_seeds:
            side = f"stay {one.side}" if one.side else "have no number"
            of = f"{plural(one.never_seeds, 'seed')} of {len(search.seeds)}"
            sentences.append(f"{name}: no crossing; {of} {side}.")
            continue
        if not one.converged:
            known = f"±{one.half_width:.3g}" if math.isfinite(one.half_width) else "less"
            sentences.append(f"{name}: {one.crossing:.4g}, known to {known} only.")
        if one.never_seeds:
            sentences.append(
                f"{name}: {plural(one.never_seeds, 'seed')} of "
                f"{one.never_seeds + one.crossing_seeds} never cross; they stay {one.side}."
            )
    return sentences
