"""Networks after the two stages of training: softmax, then the kernel (section 5.2).

Kernels and pairs of directions share the first stage, and pairs the second. The network after each
stage is kept in the cache folder, so that no stage is trained twice, nor again after a kill.
"""

from __future__ import annotations

import functools
import hashlib
import itertools

from overfit_cli.core.classification import Task, minibatches
from overfit_cli.core.files import fingerprint
from overfit_cli.core.training import named_rng
from overfit_cli.saved_weights import trained_once
from overfit_cli.studies.attention_kernel.classifier.model import Transformer
from overfit_cli.studies.attention_kernel.classifier.training import build_model, training_steps
from overfit_cli.studies.attention_kernel.landscape.parameters import KernelLandscapeParameters

NETWORK_VERSION = 1
"""Raised whenever the same parameters and seed would give another network."""

_SURFACE = {"pair", "directions", "points", "spacing", "loss_samples"}
_SECOND_STAGE = {"kernel", "second_steps"}


def trained_network(
    parameters: KernelLandscapeParameters, task: Task, seed: int, stage: int, device: str
) -> Transformer:
    """Return the network after a stage, 1 or 2, from the cache folder if it is there.

    Each stage has an optimiser of its own; the second takes the minibatches after the first's.
    """
    kernel = "softmax" if stage == 1 else parameters.kernel
    of_stage = parameters.model_copy(update={"kernel": kernel})
    return trained_once(
        lambda: build_model(of_stage, task, seed, device),
        lambda model: _train_stage(model, parameters, task, seed, stage, device),
        _network_name(parameters, seed, stage, data_fingerprint(task)),
        device,
    )


@functools.lru_cache(maxsize=2)
def data_fingerprint(task: Task) -> str:
    """Return a name for the training samples: folders of one name may hold different ones."""
    arrays = (task.train.tokens, task.train.labels, task.train.lengths)
    return fingerprint(*(array for array in arrays if array is not None))


def _network_name(parameters: KernelLandscapeParameters, seed: int, stage: int, data: str) -> str:
    """Return the name of the network after a stage, the same for cells that share it."""
    left_out = _SURFACE | (_SECOND_STAGE if stage == 1 else set())
    text = parameters.model_dump_json(exclude=left_out)
    identity = f"{NETWORK_VERSION}/{stage}/{seed}/{data}/{text}"
    return hashlib.sha256(identity.encode()).hexdigest()[:24]


def _train_stage(
    model: Transformer,
    parameters: KernelLandscapeParameters,
    task: Task,
    seed: int,
    stage: int,
    device: str,
) -> None:
    """Train a stage; the second goes on from the first with the minibatches that follow."""
    first, steps = 0, parameters.training_steps
    if stage == 2:
        before = trained_network(parameters, task, seed, 1, device)
        model.load_state_dict(before.state_dict())
        model.dropout.restart(named_rng(seed, "train", "dropout", "second stage"))
        first, steps = parameters.training_steps, parameters.second_steps
    every = minibatches(len(task.train.labels), parameters.batch_size, seed)
    rows = itertools.islice(every, first, first + steps)
    for _ in training_steps(model, parameters, task.train, rows, device):
        pass
