"""Parameters of the `kernel-landscape` study: those of both tasks, and of the surface."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from overfit_cli.parameters import parameter
from overfit_cli.studies.attention_kernel.pathfinder.parameters import KernelPathfinderParameters
from overfit_cli.studies.attention_kernel.text.parameters import KernelTextParameters


class KernelLandscapeParameters(KernelTextParameters, KernelPathfinderParameters):
    """A classifier trained in two stages, and its loss on a plane around where it ends.

    `training_steps` are the first stage's, with softmax attention whatever the kernel; the second
    stage goes on with the kernel. Of the two tasks' own parameters, those of the task that isn't
    chosen have no effect.
    """

    task: Literal["text", "pathfinder"] = parameter("text", "what is classified")
    source: Literal["generated", "imdb", "lra"] = parameter(  # type: ignore[assignment]
        "generated", "data made here, or IMDb's or LRA's from --data"
    )
    training_steps: int = parameter(
        900, "gradient steps of the first stage, with softmax", at_least=1, at_most=10**7
    )
    second_steps: int = parameter(
        150, "gradient steps of the second stage, with the kernel", at_least=0, at_most=10**7
    )
    pair: int = parameter(0, "which pair of random directions", at_least=0, at_most=10**6)
    directions: Literal["filter", "raw"] = parameter(
        "filter", "directions scaled row by row to the weights' rows, or standard normal"
    )
    points: int = parameter(50, "points along each direction", at_least=5, at_most=1000)
    spacing: float = parameter(0.02, "distance between points", above=0, at_most=100)
    loss_samples: int = parameter(
        64, "training samples in the fixed batch of the loss", at_least=1, at_most=100_000
    )

    def refusals(self) -> Iterator[str]:
        """Give sentences on a loss without samples, and on another task's source."""
        yield from super().refusals()
        if self.loss_samples > self.n:
            yield (
                f"--set loss_samples {self.loss_samples}: with n={self.n}, loss_samples takes a "
                f"whole number up to {self.n}: they are training samples."
            )
        sources = ("generated", "imdb" if self.task == "text" else "lra")
        if self.source not in sources:
            yield (
                f"--set source {self.source}: with task={self.task}, source takes one of "
                f"{', '.join(sources)}."
            )
