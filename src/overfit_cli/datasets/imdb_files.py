"""The files of IMDb: `train/pos/0_9.txt` and so on, on disk or inside the published archive."""

from __future__ import annotations

import errno
import gzip
import io
import re
import tarfile
import zlib
from pathlib import Path
from typing import NamedTuple, Self, TypeAlias

from overfit_cli.errors import UserError
from overfit_cli.files import read_bounded

SPLITS = ("train", "test")
KINDS = ("neg", "pos")
"""The folders of a split's labelled reviews, in the order of their labels 0 and 1."""

MOST_REVIEWS = 300_000
MOST_BYTES_OF_A_REVIEW = 1 << 20
MOST_TEXT = 500_000_000
MOST_UNPACKED = 2_000_000_000
"""Several times what was published: 100,000 reviews of up to 14 kB, half a gigabyte unpacked."""


class Review(NamedTuple):
    """Which review a file is; reviews of a split and kind sort by number."""

    split: str
    kind: str
    number: int
    name: str

    @property
    def path(self) -> str:
        """Where the file lies in the folder `aclImdb`."""
        return f"{self.split}/{self.kind}/{self.name}"


Reviews: TypeAlias = dict[Review, bytes]
"""Every labelled review's bytes, in no particular order."""


def folder_reviews(folder: Path) -> Reviews:
    """Read the reviews of the folder `aclImdb`; files of other names are passed over.

    Raises:
        OSError: if one can't be read.
    """
    reviews: Reviews = {}
    places = [folder / split / kind for split in SPLITS for kind in KINDS]
    left = MOST_TEXT
    for path in (path for place in places if place.is_dir() for path in place.iterdir()):
        review = _review("/".join(path.parts[-3:]))
        if review is not None:
            reviews[review] = read_bounded(path, MOST_BYTES_OF_A_REVIEW)
            left -= len(reviews[review])
            if left < 0:
                raise OSError(errno.EFBIG, f"it has more than {MOST_TEXT} bytes", str(folder))
            if len(reviews) > MOST_REVIEWS:
                raise OSError(errno.EFBIG, f"it has more than {MOST_REVIEWS} reviews", str(folder))
    return reviews


def archive_reviews(archive: Path) -> Reviews:
    """Read the reviews of the archive in one pass, unpacking nothing to disk.

    Raises:
        UserError: if it isn't a `tar.gz` archive, or isn't whole.
        OSError: if it can't be read.
    """
    try:
        with gzip.open(archive) as unpacked:
            content = _Bounded(unpacked)
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


class _Bounded(io.RawIOBase):
    """What is unpacked from an archive, up to a limit: a small one can hold any number of zeros."""

    def __init__(self, content: gzip.GzipFile) -> None:
        self._content = content
        self._left = MOST_UNPACKED

    def readable(self) -> bool:
        """It can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes.

        Raises:
            tarfile.ReadError: past the limit.
        """
        found = self._content.read(size)
        self._left -= len(found)
        if self._left < 0:
            raise tarfile.ReadError(f"it unpacks to more than {MOST_UNPACKED} bytes")
        return found


class _Header(tarfile.TarInfo):
    """A member's header; one that is all header, such as a long name, may not be large."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Read a header of 512 bytes.

        Raises:
            tarfile.ReadError: if what belongs to the header would be large.
        """
        found = super().frombuf(buf, encoding, errors)
        small = found.type in _PARTS_OF_HEADERS or _review(_inside(found.name)) is not None
        if not 0 <= found.size <= (MOST_BYTES_OF_A_REVIEW if small else MOST_UNPACKED):
            raise tarfile.ReadError(f"{found.name!r} has {found.size} bytes")
        return found


def _members(content: _Bounded) -> Reviews:
    """Read the reviews among the members of an uncompressed archive."""
    reviews: Reviews = {}
    with tarfile.open(fileobj=content, mode="r|", tarinfo=_Header) as members:
        for count, member in enumerate(members):
            if count > MOST_REVIEWS:
                raise tarfile.ReadError(f"it has more than {MOST_REVIEWS} members")
            review = _review(_inside(member.name)) if member.type in _FILES else None
            file = None if review is None else members.extractfile(member)
            if review is not None and file is not None:
                reviews[review] = file.read(MOST_BYTES_OF_A_REVIEW)
    return reviews


def _inside(path: str) -> str:
    """Where a member lies inside the folder `aclImdb`."""
    return path.removeprefix("./").removeprefix("aclImdb/")


def _review(path: str) -> Review | None:
    """Return which review lies at `path` of the folder `aclImdb`, if it's one."""
    match = _PATH.fullmatch(path)
    if match is None:
        return None
    split, kind, name, number = match.groups()
    return Review(split, kind, int(number), name)


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
