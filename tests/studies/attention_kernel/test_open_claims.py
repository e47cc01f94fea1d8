"""Claims on what the paper leaves open: ranks, tangent kernels, and its proofs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from tests.judged import measure
from tests.studies.attention_kernel.test_regression_claims import frame

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
