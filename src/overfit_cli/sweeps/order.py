"""The order in which a sweep's batches start: coarse to fine, so that its picture is there early.

A sweep over two axes of numbers trains the corners of its grid first, then the places halfway
between those it has, pass by pass, all with the first seed. Which cells are trained together stays
as the study says, and so does every number.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from overfit_cli.core.cell import Cell
from overfit_cli.core.parameters import Value
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.plan import Plan
from overfit_cli.sweeps.speed import cost_of

EARLY = 0.5
"""The share of all cost that goes coarse to fine."""

LONG = 0.25
"""The share of a job's cost from which a batch is long: started late, it would end alone."""


def coarse_to_fine(plan: Plan, jobs: int) -> list[list[Cell]]:
    """Return a plan's batches in the order to start them.

    Long batches come first. The rest goes coarse to fine, up to a half of all cost, and from there
    in the study's order, in which cheap batches are last, so that all jobs end together. Without
    two axes of numbers, or with cells between the points of the grid, all go in the study's order.
    """
    batches, passes = plan.batches, _passes(plan)
    if passes is None:
        return batches
    costs = [cost_of(plan.grid.study, batch) for batch in batches]
    total = sum(costs)
    is_late = [cost * jobs <= LONG * total for cost in costs]
    order = sorted(range(len(batches)), key=lambda index: (is_late[index], passes[index]))
    spent = accumulate(costs[index] for index in order)
    early = sum(cost <= EARLY * total for cost in spent)
    return [batches[index] for index in (*order[:early], *sorted(order[early:]))]


def diagram_axes(grid: Grid) -> tuple[str, str] | None:
    """Return the two axes with the most numbers, as (up, across); of equally long ones the first.

    None where there are no two.
    """
    axes = {name: grid.axes[name] for name in grid.free_axes}
    numeric = [
        name
        for name, values in axes.items()
        if not any(isinstance(value, (str, bool)) for value in values)
    ]
    longest = sorted(numeric, key=lambda name: -len(axes[name]))[:2]
    if len(longest) < 2:
        return None
    up, across = (name for name in numeric if name in longest)
    return up, across


def _passes(plan: Plan) -> list[tuple[int, int]] | None:
    axes = diagram_axes(plan.grid)
    if axes is None:
        return None
    y, x = axes
    ups, acrosses = (_depths(plan.grid.axes[name]) for name in axes)
    ranks = {seed: rank for rank, seed in enumerate(plan.grid.seeds)}

    def pass_of(cell: Cell) -> tuple[int, int]:
        up, across = ups[getattr(cell.parameters, y)], acrosses[getattr(cell.parameters, x)]
        depth = max(up, across)
        # Between four places their centre comes first, then the middles of their edges: each pass
        # doubles the places.
        return ranks[cell.seed], 2 * depth + (up != across)

    try:
        return [min(map(pass_of, batch)) for batch in plan.batches]
    except KeyError:  # a cell between the points of the grid
        return None


def _depths(values: Sequence[Value]) -> dict[Value, int]:
    """Return how often a range is halved until it comes to each number; its ends have 0."""
    ascending = sorted(values)
    depths, spans, depth = {ascending[0]: 0, ascending[-1]: 0}, [(0, len(values) - 1)], 0
    while spans:
        depth += 1
        halves = [(low, (low + high) // 2, high) for low, high in spans if high - low > 1]
        depths |= {ascending[middle]: depth for _, middle, _ in halves}
        spans = [span for low, middle, high in halves for span in ((low, middle), (middle, high))]
    return depths
