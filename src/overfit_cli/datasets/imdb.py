"""IMDb's labelled film reviews (Maas et al. 2011) as bytes, from their folder or their archive.

Long Range Arena (Tay et al. 2021) classifies them byte by byte, cut or padded to 4000 tokens.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from overfit_cli.cache import cache_folder
from overfit_cli.datasets.imdb_files import (
    KINDS,
    SPLITS,
    Reviews,
    archive_reviews,
    folder_reviews,
)
from overfit_cli.datasets.texts import Texts
from overfit_cli.errors import MissingError, UserError
from overfit_cli.files import reason_of, write_whole

VOCABULARY = 257
"""Padding and the 256 values of a byte."""

_FIELDS = ("content", "lengths", "labels")
_ARCHIVES = "aclImdb*.tar.gz"
_ACCEPTED = (
    f"accepted are IMDb's folder aclImdb or its archive {_ARCHIVES} as published, "
    "or a folder with one of them in it or in its folder imdb"
)


def read_imdb(folder: Path, length: int) -> tuple[Texts, Texts]:
    """Read IMDb's training and test reviews, cut or padded to `length` bytes.

    Byte b is token b + 1 and padding is 0, as in Long Range Arena. Reviews come in the order of
    (label, number in the file's name): first all negative ones, then all positive ones.

    Args:
        folder: the folder `aclImdb` or its archive `aclImdb*.tar.gz`; or a folder with one of them
            in it, or in its folder `imdb`. Where both are there the archive is read: it has a
            checksum, and what it held is kept in the cache folder.
        length: tokens of a review; Long Range Arena's is 4000.

    Raises:
        MissingError: if no reviews are there.
        UserError: if what is there isn't whole.
    """
    try:
        source = _source(folder)
        train, test = _read(source)
    except OSError as error:
        place = error.filename or folder
        raise UserError(f"{place}: it can't be read: {reason_of(error)}; {_ACCEPTED}.") from error
    return train.cut(length), test.cut(length)


def _source(given: Path) -> Path:
    """Return the archive, or the folder that has `train` and `test` in it."""
    if given.is_file():
        return given
    if not given.is_dir():
        raise MissingError(f"{given}: there is no such folder or archive; {_ACCEPTED}.")
    if any((given / split).is_dir() for split in SPLITS):
        return given
    for place in (given, given / "imdb"):
        archives = sorted(path for path in place.glob(_ARCHIVES) if path.is_file())
        for source in (*archives, place / "aclImdb"):
            if source.exists():
                return source
    raise MissingError(f"{given}: IMDb isn't there; {_ACCEPTED}.")


def _read(source: Path) -> tuple[Corpus, Corpus]:
    """Read the training and the test reviews of a folder, or of an archive."""
    if source.is_dir():
        return _corpora(folder_reviews(source), source)
    kept = cache_folder() / _cache_name(source)
    # Whatever is wrong with the kept file, the archive has everything.
    with suppress(Exception):
        return _unpacked(kept.read_bytes())
    train, test = _corpora(archive_reviews(source), source)
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_whole(kept, _packed(train, test))
    return train, test


def _cache_name(archive: Path) -> str:
    """Return a name that changes when the archive does."""
    facts = archive.stat()
    identity = f"{archive.name}/{facts.st_size}/{facts.st_mtime_ns}"
    return f"imdb-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.npz"


def _corpora(reviews: Reviews, source: Path) -> tuple[Corpus, Corpus]:
    """Lay the training and the test reviews end to end, each in the order of label and number."""
    train, test = (_corpus(reviews, split, source) for split in SPLITS)
    return train, test


def _corpus(reviews: Reviews, split: str, source: Path) -> Corpus:
    """Lay one split's reviews end to end."""
    texts: list[bytes] = []
    labels: list[int] = []
    for label, kind in enumerate(KINDS):
        found = sorted(review for review in reviews if (review.split, review.kind) == (split, kind))
        if not found:
            raise UserError(f"{source}: it has no reviews in {split}/{kind}; {_ACCEPTED}.")
        for review in found:
            if not reviews[review]:
                raise UserError(f"{source}: the review {review.path} is empty; {_ACCEPTED}.")
            texts.append(reviews[review])
            labels.append(label)
    return Corpus.of(texts, labels)


@dataclass(frozen=True, eq=False)
class Corpus:
    """Labelled texts of any length, end to end as bytes: what the cache keeps of an archive.

    Attributes:
        content: all texts one after another, shape (bytes,).
        lengths: bytes of each text, shape (texts,).
        labels: 1 for a positive text and 0 for a negative one, shape (texts,).
    """

    content: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    labels: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[bytes], labels: Sequence[int]) -> Corpus:
        """Lay `texts` end to end."""
        content = np.frombuffer(b"".join(texts), np.uint8)
        lengths = np.array([len(text) for text in texts], np.int64)
        return cls(content, lengths, np.array(labels, np.int64))

    def cut(self, length: int) -> Texts:
        """Return the texts cut or padded to `length`: byte b is token b + 1, 0 is padding."""
        kept = np.minimum(self.lengths, length)
        starts = np.cumsum(self.lengths) - self.lengths
        tokens = np.zeros((len(kept), length), np.int16)
        for row, start, size in zip(tokens, starts.tolist(), kept.tolist(), strict=True):
            np.add(self.content[start : start + size], 1, out=row[:size], dtype=np.int16)
        return Texts(tokens, kept, self.labels)


def _packed(train: Corpus, test: Corpus) -> bytes:
    """Return both as the content of one `.npz` file."""
    arrays = {
        f"{split}_{field}": getattr(corpus, field)
        for split, corpus in zip(SPLITS, (train, test), strict=True)
        for field in _FIELDS
    }
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _unpacked(content: bytes) -> tuple[Corpus, Corpus]:
    """Return what `_packed` was given.

    Raises:
        Exception: of many kinds, if `content` isn't what `_packed` wrote.
    """
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        train, test = (Corpus(*(file[f"{split}_{field}"] for field in _FIELDS)) for split in SPLITS)
    return train, test
