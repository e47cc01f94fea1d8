"""IMDb's labelled film reviews (Maas et al. 2011) as bytes, from their folder or their archive.

Reviews are the files `train/pos/0_9.txt` and so on. Long Range Arena (Tay et al. 2021) classifies
them byte by byte, cut or padded to 4000 tokens.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import re
import tarfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from overfit_cli.core.errors import MissingError, UserError
from overfit_cli.core.files import cache_folder, error_text, read_bounded, write_whole
from overfit_cli.datasets.reviews import Texts

VOCABULARY = 257
"""Padding and the 256 values of a byte."""

SPLITS = ("train", "test")

KINDS = ("neg", "pos")
"""The folders of a split's labelled reviews, in the order of their labels 0 and 1."""

MOST_REVIEWS = 300_000
MOST_BYTES_OF_A_REVIEW = 1 << 20
MOST_TEXT = 500_000_000

MOST_UNPACKED = 2_000_000_000
"""The limits are several times the published sizes: 100,000 reviews of up to 14 kB, 0.5 GB."""

_FIELDS = ("content", "lengths", "labels")
_ARCHIVES = "aclImdb*.tar.gz"
_ACCEPTED = (
    f"name IMDb's folder aclImdb or its archive {_ARCHIVES} as published, "
    "or a folder that has one of them, directly or in a subfolder imdb"
)
_PATH = re.compile(rf"({'|'.join(SPLITS)})/({'|'.join(KINDS)})/(([0-9]+)_[0-9]+\.txt)")
_FILES = (tarfile.REGTYPE, tarfile.AREGTYPE)
_PARTS_OF_HEADERS = (
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
)
_DAMAGED = (
    gzip.BadGzipFile,
    tarfile.TarError,
    EOFError,
    zlib.error,
    ValueError,
    OverflowError,
    RecursionError,
)


def read_imdb(folder: Path, length: int) -> tuple[Texts, Texts]:
    """Read IMDb's training and test reviews, cut or padded to `length` bytes.

    Byte b is token b + 1 and padding is 0, as in Long Range Arena, whose length is 4000. Reviews
    come in the order of (label, number in the file's name). The folder is `aclImdb`, or has it or
    its archive `aclImdb*.tar.gz`, also in its folder `imdb`. Of both the archive is read, which has
    a checksum; its content is kept in the cache folder.
    """
    try:
        source = _source(folder)
        train, test = _read(source)
    except OSError as error:
        culprit = error.filename or folder
        raise UserError(
            f"{culprit}: it can't be read: {error_text(error)}; {_ACCEPTED}."
        ) from error
    return train.cut(length), test.cut(length)


def _source(path: Path) -> Path:
    if path.is_file():
        return path
    if not path.is_dir():
        raise MissingError(f"{path}: there is no such folder or archive; {_ACCEPTED}.")
    if any((path / split).is_dir() for split in SPLITS):
        return path
    for candidate in (path, path / "imdb"):
        archives = sorted(file for file in candidate.glob(_ARCHIVES) if file.is_file())
        for source in (*archives, candidate / "aclImdb"):
            if source.exists():
                return source
    raise MissingError(f"{path}: IMDb isn't there; {_ACCEPTED}.")


def _read(source: Path) -> tuple[Corpus, Corpus]:
    if source.is_dir():
        return _corpora(folder_reviews(source), source)
    cached = cache_folder() / _cache_name(source)
    # The cached file may be damaged: then the archive is read again.
    with suppress(Exception):
        return _unpack(cached.read_bytes())
    train, test = _corpora(archive_reviews(source), source)
    with suppress(OSError):
        cached.parent.mkdir(parents=True, exist_ok=True)
        write_whole(cached, _pack(train, test))
    return train, test


def _cache_name(archive: Path) -> str:
    facts = archive.stat()
    identity = f"{archive.name}/{facts.st_size}/{facts.st_mtime_ns}"
    return f"imdb-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.npz"


def _corpora(reviews: Reviews, source: Path) -> tuple[Corpus, Corpus]:
    train, test = (_corpus(reviews, split, source) for split in SPLITS)
    return train, test


def _corpus(reviews: Reviews, split: str, source: Path) -> Corpus:
    texts: list[bytes] = []
    labels: list[int] = []
    for label, kind in enumerate(KINDS):
        selected = sorted(
            review for review in reviews if (review.split, review.kind) == (split, kind)
        )
        if not selected:
            raise UserError(f"{source}: it has no reviews in {split}/{kind}; {_ACCEPTED}.")
        for review in selected:
            if not reviews[review]:
                raise UserError(f"{source}: the review {review.path} is empty; {_ACCEPTED}.")
            texts.append(reviews[review])
            labels.append(label)
    return Corpus.join(texts, labels)


@dataclass(frozen=True, eq=False)
class Corpus:
    """Labelled texts of any length, concatenated as bytes, as the cache keeps them.

    `lengths` and `labels` (1 for a positive text) have shape (texts,).
    """

    content: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    labels: NDArray[np.int64]

    @classmethod
    def join(cls, texts: Sequence[bytes], labels: Sequence[int]) -> Corpus:
        """Concatenate `texts`."""
        content = np.frombuffer(b"".join(texts), np.uint8)
        lengths = np.array([len(text) for text in texts], np.int64)
        return cls(content, lengths, np.array(labels, np.int64))

    def cut(self, length: int) -> Texts:
        """Return the texts cut or padded to `length`: byte b is token b + 1, 0 is padding."""
        lengths = np.minimum(self.lengths, length)
        starts = np.cumsum(self.lengths) - self.lengths
        tokens = np.zeros((len(lengths), length), np.int16)
        for row, start, size in zip(tokens, starts.tolist(), lengths.tolist(), strict=True):
            np.add(self.content[start : start + size], 1, out=row[:size], dtype=np.int16)
        return Texts(tokens, lengths, self.labels)


def _pack(train: Corpus, test: Corpus) -> bytes:
    arrays = {
        f"{split}_{field}": getattr(corpus, field)
        for split, corpus in zip(SPLITS, (train, test), strict=True)
        for field in _FIELDS
    }
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _unpack(content: bytes) -> tuple[Corpus, Corpus]:
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        train, test = (Corpus(*(file[f"{split}_{field}"] for field in _FIELDS)) for split in SPLITS)
    return train, test


class Review(NamedTuple):
    """The identity of a review's file; reviews of a split and kind sort by number."""

    split: str
    kind: str
    number: int
    name: str

    @property
    def path(self) -> str:
        """The path of the file in the folder `aclImdb`."""
        return f"{self.split}/{self.kind}/{self.name}"


Reviews: TypeAlias = dict[Review, bytes]
"""The bytes of every labelled review, in any order."""


def folder_reviews(folder: Path) -> Reviews:
    """Read the reviews of the folder `aclImdb`; files of other names are ignored."""
    reviews: Reviews = {}
    kind_folders = [folder / split / kind for split in SPLITS for kind in KINDS]
    budget = MOST_TEXT
    for path in (
        path
        for kind_folder in kind_folders
        if kind_folder.is_dir()
        for path in kind_folder.iterdir()
    ):
        review = _review("/".join(path.parts[-3:]))
        if review is not None:
            reviews[review] = read_bounded(path, MOST_BYTES_OF_A_REVIEW)
            budget -= len(reviews[review])
            if budget < 0:
                raise OSError(errno.EFBIG, f"it has more than {MOST_TEXT} bytes", str(folder))
            if len(reviews) > MOST_REVIEWS:
                raise OSError(errno.EFBIG, f"it has more than {MOST_REVIEWS} reviews", str(folder))
    return reviews


def archive_reviews(archive: Path) -> Reviews:
    """Read the reviews of the archive in one pass, unpacking nothing to disk."""
    try:
        with gzip.open(archive) as unpacked:
            content = _BoundedReader(unpacked)
            reviews = _members(content)
            # The checksum comes last, after what tarfile reads.
            while content.read(1 << 20):
                pass
    except _DAMAGED as error:
        raise UserError(
            f"{archive}: it is damaged or cut short ({error}); "
            "accepted is a whole tar.gz archive of IMDb's folder aclImdb."
        ) from error
    return reviews


class _BoundedReader(io.RawIOBase):
    """The unpacked content of an archive, up to a limit: a small archive may unpack to any size."""

    def __init__(self, content: gzip.GzipFile) -> None:
        self._content = content
        self._remaining = MOST_UNPACKED

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes."""
        chunk = self._content.read(size)
        self._remaining -= len(chunk)
        if self._remaining < 0:
            raise tarfile.ReadError(f"it unpacks to more than {MOST_UNPACKED} bytes")
        return chunk


class _Header(tarfile.TarInfo):
    """A member's header; a member that extends the header, such as a long name, must be small."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Read a header of 512 bytes."""
        header = super().frombuf(buf, encoding, errors)
        small = header.type in _PARTS_OF_HEADERS or _review(_relative_path(header.name)) is not None
        if not 0 <= header.size <= (MOST_BYTES_OF_A_REVIEW if small else MOST_UNPACKED):
            raise tarfile.ReadError(f"{header.name!r} has {header.size} bytes")
        return header


def _members(content: _BoundedReader) -> Reviews:
    reviews: Reviews = {}
    with tarfile.open(fileobj=content, mode="r|", tarinfo=_Header) as members:
        for count, member in enumerate(members):
            if count > MOST_REVIEWS:
                raise tarfile.ReadError(f"it has more than {MOST_REVIEWS} members")
            review = _review(_relative_path(member.name)) if member.type in _FILES else None
            file = None if review is None else members.extractfile(member)
            if review is not None and file is not None:
                reviews[review] = file.read(MOST_BYTES_OF_A_REVIEW)
    return reviews


def _relative_path(path: str) -> str:
    return path.removeprefix("./").removeprefix("aclImdb/")


def _review(path: str) -> Review | None:
    """Return the review at `path` of the folder `aclImdb`; None for another file."""
    match = _PATH.fullmatch(path)
    if match is None:
        return None
    split, kind, name, number = match.groups()
    return Review(split, kind, int(number), name)
