"""All claims of the study: figure 1's, the dynamics', the theorems', and those at any dimension."""

from __future__ import annotations

from overfit_cli.studies.benign_vit.balance_claims import BALANCE
from overfit_cli.studies.benign_vit.dimension_claims import DIMENSION
from overfit_cli.studies.benign_vit.dynamics_claims import DYNAMICS
from overfit_cli.studies.benign_vit.figure_1_claims import FIGURE_1
from overfit_cli.studies.benign_vit.scaling_claims import SCALING
from overfit_cli.studies.benign_vit.theorem_claims import THEOREM
from overfit_cli.studies.benign_vit.transition_claims import TRANSITION

CLAIMS = (*FIGURE_1, *DYNAMICS, *SCALING, *THEOREM, *TRANSITION, *DIMENSION, *BALANCE)
