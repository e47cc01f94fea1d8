"""All claims of the study: figure 1's, dynamics', theorems', wide heads', and the boundary's."""

from __future__ import annotations

from overfit_cli.studies.benign_vit.claims.boundaries import BOUNDARIES
from overfit_cli.studies.benign_vit.claims.dynamics import DYNAMICS
from overfit_cli.studies.benign_vit.claims.every_token import EVERY_TOKEN
from overfit_cli.studies.benign_vit.claims.figure_1 import FIGURE_1
from overfit_cli.studies.benign_vit.claims.lemmas import LEMMAS
from overfit_cli.studies.benign_vit.claims.propositions import PROPOSITIONS
from overfit_cli.studies.benign_vit.claims.theorem_regime import THEOREM_REGIME
from overfit_cli.studies.benign_vit.claims.wide_heads import WIDE_HEADS

CLAIMS = (
    *FIGURE_1,
    *DYNAMICS,
    *THEOREM_REGIME,
    *LEMMAS,
    *PROPOSITIONS,
    *EVERY_TOKEN,
    *WIDE_HEADS,
    *BOUNDARIES,
)
