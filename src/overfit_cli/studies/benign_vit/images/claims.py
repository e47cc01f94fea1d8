"""The claims of figure 2 of Jiang et al. 2024, on digits that stand in for MNIST, or on MNIST.

The paper's data are MNIST with N from 3000 to 8400. It leaves the step size, the widths and the
optimiser open, and gives the regimes no numbers. So all claims are of kind `ours`.
"""

from __future__ import annotations

from typing import Any

from overfit_cli.claims.cells import Selection
from overfit_cli.claims.quantities import LEAST_FOR_POWER
from overfit_cli.claims.stated import Choose, joined, stated_claim
from overfit_cli.core.claim import Claim
from overfit_cli.studies.benign_vit.claims.figure_1 import falling, fitted_cells, fitted_share
from overfit_cli.studies.benign_vit.images.parameters import BenignVitImagesParameters

_AXES = {"n": LEAST_FOR_POWER, "snr": LEAST_FOR_POWER}
GRID = Selection(
    BenignVitImagesParameters,
    alike=[name for name in BenignVitImagesParameters.model_fields if name not in _AXES],
    fewest=_AXES,
    preset="fig2",
)

STAND_IN = (
    "scikit-learn's 1797 digits of 8 × 8 pixels, scaled to 20 × 20, in the place of MNIST (MNIST "
    "itself with --data)"
)

SETTING = (
    f"images in a ring of noise of width 4, of {STAND_IN}; two attention layers of four heads and "
    "an MLP with ReLU; the rest of the model and its training is this tool's"
)


def _claim(choose: Choose, stated: str, source: str, **fields: Any) -> Claim:
    return stated_claim(
        choose,
        BenignVitImagesParameters,
        stated,
        kind="ours",
        source=f"Jiang et al. 2024, {source}",
        hypotheses=SETTING,
        preset="fig2",
        **fields,
    )


def _falls(axis: str) -> Claim:
    return _claim(
        GRID.of,
        falling(axis),
        "section 6 and figure 2c",
        name="fig2-falls-with-n",
        statement="The test loss falls as N grows, and as the signal-to-noise ratio grows. The "
        f"paper says it of MNIST, with N from 3000 to 8400; here it is asked of {STAND_IN}.",
        figure="heatmap",
    )


CLAIMS = (
    _claim(
        lambda cells: fitted_cells(GRID.of(cells)),
        fitted_share(0.5, 6),
        "section 6",
        name="fig2-fitted",
        statement="The training images are fitted at every N and every signal-to-noise ratio; here "
        f"those of {STAND_IN}.",
        number="the share of seeds whose cells are all fitted",
        because="more draws than not",
        after_selection=True,
    ),
    joined({"N": _falls("n"), "SNR": _falls("snr")}),
)
