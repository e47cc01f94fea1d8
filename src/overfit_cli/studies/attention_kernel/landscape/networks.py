"""The two stages of training: softmax first, then the kernel (Song et al. 2024, section 5.2).

Kernels and pairs of directions share the first stage, and pairs the second: each is kept in the
cache folder, so that it isn't trained twice, nor again after a kill.
"""

from __future__ import annotations

import io
import itertools
from contextlib import suppress

import torch

from overfit_cli.cache import cache_folder
from overfit_cli.files import write_whole
from overfit_cli.streams import stream
from overfit_cli.studies.attention_kernel.classifier.model import Transformer
from overfit_cli.studies.attention_kernel.classifier.task import Task
from overfit_cli.studies.attention_kernel.classifier.training import (
    build_model,
    gradient_steps,
    make_optimiser,
    minibatches,
)
from overfit_cli.studies.attention_kernel.landscape.keys import network_key
from overfit_cli.studies.attention_kernel.landscape.parameters import KernelLandscapeParameters


def trained_network(
    parameters: KernelLandscapeParameters, task: Task, seed: int, stage: int, device: str
) -> Transformer:
    """Return the network after a stage, 1 or 2, from the cache folder where it is kept there.

    Both stages have an optimiser of their own, and go through the minibatches in one order.
    """
    kernel = "softmax" if stage == 1 else parameters.kernel
    file = cache_folder() / "networks" / f"{network_key(parameters, seed, stage)}-{device}.pt"
    own = parameters.model_copy(update={"kernel": kernel})
    model = build_model(own, task, seed, device)
    # Whatever is wrong with a kept file, the network can be trained again.
    with suppress(Exception):
        kept = io.BytesIO(file.read_bytes())
        model.load_state_dict(torch.load(kept, map_location=device, weights_only=True))
        return model
    model = build_model(own, task, seed, device)  # A file of other weights may have left some.
    steps, skipped = parameters.training_steps, 0
    if stage == 2:
        before = trained_network(parameters, task, seed, 1, device)
        model.load_state_dict(before.state_dict())
        model.dropout.restart(stream(seed, "train", "dropout", "second stage"))
        steps, skipped = parameters.second_steps, parameters.training_steps
    _train(model, parameters, task, seed, steps, skipped, device)
    content = io.BytesIO()
    torch.save(model.state_dict(), content)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, content.getvalue())
    return model


def _train(
    model: Transformer,
    parameters: KernelLandscapeParameters,
    task: Task,
    seed: int,
    steps: int,
    skipped: int,
    device: str,
) -> None:
    """Take gradient steps, from the minibatch after the first `skipped` ones."""
    rows = minibatches(len(task.train.labels), parameters.batch_size, seed)
    going_on = itertools.islice(rows, skipped, skipped + steps)
    optimiser = make_optimiser(model, parameters)
    for _ in gradient_steps(model, optimiser, task.train, going_on, device):
        pass
