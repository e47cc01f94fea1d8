"""Does a second head help: verdicts on cells whose answer is known."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from overfit_cli.studies.multihead.planted.parameters import MultiheadPlantedParameters
from tests.judged import measure

SEEDS = 10
RATES = (1.0, 2.0, 4.0)
LIMIT = 1000


def cells(steps: Mapping[int, float], *, spent: Mapping[int, int] | None = None) -> pd.DataFrame:
    """A row for each H, step size and seed; every H is best at the middle step size.

    Args:
        steps: those of each H to the target loss, at its best.
        spent: on how many seeds each H doesn't come to it.
    """
    rows = []
    for heads, rate, seed in itertools.product(steps, RATES, range(SEEDS)):
        given = {"heads": heads, "learning_rate": rate, "head_width": "shared", "d": 8}
        parameters = MultiheadPlantedParameters.model_validate(
            given | {"initialisation": "gaussian", "training_steps": LIMIT, "epsilon": 0.02}
        )
        failed = seed < (spent or {}).get(heads, 0)
        taken = steps[heads] * (1 + abs(np.log2(rate) - 1)) * (1 + 0.01 * seed)
        rows.append(
            {
                **parameters.model_dump(),
                "key": f"{heads}-{rate}-{seed}",
                "seed": seed,
                "status": "failed" if failed else "done",
                "reason": "step limit" if failed else "",
                "steps": LIMIT if failed else round(taken),
                "steps_to_target": np.nan if failed else round(taken),
                "test_error": 0.02 * heads + 0.001 * seed,
            }
        )
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("steps", "verdict"), [({1: 100, 2: 50, 4: 70}, "holds"), ({1: 100, 2: 150, 4: 200}, "fails")]
)
def test_a_second_head_is_held_to_one_at_its_best_step_size(
    steps: Mapping[int, float], verdict: str
) -> None:
    measurement = measure("planted-second-head", cells(steps))
    assert measurement.verdict == verdict
    assert measurement.value == pytest.approx(steps[2] / steps[1], rel=0.01)
    assert measurement.details["step size, H = 4"] == 2.0


def test_seeds_that_do_not_get_there_count_with_all_their_steps() -> None:
    measurement = measure("planted-second-head", cells({1: 100, 2: 300}, spent={2: 3}))
    steps = [300 * (1 + 0.01 * seed) if seed >= 3 else LIMIT for seed in range(SEEDS)]
    over = [step / (100 * (1 + 0.01 * seed)) for seed, step in enumerate(steps)]
    assert measurement.verdict == "fails"
    assert measurement.value == pytest.approx(np.exp(np.mean(np.log(over))), rel=0.01)
    assert measurement.details["not at the target, H = 2"] == 3


@pytest.mark.parametrize(
    ("steps", "spent"), [({1: 900, 2: 300}, {2: 1}), ({1: 100, 2: 500}, {1: 1})]
)
def test_no_verdict_is_given_for_heads_some_of_which_do_not_get_there(
    steps: Mapping[int, float], spent: Mapping[int, int]
) -> None:
    assert measure("planted-second-head", cells(steps)).verdict != "inconclusive"
    measurement = measure("planted-second-head", cells(steps, spent=spent))
    assert measurement.verdict == "inconclusive"
    assert "don't come to the target loss" in measurement.note


def test_errors_are_compared_where_training_ended() -> None:
    measurement = measure("planted-second-head-error", cells({1: 100, 2: 300}, spent={2: 3}))
    assert measurement.verdict == "fails"
    assert measurement.value == pytest.approx(0.02)
