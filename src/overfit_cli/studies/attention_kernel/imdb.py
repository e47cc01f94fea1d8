"""IMDb's labelled film reviews (Maas et al. 2011) as bytes, from their folder or their archive.

Reviews are the files `train/pos/0_9.txt` and so on. Long Range Arena (Tay et al. 2021) classifies
them byte by byte, cut or padded to 4000 tokens.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from overfit_cli.core.errors import MissingError, UserError
from overfit_cli.core.files import cache_folder, error_text, read_bounded
from overfit_cli.studies.attention_kernel.cache import keep_arrays, read_arrays

PADDING = 0
"""The token after the end of a short review; no word and no byte has this number."""

VOCABULARY = 257
"""Padding and the 256 values of a byte."""

SPLITS = ("train", "test")

KINDS = ("neg", "pos")
"""The folders of a split's labelled reviews, in the order of their labels 0 and 1."""

MOST_BYTES_OF_A_REVIEW = 1 << 20
"""Many times the longest published review, of 14 kB."""

MOST_REVIEWS = 300_000
"""The most files of an archive: several times the 100,000 published reviews."""

_ARCHIVES = "aclImdb*.tar.gz"
_ACCEPTED = (
    f"name IMDb's folder aclImdb or its archive {_ARCHIVES} as published, "
    "or a folder that has one of them, directly or in a subfolder imdb"
)
_PATH = re.compile(rf"({'|'.join(SPLITS)})/({'|'.join(KINDS)})/([0-9]+)_[0-9]+\.txt")
_DAMAGED = (gzip.BadGzipFile, tarfile.TarError, EOFError, zlib.error, ValueError, OverflowError)


def read_imdb(folder: Path, length: int) -> tuple[Texts, Texts]:
    """Read IMDb's training and test reviews, cut or padded to `length` bytes.

    Byte b is token b + 1 and padding is 0, as in Long Range Arena, whose length is 4000. Reviews
    come in the order of (label, number in the file's name). The folder is `aclImdb`, or has it or
    its archive `aclImdb*.tar.gz`, also in its folder `imdb`. Of both the archive is read, which has
    a checksum; its content is kept in the cache folder.
    """
    source = _source(folder)
    try:
        train, test = _read(source)
    except _DAMAGED as error:
        raise UserError(f"{source}: it is damaged or cut short ({error}); {_ACCEPTED}.") from error
    except OSError as error:
        problem = f"it can't be read: {error_text(error)}; {_ACCEPTED}."
        raise UserError(f"{error.filename or folder}: {problem}") from error
    return train.cut(length), test.cut(length)


def _source(path: Path) -> Path:
    if path.is_file() or any((path / split).is_dir() for split in SPLITS):
        return path
    for candidate in (path, path / "imdb"):
        archives = sorted(file for file in candidate.glob(_ARCHIVES) if file.is_file())
        for source in (*archives, candidate / "aclImdb"):
            if source.exists():
                return source
    raise MissingError(f"{path}: IMDb isn't there; {_ACCEPTED}.")


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts cut or padded to one length."""

    tokens: NDArray[np.int16]  # (texts, length), with `PADDING` at the end
    lengths: NDArray[np.int64]  # the numbers of tokens before it, (texts,)
    labels: NDArray[np.int64]  # 1 for a positive text, 0 for a negative one, (texts,)


@dataclass(frozen=True, eq=False)
class Corpus:
    """Labelled texts of any length, as the cache keeps them."""

    content: NDArray[np.uint8]  # concatenated, (bytes,)
    lengths: NDArray[np.int64]  # (texts,)
    labels: NDArray[np.int64]  # (texts,)

    def cut(self, length: int) -> Texts:
        """Return the texts cut or padded to `length`: byte b is token b + 1, 0 is padding."""
        lengths = np.minimum(self.lengths, length)
        starts = np.cumsum(self.lengths) - self.lengths
        tokens = np.zeros((len(lengths), length), np.int16)
        for row, start, size in zip(tokens, starts.tolist(), lengths.tolist(), strict=True):
            np.add(self.content[start : start + size], 1, out=row[:size], dtype=np.int16)
        return Texts(tokens, lengths, self.labels)


def _read(source: Path) -> list[Corpus]:
    if source.is_dir():
        return _corpora(dict(folder_reviews(source)), source)
    facts = source.stat()
    identity = f"{source.name}/{facts.st_size}/{facts.st_mtime_ns}"
    cached = cache_folder() / f"imdb-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.npz"
    fields, kept = Corpus.__annotations__, read_arrays(cached)
    with suppress(KeyError):
        return [Corpus(*(kept[f"{split}_{field}"] for field in fields)) for split in SPLITS]
    corpora = _corpora(dict(archive_reviews(source)), source)
    parts = zip(SPLITS, corpora, strict=True)
    arrays = {
        f"{split}_{name}": array for split, part in parts for name, array in vars(part).items()
    }
    keep_arrays(cached, **arrays)
    return corpora


def _corpora(reviews: dict[str, bytes], source: Path) -> list[Corpus]:
    """Return the reviews of each split, from their bytes by their paths in the folder aclImdb."""
    corpora = []
    for split in SPLITS:
        texts: list[bytes] = []
        labels: list[int] = []
        for label, kind in enumerate(KINDS):
            paths = [path for path in reviews if path.startswith(f"{split}/{kind}/")]
            texts += [reviews[path] for path in sorted(paths, key=_number)]
            labels += [label] * len(paths)
            if not paths:
                raise UserError(f"{source}: it has no reviews in {split}/{kind}; {_ACCEPTED}.")
        lengths = np.array([len(text) for text in texts], np.int64)
        corpora.append(Corpus(np.frombuffer(b"".join(texts), np.uint8), lengths, np.array(labels)))
    if empty := next((path for path, text in reviews.items() if not text), None):
        raise UserError(f"{source}: the review {empty} is empty; {_ACCEPTED}.")
    return corpora


def _number(path: str) -> tuple[int, str]:
    name = path.rpartition("/")[2]
    return int(name.partition("_")[0]), name


def folder_reviews(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Read the reviews of the folder `aclImdb` with their paths; other files are ignored."""
    for path in folder.glob("t*/*/*.txt"):
        name = path.relative_to(folder).as_posix()
        if _PATH.fullmatch(name):
            yield name, read_bounded(path, MOST_BYTES_OF_A_REVIEW)


def archive_reviews(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Read the reviews of the archive in one pass, unpacking nothing to disk."""
    with gzip.open(archive) as content:
        with tarfile.open(fileobj=content, mode="r|") as members:
            for count, member in enumerate(members):
                name = member.name.removeprefix("./").removeprefix("aclImdb/")
                if count > MOST_REVIEWS:
                    raise tarfile.ReadError(f"it has more than {MOST_REVIEWS} members")
                if not member.isfile() or not _PATH.fullmatch(name):
                    continue
                if member.size > MOST_BYTES_OF_A_REVIEW:
                    raise tarfile.ReadError(f"{name!r} has {member.size} bytes")
                file = members.extractfile(member)
                yield name, file.read() if file else b""
        # The checksum comes last, after what tarfile reads.
        while content.read(1 << 20):
            pass
