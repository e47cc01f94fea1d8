"""Made-up worlds for all claims of the study, in which it is known what is true."""

from __future__ import annotations

from collections.abc import Mapping

from calibration.rates import Worlds
from overfit_cli.studies.benign_vit.claims.worlds.boundaries import BOUNDARIES
from overfit_cli.studies.benign_vit.claims.worlds.dynamics import DYNAMICS
from overfit_cli.studies.benign_vit.claims.worlds.figure_1 import FIGURE_1
from overfit_cli.studies.benign_vit.claims.worlds.steps import STEPS
from overfit_cli.studies.benign_vit.claims.worlds.theorem_regime import THEOREM_REGIME

WORLDS: Mapping[str, Worlds] = {**FIGURE_1, **DYNAMICS, **STEPS, **THEOREM_REGIME, **BOUNDARIES}
