"""The study `kernel-pathfinder`: figure 3 of Song et al. 2024. Torch is imported to train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from overfit_cli.claim import Claim
from overfit_cli.figure import Figure
from overfit_cli.studies.attention_kernel.classifier.study import ClassifierStudy
from overfit_cli.studies.attention_kernel.classifier.task import Task
from overfit_cli.studies.attention_kernel.pathfinder.parameters import KernelPathfinderParameters


class KernelPathfinder(ClassifierStudy[KernelPathfinderParameters]):
    """Whether two discs are connected; see `Study` for the members."""

    name = "kernel-pathfinder"
    version = 1
    title = "Softmax against Gaussian attention on Pathfinder"
    parameters = KernelPathfinderParameters

    def figures(self) -> Mapping[str, Figure]:
        """Return the figures by name."""
        from overfit_cli.studies.attention_kernel.pathfinder.figures import FIGURES

        return FIGURES

    def claims(self) -> Sequence[Claim]:
        """Return the claims of section 5.3.1."""
        from overfit_cli.studies.attention_kernel.pathfinder.claims import CLAIMS

        return CLAIMS

    def task(self, parameters: KernelPathfinderParameters, seed: int) -> Task:
        """Return a cell's images."""
        from overfit_cli.studies.attention_kernel.pathfinder.task import pathfinder_task

        return pathfinder_task(parameters, seed)

    def length(self, parameters: KernelPathfinderParameters) -> int:
        """Return the number of pixels of an image."""
        return parameters.size**2

    def from_outside(self, parameters: KernelPathfinderParameters) -> object:
        """Return which of LRA's images a cell reads; None where they are drawn."""
        sizes = (parameters.size, parameters.n, parameters.test_samples)
        return (parameters.difficulty, *sizes) if parameters.source == "lra" else None


study = KernelPathfinder()
