"""Figures 2a and 2b of Jiang et al. 2024: digits in their ring of noise."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from overfit_cli.core.errors import BadValue
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.parameters import describe, parameters_from_row
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import plural
from overfit_cli.figures.labels import brief
from overfit_cli.figures.panels import ImageRow, draw_image_rows
from overfit_cli.figures.picture import Picture
from overfit_cli.studies.benign_vit.images.data import image_task
from overfit_cli.studies.benign_vit.images.parameters import BenignVitImagesParameters

ACROSS = 6
MOST_ROWS = 4
DATA = {
    "mnist": "digits of MNIST",
    "digits": "built-in digits of 8 × 8 pixels, enlarged to 20 × 20",
}


def draw_images(data: FigureData, options: FigureOptions) -> Picture:
    """Draw the first training images of the first seed, a row for each of up to four ratios.

    Grey levels are those of each row: from two deviations of its noise below zero to as much
    above, or to white, whichever is more.
    """
    cells = data.cells.sort_values(["seed", "n"])
    # What else may vary keeps the first cell's value: the rows are about the ratio.
    fixed = [name for name in describe(BenignVitImagesParameters) if name not in ("n", "snr")]
    alike = (cells[fixed] == cells[fixed].iloc[0]).all(axis=1)
    cells = cells[alike].drop_duplicates("snr").sort_values("snr")
    rows = np.unique(np.linspace(0, len(cells) - 1, MOST_ROWS).round().astype(int))
    chosen = cells.iloc[rows]
    figure = draw_image_rows([_row(cell, data) for _, cell in chosen.iterrows()], ACROSS)
    ratios = ", ".join(brief(float(ratio)) for ratio in chosen["snr"])
    of_all = "" if len(chosen) == len(cells) else f" of {len(cells)}"
    figure.facts.append(
        f"Training images of seed {chosen['seed'].iloc[0]}: {DATA[chosen['source'].iloc[0]]}, at "
        f"{plural(len(chosen), 'signal-to-noise ratio')}{of_all} ({ratios})."
    )
    return figure


def _row(cell: pd.Series, data: FigureData) -> ImageRow:
    parameters = parameters_from_row(BenignVitImagesParameters, cell)
    task = image_task(parameters, int(cell["seed"]))
    _check(task.collections, data)
    share = parameters.snr / (1 + parameters.snr)
    noise = 2 * parameters.noise_deviation * (1 - share)
    name, images = f"SNR {brief(parameters.snr)}", list(task.train.pixels[:ACROSS])
    return ImageRow(name, images, black=-noise, white=max(noise, share))


def _check(collections: Mapping[str, str], data: FigureData) -> None:
    for name, fingerprint in collections.items():
        if data.collections.get(name, fingerprint) != fingerprint:
            raise BadValue(
                "data",
                None,
                f"{name} has other content than when the cells were trained; name the folder "
                "that was used then.",
            )
