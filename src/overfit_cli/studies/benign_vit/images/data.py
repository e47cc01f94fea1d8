"""Images of a cell: digits times a, in a ring of noise times 1 − a (section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from overfit_cli.core.errors import BadValue
from overfit_cli.core.files import data_folder
from overfit_cli.core.training import named_rng
from overfit_cli.studies.benign_vit.images.digits import (
    INNER,
    SIZE,
    Digits,
    built_in_digits,
    mnist_splits,
)
from overfit_cli.studies.benign_vit.images.parameters import BenignVitImagesParameters

RING = (SIZE - INNER) // 2
"""Width of the noisy ring, in pixels (section 6)."""


@dataclass(frozen=True, eq=False)
class ImageTask:
    """The images of a cell."""

    # train, test: the samples, noise included
    train: Digits
    test: Digits
    # a fingerprint of the data that they were taken from, by its name; empty for the built-in
    # digits
    collections: Mapping[str, str] = field(default_factory=dict)


def image_task(parameters: BenignVitImagesParameters, seed: int) -> ImageTask:
    """Return a cell's task. More samples extend fewer, and every ratio has the same noise."""
    n, test_samples = parameters.n, parameters.test_samples
    splits: Mapping[str, Digits]
    if parameters.source == "mnist":
        splits, collections = mnist_splits(data_folder("source=mnist"))
    else:
        splits, collections = {"digits": built_in_digits()}, {}
    train, test = _chosen(splits, n, test_samples, seed)
    share = parameters.snr / (1 + parameters.snr)

    def noisy(clean: Digits, split: str) -> Digits:
        noise = ring_noise(seed, split, len(clean.labels)) * np.float32(parameters.noise_deviation)
        return Digits(mix_with_noise(clean.pixels, noise, share), clean.labels)

    return ImageTask(noisy(train, "train"), noisy(test, "test"), collections)


def mix_with_noise(
    pixels: NDArray[np.float32], noise: NDArray[np.float32], share: float
) -> NDArray[np.float32]:
    """Return pixels · a + noise · (1 − a) with a = `share`, so that SNR = a / (1 − a)."""
    return np.asarray(pixels * np.float32(share) + noise * np.float32(1 - share))


def ring_noise(seed: int, split: str, count: int) -> NDArray[np.float32]:
    """Return standard normal noise on the outer ring of `count` images, (count, 28, 28)."""
    drawn = named_rng(seed, split, "ring").standard_normal((count, SIZE, SIZE), dtype=np.float32)
    drawn[:, RING:-RING, RING:-RING] = 0
    return drawn


def _chosen(
    splits: Mapping[str, Digits], n: int, test_samples: int, seed: int
) -> tuple[Digits, Digits]:
    """Choose samples in an order of the seed's: of two splits, or from the two ends of one."""
    if len(splits) == 1:
        (digits,) = splits.values()
        _check({"n": n, "test_samples": test_samples}, len(digits.labels), together=True)
        order = named_rng(seed, "train", "images").permutation(len(digits.labels))
        return digits.take(order[:n]), digits.take(order[len(order) - test_samples :])
    train, test = splits["train"], splits["test"]
    _check({"n": n}, len(train.labels))
    _check({"test_samples": test_samples}, len(test.labels))
    rows = named_rng(seed, "train", "images").permutation(len(train.labels))[:n]
    test_rows = named_rng(seed, "test", "images").permutation(len(test.labels))[:test_samples]
    return train.take(rows), test.take(test_rows)


def _check(wanted: Mapping[str, int], present: int, *, together: bool = False) -> None:
    if together and sum(wanted.values()) > present:
        name, *others = wanted
        with_others = " and ".join(f"{second}={wanted[second]}" for second in others)
        accepts = f"with {with_others}, there are {present} such images."
        raise BadValue(name, wanted[name], accepts)
    for name, count in wanted.items():
        if count > present:
            raise BadValue(name, count, f"there are {present} such images.")
