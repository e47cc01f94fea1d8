"""Refusals of IMDb's reviews that aren't there or aren't whole."""

from __future__ import annotations

import gzip
import io
import os
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from overfit_cli import UserError
from overfit_cli.datasets import imdb
from overfit_cli.datasets.imdb import read_imdb
from tests.datasets.imdb_files import REVIEWS, without, write_archive, write_folder

pytestmark = pytest.mark.usefixtures("cache")


def nothing(folder: Path) -> Path:
    return folder / "nowhere"


def empty_folder(folder: Path) -> Path:
    return write_folder(folder, {"notes.txt": b"nothing here"})


def no_class(folder: Path) -> Path:
    return write_folder(folder, without("train/pos/0_9.txt", "train/pos/1_7.txt"))


def empty_class(folder: Path) -> Path:
    (folder / "test/neg").mkdir(parents=True)
    return write_folder(folder, without("test/neg/0_2.txt"))


def no_class_in_archive(folder: Path) -> Path:
    folder.mkdir()
    return write_archive(folder / "x.tar.gz", without("test/neg/0_2.txt"))


def empty_review(folder: Path) -> Path:
    return write_folder(folder, {**REVIEWS, "train/neg/2_1.txt": b""})


def unreadable_review(folder: Path) -> Path:
    write_folder(folder, REVIEWS)
    (folder / "train/pos/5_9.txt").symlink_to(folder / "gone")
    return folder


def not_an_archive(folder: Path) -> Path:
    return write_folder(folder, {"aclImdb.tar.gz": b"PK\3\4 a zip file"})


def truncated(folder: Path) -> Path:
    archive = write_archive(folder / "aclImdb.tar.gz", REVIEWS)
    archive.write_bytes(archive.read_bytes()[:-20])
    return archive


def corrupt(folder: Path) -> Path:
    archive = write_archive(folder / "aclImdb.tar.gz", REVIEWS)
    content = bytearray(archive.read_bytes())
    content[-8] ^= 1
    archive.write_bytes(content)
    return folder


def pipe_as_review(folder: Path) -> Path:
    write_folder(folder, REVIEWS)
    os.mkfifo(folder / "train/pos/5_9.txt")
    return folder


def huge_review(folder: Path) -> Path:
    write_folder(folder, REVIEWS)
    with (folder / "train/pos/5_9.txt").open("wb") as file:
        file.truncate(1 << 40)
    return folder


def archive_of(folder: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    """An archive with these members, whatever their headers say."""
    content = io.BytesIO()
    for header, data in members:
        content.write(header.tobuf(tarfile.GNU_FORMAT))
        content.write(data + bytes(-len(data) % 512))
    folder.mkdir()
    (folder / "aclImdb.tar.gz").write_bytes(gzip.compress(content.getvalue() + bytes(1024)))
    return folder


def member(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.size, header.type = size, kind
    return header


def huge_member(folder: Path) -> Path:
    return archive_of(folder, (member("aclImdb/train/pos/5_9.txt", 1 << 40), b"x" * 512))


def huge_name(folder: Path) -> Path:
    long = member("././@LongLink", 1 << 40, tarfile.GNUTYPE_LONGNAME)
    return archive_of(folder, (long, b"x" * 512))


def huge_header(folder: Path) -> Path:
    return archive_of(folder, (member("pax", 1 << 40, tarfile.XHDTYPE), b"x" * 512))


def huge_stranger(folder: Path) -> Path:
    return archive_of(folder, (member("something else", 10**15), b"x" * 512))


def endless_names(folder: Path) -> Path:
    """Each long name is followed by another."""
    long = member("././@LongLink", 10, tarfile.GNUTYPE_LONGNAME)
    return archive_of(folder, *[(long, b"x" * 10)] * 3000)


def negative_size(folder: Path) -> Path:
    header = bytearray(member("aclImdb/train/pos/5_9.txt", 0).tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"\xff" * 12
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    folder.mkdir()
    (folder / "aclImdb.tar.gz").write_bytes(gzip.compress(bytes(header) + bytes(2048)))
    return folder


def links(folder: Path) -> Path:
    link = member("aclImdb/train/pos/5_9.txt", 0, tarfile.LNKTYPE)
    link.linkname = "/etc/passwd"
    soft = member("aclImdb/train/neg/5_1.txt", 0, tarfile.SYMTYPE)
    soft.linkname = "../../../../../etc/passwd"
    return archive_of(folder, (link, b""), (soft, b""))


IMDB = r"IMDb's folder aclImdb or its archive aclImdb\*\.tar\.gz as published, or a folder that has"


@pytest.mark.unix
@pytest.mark.parametrize(
    ("malformed", "words"),
    [
        (nothing, "/at/nowhere: there is no such folder or archive; name " + IMDB),
        (empty_folder, "/at: IMDb isn't there; name " + IMDB),
        (no_class, "/at: it has no reviews in train/pos; name " + IMDB),
        (empty_class, "/at: it has no reviews in test/neg; name " + IMDB),
        (no_class_in_archive, r"/x\.tar\.gz: it has no reviews in test/neg; name " + IMDB),
        (empty_review, r"/at: the review train/neg/2_1\.txt is empty; name " + IMDB),
        (unreadable_review, r"/5_9\.txt: it can't be read: No such file or directory; name IMDb"),
        (pipe_as_review, r"/5_9\.txt: it can't be read: it isn't a regular file; name IMDb"),
        (huge_review, r"/5_9\.txt: it can't be read: it has more than 1048576 bytes; name IMDb"),
        (huge_member, r"/aclImdb\.tar\.gz: it is damaged or cut short \('.*' has 1099511627776 b"),
        (huge_name, r"/aclImdb\.tar\.gz: it is damaged or cut short \('.*' has 1099511627776 b"),
        (huge_header, r"/aclImdb\.tar\.gz: it is damaged or cut short \('pax' has 10995116277"),
        (negative_size, r"/aclImdb\.tar\.gz: it is damaged or cut short \('.*' has -"),
        (huge_stranger, r"/aclImdb\.tar\.gz: it is damaged or cut short \('something else' has"),
        (endless_names, r"/aclImdb\.tar\.gz: it "),
        (links, r"/aclImdb\.tar\.gz: it has no reviews in train/neg; name " + IMDB),
        (not_an_archive, r"/aclImdb\.tar\.gz: it is damaged or cut short \(Not a gzipped file"),
        (
            truncated,
            r"/aclImdb\.tar\.gz: it is damaged or cut short .* accepted is a whole tar\.gz",
        ),
        (
            corrupt,
            r"/aclImdb\.tar\.gz: it is damaged or cut short \(CRC check failed.* accepted is",
        ),
    ],
)
def test_what_is_missing_or_malformed_is_one_sentence(
    tmp_path: Path, malformed: Callable[[Path], Path], words: str
) -> None:
    with pytest.raises(UserError, match="^" + re.escape(str(tmp_path)) + ".*" + words) as error:
        read_imdb(malformed(tmp_path / "at"), 10)
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


def test_an_archive_without_end_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imdb, "MOST_UNPACKED", 10_000_000)
    archive = write_archive(tmp_path / "aclImdb.tar.gz", REVIEWS)
    archive.write_bytes(
        gzip.compress(gzip.decompress(archive.read_bytes()) + bytes(20_000_000), mtime=0)
    )
    with pytest.raises(UserError, match="it unpacks to more than 10000000 bytes"):
        read_imdb(archive, 10)
    monkeypatch.setattr(imdb, "MOST_UNPACKED", 30_000_000)
    monkeypatch.setattr(imdb, "MOST_REVIEWS", 3)
    with pytest.raises(UserError, match="it has more than 3 members"):
        read_imdb(archive, 10)
    with pytest.raises(UserError, match="it has more than 3 reviews"):
        read_imdb(write_folder(tmp_path / "aclImdb", REVIEWS), 10)


@pytest.mark.unix
@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file"
)
def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "aclImdb", REVIEWS)
    (folder / "train/pos").chmod(0)
    try:
        with pytest.raises(UserError, match="train/pos: it can't be read: Permission denied"):
            read_imdb(folder, 10)
    finally:
        (folder / "train/pos").chmod(0o700)
