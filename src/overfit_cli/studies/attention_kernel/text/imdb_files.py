"""The files of IMDb: `train/pos/0_9.txt` and so on, on disk or inside the published archive."""

from __future__ import annotations

import gzip
import re
import tarfile
import zlib
from pathlib import Path
from typing import NamedTuple, TypeAlias

from overfit_cli.errors import UserError

SPLITS = ("train", "test")
KINDS = ("neg", "pos")
"""The folders of a split's labelled reviews, in the order of their labels 0 and 1."""


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
    for path in (path for place in places if place.is_dir() for path in place.iterdir()):
        review = _review("/".join(path.parts[-3:]))
        if review is not None:
            reviews[review] = path.read_bytes()
    return reviews


def archive_reviews(archive: Path) -> Reviews:
    """Read the reviews of the archive in one pass, unpacking nothing to disk.

    Raises:
        UserError: if it isn't a `tar.gz` archive, or isn't whole.
        OSError: if it can't be read.
    """
    try:
        with gzip.open(archive) as content:
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


def _members(content: gzip.GzipFile) -> Reviews:
    """Read the reviews among the members of an uncompressed archive."""
    reviews: Reviews = {}
    with tarfile.open(fileobj=content, mode="r|") as members:
        for member in members:
            review = _review(member.name.removeprefix("./").removeprefix("aclImdb/"))
            file = None if review is None else members.extractfile(member)
            if review is not None and file is not None:
                reviews[review] = file.read()
    return reviews


def _review(path: str) -> Review | None:
    """Return which review lies at `path` of the folder `aclImdb`, if it's one."""
    match = _PATH.fullmatch(path)
    if match is None:
        return None
    split, kind, name, number = match.groups()
    return Review(split, kind, int(number), name)


_PATH = re.compile(rf"({'|'.join(SPLITS)})/({'|'.join(KINDS)})/(([0-9]+)_[0-9]+\.txt)")
_DAMAGED = (gzip.BadGzipFile, tarfile.TarError, EOFError, zlib.error)
