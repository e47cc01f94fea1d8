"""All claims of the study: figure 1's, the dynamics', the theorems', and those at any dimension."""

from __future__ import annotations

from overfit_cli.studies.benign_vit.claims.balance import BALANCE
from overfit_cli.studies.benign_vit.claims.dimension import DIMENSION
from overfit_cli.studies.benign_vit.claims.dynamics import DYNAMICS
from overfit_cli.studies.benign_vit.claims.figure_1 import FIGURE_1
from overfit_cli.studies.benign_vit.claims.scaling import SCALING
from overfit_cli.studies.benign_vit.claims.theorem import THEOREM
from overfit_cli.studies.benign_vit.claims.transition import TRANSITION

CLAIMS = (*FIGURE_1, *DYNAMICS, *SCALING, *THEOREM, *TRANSITION, *DIMENSION, *BALANCE)
