"""The claims of figure 2 of Jiang et al. 2024."""

from __future__ import annotations

import pandas as pd

from overfit_cli.claim import Claim, Measurement, not_run
from overfit_cli.claims.cells import varying
from overfit_cli.claims.monotone import LEAST_VALUES, Judge, decreasing_claims
from overfit_cli.studies.benign_vit.images.parameters import BenignVitImagesParameters

_AXES = {"n": "N", "snr": "the signal-to-noise ratio"}


def _on_grid(judge: Judge) -> Judge:
    """Judge a grid over N and the signal-to-noise ratio, at one value of everything else."""

    def measure(cells: pd.DataFrame) -> Measurement:
        others = BenignVitImagesParameters.model_fields.keys() - {*_AXES, "max_epochs"}
        if varying(cells, others) or any(cells[name].nunique() < LEAST_VALUES for name in _AXES):
            return not_run(
                f"It needs a grid of at least {LEAST_VALUES} values of n and of snr at one value "
                "of every other parameter."
            )
        return judge(cells)

    return measure


def _fitted(grid: pd.DataFrame) -> Measurement:
    fitted = (grid["status"] == "done") & (grid["train_loss"] <= grid["epsilon"])
    epochs = grid.loc[fitted, "epochs"]
    passes = f" after {epochs.min():.0f} to {epochs.max():.0f} passes" if fitted.any() else ""
    return Measurement(
        "holds" if fitted.all() else "fails",
        f"{int(fitted.sum())} of {len(grid)} cells reach a training loss of "
        f"{grid['epsilon'].iloc[0]:g}{passes}; the largest is {grid['train_loss'].max():.4f}.",
        float(fitted.mean()),
    )


CLAIMS = (
    Claim(
        name="fig2-fitted",
        source="Jiang et al. 2024, section 6",
        statement="The training images are fitted at every N and every signal-to-noise ratio.",
        accepted="all cells reach a training loss of at most ε",
        measure=_on_grid(_fitted),
    ),
    *decreasing_claims(
        "fig2",
        "Jiang et al. 2024, figure 2c",
        "on images too, ",
        _AXES,
        lambda judge: _on_grid(lambda grid: judge(grid[grid["status"] == "done"])),
    ),
)
