"""The claims of figure 2 of Jiang et al. 2024."""

from __future__ import annotations

import pandas as pd

from overfit_cli.claim import Claim, Measurement
from overfit_cli.claims.cells import Selection, done
from overfit_cli.claims.rules import Margin, judged, share_of_seeds
from overfit_cli.claims.trends import FALLING, LEAST_VALUES, falls
from overfit_cli.studies.benign_vit.images.parameters import BenignVitImagesParameters

_AXES = {"n": LEAST_VALUES, "snr": LEAST_VALUES}
GRID = Selection(
    BenignVitImagesParameters,
    vary=("max_epochs",),
    alike=[
        name
        for name in BenignVitImagesParameters.model_fields
        if name not in {*_AXES, "max_epochs"}
    ],
    fewest=_AXES,
    preset="fig2",
)
"""A grid over N and the signal-to-noise ratio, at one value of everything else."""

FITTED = Margin(least=0.5, because="more draws than not", fewest_seeds=6)


def _fitted(cells: pd.DataFrame) -> Measurement:
    grid = GRID.of(cells)
    fitted = (grid["status"] == "done") & (grid["train_loss"] <= grid["epsilon"])
    epochs = grid.loc[fitted, "epochs"]
    return judged(
        share_of_seeds(fitted, grid["seed"]),
        FITTED,
        details={
            "cells": len(grid),
            "cells that aren't fitted": int((~fitted).sum()),
            "largest training loss": float(grid["train_loss"].max()),
            "fewest passes": float(epochs.min()),
            "most passes": float(epochs.max()),
        },
        note="The share of seeds on which every cell is fitted.",
    )


def _falls(axis: str, other: str, words: str) -> Claim:
    return Claim(
        name=f"fig2-falls-with-{axis}",
        source="Jiang et al. 2024, figure 2c",
        statement=f"On images too, the test loss falls as {words} grows.",
        holds_where=FALLING.in_words("the mean rank correlation"),
        measure=lambda cells: falls(done(GRID.of(cells), 0.1), "test_loss", axis, other),
        figure="heatmap",
        preset="fig2",
    )


CLAIMS = (
    Claim(
        name="fig2-fitted",
        source="Jiang et al. 2024, section 6",
        statement="The training images are fitted at every N and every signal-to-noise ratio.",
        holds_where=FITTED.in_words("the share of seeds on which all cells are"),
        measure=_fitted,
        preset="fig2",
    ),
    _falls("n", "snr", "N"),
    _falls("snr", "n", "the signal-to-noise ratio"),
)
