"""IMDb's labelled film reviews (Maas et al. 2011) as bytes, from their folder or their archive.

Section 5.1 of Song et al. 2024 takes the text task of Long Range Arena (Tay et al. 2021): the
reviews byte by byte, cut or padded to 4000 tokens.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from overfit_cli.cache import cache_folder
from overfit_cli.errors import UserError
from overfit_cli.files import reason_of, write_whole
from overfit_cli.studies.attention_kernel.text.corpus import Corpus, packed, unpacked
from overfit_cli.studies.attention_kernel.text.imdb_files import (
    KINDS,
    SPLITS,
    Reviews,
    archive_reviews,
    folder_reviews,
)
from overfit_cli.studies.attention_kernel.text.texts import Texts

VOCABULARY = 257
"""Padding and the 256 values of a byte."""

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
        length: tokens of a review; the paper's is 4000.

    Raises:
        UserError: if no reviews are there, or what is there isn't whole.
    """
    try:
        source = _source(folder)
        train, test = _from_folder(source) if source.is_dir() else _from_archive(source)
    except OSError as error:
        place = error.filename or folder
        raise UserError(f"{place}: it can't be read: {reason_of(error)}; {_ACCEPTED}.") from error
    return train.cut(length), test.cut(length)


def _source(given: Path) -> Path:
    """Return the archive, or the folder that has `train` and `test` in it."""
    if given.is_file():
        return given
    if not given.is_dir():
        raise UserError(f"{given}: there is no such folder or archive; {_ACCEPTED}.")
    if any((given / split).is_dir() for split in SPLITS):
        return given
    for place in (given, given / "imdb"):
        archives = sorted(path for path in place.glob(_ARCHIVES) if path.is_file())
        for source in (*archives, place / "aclImdb"):
            if source.exists():
                return source
    raise UserError(f"{given}: IMDb isn't there; {_ACCEPTED}.")


def _from_folder(folder: Path) -> tuple[Corpus, Corpus]:
    """Read the folder."""
    return _corpora(folder_reviews(folder), folder)


def _from_archive(archive: Path) -> tuple[Corpus, Corpus]:
    """Read the archive, or what was kept of it."""
    kept = cache_folder() / _cache_name(archive)
    # Whatever is wrong with the kept file, the archive has everything.
    with suppress(Exception):
        return unpacked(kept.read_bytes())
    train, test = _corpora(archive_reviews(archive), archive)
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_whole(kept, packed(train, test))
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
