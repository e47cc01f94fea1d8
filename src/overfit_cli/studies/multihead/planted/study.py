"""The study `multihead-planted`: figures 4 and 5 of Deora et al. 2024."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from overfit_cli.core.cell import Column
from overfit_cli.core.claim import Claim
from overfit_cli.core.figure import LINES, Figure, FigureOptions, collect_figures
from overfit_cli.studies.multihead.parameters import Problem
from overfit_cli.studies.multihead.planted.parameters import MultiheadPlantedParameters
from overfit_cli.studies.multihead.study import MultiheadStudy, cell_columns, step_columns

ALIGNMENTS = (
    Column(
        "alignment_w",
        "cosine of W with the planted head's",
        symbol=r"\cos(W, W_*)",
        label="alignment of W",
    ),
    Column(
        "alignment_u",
        "cosine of U with the planted head's",
        symbol=r"\cos(U, U_*)",
        label="alignment of U",
    ),
)


class MultiheadPlanted(MultiheadStudy[MultiheadPlantedParameters]):
    """Gaussian tokens, labelled by a single planted head."""

    name = "multihead-planted"
    version = 1
    title = "Attention heads that learn from a planted one (DM2)"
    parameters = MultiheadPlantedParameters
    headline = "train_loss"
    columns = cell_columns(*ALIGNMENTS)
    trajectory_columns = step_columns(*ALIGNMENTS)
    progress_columns = (*MultiheadStudy.progress_columns, "alignment_w")
    source_of_heads = "Deora et al. 2024, figures 4 and 5"
    rows_of_heads = "train_loss,test_loss; norm_w,norm_u; alignment_w,alignment_u"

    def draw(self, parameters: MultiheadPlantedParameters, seed: int) -> Problem:
        from overfit_cli.studies.multihead.planted.data import draw_problem

        return draw_problem(parameters, seed)

    def figures(self) -> Mapping[str, Figure]:
        gap = replace(
            LINES,
            name="gap",
            title="The generalisation gap against samples, with a line of the slope 1/n",
            options=FigureOptions(
                x="n",
                value="test_loss - train_loss",
                mean="median",
                log=frozenset({"x", "value"}),
                theory="120 / n",
            ),
            labels={
                "test_loss - train_loss": r"generalisation gap $L - \hat{L}$",
                "120 / n": "a fall as $1/n$ (slope only)",
            },
        )
        return collect_figures(*super().figures().values(), gap)

    def claims(self) -> Sequence[Claim]:
        from overfit_cli.studies.multihead.planted.claims import CLAIMS

        return CLAIMS


study = MultiheadPlanted()
