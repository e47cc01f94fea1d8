"""Verdicts on doctored cells: of the claims on convergence and on diffusion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import overfit_cli
from overfit_cli.studies.softmax_network.claims.table1 import sufficient_widths
from tests.judged import measure, true_cells


def test_one_output_and_several_are_judged_apart() -> None:
    several = true_cells("softmax-linear-rate-outputs").assign(rate_ratio=2.0)
    both = pd.concat([true_cells("softmax-linear-rate"), several], ignore_index=True)
    assert measure("softmax-linear-rate", both).verdict == "holds"
    assert measure("softmax-linear-rate-outputs", both).verdict == "fails"


@pytest.mark.slow
def test_networks_that_take_no_step_decide_no_claim(tmp_path: Path) -> None:
    """With a large ε only eigenvalues are measured; a network that hasn't moved tracks anything."""
    values = {"m": 512, "n": 4, "epsilon": 1000.0, "test_samples": 4}
    cells = overfit_cli.sweep(
        "softmax-convergence", seeds=10, parameters=values, out=tmp_path / "run", jobs=1
    )
    assert (cells["steps"] == 0).all()
    verdicts = {found.claim.name: found.measurement for found in overfit_cli.judge(cells)}
    assert "softmax-equation-24" in verdicts
    assert {one.verdict for one in verdicts.values()} == {"not run"}, verdicts


def test_a_width_suffices_from_which_on_training_is_quick_enough() -> None:
    """Ratios of 8, 4, 1 cross two half way from 20 to 40 on a scale of ratios; a limit is slow.

    Each kind of data is measured by itself.
    """
    ratios = [8.0, 4.0, 1.0, np.nan, 4.0, 1.0, 9.0, 5.0, 3.0, 1.5, 1.2, 1.0]
    cells = pd.DataFrame({"seed": np.repeat(range(4), 3), "m": [10, 20, 40] * 4})
    cells = cells.assign(steps_over_limit=ratios, activation="exp", n=4, d=2, data="sphere")
    other = cells.assign(data="digits", steps_over_limit=1.0)
    found = sufficient_widths(pd.concat([cells, other])).set_index(["data", "seed"])["width"]
    assert found["sphere"][0] == found["sphere"][1] == pytest.approx(np.sqrt(20 * 40))
    assert found["sphere"][2] == np.inf
    assert found["sphere"][3] == 0
    assert (found["digits"] == 0).all()
