"""Pathfinder images of a cell as sequences of grey levels: drawn from its seed, or LRA's.

Images are drawn in chunks from a random stream, and kept in the cache folder, which has a folder
for each stream and settings. A larger count continues where the kept images end. The shortcut of
the task is the accuracy of the best rule that sees the places of the two discs alone.

LRA is the Long Range Arena (Tay et al. 2020). A difficulty's directory holds
`imgs/<k>/sample_<j>.png` and `metadata/<k>.npy`. A metadata file is text lines, in spite of its
suffix, or a NumPy array of words: sub-path, file name, index, label, and the parameters of the
drawing, such as `imgs/0 sample_0.png 0 1 1.0 14 ...`.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from overfit_cli.core.arrays import Floats
from overfit_cli.core.classification import Examples, Task
from overfit_cli.core.errors import BadValue, MissingError, UserError
from overfit_cli.core.files import (
    cache_folder,
    data_folder,
    error_text,
    fingerprint,
    name_data_in_errors,
    read_bounded,
)
from overfit_cli.core.training import named_rng
from overfit_cli.studies.attention_kernel.cache import alone_in, keep_arrays, read_arrays
from overfit_cli.studies.attention_kernel.classifier_parameters import (
    KernelPathfinderParameters,
    PathfinderSettings,
)
from overfit_cli.studies.attention_kernel.scenes import Points, Scenes, draw_scenes

GENERATOR_VERSION = 2
"""Incremented whenever the same settings and seed would give other images."""

CHUNK = 128
"""The number of images of a random stream; they are always drawn together."""

FILE = "images.npz"

Labels = NDArray[np.int64]
Centres = NDArray[np.complex64]


@dataclass(frozen=True)
class Stream:
    """The random numbers that images are drawn with, from a chunk's number.

    The name is part of the cache's key.
    """

    name: Mapping[str, str | int]
    generator: Callable[[int], np.random.Generator]


def stream_of(seed: int, split: Literal["train", "test"]) -> Stream:
    """Return the stream that a seed's training or test images are drawn with."""

    def generator(chunk: int) -> np.random.Generator:
        return named_rng(seed, split, "pathfinder", str(chunk))

    return Stream({"seed": seed, "split": split}, generator)


@dataclass(frozen=True)
class PathfinderImages:
    """Images with their labels."""

    pixels: NDArray[np.uint8]  # white on black, (images, size, size)
    labels: Labels  # 1 where a contour connects the discs, (images,)
    markers: Centres  # the discs' centres x + iy, nan where unknown, (images, 2)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: slice | Labels) -> PathfinderImages:
        return PathfinderImages(self.pixels[index], self.labels[index], self.markers[index])


def pathfinder_task(parameters: KernelPathfinderParameters, seed: int) -> Task:
    """Return a cell's task."""
    sizes = (parameters.n, parameters.test_samples, parameters.grey_levels, seed)
    if parameters.source == "lra":
        folder = data_folder("source=lra")
        return _lra(folder, parameters.difficulty, parameters.size, *sizes)
    return _drawn(parameters.settings, *sizes)


@functools.lru_cache(maxsize=6)
def _drawn(settings: PathfinderSettings, n: int, test_samples: int, levels: int, seed: int) -> Task:
    train = images(settings, stream_of(seed, "train"), n)
    return _task(train, images(settings, stream_of(seed, "test"), test_samples), levels)


@functools.lru_cache(maxsize=2)
def _lra(
    folder: Path, difficulty: str, size: int, n: int, test_samples: int, levels: int, seed: int
) -> Task:
    collection, digest = _read_lra(folder, difficulty, size)
    if n + test_samples > len(collection):
        accepts = f"with test_samples={test_samples}, LRA's directory has {len(collection)} images,"
        raise BadValue("n", n, f"{accepts} and training and test images must be different ones.")
    order = named_rng(seed, "train", "images", "choice").permutation(len(collection))
    task = _task(collection[order[:n]], collection[order[len(order) - test_samples :]], levels)
    return replace(task, collections={f"LRA's {difficulty} images of {size} pixels": digest})


@functools.lru_cache(maxsize=1)
def _read_lra(folder: Path, difficulty: str, size: int) -> tuple[PathfinderImages, str]:
    with name_data_in_errors(folder):
        pixels, labels = read_lra(folder, difficulty, size)
    unknown = np.full((len(labels), 2), np.nan, dtype=np.complex64)
    return PathfinderImages(pixels, labels, unknown), fingerprint(pixels, labels)


def _task(train: PathfinderImages, test: PathfinderImages, levels: int) -> Task:
    shortcut = best_accuracy_of_places(train.markers, train.labels, test.markers, test.labels)
    return Task(_examples(train, levels), _examples(test, levels), levels, shortcut)


def _examples(images: PathfinderImages, levels: int) -> Examples:
    tokens = images.pixels.reshape(len(images), -1).astype(np.int64) * levels // 256
    return Examples(tokens.astype(np.uint8), images.labels)


# Drawing, and the cache


def images(settings: PathfinderSettings, stream: Stream, count: int) -> PathfinderImages:
    """Return the first `count` images of a stream, drawn or from the cache."""
    kind = {**settings.model_dump(), **stream.name, "generator": GENERATOR_VERSION}
    key = hashlib.sha256(json.dumps(kind, sort_keys=True).encode()).hexdigest()[:24]
    file = cache_folder() / "pathfinder" / key / FILE
    cached = _kept(settings, file, key)
    if len(cached) >= count:
        return cached[:count]
    with alone_in(file.parent):
        cached = _kept(settings, file, key)
        # In whole chunks, so that no image is drawn twice.
        missing = draw(settings, stream, len(cached), max(len(cached), -(-count // CHUNK) * CHUNK))
        cached = _joined(settings, cached, missing)
        keep_arrays(file, key=key, **vars(cached))
    return cached[:count]


def _kept(settings: PathfinderSettings, file: Path, key: str) -> PathfinderImages:
    """Return the images that are kept; none where the file is torn, or of other content."""
    nothing, arrays = _joined(settings), read_arrays(file)
    if str(arrays.pop("key", "")) != key or arrays.keys() != vars(nothing).keys():
        return nothing
    counts = {len(array) for array in arrays.values()}
    whole = len(counts) == 1 and max(counts) % CHUNK == 0
    return PathfinderImages(**arrays) if whole else nothing


def draw(settings: PathfinderSettings, stream: Stream, start: int, stop: int) -> PathfinderImages:
    """Draw images `start` to `stop` - 1."""
    first, parts = start // CHUNK, []
    for chunk in range(first, -(-stop // CHUNK)):
        scenes = chunk_scenes(settings, stream, chunk)
        markers = scenes.markers.astype(np.complex64)
        parts.append(PathfinderImages(render(settings, scenes), scenes.labels, markers))
    return _joined(settings, *parts)[start - first * CHUNK : stop - first * CHUNK]


def chunk_scenes(settings: PathfinderSettings, stream: Stream, chunk: int) -> Scenes:
    """Return the geometry of images chunk · CHUNK to (chunk + 1) · CHUNK - 1."""
    return draw_scenes(settings, stream.generator(chunk), CHUNK)


def _joined(settings: PathfinderSettings, *parts: PathfinderImages) -> PathfinderImages:
    """Concatenate images; without parts there are none."""
    size = settings.size
    empty = PathfinderImages(
        np.zeros((0, size, size), np.uint8), np.zeros(0, np.int64), np.zeros((0, 2), np.complex64)
    )
    arrays = zip(*(vars(part).values() for part in (empty, *parts)), strict=True)
    return PathfinderImages(*map(np.concatenate, arrays))


def render(settings: PathfinderSettings, scenes: Scenes) -> NDArray[np.uint8]:
    """Draw white on black, shape (scenes, size, size); rows are y, from the top.

    Ink is evaluated at `antialiasing` points per pixel and axis: 1 inside a shape, 0 outside, and
    linear in the distance over one spacing of the points in between. So the weight of a stroke as
    thin as a spacing is independent of its position. Where shapes overlap, the maximum counts; a
    pixel is the mean of its points.
    """
    points, size = settings.antialiasing, settings.size
    thick = settings.paddle_thickness / 2
    half = max(settings.paddle_length / 2 - thick, 0)  # the round caps count as length
    frame = _window(points, half + max(thick, settings.marker_radius))
    side = size * points + 2 * frame
    canvas = np.zeros((len(scenes.labels), side, side), dtype=np.float32)
    for column in range(settings.paddles):
        paddle = scenes.paddles.take(np.s_[:, column])
        _stamp(canvas, points, frame, paddle.middles, paddle.directions, half, thick)
    for centres in scenes.markers.T:
        radius = settings.marker_radius
        _stamp(canvas, points, frame, centres, np.ones_like(centres), 0.0, radius)
    inner = canvas[:, frame : side - frame, frame : side - frame]
    blocks = inner.reshape(len(canvas), size, points, size, points)
    pixels: NDArray[np.uint8] = np.rint(255 * blocks.mean(axis=(2, 4))).astype(np.uint8)
    return pixels


def _stamp(
    canvas: NDArray[np.float32],
    points: int,
    frame: int,
    middles: Points,
    directions: Points,
    half: float,
    radius: float,
) -> None:
    """Draw one shape into each image, in place: all points closer than `radius` to a segment.

    The canvas has shape (scenes, side, side), with `points` along a pixel and `frame` around the
    image. `half` is half a segment's length; 0 draws a disc.
    """
    window = np.arange(_window(points, half + radius))
    corner = np.stack([middles.real, middles.imag]) - half - radius
    x, y = np.floor(corner * points).astype(np.int64)[:, :, None] - 1 + window
    dx = (x[:, None, :] + 0.5) / points - middles.real[:, None, None]
    dy = (y[:, :, None] + 0.5) / points - middles.imag[:, None, None]
    cos, sin = directions.real[:, None, None], directions.imag[:, None, None]
    overhang = np.maximum(np.abs(dx * cos + dy * sin) - half, 0)
    distance = np.sqrt(overhang**2 + (dy * cos - dx * sin) ** 2)
    ink = np.clip(0.5 + points * (radius - distance), 0, 1, dtype=np.float32, casting="same_kind")
    indices = np.arange(len(canvas))[:, None, None], y[:, :, None] + frame, x[:, None, :] + frame
    canvas[indices] = np.maximum(canvas[indices], ink)


def _window(points: int, reach: float) -> int:
    return math.ceil(2 * reach * points) + 4


# Rules that see the discs' places alone: the accuracy that a network has to exceed

BINS = 32

TREES, LEAVES = 60, 15
"""The size of gradient boosting: on 20,000 samples of seven features a larger one is no better."""


def best_accuracy_of_places(
    train: Centres, train_labels: Labels, test: Centres, test_labels: Labels
) -> float:
    """Return the test accuracy of the best rule that sees the centres of a sample's two discs.

    One rule sees their distance (`accuracy_in_bins`), the other all of `place_features`
    (`accuracy_of_trees`). The better of the two is chosen on the test samples: a network that
    exceeds it has learned more than the places tell. Centres x + iy have shape (samples, 2); where
    one is not known, the accuracy is nan.
    """
    near, far = (np.abs(centres[:, 1] - centres[:, 0]) for centres in (train, test))
    accuracy = accuracy_in_bins(near, train_labels, far, test_labels)
    if np.isnan(accuracy):
        return accuracy
    features = place_features(train), place_features(test)
    return max(accuracy, accuracy_of_trees(features[0], train_labels, features[1], test_labels))


def accuracy_in_bins(
    train_values: ArrayLike, train_labels: ArrayLike, test_values: ArrayLike, test_labels: ArrayLike
) -> float:
    """Return the test accuracy of a rule that sees one number of each sample.

    The rule is the majority of the training labels in each of 32 bins that hold equally many
    training values. All arguments have shape (samples,). The accuracy is nan without samples, or
    where a value is not finite.
    """
    values, labels = np.asarray(train_values), np.asarray(train_labels)
    tested, truth = np.asarray(test_values), np.asarray(test_labels)
    every = np.concatenate([values, tested])
    if not (len(values) and len(tested) and np.isfinite(every).all()):
        return float("nan")
    edges = np.quantile(values, np.linspace(0, 1, BINS + 1)[1:-1])
    bins = np.searchsorted(edges, values)
    balance = np.bincount(bins, weights=2 * labels - 1, minlength=BINS)
    rule = np.where(balance == 0, labels.mean() > 0.5, balance > 0)
    return float((rule[np.searchsorted(edges, tested)] == truth).mean())


def place_features(centres: Centres) -> Floats:
    """Return both x and both y, sorted by x, the middle's, and the distance, (samples, 7).

    They do not depend on the order of the two points x + iy, (samples, 2).
    """
    ordered = np.sort(centres.astype(np.complex128), axis=1)  # complex numbers sort by x, then by y
    middle = ordered.mean(axis=1)
    distances = np.abs(ordered[:, 1] - ordered[:, 0])
    return np.column_stack([ordered.real, ordered.imag, middle.real, middle.imag, distances])


def accuracy_of_trees(
    train: Floats, train_labels: Labels, test: Floats, test_labels: Labels
) -> float:
    """Return the test accuracy of gradient boosting on features, (samples, features).

    It is the same at every call. Where all training labels are equal, that label is predicted.
    """
    if len(np.unique(train_labels)) == 1:
        return float((test_labels == train_labels[0]).mean())
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    trees = HistGradientBoostingClassifier(
        max_iter=TREES, max_leaf_nodes=LEAVES, early_stopping=False, random_state=0
    )
    with threadpool_limits(1):  # several of its threads are slower where cores are shared
        trees.fit(train, train_labels)
        return float(trees.score(test, test_labels))


# LRA's directories

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
