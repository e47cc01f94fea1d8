"""Refusals of IMDb's reviews that aren't there or aren't whole."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from overfit_cli import UserError
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
