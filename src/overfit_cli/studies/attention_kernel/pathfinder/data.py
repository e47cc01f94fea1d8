"""Images of a cell as sequences of grey levels: drawn from its seed, or LRA's."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from overfit_cli.core.classification import Examples, Task
from overfit_cli.core.errors import BadValue
from overfit_cli.core.files import data_folder, fingerprint, name_data_in_errors
from overfit_cli.core.training import named_rng
from overfit_cli.studies.attention_kernel.pathfinder.lra import read_lra
from overfit_cli.studies.attention_kernel.pathfinder.paddles import PathfinderSettings
from overfit_cli.studies.attention_kernel.pathfinder.parameters import KernelPathfinderParameters
from overfit_cli.studies.attention_kernel.pathfinder.positions import best_accuracy_of_positions
from overfit_cli.studies.attention_kernel.pathfinder.samples import PathfinderImages, Stream, images


def pathfinder_task(parameters: KernelPathfinderParameters, seed: int) -> Task:
    """Return a cell's task; its shortcut is what rules get right that see discs' places alone."""
    n, test_samples = parameters.n, parameters.test_samples
    levels = parameters.grey_levels
    if parameters.source == "lra":
        folder = data_folder("source=lra")
        sizes = (parameters.difficulty, parameters.size)
        return _lra(folder, *sizes, n, test_samples, levels, seed)
    return _draw_task(parameters.settings, n, test_samples, levels, seed)


@functools.lru_cache(maxsize=6)
def _draw_task(
    settings: PathfinderSettings, n: int, test_samples: int, levels: int, seed: int
) -> Task:
    train = images(settings, stream_of(seed, "train"), n)
    test = images(settings, stream_of(seed, "test"), test_samples)
    return _task(train, test, levels)


def stream_of(seed: int, split: Literal["train", "test"]) -> Stream:
    """Return the stream that a seed's training or test images are drawn with."""

    def generator(chunk: int) -> np.random.Generator:
        return named_rng(seed, split, "pathfinder", str(chunk))

    return Stream({"seed": seed, "split": split}, generator)


@functools.lru_cache(maxsize=2)
def _lra(
    folder: Path, difficulty: str, size: int, n: int, test_samples: int, levels: int, seed: int
) -> Task:
    collection, digest = _read(folder, difficulty, size)
    if n + test_samples > len(collection):
        raise BadValue(
            "n",
            n,
            f"with test_samples={test_samples}, LRA's directory has {len(collection)} images, and "
            "training and test images must be different ones.",
        )
    order = named_rng(seed, "train", "images", "choice").permutation(len(collection))
    train, test = order[:n], order[len(order) - test_samples :]
    task = _task(collection[train], collection[test], levels)
    return replace(task, collections={f"LRA's {difficulty} images of {size} pixels": digest})


@functools.lru_cache(maxsize=1)
def _read(folder: Path, difficulty: str, size: int) -> tuple[PathfinderImages, str]:
    with name_data_in_errors(folder):
        pixels, labels = read_lra(folder, difficulty, size)
    unknown = np.full((len(labels), 2), np.nan, dtype=np.complex64)
    return PathfinderImages(pixels, labels, unknown), fingerprint(pixels, labels)


def _task(train: PathfinderImages, test: PathfinderImages, levels: int) -> Task:
    shortcut = best_accuracy_of_positions(train.markers, train.labels, test.markers, test.labels)
    return Task(_examples(train, levels), _examples(test, levels), levels, shortcut)


def _examples(sample_images: PathfinderImages, levels: int) -> Examples:
    tokens = sample_images.pixels.reshape(len(sample_images), -1).astype(np.int64) * levels // 256
    return Examples(tokens.astype(np.uint8), sample_images.labels)
