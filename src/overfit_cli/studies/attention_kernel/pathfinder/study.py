"""The study `kernel-pathfinder`: figure 3 of Song et al. 2024."""

from __future__ import annotations

from collections.abc import Sequence

from overfit_cli.core.claim import Claim
from overfit_cli.core.classification import Task
from overfit_cli.studies.attention_kernel.classifier_study import ClassifierStudy
from overfit_cli.studies.attention_kernel.parameters import PAPER_RATES, PAPER_STEPS, PAPER_TRAINING
from overfit_cli.studies.attention_kernel.pathfinder.parameters import KernelPathfinderParameters


class KernelPathfinder(ClassifierStudy[KernelPathfinderParameters]):
    """Whether a contour connects two discs, in images drawn here or LRA's."""

    name = "kernel-pathfinder"
    version = 3
    title = "Softmax against Gaussian attention on Pathfinder: generated images, or LRA's"
    paper_data = "Pathfinder of the Long Range Arena"
    parameters = KernelPathfinderParameters
    source_of_curves = "Song et al. 2024, figure 3"

    def claims(self) -> Sequence[Claim]:
        from overfit_cli.studies.attention_kernel.classifier_claims import ClassifierClaims, Data

        claims = ClassifierClaims(
            "pathfinder",
            self.parameters,
            "figure 3",
            "kernel-fig3",
            paper_rate=PAPER_RATES["pathfinder"],
            real=Data(
                "lra",
                "paper",
                "LRA's Pathfinder images",
                {**PAPER_TRAINING["pathfinder"], "training_steps": PAPER_STEPS},
                "Adam",
            ),
            stand_in=Data(
                "",
                "ours",
                "generated Pathfinder images, which stand in for LRA's",
                {"source": "generated"},
            ),
        )
        return *claims.at_one_rate(), claims.steadier(), claims.above_shortcut()

    def stand_in(self, parameters: KernelPathfinderParameters) -> str:
        if parameters.source != "generated":
            return ""
        size = parameters.size
        return f"Generated images of {size} × {size} pixels stand in for Pathfinder's of LRA."

    def task(self, parameters: KernelPathfinderParameters, seed: int) -> Task:
        from overfit_cli.studies.attention_kernel.pathfinder.data import pathfinder_task

        return pathfinder_task(parameters, seed)

    def sample_length(self, parameters: KernelPathfinderParameters) -> int:
        return parameters.size**2


study = KernelPathfinder()
