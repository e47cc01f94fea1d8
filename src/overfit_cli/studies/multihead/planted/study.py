"""The study `multihead-planted`: figures 4 and 5 of Deora et al. 2024."""

from __future__ import annotations

from collections.abc import Sequence

from overfit_cli.core.claim import Claim
from overfit_cli.studies.multihead.parameters import Problem
from overfit_cli.studies.multihead.planted.parameters import MultiheadPlantedParameters
from overfit_cli.studies.multihead.study import (
    PLANTED_COLUMNS,
    MultiheadStudy,
    cell_columns,
    step_columns,
)


class MultiheadPlanted(MultiheadStudy[MultiheadPlantedParameters]):
    """Gaussian tokens, labelled by a single planted head."""

    name = "multihead-planted"
    version = 1
    title = "Attention heads that learn from a planted one (DM2)"
    parameters = MultiheadPlantedParameters
    headline = "train_loss"
    columns = cell_columns(*PLANTED_COLUMNS)
    trajectory_columns = step_columns(*PLANTED_COLUMNS)
    source_of_heads = "Deora et al. 2024, figures 4 and 5"

    def draw(self, parameters: MultiheadPlantedParameters, seed: int) -> Problem:
        """Draw the planted head and the samples of a seed's cells."""
        from overfit_cli.studies.multihead.planted.data import draw_problem

        return draw_problem(parameters, seed)

    def claims(self) -> Sequence[Claim]:
        """Return the claims that its cells can decide."""
        from overfit_cli.studies.multihead.planted.claims import CLAIMS

        return CLAIMS


study = MultiheadPlanted()
