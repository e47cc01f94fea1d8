"""The study `multihead-mixture`: figures 2 and 3 of Deora et al. 2024."""

from __future__ import annotations

from collections.abc import Sequence

from overfit_cli.core.claim import Claim
from overfit_cli.studies.multihead.mixture.parameters import MultiheadMixtureParameters
from overfit_cli.studies.multihead.parameters import Problem
from overfit_cli.studies.multihead.study import (
    FIRST_PHASE,
    MIXTURE_COLUMNS,
    MultiheadStudy,
    cell_columns,
    step_columns,
)


class MultiheadMixture(MultiheadStudy[MultiheadMixtureParameters]):
    """Tokens of which a few carry the label, among patterns that don't."""

    name = "multihead-mixture"
    version = 1
    title = "Attention heads on the tokenized mixture model (DM1)"
    parameters = MultiheadMixtureParameters
    headline = "train_loss"
    columns = cell_columns(*MIXTURE_COLUMNS, *FIRST_PHASE)
    trajectory_columns = step_columns(*MIXTURE_COLUMNS)
    source_of_heads = "Deora et al. 2024, figures 2 and 3"

    def draw(self, parameters: MultiheadMixtureParameters, seed: int) -> Problem:
        """Draw the samples of a seed's cells."""
        from overfit_cli.studies.multihead.mixture.data import draw_problem

        return draw_problem(parameters, seed)

    def claims(self) -> Sequence[Claim]:
        """Return the claims that its cells can decide."""
        from overfit_cli.studies.multihead.mixture.claims import CLAIMS

        return CLAIMS


study = MultiheadMixture()
