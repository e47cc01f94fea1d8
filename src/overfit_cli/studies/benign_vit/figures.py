"""Figures 2a and 2b of Jiang et al. 2024: digits in their ring of noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import BadValue
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.parameters import describe, parameters_from_row
from overfit_cli.core.text import plural
from overfit_cli.figures.labels import brief
from overfit_cli.figures.picture import Picture
from overfit_cli.figures.style import COLUMN
from overfit_cli.studies.benign_vit.images_data import image_task
from overfit_cli.studies.benign_vit.images_study import BenignVitImagesParameters

ACROSS = 6
MOST_ROWS = 4
DATA = {
    "mnist": "digits of MNIST",
    "digits": "built-in digits of 8 × 8 pixels, enlarged to 20 × 20",
}


def draw_images(data: Cells, options: FigureOptions) -> Picture:
    """Draw the first training images of the first seed, a row for each of up to four ratios.

    Grey levels are those of each row: from two deviations of its noise below zero to as much
    above, or to white, whichever is more.
    """
    cells = data.trained.sort_values(["seed", "n"])
    # What else may vary keeps the first cell's value: the rows are about the ratio.
    fixed = [name for name in describe(BenignVitImagesParameters) if name not in ("n", "snr")]
    alike = (cells[fixed] == cells[fixed].iloc[0]).all(axis=1)
    cells = cells[alike].drop_duplicates("snr").sort_values("snr")
    chosen = cells.iloc[np.unique(np.linspace(0, len(cells) - 1, MOST_ROWS).round().astype(int))]
    figure = Picture(COLUMN, 0.15 + 0.95 * COLUMN / ACROSS * len(chosen))
    grid = figure.subplots(len(chosen), ACROSS, squeeze=False)
    for all_axes, (_, cell) in zip(grid, chosen.iterrows(), strict=True):
        _draw_row(all_axes, cell, data)
    ratios = ", ".join(brief(float(ratio)) for ratio in chosen["snr"])
    of_all = "" if len(chosen) == len(cells) else f" of {len(cells)}"
    figure.facts.append(
        f"Training images of seed {chosen['seed'].iloc[0]}: {DATA[chosen['source'].iloc[0]]}, at "
        f"{plural(len(chosen), 'signal-to-noise ratio')}{of_all} ({ratios})."
    )
    return figure


def _draw_row(all_axes: Sequence[Axes], cell: pd.Series, data: Cells) -> None:
    parameters = parameters_from_row(BenignVitImagesParameters, cell)
    task = image_task(parameters, int(cell["seed"]))
    for name, fingerprint in task.collections.items():
        if data.run.collections.get(name, fingerprint) != fingerprint:
            accepts = "has other content than when the cells were trained; name the folder that was"
            raise BadValue("data", None, f"{name} {accepts} used then.")
    share = parameters.snr / (1 + parameters.snr)
    noise = 2 * parameters.noise_deviation * (1 - share)
    for axes, image in zip(all_axes, task.train.pixels, strict=False):
        axes.imshow(image, cmap="gray", vmin=-noise, vmax=max(noise, share))
    for axes in all_axes:
        axes.set(xticks=[], yticks=[])
    all_axes[0].set_ylabel(f"SNR {brief(parameters.snr)}", fontsize="small")
