"""Handwritten digits as grey images of 28 × 28 pixels: scikit-learn's, and MNIST (LeCun et al.).

MNIST's digits lie in the middle 20 × 20 pixels, and scikit-learn's are scaled and placed likewise.
MNIST is read from its IDX files, plain or gzipped.
"""

from __future__ import annotations

import functools
import gzip
import math
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from overfit_cli.core.errors import MissingError, UserError
from overfit_cli.core.files import fingerprint, name_data_in_errors

SIZE = 28
INNER = 20
CLASSES = 10


@dataclass(frozen=True, eq=False)
class Digits:
    """Grey levels from 0 to 1, shape (images, 28, 28), and labels, shape (images,)."""

    pixels: NDArray[np.float32]
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
    margin = (SIZE - INNER) // 2
    central = slice(margin, margin + INNER)
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
