"""Rates of error of a user's claims, in worlds of known truth.

Numbers of seeds are normal, have heavy tails, two modes or ties; cells are absent; seeds are added
in further looks. Each world lies at its margin's end: there a claim is as nearly false as it can
be, and as nearly true. `python -m calibration.sentences` prints the tables of the documents: these
rates, and those that resampling the cells gives beside those of the papers' made-up worlds.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
import pandas as pd

from calibration.rates import World, design, worlds_of
from overfit_cli.claims.parts import FEWEST, Margin, Part, Statistic
from overfit_cli.claims.rules import judge, rates
from overfit_cli.claims.sentences import read
from overfit_cli.claims.stated import Measure
from overfit_cli.core.arrays import Floats
from overfit_cli.core.registry import claims_of, installed_studies
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.training import named_rng
from overfit_cli.stats.intervals import level_of_each, set_level

Draw = Callable[[np.random.Generator, int], Floats]

WORLDS: Mapping[str, Draw] = {
    "normal": lambda random, count: random.normal(size=count),
    "heavy tails": lambda random, count: random.standard_t(2, count),
    "skewed": lambda random, count: random.lognormal(0, 1, count),
    "two modes": lambda random, count: (
        random.choice([-1.0, 1.0], count) * 3 + random.normal(0, 0.3, count)
    ),
    "ties": lambda random, count: np.round(random.normal(size=count) * 2) / 2,
}
"""Numbers of seeds, by the kind of their distribution."""

CENTRES: Mapping[Statistic, Callable[[Floats], float]] = {
    "median": lambda numbers: float(np.median(numbers)),
    "mean": lambda numbers: float(np.mean(numbers)),
}

TRUTH_DRAWS = 400_001


def rate(
    world: str,
    statistic: Statistic,
    seeds: int,
    *,
    settings: int = 1,
    two_ended: bool = False,
    absent: float = 0.0,
    looks: int = 0,
    repeats: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """Return the shares of false `holds` and of false `fails` at a margin's end.

    Args:
        world: one of `WORLDS`.
        statistic: what is judged over seeds.
        seeds: the number of seeds of the last look.
        settings: how many settings there are, all at the margin's end.
        two_ended: whether the margin has another end, ten deviations away.
        absent: the share of cells that are absent.
        looks: how often half as many seeds are added: a verdict at any look counts.
        repeats, seed: of the simulation.
    """
    random = np.random.default_rng(seed)
    draw = WORLDS[world]
    truth = CENTRES[statistic](draw(np.random.default_rng(1), TRUTH_DRAWS))
    just_false, just_true = (
        replace(_margin(f"number {sign} {truth!r}", two_ended), fewest_seeds=FEWEST[statistic])
        for sign in ("<", "<=")
    )
    held = failed = 0
    for _ in range(repeats):
        numbers = np.stack([draw(random, seeds * 2**looks) for _ in range(settings)])
        lost = random.random(numbers.shape) < absent
        low, high = np.where(lost, -np.inf, numbers), np.where(lost, np.inf, numbers)
        verdicts: dict[Margin, set[str]] = {just_false: set(), just_true: set()}
        for look in range(looks + 1):
            count = seeds * 2**look
            for margin, given in verdicts.items():
                parts = [
                    Part(str(index), low[index, :count], high[index, :count], margin, statistic)
                    for index in range(settings)
                ]
                with set_level(level_of_each(2**look)):
                    given.add(judge(parts).verdict)
        held += "holds" in verdicts[just_false]
        failed += "fails" in verdicts[just_true]
    return held / repeats, failed / repeats


def _margin(text: str, two_ended: bool) -> Margin:
    """The margin of a sentence; with another end, ten deviations away."""
    margin = read(text).clauses[0].quantity.margin
    return replace(margin, least=margin.most - 10 if two_ended else -np.inf)


DESIGNS: tuple[Mapping[str, float], ...] = (
    {"seeds": 6},
    {"seeds": 10},
    {"seeds": 20},
    {"seeds": 10, "settings": 5},
    {"seeds": 20, "absent": 0.05},
    {"seeds": 6, "looks": 2},
)
"""The designs of the documents' table."""


def table() -> str:
    """Return the rates of all worlds and designs as a table."""
    lines = [
        "| world | over seeds | seeds | settings | absent | looks | false holds | false fails |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for statistic, world, sizes in itertools.product(CENTRES, WORLDS, DESIGNS):
        looks, settings = int(sizes.get("looks", 0)), int(sizes.get("settings", 1))
        seeds, absent = int(sizes["seeds"]), sizes.get("absent", 0.0)
        measured = rate(world, statistic, seeds, settings=settings, absent=absent, looks=looks)
        held, failed = (f"{100 * share:.1f} %" for share in measured)
        lines.append(
            f"| {world} | {statistic} | {seeds} | {settings} | {100 * absent:.0f} % | {looks} | "
            f"{held} | {failed} |"
        )
    return "\n".join(lines)


AGREEING = (
    "attention-deficit-formula",
    "attention-deficit-constant",
    "fig2-fitted",
)
"""Claims of papers that are sentences, whose made-up worlds are drawn quickly."""


@dataclass(frozen=True)
class Agreement:
    """Rates of a paper's claim in its made-up worlds, and those that resampling its cells gives.

    Attributes:
        claim: the name of the claim.
        seeds: of its preset.
        holds: the shares of `holds` where it is barely false, made-up and resampled.
        fails: the same of `fails`.
        power: the same of `holds` where it is true.
    """

    claim: str
    seeds: int
    holds: tuple[float, float]
    fails: tuple[float, float]
    power: tuple[float, float]


def agreement(study: AnyStudy, name: str, *, runs: int = 300, resampled: int = 15) -> Agreement:
    """Return the rates of a claim in made-up worlds, and the mean of those by resampling.

    Args:
        study: the study that makes the claim.
        name: the claim, a sentence with made-up worlds.
        runs: how often each world is drawn and judged; the true one half as often.
        resampled: how many draws of the true world are resampled.
    """
    (claim,) = (claim for claim in claims_of(study) if claim.name == name)
    assert isinstance(claim.measure, Measure)
    worlds, cells = worlds_of(study)[name], design(claim.preset)

    def drawn(world: World, run: int, *stream: str) -> pd.DataFrame:
        return world(cells, named_rng(run, *stream))

    false = [
        claim.judge(drawn(worlds.false, run, "w", name, "false")).verdict for run in range(runs)
    ]
    true = [
        claim.judge(drawn(worlds.true, run, "w", name, "true")).verdict for run in range(runs // 2)
    ]
    several = [
        rates(claim.measure.parts(drawn(worlds.true, run, "a", name)), repeats=500)
        for run in range(resampled)
    ]
    return Agreement(
        name,
        int(cells["seed"].nunique()),
        (false.count("holds") / runs, fmean(each.false_holds for each in several)),
        (false.count("fails") / runs, fmean(each.false_fails for each in several)),
        (true.count("holds") / len(true), fmean(each.holds for each in several)),
    )


def agreement_table() -> str:
    """Return the rates of `AGREEING` as a table."""
    lines = [
        "| claim | seeds | false holds: simulated worlds, resampled | false fails | power |",
        "|---|--:|--:|--:|--:|",
    ]
    studies = {claim.name: study for study in installed_studies() for claim in claims_of(study)}
    for each in (agreement(studies[name], name) for name in AGREEING):
        pairs = [
            f"{100 * made_up:.1f} %, {100 * resampled:.1f} %"
            for made_up, resampled in (each.holds, each.fails, each.power)
        ]
        lines.append(f"| `{each.claim}` | {each.seeds} | {' | '.join(pairs)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{table()}\n\n{agreement_table()}\n")
