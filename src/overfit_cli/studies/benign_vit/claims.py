"""All claims of the study: figure 1's, the dynamics', and those of the theorems' T."""

from __future__ import annotations

from overfit_cli.studies.benign_vit.dynamics_claims import DYNAMICS
from overfit_cli.studies.benign_vit.figure_1_claims import FIGURE_1
from overfit_cli.studies.benign_vit.scaling_claims import SCALING

CLAIMS = (*FIGURE_1, *DYNAMICS, *SCALING)
