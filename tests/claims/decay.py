"""A study of losses that fall with n and snr, and its cells."""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np
import pandas as pd

from overfit_cli.functions.function_study import study_of_function

Method = Literal["none", "ridge", "lasso"]


def train(n: int = 10, snr: float = 1, method: Method = "none", seed: int = 0) -> dict[str, float]:
    """Their contour is n · snr² = constant."""
    random = np.random.default_rng([seed, n, int(100 * snr), len(method)])
    noise = float(np.exp(0.02 * random.standard_normal()))
    loss = noise / (n * snr**2) * (0.5 if method == "ridge" else 1.0)
    return {"test_error": loss, "steps_taken": noise * 3.0 * n, "late": float(n)}


STUDY = study_of_function(train)


def cells(
    n: tuple[int, ...] = (4, 8, 16, 32),
    snr: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0),
    method: tuple[Method, ...] = ("none",),
    seeds: int = 12,
) -> pd.DataFrame:
    """Cells that are done."""
    design = list(itertools.product(n, snr, method, range(seeds)))
    rows = pd.DataFrame(design, columns=["n", "snr", "method", "seed"])
    measured = pd.DataFrame([train(*setting) for setting in design])
    return rows.join(measured).assign(status="done", reason="", study=STUDY.name)


def lost(rows: pd.DataFrame, count: int) -> pd.DataFrame:
    """The cells, of which the first so many failed."""
    return rows.assign(status=["failed"] * count + ["done"] * (len(rows) - count))
