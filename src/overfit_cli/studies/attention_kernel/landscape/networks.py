"""The two stages of training: softmax first, then the kernel (Song et al. 2024, section 5.2).

Kernels and pairs of directions share the first stage, and pairs the second: each is kept in the
cache folder, so that it isn't trained twice, nor again after a kill.
"""

from __future__ import annotations

import contextlib
import io
import itertools
from contextlib import suppress
from pathlib import Path

import torch

from overfit_cli.cache import cache_folder
from overfit_cli.files import locked, write_whole
from overfit_cli.minibatches import minibatches
from overfit_cli.rng import named_rng
from overfit_cli.studies.attention_kernel.classifier.model import Transformer
from overfit_cli.studies.attention_kernel.classifier.task import Task
from overfit_cli.studies.attention_kernel.classifier.training import (
    build_model,
    training_steps,
)
from overfit_cli.studies.attention_kernel.landscape.keys import data_fingerprint, network_key
from overfit_cli.studies.attention_kernel.landscape.parameters import KernelLandscapeParameters

FILE = "network.pt"


def trained_network(
    parameters: KernelLandscapeParameters, task: Task, seed: int, stage: int, device: str
) -> Transformer:
    """Return the network after a stage, 1 or 2, from the cache folder where it is kept there.

    Both stages have an optimiser of their own, and go through the minibatches in one order.
    """
    kernel = "softmax" if stage == 1 else parameters.kernel
    own = parameters.model_copy(update={"kernel": kernel})
    model = build_model(own, task, seed, device)
    name = network_key(parameters, seed, stage, data_fingerprint(task))
    folder = cache_folder() / "networks" / f"{name}-{device}"
    with contextlib.ExitStack() as stack:
        with suppress(OSError):
            # Whoever needs the same network waits for it instead of training it too.
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder))
        if not _load(model, folder / FILE, device):
            model = build_model(own, task, seed, device)  # a file of other weights may leave some
            _train_stage(model, parameters, task, seed, stage, device)
            with suppress(OSError):
                _save(model, folder / FILE)
    return model


def _load(model: Transformer, file: Path, device: str) -> bool:
    """Fill in what is kept; whatever is wrong with the file, the network can be trained again."""
    with suppress(Exception):
        kept = torch.load(io.BytesIO(file.read_bytes()), map_location=device, weights_only=True)
        model.load_state_dict(kept)
        return True
    return False


def _save(model: Transformer, file: Path) -> None:
    content = io.BytesIO()
    torch.save(model.state_dict(), content)
    write_whole(file, content.getvalue())


def _train_stage(
    model: Transformer,
    parameters: KernelLandscapeParameters,
    task: Task,
    seed: int,
    stage: int,
    device: str,
) -> None:
    if stage == 1:
        _train(model, parameters, task, seed, parameters.training_steps, 0, device)
        return
    before = trained_network(parameters, task, seed, 1, device)
    model.load_state_dict(before.state_dict())
    model.dropout.restart(named_rng(seed, "train", "dropout", "second stage"))
    skipped = parameters.training_steps
    _train(model, parameters, task, seed, parameters.second_steps, skipped, device)


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
    for _ in training_steps(model, parameters, task.train, going_on, device):
        pass
