"""Where Pathfinder images come from: drawn here, or read as LRA ships them.

What is drawn is kept on disk, in one folder for each kind of image, seed and split, and a larger
count is drawn on from where the kept ones end. Keeping is a convenience: where the folder can't be
written, or holds something else, the images are drawn.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import zipfile
import zlib
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np

from overfit_cli.cache import cache_folder
from overfit_cli.files import locked, write_whole
from overfit_cli.studies.attention_kernel.pathfinder.drawing import (
    CHUNK,
    GENERATOR_VERSION,
    PathfinderImages,
    Split,
    draw,
    joined,
)
from overfit_cli.studies.attention_kernel.pathfinder.lra import read_lra
from overfit_cli.studies.attention_kernel.pathfinder.settings import PathfinderSettings

__all__ = ["PathfinderImages", "images", "read_lra"]

FILE = "images.npz"
# What reading a torn archive raises, or one of other arrays, or (TypeError) a lone array.
_UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
)


def images(settings: PathfinderSettings, seed: int, split: Split, count: int) -> PathfinderImages:
    """Return the first `count` images of a seed's split, drawn or from the cache.

    Raises:
        UserError: if contours that long can't be laid in an image.
    """
    key = _key(settings, seed, split)
    folder = cache_folder() / "pathfinder" / key
    kept = _read(settings, folder / FILE, key)
    if len(kept) >= count:
        return kept[:count]
    with contextlib.ExitStack() as stack:
        with suppress(OSError):
            # Whoever needs the same images waits for them instead of drawing them too.
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder))
            kept = _read(settings, folder / FILE, key)
        # In whole chunks, so that what is drawn is never drawn again.
        missing = draw(settings, seed, split, len(kept), max(len(kept), -(-count // CHUNK) * CHUNK))
        kept = joined(settings, [kept, missing])
        with suppress(OSError):
            _keep(folder, key, kept)
    return kept[:count]


def _key(settings: PathfinderSettings, seed: int, split: Split) -> str:
    """Return a name that two kinds of images don't share, and two versions of the generator."""
    kind = {**asdict(settings), "seed": seed, "split": split, "generator": GENERATOR_VERSION}
    return hashlib.sha256(json.dumps(kind, sort_keys=True).encode()).hexdigest()[:24]


def _keep(folder: Path, key: str, drawn: PathfinderImages) -> None:
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, key=key, **vars(drawn))
    write_whole(folder / FILE, content.getvalue())


def _read(settings: PathfinderSettings, path: Path, key: str) -> PathfinderImages:
    """Return the images in a file; none where there is no file, or it is torn or foreign."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            ours = arrays["key"].shape == () and str(arrays["key"]) == key
            found = PathfinderImages(arrays["pixels"], arrays["labels"], arrays["distances"])
    except _UNREADABLE:
        return joined(settings, [])
    return found if ours and _is_whole(settings, found) else joined(settings, [])


def _is_whole(settings: PathfinderSettings, found: PathfinderImages) -> bool:
    """Whether the arrays are what a draw would give, as far as types and shapes go."""
    none, count = vars(joined(settings, [])), found.labels.size
    return count % CHUNK == 0 and all(
        array.dtype == none[name].dtype and array.shape == (count, *none[name].shape[1:])
        for name, array in vars(found).items()
    )
