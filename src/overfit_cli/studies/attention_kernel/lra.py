"""Reading of the Pathfinder directories of the Long Range Arena (Tay et al. 2020).

A difficulty's directory holds `imgs/<k>/sample_<j>.png` and `metadata/<k>.npy`. A metadata file is
text lines, in spite of its suffix, or a NumPy array of words: sub-path, file name, index, label,
and the parameters of the drawing, such as `imgs/0 sample_0.png 0 1 1.0 14 ...`.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from overfit_cli.core.errors import MissingError, UserError
from overfit_cli.core.files import error_text, read_bounded

DIRECTORIES = {
    "easy": "curv_baseline",
    "intermediate": "curv_contour_length_9",
    "hard": "curv_contour_length_14",
}
MOST_IMAGES = 1_000_000
MOST_METADATA = 1 << 24

MOST_BYTES_OF_AN_IMAGE = 1 << 20
"""The limits are several times LRA's sizes: 200,000 images, in metadata files of 1000."""

_COLUMN_COUNT = 4
_MAGIC = b"\x93NUMPY"
_COLUMNS = "its columns must be sub-path, file name, index and label (0 or 1)"


Images = tuple[NDArray[np.uint8], NDArray[np.int64]]
"""Grey levels, (images, size, size), and labels, (images,): 1 where a contour joins the discs."""


def read_lra(folder: Path, difficulty: str, size: int = 32) -> Images:
    """Read all images of a difficulty, in the order of the metadata.

    The folder has the difficulties' directories, or a `pathfinder32` or `lra_release` that has
    them.
    """
    root = _directory(folder, difficulty, size)
    files = sorted((root / "metadata").glob("*.npy"), key=lambda path: (len(path.stem), path.stem))
    if not files:
        needs = "no metadata there; files 0.npy, 1.npy, ... are needed, as LRA ships them."
        raise UserError(f"{root / 'metadata'}: {needs}")
    rows = list[tuple[str, int]]()
    for path in files:
        rows += _rows(path)
        if len(rows) > MOST_IMAGES:
            raise UserError(f"{path}: with it there are over {MOST_IMAGES} images, too many.")
    pixels = np.empty((len(rows), size, size), dtype=np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # no such image is unpacked
        for row, (image, _) in enumerate(rows):
            pixels[row] = _pixels(root / image, size)
    return pixels, np.array([label for _, label in rows], dtype=np.int64)


def _directory(folder: Path, difficulty: str, size: int) -> Path:
    name, images = DIRECTORIES[difficulty], f"pathfinder{size}"
    parents = ("", images, f"lra_release/{images}", f"lra_release/lra_release/{images}")
    for part in parents:
        if (folder / part / name).is_dir():
            return folder / part / name
    wanted = f"name the folder of LRA's that holds {', '.join(DIRECTORIES.values())}."
    raise MissingError(f"{folder}: no directory {name} in it or in its {images}; {wanted}")


def _rows(path: Path) -> list[tuple[str, int]]:
    try:
        content = read_bounded(path, MOST_METADATA)
        table = _array_rows(content) if content.startswith(_MAGIC) else _text_rows(content)
    except OSError as error:
        raise UserError(f"{path}: it can't be read ({error_text(error)}).") from None
    except Exception as error:  # a malformed header raises any error of Python's parser
        raise UserError(f"{path}: neither text nor an array of words; {_COLUMNS}.") from error
    return [_row(path, number, words) for number, words in enumerate(table, start=1)]


def _array_rows(content: bytes) -> list[list[str]]:
    array = np.load(io.BytesIO(content), allow_pickle=False)
    if array.ndim != 2 or array.dtype.kind not in "SU" or len(array) > MOST_IMAGES:
        raise ValueError
    rows: list[list[str]] = array[:, :_COLUMN_COUNT].astype(str).tolist()
    return rows


def _text_rows(content: bytes) -> list[list[str]]:
    return [line.split() for line in content.decode().splitlines() if line.strip()]


def _row(path: Path, number: int, words: list[str]) -> tuple[str, int]:
    if len(words) < _COLUMN_COUNT:
        raise UserError(f"{path}: row {number} has {len(words)} columns, not 4; {_COLUMNS}.")
    try:
        label = float(words[3])
    except ValueError:
        label = float("nan")
    if label not in (0, 1):
        raise UserError(f"{path}: the label of row {number} is {words[3]!r}; {_COLUMNS}.")
    image = PurePosixPath(words[0], words[1])
    if image.is_absolute() or ".." in image.parts:
        needs = "an image lies inside the directory, with no .. in its path."
        raise UserError(f"{path}: row {number} names {str(image)!r}; {needs}")
    return str(image), int(label)


def _pixels(path: Path, size: int) -> NDArray[np.uint8]:
    """Return an image's grey levels, shape (size, size)."""
    try:
        content = read_bounded(path, MOST_BYTES_OF_AN_IMAGE)
        with Image.open(io.BytesIO(content), formats=["PNG"]) as image:
            width, height = image.size
            if (width, height) == (size, size):  # Other images are not unpacked.
                return np.asarray(image.convert("L"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such image, though the metadata lists it.") from None
    except Exception:  # a damaged image raises any error of its decoder
        raise UserError(f"{path}: it can't be read as an image; a PNG is needed.") from None
    raise UserError(f"{path}: the image is {width} × {height} pixels; {size} × {size} is needed.")
