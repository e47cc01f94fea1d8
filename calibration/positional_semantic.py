"""Made-up worlds for the claims of `positional-semantic`, with noise as it was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pandas as pd

from calibration.rates import Worlds
from calibration.worlds import Numbers, Random, number_worlds_of
from overfit_cli.studies.positional_semantic.claims import CLAIMS, beside_means, beside_theory

STEEP = 0.002
"""How fast the difference of the losses over d falls with log α."""

_worlds = number_worlds_of(CLAIMS)

_LIMITS = {
    "replica_theta": 0.5,
    "replica_m": 0.25,
    "replica_test_error": 0.002,
    "replica_loss": 2.0,
}


def _beside_limit(
    design: pd.DataFrame, numbers: Numbers, random: Random, *, column: str, over: bool
) -> pd.DataFrame:
    """Cells with a column so far from its limit, or so many times as large; noise by cell."""
    limit = f"replica_{'loss' if column == 'train_loss' else column}"
    noisy = numbers + 0.02 * np.abs(numbers) * random.standard_normal(len(design))
    value = _LIMITS[limit] * noisy if over else _LIMITS[limit] + noisy
    return design.assign(steps=5000, **_LIMITS, **{column: value})


def _beside_published(
    design: pd.DataFrame,
    numbers: Numbers,
    random: Random,
    *,
    beside: Callable[..., pd.DataFrame],
    column: str,
    over: bool,
) -> pd.DataFrame:
    """Cells with a column so far from published numbers, or so many times as large."""
    known = beside(design, choose=lambda cells: cells)[f"published_{column}"].to_numpy()
    noisy = numbers + 0.02 * np.abs(numbers) * random.standard_normal(len(design))
    return design.assign(steps=5000, **{column: known * noisy if over else known + noisy})


def _power(design: pd.DataFrame, powers: Numbers, random: Random, *, column: str) -> pd.DataFrame:
    """Cells with a column that goes as a power of d."""
    noise = np.exp(0.3 * random.standard_normal(len(design)))
    return design.assign(steps=5000, **{column: design["d"].to_numpy(float) ** powers * noise})


def _crossing(design: pd.DataFrame, ratios: Numbers, random: Random) -> pd.DataFrame:
    """Cells whose two transitions, at 4 ω in the limit, lie at so many times that."""
    limit = 4 * design["omega"].to_numpy()
    logs, measured = np.log(design["alpha"] / limit), np.log(design["alpha"] / (limit * ratios))
    is_semantic = design["start"] == "semantic"
    return design.assign(
        steps=5000,
        m=0.25,
        replica_m=0.25,
        linear_test_error=0.002,
        replica_linear_error=0.002,
        test_error=0.002 * np.exp(-measured),
        replica_test_error=0.002 * np.exp(-logs),
        train_loss=design["d"] * np.where(is_semantic, 0.003 - STEEP * measured, 0.003),
        replica_loss=design["d"] * np.where(is_semantic, 0.003 - STEEP * logs, 0.003),
    )


def _jumping(design: pd.DataFrame, jumps: Numbers, random: Random) -> pd.DataFrame:
    """Cells at stationary points, whose overlaps jump by so much."""
    is_semantic = design["start"] == "semantic"
    overlaps = {
        "theta": np.where(is_semantic, jumps, 0.0),
        "m": np.where(is_semantic, 0.0, jumps),
    }
    slopes = 0.001 * np.exp(0.1 * random.standard_normal(len(design)))
    return _crossing(design, np.ones(len(design)), random).assign(slope=slopes, **overlaps)


def _of_limit(name: str, column: str, spread: float, *, over: bool) -> dict[str, Worlds]:
    made: Mapping[str, Callable[..., pd.DataFrame]] = {
        "": partial(_beside_published, beside=beside_theory),
        "-solved": _beside_limit,
        "-published": partial(_beside_published, beside=beside_means),
    }
    return {
        f"{name}{end}": _worlds(f"{name}{end}", partial(make, column=column, over=over), spread)
        for end, make in made.items()
        if end != "-solved" or not over
    }


WORLDS: Mapping[str, Worlds] = {
    **_of_limit("semantic-theta", "theta", 0.01, over=False),
    **_of_limit("positional-m", "m", 0.004, over=False),
    **{
        name: worlds
        for start in ("semantic", "positional")
        for column in ("test_error", "train_loss")
        for name, worlds in _of_limit(
            f"{start}-{column.replace('_', '-')}", column, 0.015, over=True
        ).items()
    },
    "semantic-m-vanishes": _worlds("semantic-m-vanishes", partial(_power, column="m"), 0.1),
    "positional-theta-vanishes": _worlds(
        "positional-theta-vanishes", partial(_power, column="theta"), 0.1
    ),
    **{
        name: _worlds(name, make, spread)
        for name, make, spread in (
            ("transition", _crossing, 0.08),
            ("first-order", _jumping, 0.02),
            ("beats-linear", _crossing, 0.08),
        )
    },
}
