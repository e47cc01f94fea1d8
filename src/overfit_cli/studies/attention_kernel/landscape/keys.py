"""Which cells share a network. A plan needs no torch."""

from __future__ import annotations

import functools
import hashlib

from overfit_cli.data_folder import fingerprint
from overfit_cli.studies.attention_kernel.classifier.task import Task
from overfit_cli.studies.attention_kernel.landscape.parameters import KernelLandscapeParameters

NETWORK_VERSION = 1
"""Raised whenever the same parameters and seed would give another network."""

_SURFACE = {"pair", "directions", "points", "spacing", "loss_samples"}
_SECOND_STAGE = {"kernel", "second_steps"}


@functools.lru_cache(maxsize=2)
def data_fingerprint(task: Task) -> str:
    """Return a name for what a task trains on: folders of one name may hold different data."""
    arrays = (task.train.tokens, task.train.labels, task.train.lengths)
    return fingerprint(*(array for array in arrays if array is not None))


def network_key(parameters: KernelLandscapeParameters, seed: int, stage: int, data: str) -> str:
    """Return a name for the network after a stage, 1 or 2: the same for cells that share it."""
    left_out = _SURFACE | (_SECOND_STAGE if stage == 1 else set())
    text = parameters.model_dump_json(exclude=left_out)
    identity = f"{NETWORK_VERSION}/{stage}/{seed}/{data}/{text}"
    return hashlib.sha256(identity.encode()).hexdigest()[:24]
