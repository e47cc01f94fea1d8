"""Images of `benign-vit-images`: handwritten digits times a, in a ring of noise times 1 − a.

Digits are grey images of 28 × 28 pixels: scikit-learn's, or MNIST's (LeCun et al.). MNIST's digits
lie in the middle 20 × 20 pixels, and scikit-learn's are scaled and placed likewise. MNIST is read
from its IDX files, plain or gzipped. The ring is what lies around (section 6 of Jiang et al. 2024).
"""

from __future__ import annotations

import functools
import gzip
import math
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from overfit_cli.core.errors import BadValue, MissingError, UserError
from overfit_cli.core.files import data_folder, fingerprint, name_data_in_errors
from overfit_cli.core.training import named_rng
from overfit_cli.studies.benign_vit.images_study import BenignVitImagesParameters

SIZE = 28
INNER = 20
RING = (SIZE - INNER) // 2
CLASSES = 10

Pixels = NDArray[np.float32]
"""Grey images, (images, 28, 28)."""


@dataclass(frozen=True, eq=False)
class Digits:
    """Grey levels from 0 to 1, shape (images, 28, 28), and labels, shape (images,)."""

    pixels: Pixels
    labels: NDArray[np.int64]

    def take(self, rows: NDArray[np.int64]) -> Digits:
        """Return some of the images."""
        return Digits(self.pixels[rows], self.labels[rows])


@functools.lru_cache(maxsize=1)
def built_in_digits() -> Digits:
    """Return scikit-learn's 1797 digits of 8 × 8 pixels, scaled to 20 × 20."""
    from PIL import Image
    from sklearn.datasets import load_digits

    bundle = load_digits()
    pixels = np.zeros((len(bundle.images), SIZE, SIZE), dtype=np.float32)
    central = slice(RING, RING + INNER)
    for row, image in enumerate(bundle.images):
        small = Image.fromarray((image / 16).astype(np.float32))
        scaled = small.resize((INNER, INNER), Image.Resampling.BILINEAR)
        pixels[row, central, central] = np.asarray(scaled)
    return Digits(pixels, bundle.target.astype(np.int64))


MOST_BYTES = 100_000_000
"""About twice what MNIST's larger file holds."""

SPLITS = {"train": "train", "test": "t10k"}
_SUBFOLDERS = (".", "mnist", "MNIST/raw", "raw")
_ACCEPTED = (
    "name a folder that has train-images-idx3-ubyte and train-labels-idx1-ubyte, or the same two "
    "of t10k, plain or as .gz, directly or in a subfolder mnist"
)


@functools.lru_cache(maxsize=1)
def mnist_splits(folder: Path) -> tuple[dict[str, Digits], dict[str, str]]:
    """Return the splits of MNIST that the folder has, and their fingerprint by name; cached."""
    with name_data_in_errors(folder):
        splits = read_mnist(folder)
    arrays = [array for split in splits.values() for array in (split.pixels, split.labels)]
    return splits, {"MNIST": fingerprint(*arrays)}


def read_mnist(folder: Path) -> dict[str, Digits]:
    """Return the splits of MNIST that a folder has: `train`, `test`, or both.

    The files may lie in its folder `mnist`, `raw` or `MNIST/raw`.
    """
    for subfolder in _SUBFOLDERS:
        found = {
            split: _read_split(images, folder / subfolder / f"{prefix}-labels-idx1-ubyte")
            for split, prefix in SPLITS.items()
            if (images := _find_file(folder / subfolder / f"{prefix}-images-idx3-ubyte"))
        }
        if found:
            return found
    raise MissingError(f"{folder}: MNIST isn't there; {_ACCEPTED}.")


def _find_file(path: Path) -> Path | None:
    candidates = (path, path.with_name(f"{path.name}.gz"))
    return next((file for file in candidates if file.is_file()), None)


def _read_split(images: Path, labels: Path) -> Digits:
    labels_file = _find_file(labels)
    if labels_file is None:
        raise UserError(f"{images}: its labels, {labels.name}, aren't in the same folder.")
    pixels, classes = read_idx(images, 3), read_idx(labels_file, 1)
    if pixels.shape[1:] != (SIZE, SIZE):
        height, width = pixels.shape[1:]
        raise UserError(f"{images}: its images are {width} × {height}; {SIZE} × {SIZE} is needed.")
    if len(pixels) != len(classes):
        raise UserError(f"{labels_file}: it has {len(classes)} labels for {len(pixels)} images.")
    if classes.size and int(classes.max()) >= CLASSES:
        raise UserError(f"{labels_file}: it has a label {classes.max()}; labels are 0 to 9.")
    return Digits((pixels / np.float32(255)).astype(np.float32), classes.astype(np.int64))


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """Return the array in an IDX file of unsigned bytes, plain or `.gz`, of so many dimensions."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)  # Further bytes are never unpacked.
    except (EOFError, zlib.error, OSError) as error:
        raise UserError(f"{path}: it is damaged or can't be read ({error}).") from error
    length = 4 + 4 * dimensions
    magic, *shape = struct.unpack(f">{1 + dimensions}I", content[:length].ljust(length, b"\0"))
    if magic != 0x800 + dimensions or length + math.prod(shape) != len(content):
        raise UserError(
            f"{path}: it isn't a whole IDX file of bytes with {dimensions} dimensions; it has "
            f"{len(content)} bytes."
        )
    return np.frombuffer(content, dtype=np.uint8, offset=length).reshape(shape)


# The images of a cell


@dataclass(frozen=True, eq=False)
class ImageTask:
    """The images of a cell, noise included.

    `collections` has a fingerprint of the data that they were taken from, by its name; the built-in
    digits have none.
    """

    train: Digits
    test: Digits
    collections: Mapping[str, str]


def image_task(p: BenignVitImagesParameters, seed: int) -> ImageTask:
    """Return a cell's task. More samples extend fewer, and every ratio has the same noise."""
    splits, collections = {"digits": built_in_digits()}, dict[str, str]()
    if p.source == "mnist":
        splits, collections = mnist_splits(data_folder("source=mnist"))
    share = p.snr / (1 + p.snr)  # a, so that SNR = a / (1 − a)

    def noisy(clean: Digits, split: str) -> Digits:
        noise = ring_noise(seed, split, len(clean.labels)) * np.float32(p.noise_deviation)
        pixels = clean.pixels * np.float32(share) + noise * np.float32(1 - share)
        return Digits(pixels, clean.labels)

    train, test = _chosen(splits, p.n, p.test_samples, seed)
    return ImageTask(noisy(train, "train"), noisy(test, "test"), collections)


def ring_noise(seed: int, split: str, count: int) -> Pixels:
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
        present = len(digits.labels)
        if n + test_samples > present:
            accepts = f"with test_samples={test_samples}, there are {present} such images."
            raise BadValue("n", n, accepts)
        order = named_rng(seed, "train", "images").permutation(present)
        return digits.take(order[:n]), digits.take(order[present - test_samples :])
    chosen = list[Digits]()
    for split, name, count in (("train", "n", n), ("test", "test_samples", test_samples)):
        present = len(splits[split].labels)
        if count > present:
            raise BadValue(name, count, f"there are {present} such images.")
        rows = named_rng(seed, split, "images").permutation(present)[:count]
        chosen.append(splits[split].take(rows))
    return chosen[0], chosen[1]
