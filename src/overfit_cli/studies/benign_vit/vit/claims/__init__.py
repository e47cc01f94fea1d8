"""All claims of the study: figure 1's, the dynamics', the theorems', and the boundary's."""

from __future__ import annotations

from overfit_cli.studies.benign_vit.vit.claims.boundaries import BOUNDARIES
from overfit_cli.studies.benign_vit.vit.claims.dynamics import DYNAMICS
from overfit_cli.studies.benign_vit.vit.claims.figure_1 import FIGURE_1
from overfit_cli.studies.benign_vit.vit.claims.lemmas import LEMMAS
from overfit_cli.studies.benign_vit.vit.claims.steps import STEPS
from overfit_cli.studies.benign_vit.vit.claims.theorem_regime import THEOREM_REGIME

CLAIMS = (*FIGURE_1, *DYNAMICS, *STEPS, *THEOREM_REGIME, *LEMMAS, *BOUNDARIES)
