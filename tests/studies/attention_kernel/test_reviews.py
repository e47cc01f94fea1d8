"""Reviews: IMDb's from their folder or archive, what is refused, generated ones, and tasks."""

from __future__ import annotations

import io
import itertools
import os
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from overfit_cli import UserError
from overfit_cli.core.parameters import Value
from overfit_cli.studies.attention_kernel import reviews as module
from overfit_cli.studies.attention_kernel.classifier_parameters import KernelTextParameters
from overfit_cli.studies.attention_kernel.classifiers import text
from overfit_cli.studies.attention_kernel.reviews import (
    NEGATION,
    ReviewSettings,
    Texts,
    bag_of_words_accuracy,
    generated_reviews,
    read_imdb,
    stream_of,
    text_task,
)
from tests.training import cell_of, train

pytestmark = pytest.mark.usefixtures("cache")

REVIEWS: Mapping[str, bytes] = {
    "train/neg/0_3.txt": b"Dull.",
    "train/neg/2_1.txt": b"Never again",
    "train/neg/10_4.txt": bytes([0, 254, 255]),
    "train/pos/0_9.txt": "Très bon".encode(),
    "train/pos/1_7.txt": b"I laughed, I cried, I stayed for the credits.",
    "test/neg/0_2.txt": b"No",
    "test/pos/0_10.txt": b"Yes",
    "test/pos/3_8.txt": b"Yes again",
}
"""Reviews by their place in `aclImdb`."""

OTHERS: Mapping[str, bytes] = {
    "README": b"Large Movie Review Dataset",
    "train/unsup/0_0.txt": b"Nobody labelled this",
    "train/pos/._0_9.txt": b"A file manager's note",
    "train/labeledBow.feat": b"9 0:1",
}
"""What else is published with them, or gets in by itself."""


def without(*names: str) -> dict[str, bytes]:
    return {name: content for name, content in REVIEWS.items() if name not in names}


def write_folder(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def write_archive(
    path: Path, files: Mapping[str, bytes], prefix: str = "aclImdb/", kind: bytes = tarfile.REGTYPE
) -> Path:
    """Write `files` into the archive `path`; links lead out of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(prefix + name)
            member.size, member.type, member.linkname = len(data), kind, "/etc/passwd"
            archive.addfile(member, io.BytesIO(data))
    return path


ALL = {**OTHERS, **REVIEWS}


def as_lists(pair: tuple[Texts, Texts]) -> list[list[object]]:
    return [[t.tokens.tolist(), t.lengths.tolist(), t.labels.tolist()] for t in pair]


def as_bytes(tokens: NDArray[np.int16]) -> bytes:
    return bytes((tokens[tokens > 0] - 1).tolist())


def test_reviews_come_by_label_then_by_number_and_byte_b_is_token_b_plus_1(tmp_path: Path) -> None:
    """Padding is 0."""
    train, test = read_imdb(write_folder(tmp_path / "aclImdb", ALL), 8)
    starts = [as_bytes(tokens) for tokens in train.tokens]
    assert starts == [b"Dull.", b"Never ag", b"\0\xfe\xff", "Très bo".encode(), b"I laughe"]
    assert train.tokens[2].tolist() == [1, 255, 256, 0, 0, 0, 0, 0]
    assert train.lengths.tolist() == [5, 8, 3, 8, 8]
    assert (train.labels.tolist(), test.labels.tolist()) == ([0, 0, 0, 1, 1], [0, 1, 1])
    assert test.tokens.shape == (3, 8)


@pytest.mark.parametrize("place", [".", "imdb"])
def test_folder_and_archive_give_the_same_wherever_they_lie(tmp_path: Path, place: str) -> None:
    folder = write_folder(tmp_path / "a" / place / "aclImdb", ALL)
    backwards = dict(reversed(ALL.items()))
    archive = write_archive(tmp_path / "b" / place / "aclImdb_v1.tar.gz", backwards)
    write_folder(archive.parent / "aclImdb", without("train/pos/0_9.txt"))  # it is not read
    dotted = write_archive(tmp_path / "c" / place / "aclImdb.tar.gz", ALL, "./aclImdb/")
    sources = [folder, archive, dotted, tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    read = [as_lists(read_imdb(source, 6)) for source in sources]
    assert all(texts == read[0] for texts in read)


def test_an_archive_is_parsed_once_until_it_or_what_is_kept_of_it_changes(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = write_archive(tmp_path / "aclImdb.tar.gz", REVIEWS)
    long, short = (as_lists(read_imdb(archive, length)) for length in (30, 3))
    with monkeypatch.context() as patched:
        patched.setattr(module, "archive_reviews", lambda _: pytest.fail("parsed again"))
        assert as_lists(read_imdb(archive, 30)) == long
        assert as_lists(read_imdb(archive, 3)) == short
    monkeypatch.setenv("OVERFIT_CACHE", str(archive / "no folder"))
    assert as_lists(read_imdb(archive, 30)) == long
    monkeypatch.setenv("OVERFIT_CACHE", str(cache))
    (kept,) = cache.iterdir()
    content = kept.read_bytes()
    flipped = content.replace(b"Never again", b"Aever again")
    for torn in (b"", b"PK", content[:-40], content[: len(content) // 2], flipped):
        kept.write_bytes(torn)
        assert as_lists(read_imdb(archive, 30)) == long
        assert kept.read_bytes() == content
    write_archive(archive, without("train/pos/0_9.txt"))
    assert len(read_imdb(archive, 3)[0].labels) == 4
    monkeypatch.setattr(module, "MOST_REVIEWS", 3)
    with pytest.raises(UserError, match="it has more than 3 members"):
        read_imdb(write_archive(tmp_path / "other.tar.gz", REVIEWS), 10)


# What is refused


def with_review(at: Path, make: Callable[[Path], object]) -> Path:
    """The reviews and one that is made like that."""
    make(write_folder(at, REVIEWS) / "train/pos/5_9.txt")
    return at


def harmed(at: Path, harm: Callable[[bytes], bytes]) -> Path:
    """An archive to whose bytes something happened."""
    at.write_bytes(harm(write_archive(at, REVIEWS).read_bytes()))
    return at


LACKING, LINKS = without("test/neg/0_2.txt"), dict.fromkeys(REVIEWS, b"")
EMPTY, LARGE = {**REVIEWS, "test/pos/3_8.txt": b""}, {"train/pos/5_9.txt": bytes((1 << 20) + 1)}
UNREADABLE = "/train/pos/5_9.txt: it can't be read: "
DAMAGED = ": it is damaged or cut short ("
MALFORMED: list[tuple[str, Callable[[Path], Path]]] = [
    (": IMDb isn't there", lambda at: at),
    (": IMDb isn't there", lambda at: write_folder(at, {"notes.txt": b"nothing here"})),
    (": it has no reviews in test/neg", lambda at: write_folder(at, LACKING)),
    (": it has no reviews in test/neg", lambda at: write_archive(at, LACKING)),
    (": it has no reviews in train/neg", lambda at: write_archive(at, LINKS, kind=tarfile.LNKTYPE)),
    (": the review test/pos/3_8.txt is empty", lambda at: write_folder(at, EMPTY)),
    (f"{UNREADABLE}No such file", lambda at: with_review(at, lambda file: file.symlink_to("gone"))),
    (f"{UNREADABLE}it isn't a regular file", lambda at: with_review(at, os.mkfifo)),
    (f"{UNREADABLE}it has more than 1048576 bytes", lambda at: write_folder(at, LARGE)),
    (f"{DAMAGED}'train/pos/5_9.txt' has 1048577 bytes", lambda at: write_archive(at, LARGE)),
    (f"{DAMAGED}Not a gzipped file", lambda at: harmed(at, lambda _: b"PK\3\4 a zip file")),
    (f"{DAMAGED}Compressed file ended", lambda at: harmed(at, lambda whole: whole[:-20])),
    (f"{DAMAGED}CRC check failed", lambda at: harmed(at, lambda whole: whole[:-8] + bytes(8))),
]


@pytest.mark.unix
@pytest.mark.parametrize(("words", "make"), MALFORMED)
def test_what_is_missing_or_malformed_is_one_sentence(
    tmp_path: Path, words: str, make: Callable[[Path], Path]
) -> None:
    with pytest.raises(UserError) as error:
        read_imdb(make(tmp_path / "at"), 10)
    sentence = str(error.value)
    assert sentence.startswith(f"{tmp_path / 'at'}{words}")
    assert "; name IMDb's folder aclImdb or" in sentence
    assert "\n" not in sentence


# Generated reviews, and the accuracy of the rule that only counts words


TRAIN, TEST = stream_of(0, "train"), stream_of(0, "test")
DEFAULT = ReviewSettings()
OTHER = ReviewSettings(length=12, vocabulary=16, kinds=2, sentiment_words=3, negated=0.5)
FULL = ReviewSettings(length=10, vocabulary=13, kinds=5, sentiment_words=5, negated=0.25)


def sentiment_of(words: Sequence[int], settings: ReviewSettings) -> int:
    """A review read word by word: its sentiment words, each turned by a negation right before."""
    total = 0
    for before, word in itertools.pairwise([None, *words]):
        turned = -1 if before == NEGATION else 1
        if word in settings.positive:
            total += turned
        elif word in settings.negative:
            total -= turned
    return total


@pytest.mark.parametrize("settings", [DEFAULT, OTHER, FULL])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_review_has_its_label_word_by_word_and_a_place_before_each_sentiment_word(
    settings: ReviewSettings, seed: int
) -> None:
    reviews = generated_reviews(settings, stream_of(seed, "train"), 300)
    tokens = reviews.tokens
    read = [sentiment_of(words, settings) > 0 for words in tokens.tolist()]
    assert reviews.labels.tolist() == read
    assert tokens.shape == (300, settings.length)
    assert tokens.min() >= NEGATION
    assert tokens.max() < settings.vocabulary
    sentiment = (tokens >= settings.positive.start) & (tokens < settings.negative.stop)
    assert (sentiment.sum(axis=1) == settings.sentiment_words).all()
    assert not (sentiment[:, 1:] & sentiment[:, :-1]).any()
    assert not sentiment[:, 0].any()
    negation = tokens == NEGATION
    assert not negation[:, -1].any()
    assert sentiment[:, 1:][negation[:, :-1]].all()


def test_counting_words_beats_chance_and_stays_well_below_one_whatever_the_padding() -> None:
    """The best sign of a difference of counts is right for 76.8 % by construction."""
    train, test = (generated_reviews(DEFAULT, stream, 4000) for stream in (TRAIN, TEST))
    accuracy = bag_of_words_accuracy(train, test, 64)
    assert accuracy == pytest.approx(0.768, abs=0.02)
    padded = replace(test, tokens=np.pad(test.tokens, ((0, 0), (0, 30))))
    assert bag_of_words_accuracy(train, padded, 64) == accuracy


# Tasks

TINY: dict[str, Value] = {"source": "imdb", "tokens": 16, "n": 4, "test_samples": 3}


@pytest.fixture
def imdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder, with IMDb in it."""
    monkeypatch.setenv("OVERFIT_DATA", str(tmp_path))
    write_folder(tmp_path / "aclImdb", REVIEWS)
    return tmp_path


def of_text(**values: Value) -> KernelTextParameters:
    return KernelTextParameters.model_validate(values)


def test_generated_reviews_fill_a_task() -> None:
    parameters = of_text(tokens=20, n=30, test_samples=10, negated=0.5)
    task = text_task(parameters, 3)
    settings = ReviewSettings(length=20, vocabulary=64, negated=0.5)
    train = generated_reviews(settings, stream_of(3, "train"), 30)
    test = generated_reviews(settings, stream_of(3, "test"), 10)
    assert (task.vocabulary, task.train.lengths) == (64, None)
    assert np.array_equal(task.train.tokens, train.tokens)
    assert np.array_equal(task.test.labels, test.labels)
    assert task.shortcut == bag_of_words_accuracy(train, test, 64)
    fewer = text_task(of_text(tokens=20, n=7, test_samples=10, negated=0.5), 3)
    assert np.array_equal(fewer.train.tokens, train.tokens[:7])
    assert text.sample_length(parameters) == 20
    assert text.prepare([cell_of(text, {"tokens": 20})]) == {}


def test_imdbs_reviews_come_in_a_seeds_order_with_their_lengths(imdb: Path) -> None:
    few, all_of_them = (text_task(of_text(**TINY | {"n": n}), 0) for n in (2, 5))
    assert np.array_equal(few.train.tokens, all_of_them.train.tokens[:2])
    assert sorted(all_of_them.train.labels) == [0, 0, 0, 1, 1]
    assert all_of_them.train.lengths is not None
    whole = sorted(len(REVIEWS[name]) for name in REVIEWS if name.startswith("train"))
    assert sorted(all_of_them.train.lengths) == [min(length, 16) for length in whole]
    assert all_of_them.vocabulary == 257
    orders = [text_task(of_text(**TINY), seed).test.tokens for seed in range(6)]
    assert not all(np.array_equal(order, orders[0]) for order in orders)
    network = {"d": 8, "hidden": 6, "batch_size": 4, "training_steps": 2}
    [result] = train(text, cell_of(text, TINY | network))
    assert result.status == "done"


def test_more_reviews_than_the_folder_has_are_refused_before_a_sweep(imdb: Path) -> None:
    fine = cell_of(text, TINY)
    text.prepare([fine])
    for name, count, there in (("n", 6, 5), ("test_samples", 4, 3)):
        with pytest.raises(UserError, match=f"{name}={count}: .* has {there} such reviews"):
            text.prepare([fine, cell_of(text, TINY | {name: count})])


def test_another_data_folder_is_read_in_one_process_too_and_its_content_is_told_apart(
    imdb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = {**REVIEWS, "test/pos/0_10.txt": b"Oh yes"}
    contents, tokens = [], []
    for name, files in (("ours", REVIEWS), ("same", REVIEWS), ("theirs", theirs)):
        monkeypatch.setenv("OVERFIT_DATA", str(write_folder(imdb / name, files)))
        contents.append(text.prepare([cell_of(text, TINY)]))
        tokens.append(text_task(of_text(**TINY), 0).test.tokens)
    assert contents[0] == contents[1] != contents[2]
    assert not np.array_equal(tokens[0], tokens[2])
