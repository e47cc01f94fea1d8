"""Claims on what the paper leaves open: ranks, tangent kernels, and its proofs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from overfit_cli import Measurement
from tests.judged import measure
from tests.studies.attention_kernel.test_regression_claims import frame, part

AT_START = {"kernel": "softmax", "trained": "value", "training_steps": 1}


def ranks(*sizes: tuple[int, int, int, float], kernel: str = "softmax") -> pd.DataFrame:
    """Cells with four tokens a sample and these N, D, d and δ."""
    return frame(
        *(
            AT_START | {"kernel": kernel, "n": n, "d": d, "d_h": d_h, "delta": delta}
            for n, d, d_h, delta in sizes
        )
    )


def test_five_sizes_suffice_where_every_cell_of_them_has_full_rank_under_both_kernels() -> None:
    softmax = (2, 8, 4, 1e-3), (4, 9, 8, 1e-3), (4, 8, 8, 1e-17), (4, 13, 5, 1e-17)
    gaussian = (2, 6, 6, 1e-3), (4, 7, 10, 1e-3), (4, 6, 12, 1e-17)

    def measured(*more: tuple[int, int, int, float]) -> Measurement:
        parts = ranks(*softmax, *more), ranks(*gaussian, kernel="gaussian")
        return measure("ranks-softmax-five", pd.concat(parts, ignore_index=True))

    held = measured()
    assert held.verdict == "holds"
    assert held.details["softmax"] == held.details["Gaussian"] == 1
    assert measured((4, 13, 6, 1e-17)).verdict == "fails"
    assert measured((4, 13, 6, np.nan)).verdict == "inconclusive"
    assert measure("ranks-softmax-five", ranks(*softmax)).verdict == "not run"


NEAR = {"trained": "query", "target": "near", "sigma_w": 0.02, "condition_12": -0.5}


def descents(softmax: float, gaussian: float) -> pd.DataFrame:
    """Cells of both kernels that come down in so many steps, at one step size each."""
    cells = frame(
        NEAR | {"kernel": "softmax", "learning_rate": 4e4, "steps_to_millionth": softmax},
        NEAR | {"kernel": "gaussian", "learning_rate": 10.0, "steps_to_millionth": gaussian},
    )
    spread = np.where(cells["kernel"] == "softmax", 2e-3, 1e-3)
    cells["steps_to_millionth"] *= 1 + spread * cells["seed"]
    return cells


def test_steps_at_the_best_step_sizes_are_compared_seed_by_seed() -> None:
    assert measure("tangent-slower", descents(300.0, 100.0)).verdict == "holds"
    assert measure("tangent-slower", descents(50.0, 100.0)).verdict == "fails"
    assert measure("tangent-slower", descents(np.nan, 100.0)).verdict == "inconclusive"


def test_a_small_gradient_in_the_values_refutes_27() -> None:
    cell = {"kernel": "softmax", "trained": "value", "heads": 4, "lambda_b": 0.1, "rate_paper": 0.2}
    assert measure("lemma1-value-several", frame(cell | {"pl_ratio_min": 0.2})).verdict == "holds"
    assert measure("lemma1-value-several", frame(cell | {"pl_ratio_min": 0.1})).verdict == "fails"
    flat = cell | {"pl_ratio_min": 0.1, "lambda_b": 0.0}
    assert measure("lemma1-value-several", frame(flat)).verdict == "vacuous"


NEAR_OPTIMUM = {"kernel": "softmax", "trained": "all", "target": "near", "heads": 4}


def with_layers(*rows: Mapping[str, object], alone: float = 1000.0) -> pd.DataFrame:
    """Cells without layers on top, and with 1, 2 and 4; rows change those of each."""
    base = {"kernel": "softmax", "heads": 4, "lambda_b": 0.1, "learning_rate": 0.01}
    base |= {"train_loss": 1e-7, "gradient": 1.0, "relative_loss": 1e-7}
    cells = frame(
        base | {"trained": "all", "steps_to_millionth": alone},
        *(
            base
            | {"trained": f"layers-{count}", "steps_to_millionth": 900.0}
            | {"steps_to_trillionth": 2000.0, **row}
            for count in (1, 2, 4)
            for row in rows or ({},)
        ),
    )
    cells["steps_to_millionth"] *= (
        1 + cells["seed"] * np.where(cells["trained"] == "all", 1, 2) / 1e3
    )
    return cells


def test_layers_converge_linearly_at_some_step_size_or_not() -> None:
    name = "corollary1-linear"
    assert measure(name, with_layers()).verdict == "holds"
    falling = {"steps_to_trillionth": np.nan, "gradient": 1.0}
    at_another = with_layers(falling, {"learning_rate": 0.02})
    assert measure(name, at_another).verdict == "holds"
    assert measure(name, with_layers(falling)).verdict == "inconclusive"
    stopped = falling | {"gradient": 0.0}
    assert measure(name, with_layers(stopped)).verdict == "fails"
    assert measure(name, with_layers(stopped, {"learning_rate": 0.02})).verdict == "holds"
    assert measure(name, with_layers({}, stopped | {"learning_rate": 0.02})).verdict == "holds"
    too_large = with_layers(falling, stopped | {"learning_rate": 0.02})
    assert measure(name, too_large).verdict == "inconclusive", "the smallest still falls"
    power_law = measure(name, with_layers({"steps_to_trillionth": 1e5}))
    assert (power_law.verdict, power_law.details["seeds that do, layers-2"]) == ("fails", 0)
    longer = falling | {"steps": 100_000}
    assert measure(name, with_layers(longer)).verdict == "fails", "30 times the steps are over"
    uncounted = stopped | {"relative_loss": 1e-13}
    assert measure(name, with_layers(uncounted)).verdict == "inconclusive", "it has come down"
    lost = with_layers(stopped)
    lost.loc[lost["seed"] < 20, ["status", "reason"]] = ["failed", "worker killed"]
    assert measure(name, lost).verdict == "inconclusive"
    assert measure(name, with_layers({"lambda_b": 0.0})).verdict == "vacuous"
    one_depth = with_layers()
    assert measure(name, one_depth[one_depth["trained"] != "layers-4"]).verdict == "not run"


def test_layers_take_as_many_steps_or_fewer_or_more() -> None:
    assert measure("remark2-rate", with_layers()).verdict == "holds"
    assert measure("remark2-rate", with_layers({"steps_to_millionth": 100.0})).verdict == "holds"
    assert measure("remark2-rate", with_layers({"steps_to_millionth": 2500.0})).verdict == "fails"
    never = {"steps_to_millionth": np.nan, "steps": 3000}
    assert measure("remark2-rate", with_layers(never)).verdict == "fails", "3000 steps and more"
    cells = with_layers()
    lost = (cells["trained"] == "layers-2") & (cells["seed"] < 5)
    cells.loc[lost, ["status", "reason"]] = ["failed", "worker killed"]
    cells.loc[lost, "steps_to_millionth"] = np.nan
    assert measure("remark2-rate", cells).verdict == "inconclusive"
    cells = with_layers(alone=np.nan)
    assert measure("remark2-rate", cells).verdict == "holds", "without layers it takes more"


def test_theorem_2_is_judged_near_the_optimum_by_itself() -> None:
    near = NEAR_OPTIMUM | {
        **{"condition_8": -1.0, "lambda_b": 0.1, "stability": 0.4, "rate_margin": 1.2},
        **{"rate_paper": 0.1, "relative_loss": 1e-5, "violations_paper": 0},
    }
    assert measure("theorem2-near-four", frame(near)).verdict == "holds"
    broken = near | {"violations_paper": 7}
    assert measure("theorem2-near-four", frame(broken)).verdict == "fails"
    missed = broken | {"condition_8": 1.0}
    assert measure("theorem2-near-four", frame(missed)).verdict == "vacuous"
    balanced = near | {"target": "below", "balance": 1e20, "rate_paper": 1e39}
    both = pd.concat([frame(balanced, balanced | {"learning_rate": 0.03}), frame(broken)])
    assert part("theorem2-paper-two", "H = 4", both).verdict == "holds"
    assert measure("theorem2-near-four", both).verdict == "fails"
