"""Sentences of a sweep: its plan, its estimate and its summary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from overfit_cli.cli.subject import Subject
from overfit_cli.figure import MOST_PANELS, Figure
from overfit_cli.parameters import Value
from overfit_cli.registry import figures_of
from overfit_cli.sweeps.estimate import estimate
from overfit_cli.sweeps.execute import Summary
from overfit_cli.sweeps.executors.executor import Executor
from overfit_cli.sweeps.plan import Plan
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.words import about, duration, plural, size

MOST_REASONS = 4
"""Of more reasons why cells failed, a sentence says the number."""


def plan_in_words(plan: Plan, directory: RunDirectory, executor: Executor) -> list[str]:
    """Return what a sweep covers, what is there already, and what will run."""
    grid = plan.grid
    axes = [f"{name} {len(values)}" for name, values in grid.axes.items()]
    shape = " × ".join([*axes, f"seeds {len(grid.seeds)}"])
    cells = plural(plan.of_all(len(plan.cells)), "cell")
    of = "" if plan.shard is None else f" of {grid.size}, shard {plan.shard}"
    covers = f"{grid.study.name}: {cells}{of} ({shape}), {directory.path}"
    done, failed, again = (
        plan.of_all(count) for count in (plan.done, plan.failed, len(plan.again))
    )
    there = [f"{done} there already"] if done else []
    there += [f"{failed} there as failed (--retry-failed runs them)"] if failed else []
    there += [f"{again} run again"] if again else []
    there += [f"{plan.stale} stale, of another version of the study"] if plan.stale else []
    if plan.shard is not None and not plan.cells and plan.share == 1:
        return [f"{covers}.", "This shard has no cell: there are more shards than cells."]
    to_run = f"{plan.of_all(plan.to_run)} to run, {executor.in_words}"
    about = "" if plan.share == 1 else f"From {len(plan.cells)} cells chosen at random, about: "
    return [covers, about + "; ".join([*there, to_run]) + ".", *source_in_words(plan)]


def source_in_words(plan: Plan) -> list[str]:
    """Say how many cells of other code or of other parameters there are, if there are any."""
    name, sentences = plan.grid.study.name, []
    if plan.of_other_source:
        cells = plural(plan.of_all(plan.of_other_source), "cell")
        sentences.append(
            f"The source of {name} has changed since {cells} there were trained; they are kept. "
            "Add --fresh to train all again, or --out DIR to keep both."
        )
    if plan.parameters_changed:
        sentences.append(
            f"The parameters of {name} have changed since cells there were trained "
            f"({plan.parameters_changed}); those cells stay, and figures leave them out."
        )
    return sentences


def estimate_in_words(plan: Plan, executor: Executor, within: float) -> str:
    """Return what a plan would take, from a probe of `within` seconds at most."""
    if not plan.batches:
        return "Nothing would run."
    likely = estimate(plan, executor.jobs_asked, executor.device, within)
    nothing = "Nothing was run or written."
    memory = [] if likely.memory is None else [f"{size(likely.memory)} of memory"]
    if likely.seconds is None or likely.disk is None:
        known = "".join(f"; about {needed}" for needed in memory)
        return (
            f"No probe ended within {duration(within)}, so how long it takes isn't known{known}. "
            f"{nothing}"
        )
    source = "From one timed probe"
    if likely.cut:
        source = f"From a small probe, because a typical one took over {duration(within)}"
    time = f"{about(likely.seconds)} on {jobs_in_words(executor)}"
    if len(plan.batches) > 1 and math.isclose(likely.seconds, likely.longest or 0.0):
        time += ", as long as the longest batch"
    takes = [time, *memory, f"{size(likely.disk)} on disk"]
    return f"{source}: {', '.join(takes)}. {nothing}"


def jobs_in_words(executor: Executor) -> str:
    """Return how many jobs an estimate is for, and how many of them a cluster has now."""
    there = executor.jobs
    fewer = f" ({there} there now)" if there != executor.jobs_asked else ""
    return f"{plural(executor.jobs_asked, 'job')}{fewer}"


def failed_in_words(summary: Summary) -> str:
    """Say how many cells failed, and why."""
    shown = summary.failed.most_common(MOST_REASONS)
    reasons = [f"{count} {reason}" for reason, count in shown]
    if others := summary.failed.total() - sum(count for _, count in shown):
        reasons.append(f"{others} for {len(summary.failed) - len(shown)} other reasons")
    return f"{summary.failed.total()} failed ({', '.join(reasons)})"


def restarts_in_words(summary: Summary) -> str:
    """Say how often workers had to be started again; nothing if they hadn't."""
    if not summary.restarts:
        return ""
    return f"; workers were killed and started again {plural(summary.restarts, 'time')}"


def summary_in_words(plan: Plan, directory: RunDirectory, summary: Summary) -> list[str]:
    """Return what a sweep did, where it lies, and what it left."""
    done = f"{summary.trained} trained in {duration(summary.seconds)}, {plan.done} reused"
    if summary.failed:
        done += f", {failed_in_words(summary)}"
    done += restarts_in_words(summary)
    sentences = [f"Done: {done}. The cells are in {directory.path}/cells."]
    return sentences + left_in_words(summary)


def left_in_words(summary: Summary) -> list[str]:
    """Say how many cells a sweep left that ended at a failed one, if any."""
    cells = f"{plural(summary.left, 'cell')} {'is' if summary.left == 1 else 'are'}"
    return [f"Stopped after a failed cell (--fail-fast): {cells} left."] if summary.left else []


def next_command(plan: Plan, directory: RunDirectory, chosen: Subject) -> list[str]:
    """Return a command for what was swept: the preset's figure, one over its axes, a report.

    Empty where none makes sense.
    """
    figures = figures_of(chosen.study)
    wanted = chosen.preset.content.figures if chosen.preset else ()
    axes = plan.grid.axes

    def drawable(name: str) -> bool:
        if figures[name].reads == "trajectories":
            return chosen.trajectories
        options = figures[name].options
        return all(axis is None or axis in axes for axis in (options.x, options.y))

    own = [name for name in wanted if drawable(name)]
    of_steps = [name for name in own if figures[name].reads == "trajectories"]
    others = [name for name, figure in figures.items() if figure.axes == len(axes) > 0]
    source = ["--from", str(directory.path)]
    for name in (*of_steps, *own, *others):
        return ["plot", name, *source]
    if len(axes) > 2:
        return ["plot", "heatmap", *_of_more_axes(figures["heatmap"], axes), *source]
    return ["report", *source] if chosen.study.has_claims else []


def _of_more_axes(heatmap: Figure, axes: Mapping[str, Sequence[Value]]) -> list[str]:
    """Options for a heatmap of more than two axes: panels for one, and one value of each other.

    Those with the most values are the map's, unless the study's own figure says which.
    """
    by_size = sorted(axes, key=lambda name: -len(axes[name]))
    own = [name for name in (heatmap.options.x, heatmap.options.y) if name in axes]
    mapped = own if len(own) == 2 else by_size[:2]
    others = [name for name in by_size if name not in mapped]
    options = ["--by", others.pop()] if len(axes[others[-1]]) <= MOST_PANELS else []
    for name in others:
        values = axes[name]
        options += ["--where", f"{name}={values[len(values) // 2]}"]
    return options
