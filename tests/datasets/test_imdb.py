"""IMDb's reviews from their folder or their archive, and what is kept of an archive."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from overfit_cli.core.files import cache_folder
from overfit_cli.datasets import imdb
from overfit_cli.datasets.imdb import VOCABULARY, read_imdb
from overfit_cli.datasets.reviews import Texts
from overfit_cli.studies.attention_kernel.text.data import bag_of_words_accuracy
from tests.datasets.imdb_files import OTHERS, REVIEWS, without, write_archive, write_folder

pytestmark = pytest.mark.usefixtures("cache")

ALL = {**OTHERS, **REVIEWS}
ARCHIVE = Path(os.environ.get("OVERFIT_DATA", "")) / "imdb" / "aclImdb_labelled.tar.gz"


def as_lists(pair: tuple[Texts, Texts]) -> list[list[object]]:
    return [[t.tokens.tolist(), t.lengths.tolist(), t.labels.tolist()] for t in pair]


def as_bytes(tokens: NDArray[np.int16]) -> bytes:
    return bytes((tokens[tokens > 0] - 1).tolist())


def test_byte_b_is_token_b_plus_1_and_padding_is_0(tmp_path: Path) -> None:
    train, test = read_imdb(write_folder(tmp_path / "aclImdb", ALL), 8)
    assert train.tokens[2].tolist() == [1, 255, 256, 0, 0, 0, 0, 0]
    assert train.lengths.tolist() == [5, 8, 3, 8, 8]
    assert as_bytes(train.tokens[4]) == b"I laughe"
    assert test.tokens.shape == (3, 8)
    assert max(train.tokens.max(), test.tokens.max()) < VOCABULARY


def test_reviews_come_by_label_then_by_number(tmp_path: Path) -> None:
    train, test = read_imdb(write_archive(tmp_path / "any.tar.gz", ALL), 4)
    starts = [as_bytes(tokens)[:2] for tokens in train.tokens]
    assert starts == [b"Du", b"Ne", b"\0\xfe", b"Tr", b"I "]
    assert train.labels.tolist() == [0, 0, 0, 1, 1]
    assert test.labels.tolist() == [0, 1, 1]


@pytest.mark.parametrize("place", [".", "imdb"])
def test_folder_and_archive_give_the_same_wherever_they_lie(tmp_path: Path, place: str) -> None:
    folder = write_folder(tmp_path / "a" / place / "aclImdb", ALL)
    backwards = dict(reversed(ALL.items()))
    archive = write_archive(tmp_path / "b" / place / "aclImdb_v1.tar.gz", backwards)
    dotted = write_archive(tmp_path / "c" / place / "aclImdb.tar.gz", ALL, "./aclImdb/")
    sources = [folder, archive, dotted, tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    read = [as_lists(read_imdb(source, 6)) for source in sources]
    assert all(texts == read[0] for texts in read)


def test_the_archive_is_read_where_a_folder_lies_beside_it(tmp_path: Path) -> None:
    write_folder(tmp_path / "aclImdb", without("train/pos/0_9.txt"))
    write_archive(tmp_path / "aclImdb_v1.tar.gz", REVIEWS)
    assert len(read_imdb(tmp_path, 6)[0].labels) == 5
    assert len(read_imdb(tmp_path / "aclImdb", 6)[0].labels) == 4


def test_an_archive_is_parsed_once_for_all_lengths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = write_archive(tmp_path / "aclImdb.tar.gz", ALL)
    long, short = read_imdb(archive, 30), read_imdb(archive, 3)
    monkeypatch.setattr(imdb, "archive_reviews", lambda _: pytest.fail("parsed again"))
    assert as_lists(read_imdb(archive, 30)) == as_lists(long)
    assert as_lists(read_imdb(archive, 3)) == as_lists(short)


def test_an_archive_that_changed_is_parsed_again(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "aclImdb.tar.gz", REVIEWS)
    read_imdb(archive, 3)
    write_archive(archive, without("train/pos/0_9.txt"))
    assert len(read_imdb(archive, 3)[0].labels) == 4


def test_a_torn_cache_file_is_written_anew(tmp_path: Path, cache: Path) -> None:
    archive = write_archive(tmp_path / "aclImdb.tar.gz", REVIEWS)
    whole = as_lists(read_imdb(archive, 30))
    (kept,) = cache.iterdir()
    content = kept.read_bytes()
    index = content.index(b"Never again")
    flipped = content[:index] + b"A" + content[index + 1 :]
    for torn in (b"", b"PK", content[:-40], content[: len(content) // 2], flipped):
        kept.write_bytes(torn)
        assert as_lists(read_imdb(archive, 30)) == whole
        assert kept.read_bytes() == content


def test_a_cache_folder_that_cannot_be_made_only_means_no_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = write_archive(tmp_path / "aclImdb.tar.gz", REVIEWS)
    monkeypatch.setenv("OVERFIT_CACHE", str(archive / "cache"))
    assert as_lists(read_imdb(archive, 5)) == as_lists(read_imdb(archive, 5))


def test_the_cache_folder_is_the_users_own_where_none_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OVERFIT_CACHE")
    assert cache_folder().is_absolute()
    assert "overfit" in cache_folder().parts


@pytest.mark.slow
@pytest.mark.skipif(not ARCHIVE.is_file(), reason="OVERFIT_DATA has no IMDb archive")
def test_the_published_archive_is_what_it_is_known_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = read_imdb(ARCHIVE, 256)
    for texts in (train, test):
        assert texts.tokens.shape == (25_000, 256)
        assert texts.labels.tolist() == [0] * 12_500 + [1] * 12_500
    assert as_bytes(train.tokens[0]).startswith(b"Story of a man who has unnatural feelings")
    assert as_bytes(train.tokens[12_500]).startswith(b"Bromwell High is a cartoon comedy.")
    assert (train.lengths.min(), test.lengths.min()) == (52, 32)
    assert bag_of_words_accuracy(train, test, VOCABULARY) == pytest.approx(0.594, abs=0.002)

    monkeypatch.setattr(imdb, "archive_reviews", lambda _: pytest.fail("parsed again"))
    assert np.array_equal(read_imdb(ARCHIVE, 256)[1].tokens, test.tokens)
