"""Made-up worlds for the claims of `kernel-text` and `kernel-pathfinder`, with measured noise.

Each kernel's best step size is chosen from the same noisy cells that are then compared, as in what
was measured: so the choice is a part of every world.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from calibration.rates import World, Worlds
from calibration.worlds import Numbers, Random, worlds_from
from overfit_cli.studies.attention_kernel.classifier_claims import LOWER
from overfit_cli.studies.attention_kernel.parameters import PAPER_STEPS, PAPER_TRAINING

Deviations = tuple[float, float, float]
"""Of what all cells of a seed share, of what a kernel's cells of a seed share, and of a cell."""


@dataclass(frozen=True)
class Measured:
    """What the kept results have, over seeds.

    Attributes:
        rates, losses: step sizes, and softmax's mean loss at each.
        loss_noise, noise: deviations of losses and of final accuracies.
        accuracy, shortcut_noise: the mean final accuracy, and the shortcut rule's own deviation.
        lucky, jump: the share of runs that end higher than the others, and by how much.
    """

    rates: tuple[float, ...]
    losses: tuple[float, ...]
    loss_noise: Deviations
    accuracy: float
    noise: Deviations
    shortcut_noise: float
    lucky: float = 0.0
    jump: float = 0.0


TEXT = Measured(
    rates=(0.0001, 0.0003, 0.001, 0.003),
    losses=(0.539, 0.496, 0.511, 0.611),
    loss_noise=(0.013, 0.0, 0.012),
    accuracy=0.766,
    noise=(0.017, 0.002, 0.009),
    shortcut_noise=0.004,
)
PATHFINDER = Measured(
    rates=(0.0002, 0.001, 0.003),
    losses=(0.683, 0.682, 0.684),
    loss_noise=(0.006, 0.004, 0.005),
    accuracy=0.5,  # of runs that learn nothing
    noise=(0.02, 0.0, 0.01),
    shortcut_noise=0.016,
    lucky=0.92,
    jump=0.115,
)


def trained_cells(
    design: pd.DataFrame,
    random: Random,
    like: Measured,
    *,
    gain: float = 0.0,
    flat: bool = True,
    more: float = 0.0,
    above: float = 0.0,
    lucky: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """Return cells of kernels that differ from softmax by what is said, and in nothing else.

    Args:
        design: parameters and seeds.
        random: the source of the noise.
        like: what was measured.
        gain: how much lower than softmax's the other kernels' losses are.
        flat: whether theirs are the same at every step size, so that the choice among them gains
            the most by chance; else they follow softmax's.
        more: how much higher the other kernels' accuracies are.
        above: how much higher softmax's is than the shortcut rule's.
        lucky: the share of runs that end higher, where a kernel's isn't the measured one.
    """
    other = design["kernel"].to_numpy() != "softmax"
    curve = np.interp(np.log(design["learning_rate"]), np.log(like.rates), like.losses)
    level = np.where(other & flat, curve.min(), curve)
    loss = level - gain * other + _noise(design, random, like.loss_noise)
    share = design["kernel"].map(lucky or {}).fillna(like.lucky).to_numpy(float)
    jumps = like.jump * (random.random(len(design)) < share)
    test_set, kernel, cell = like.noise
    by_seed = _seed_noise(design, random, test_set)
    loss_noise = _noise(design, random, (0.0, kernel, cell))
    accuracy = like.accuracy + by_seed + loss_noise + jumps + more * other
    mean = like.accuracy + like.lucky * like.jump - above
    shortcut = mean + by_seed + _seed_noise(design, random, like.shortcut_noise)
    return design.assign(
        steps=400,
        mean_test_loss=loss,
        test_accuracy=np.round(accuracy, 3),  # of a thousand test samples
        shortcut_accuracy=np.round(shortcut, 3),
        silent_head=0.0,
    )


def logged_twice(design: pd.DataFrame, random: Random, *, world: World) -> pd.DataFrame:
    """Return the same cells at two logged steps, of which the first is before training."""
    cells = world(design, random)
    return pd.concat([cells.assign(step=step) for step in (0, 400)], ignore_index=True)


def _noise(design: pd.DataFrame, random: Random, deviations: Deviations) -> Numbers:
    seed, kernel, cell = deviations
    kernels, codes = np.unique(design["kernel"].to_numpy(str), return_inverse=True)
    by_kernel = random.normal(0, kernel, (_seeds(design), len(kernels)))
    noise: Numbers = (
        _seed_noise(design, random, seed)
        + by_kernel[design["seed"].to_numpy(), codes]
        + random.normal(0, cell, len(design))
    )
    return noise


def _seed_noise(design: pd.DataFrame, random: Random, deviation: float) -> Numbers:
    draws: Numbers = random.normal(0, deviation, _seeds(design))[design["seed"].to_numpy()]
    return draws


def _seeds(design: pd.DataFrame) -> int:
    return int(design["seed"].max()) + 1


def _worlds(true: World, false: World) -> Worlds:
    """Worlds of a claim: where it is false the kernels are alike, or seeds are few."""
    return worlds_from(true, false, LOWER.fewest_seeds)


def real(design: pd.DataFrame, random: Random, *, world: World, task: str) -> pd.DataFrame:
    """Return cells of the paper's data, model and training."""
    settings = {**PAPER_TRAINING[task], "training_steps": PAPER_STEPS}
    return world(design.assign(**settings), random)


def _real_worlds(task: str, worlds: Mapping[str, Worlds]) -> Iterator[tuple[str, Worlds]]:
    """The worlds of the claims on the paper's data, by their names after the source."""
    on_it = partial(real, task=task)
    for name, three in worlds.items():
        made = (partial(on_it, world=each) for each in (three.true, three.false, three.open))
        yield f"{task}-{PAPER_TRAINING[task]['source']}-{name}", Worlds(*made)


def _paper_worlds(like: Measured) -> dict[str, Worlds]:
    """The worlds of the claims at one step size that both studies have."""
    world = partial(trained_cells, like=like)
    at_one = partial(world, flat=False)
    return {
        "gaussian-faster": _worlds(partial(at_one, gain=0.05), at_one),
        "gaussian-more-accurate": _worlds(partial(world, more=0.1), world),
    }


_OF_TEXT = partial(trained_cells, like=TEXT)
_ALIKE = partial(trained_cells, like=PATHFINDER)
_STEADY = partial(_ALIKE, lucky={"gaussian": 0.0, "softmax": 0.5})
_OF_CURVES = {
    "gaussian-steadier-epochs": _worlds(
        partial(logged_twice, world=_STEADY), partial(logged_twice, world=_ALIKE)
    ),
}

WORLDS: Mapping[str, Worlds] = {
    "text-gaussian-faster": _worlds(partial(_OF_TEXT, gain=0.05), _OF_TEXT),
    "pathfinder-above-shortcut": _worlds(partial(_ALIKE, above=0.1), _ALIKE),
    **dict(_real_worlds("text", _paper_worlds(TEXT))),
    **dict(_real_worlds("pathfinder", _paper_worlds(PATHFINDER) | _OF_CURVES)),
}
