from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from overfit_cli.claim import Measurement
from overfit_cli.studies.attention_kernel.regression.claims import CLAIMS
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters
from overfit_cli.studies.attention_kernel.regression.study import study

BY_NAME = {claim.name: claim for claim in CLAIMS}


def frame(*rows: Mapping[str, object], seeds: int = 3) -> pd.DataFrame:
    """Cells of the demo with these values; every measurement is there, null where not given."""
    defaults = KernelRegressionParameters().model_dump()
    columns = {column.name: np.nan for column in study.columns}
    filled = [
        {**columns, **defaults, "status": "done", "steps": 3000, "seed": seed, **row}
        for row in rows
        for seed in range(seeds)
    ]
    return pd.DataFrame(filled)


def judged(name: str, cells: pd.DataFrame) -> Measurement:
    return BY_NAME[name].judge(cells)


def test_gaussian_zero_holds_where_one_step_size_serves_all_seeds() -> None:
    good = {"learning_rate": 0.1, "relative_loss": 1e-9, "floor": 0.0, "condition_12": 800.0}
    bad = good | {"learning_rate": 3.0, "relative_loss": 0.5}
    held = judged("theorem3-gaussian-below", frame(good, bad))
    assert (held.verdict, held.value) == ("holds", 1.0)
    assert "3 at 0.1, 0 at 3" in held.note
    assert "800 decades" in held.note
    assert judged("theorem3-gaussian-below", frame(bad)).verdict == "fails"
    assert judged("theorem3-gaussian-below", frame(good, seeds=2)).verdict == "inconclusive"
    assert judged("theorem3-gaussian-inside", frame(good)).verdict == "not run"


def test_a_claim_doesnt_mix_cells_of_different_lengths() -> None:
    short = {"training_steps": 10, "relative_loss": 0.5, "condition_12": 1.0}
    long = {"training_steps": 1500, "relative_loss": 1e-9, "condition_12": 1.0}
    found = judged("theorem3-gaussian-below", frame(short, long))
    assert found.verdict == "not run"
    assert "one value of training_steps" in found.note


def test_softmax_stops_where_its_floor_is_reached_and_no_seed_gets_to_zero() -> None:
    softmax = {"kernel": "softmax", "relative_loss": 0.4, "floor_ratio": 1.02}
    assert judged("theorem3-softmax-below", frame(softmax)).verdict == "holds"
    far = softmax | {"floor_ratio": 1.3}
    assert judged("theorem3-softmax-below", frame(far)).verdict == "inconclusive"
    zero = {"kernel": "softmax", "target": "inside", "relative_loss": 1e-8}
    assert judged("theorem3-softmax-inside", frame(zero)).verdict == "fails"
    slow = zero | {"relative_loss": 0.1}
    assert judged("theorem3-softmax-inside", frame(slow)).verdict == "inconclusive"


def test_the_rate_of_theorem_3_can_fail() -> None:
    cell = {"relative_loss": 1e-9, "pl_ratio_min": 0.1, "log10_gamma": -1000.0}
    assert judged("theorem3-rate", frame(cell)).verdict == "holds"
    none = cell | {"pl_ratio_min": 0.0}
    assert judged("theorem3-rate", frame(none)).verdict == "fails"
    nowhere = cell | {"relative_loss": 0.5}
    assert judged("theorem3-rate", frame(nowhere)).verdict == "inconclusive"
    aside = none | {"learning_rate": 30.0, "relative_loss": 0.5}
    assert "3 of 3 cells came to a gradient" in judged("theorem3-rate", frame(cell, aside)).note


def test_bounds_are_counted_by_heads_and_only_at_stable_steps() -> None:
    def row(heads: int, broken: int, stability: float = 0.5) -> dict[str, object]:
        rates = {"rate_paper": 0.1, "rate_corrected": 0.01, "violations_corrected": 0}
        base = {"kernel": "softmax", "trained": "value", "heads": heads, "stability": stability}
        return {**base, **rates, "violations_paper": broken}

    cells = frame(row(1, 0), row(2, 0), row(4, 7))
    broken = judged("theorem1-paper", cells)
    assert (broken.verdict, broken.value) == ("fails", 21.0)
    assert "3 of 3 cells at H 4" in broken.note
    assert judged("theorem1-corrected", cells).verdict == "holds"
    unstable = frame(row(1, 0), row(2, 0), row(4, 7, stability=3.0))
    assert judged("theorem1-paper", unstable).verdict == "inconclusive"
    assert judged("theorem2-paper", cells).verdict == "not run"


def test_conditions_are_judged_in_decades_whatever_the_labels() -> None:
    cells = frame(*({"target": t, "condition_12": d} for t, d in (("below", 5.0), ("inside", 9.0))))
    found = judged("condition-12", cells)
    assert (found.verdict, found.low, found.high) == ("fails", 5.0, 9.0)
    assert judged("condition-12", frame({"condition_12": -1.0})).verdict == "holds"


def test_the_example_holds_only_where_gradients_are_exactly_zero_and_the_loss_stays() -> None:
    sizes = KernelRegressionParameters.model_validate({"instance": "example"}).model_dump()
    stuck = {
        **sizes,
        "kernel": "softmax",
        "gradient_query_start": 0.0,
        "gradient_key_start": 0.0,
        "start_loss": 1.0,
        "train_loss": 1.0,
    }
    assert judged("example-gradient", frame(stuck)).verdict == "holds"
    almost = stuck | {"gradient_key_start": 1e-17}
    assert judged("example-gradient", frame(almost)).verdict == "fails"
    moved = stuck | {"train_loss": 0.999}
    assert judged("example-gradient", frame(moved)).verdict == "fails"
    free = stuck | {"value_gap": 1.0, "gradient_query_start": 0.3, "relative_loss": 0.2}
    assert judged("example-escape", frame(free)).verdict == "holds"
    assert judged("example-escape", frame(free | {"relative_loss": 1.0})).verdict == "fails"
    gaussian = stuck | {"kernel": "gaussian", "gradient_query_start": 2.0, "relative_loss": 0.5}
    assert judged("example-gaussian", frame(gaussian)).verdict == "holds"
    assert judged("example-gaussian", frame(stuck | {"kernel": "gaussian"})).verdict == "fails"
