"""The study `kernel-text`: figure 2 of Song et al. 2024."""

from __future__ import annotations

from collections.abc import Sequence

from overfit_cli.core.claim import Claim
from overfit_cli.core.classification import Task
from overfit_cli.studies.attention_kernel.classifier_study import ClassifierStudy
from overfit_cli.studies.attention_kernel.parameters import PAPER_RATES, PAPER_STEPS, PAPER_TRAINING
from overfit_cli.studies.attention_kernel.text.parameters import KernelTextParameters


class KernelText(ClassifierStudy[KernelTextParameters]):
    """Sentiment of reviews, generated or IMDb's."""

    name = "kernel-text"
    version = 2
    title = "Softmax against Gaussian attention on text: generated reviews, or IMDb"
    paper_data = "IMDb"
    parameters = KernelTextParameters
    source_of_curves = "Song et al. 2024, figure 2"

    def claims(self) -> Sequence[Claim]:
        from overfit_cli.studies.attention_kernel.classifier_claims import ClassifierClaims, Data

        claims = ClassifierClaims(
            "text",
            self.parameters,
            "figure 2",
            "kernel-fig2",
            paper_rate=PAPER_RATES["text"],
            real=Data(
                "imdb",
                "paper",
                "IMDb",
                {**PAPER_TRAINING["text"], "training_steps": PAPER_STEPS},
                "SGD",
            ),
            stand_in=Data(
                "",
                "ours",
                "generated reviews, which stand in for IMDb",
                {"source": "generated"},
            ),
        )
        return *claims.at_one_rate(), claims.at_best()

    def stand_in(self, parameters: KernelTextParameters) -> str:
        generated = parameters.source == "generated"
        return "Generated reviews stand in for IMDb's." if generated else ""

    def task(self, parameters: KernelTextParameters, seed: int) -> Task:
        from overfit_cli.studies.attention_kernel.text.data import text_task

        return text_task(parameters, seed)

    def sample_length(self, parameters: KernelTextParameters) -> int:
        return parameters.tokens


study = KernelText()
