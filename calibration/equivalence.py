"""Error rates of the verdicts on published means: `python -m calibration.equivalence`.

A run's seeds and a published study's are drawn many times, with the run's true mean at an end of
the margin around the published study's, or with both the same. `docs/verdicts.md` has the ranges.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from overfit_cli.core.arrays import Floats
from overfit_cli.report.compare import Contrast, Margin
from overfit_cli.stats.intervals import summarise

RUNS = 20_000
TAILS = 3
"""The degrees of freedom of Student's t, which stands for numbers with heavy tails."""


@dataclass(frozen=True)
class World:
    """Two studies of one number, 1 in the published one.

    Attributes:
        seeds, published_seeds: how many both have.
        margin: as a user names it.
        deviation: of a seed, in both.
        has_tails: whether seeds have Student's t distribution instead of the normal one.
    """

    seeds: int
    published_seeds: int
    margin: str
    deviation: float = 0.05
    has_tails: bool = False

    def shares(self, mean: float, runs: int = RUNS) -> dict[str, float]:
        """Return the share of each verdict where the run's true mean is this."""
        margin, random = Margin.read(self.margin), np.random.default_rng(0)
        ours = mean + self._noise(random, (runs, self.seeds))
        theirs = 1 + self._noise(random, (runs, self.published_seeds))
        verdicts = [
            margin.verdict(Contrast(run, summarise(published)))
            for run, published in zip(ours, theirs, strict=True)
        ]
        return {name: verdicts.count(name) / runs for name in ("equivalent", "open", "differs")}

    def _noise(self, random: np.random.Generator, shape: tuple[int, int]) -> Floats:
        draws = random.standard_normal(shape)
        if self.has_tails:
            draws = random.standard_t(TAILS, shape) / np.sqrt(TAILS / (TAILS - 2))
        return self.deviation * draws


WORLDS = (
    *(World(seeds, 24, "10%") for seeds in (5, 6, 10, 24)),
    World(5, 5, "10%"),
    World(6, 24, "50%"),
    World(6, 24, "0.1"),
    World(6, 24, "10%", deviation=0.1),
    World(6, 24, "10%", has_tails=True),
)


def edge(margin: str) -> float:
    """Return the run's mean at the upper end of a margin around 1."""
    return 1 + Margin.read(margin).size


def rows(runs: int = RUNS) -> Iterator[str]:
    """Yield the rows of the table."""
    heads = ("edge: equivalent", "edge: differs", "equal: equivalent")
    yield f"| seeds | margin | deviation of a seed | {' | '.join(heads)} |"
    yield "|---|---|---|--:|--:|--:|"
    for world in WORLDS:
        at_edge, equal = world.shares(edge(world.margin), runs), world.shares(1.0, runs)
        deviation = f"{100 * world.deviation:g} %{', heavy tails' if world.has_tails else ''}"
        yield (
            f"| {world.seeds} against {world.published_seeds} | {world.margin} | {deviation} | "
            f"{100 * at_edge['equivalent']:.1f} % | {100 * at_edge['differs']:.1f} % | "
            f"{100 * equal['equivalent']:.1f} % |"
        )


if __name__ == "__main__":
    sys.stdout.write("\n".join([*rows(), ""]))
