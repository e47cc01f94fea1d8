"""The study `kernel-text`: figure 2 of Song et al. 2024. Torch is imported to train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from overfit_cli.claim import Claim
from overfit_cli.figure import Figure
from overfit_cli.studies.attention_kernel.classifier.study import ClassifierStudy
from overfit_cli.studies.attention_kernel.classifier.task import Task
from overfit_cli.studies.attention_kernel.text.parameters import KernelTextParameters


class KernelText(ClassifierStudy[KernelTextParameters]):
    """Sentiment of reviews; see `Study` for the members."""

    name = "kernel-text"
    version = 1
    title = "Softmax against Gaussian attention on text classification"
    parameters = KernelTextParameters

    def figures(self) -> Mapping[str, Figure]:
        """Return the figures by name."""
        from overfit_cli.studies.attention_kernel.classifier.figures import classifier_figures

        return classifier_figures("Song et al. 2024, figure 2")

    def claims(self) -> Sequence[Claim]:
        """Return the claims of section 5.3.1."""
        from overfit_cli.studies.attention_kernel.text.claims import CLAIMS

        return CLAIMS

    def task(self, parameters: KernelTextParameters, seed: int) -> Task:
        """Return a cell's reviews."""
        from overfit_cli.studies.attention_kernel.text.data import text_task

        return text_task(parameters, seed)

    def length(self, parameters: KernelTextParameters) -> int:
        """Return the number of tokens of a review."""
        return parameters.tokens

    def from_outside(self, parameters: KernelTextParameters) -> object:
        """Return how IMDb's reviews are read; None where they are made here."""
        sizes = (parameters.tokens, parameters.n, parameters.test_samples)
        return sizes if parameters.source == "imdb" else None


study = KernelText()
