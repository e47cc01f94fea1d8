"""Which of the two tasks a landscape is of."""

from __future__ import annotations

from overfit_cli.studies.attention_kernel.classifier.task import Task
from overfit_cli.studies.attention_kernel.landscape.parameters import KernelLandscapeParameters
from overfit_cli.studies.attention_kernel.pathfinder.task import pathfinder_task
from overfit_cli.studies.attention_kernel.text.data import text_task


def landscape_task(parameters: KernelLandscapeParameters, seed: int) -> Task:
    """Return a cell's task.

    Raises:
        UserError: if data from outside is asked for and isn't where `--data` says.
    """
    make = text_task if parameters.task == "text" else pathfinder_task
    return make(parameters, seed)
