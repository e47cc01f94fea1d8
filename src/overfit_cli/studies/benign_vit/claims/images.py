"""The claims of figure 2 of Jiang et al. 2024, on digits that stand in for MNIST, or on MNIST.

The paper's data are MNIST with N from 3000 to 8400. It leaves the step size, the widths and the
optimiser open, and gives the regimes no numbers. So all claims are of kind `ours`.
"""

from __future__ import annotations

from typing import Any

from overfit_cli.claims.papers import Claims, on
from overfit_cli.studies.benign_vit.claims.figures import FALLS, fitted_cells
from overfit_cli.studies.benign_vit.images_study import BenignVitImagesParameters

STAND_IN = (
    "scikit-learn's 1797 digits of 8 × 8 pixels, scaled to 20 × 20, in the place of MNIST (MNIST "
    "itself with --data)"
)
FIG2: dict[str, Any] = {
    "on": on("fig2", alike=("source", "learning_rate", "test_samples")),
    "hypotheses": f"images in a ring of noise of width 4, of {STAND_IN}; two attention layers of "
    "four heads and an MLP with ReLU; the rest of the model and its training is this tool's",
}

jiang = Claims("", "Jiang et al. 2024", BenignVitImagesParameters)
jiang.ours(
    "fig2-fitted",
    "section 6",
    "The training images are fitted at every N and every signal-to-noise ratio; here those of "
    f"{STAND_IN}.",
    "share of seeds with fitted > 0 everywhere >= 0.5 with at least 6 seeds",
    cells=fitted_cells,
    number="the share of seeds whose cells are all fitted",
    because="more draws than not",
    after_selection=True,
    **FIG2,
)
jiang.ours(
    "fig2-falls-with-n",
    "section 6 and figure 2c",
    "The test loss falls as N grows, and as the signal-to-noise ratio grows. The paper says it of "
    f"MNIST, with N from 3000 to 8400; here it is asked of {STAND_IN}.",
    {"N": FALLS.format("n"), "SNR": FALLS.format("snr")},
    figure="heatmap",
    **FIG2,
)
CLAIMS = tuple(jiang.claims)
