"""Reviews of a cell: generated from its seed, or IMDb's in an order of the seed.

Generated reviews replace IMDb without a download. A negation inverts the sentiment word after it:
the counts of words classify some reviews, and pairs of successive words classify all. The shortcut
of the task is the accuracy of a rule that sees the counts alone.

IMDb's labelled film reviews (Maas et al. 2011) are bytes of the files `train/pos/0_9.txt` and so
on, of their folder or their archive. Long Range Arena (Tay et al. 2021) classifies them byte by
byte, cut or padded to 4000 tokens.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from overfit_cli.core.arrays import Floats
from overfit_cli.core.classification import Examples, Task
from overfit_cli.core.errors import BadValue, MissingError, UserError
from overfit_cli.core.files import (
    cache_folder,
    data_folder,
    error_text,
    fingerprint,
    name_data_in_errors,
    read_bounded,
)
from overfit_cli.core.training import named_rng
from overfit_cli.studies.attention_kernel.cache import keep_arrays, read_arrays
from overfit_cli.studies.attention_kernel.classifier_parameters import KernelTextParameters

Integers = NDArray[np.int64]

PADDING = 0
"""The token after the end of a short review; no word and no byte has this number."""

NEGATION = PADDING + 1
"""The word that inverts the sentiment of the next one."""

RIDGE = 1.0
"""The penalty on the squared weights: the weight of one further sample."""

Stream = Callable[[str], np.random.Generator]
"""Returns the generator of a name; generators of different names are independent."""


@dataclass(frozen=True)
class ReviewSettings:
    """Settings of generated reviews. Word 0 is padding and word 1 the negation.

    Attributes:
        kinds: the number of different positive words, and of negative ones.
        sentiment_words: of a review; odd, so that no review is a tie.
        negated: the probability that a sentiment word has a negation before it.
    """

    length: int = 64
    vocabulary: int = 64
    kinds: int = 5
    sentiment_words: int = 5
    negated: float = 0.25

    @property
    def positive(self) -> range:
        """The positive words."""
        return range(NEGATION + 1, NEGATION + 1 + self.kinds)

    @property
    def negative(self) -> range:
        """The negative words."""
        return range(self.positive.stop, self.positive.stop + self.kinds)

    @property
    def neutral(self) -> range:
        """The words without a sentiment."""
        return range(self.negative.stop, self.vocabulary)


def text_task(parameters: KernelTextParameters, seed: int) -> Task:
    """Return a cell's task."""
    sizes = (parameters.n, parameters.test_samples, seed)
    if parameters.source == "imdb":
        return _imdb(data_folder("source=imdb"), parameters.tokens, *sizes)
    return _generated(ReviewSettings(parameters.tokens, negated=parameters.negated), *sizes)


@functools.lru_cache(maxsize=2)
def _generated(settings: ReviewSettings, n: int, test_samples: int, seed: int) -> Task:
    train = generated_reviews(settings, stream_of(seed, "train"), n)
    test = generated_reviews(settings, stream_of(seed, "test"), test_samples)
    return _task(train, test, settings.vocabulary)


def stream_of(seed: int, split: Literal["train", "test"]) -> Stream:
    """Return the stream that a seed's training or test reviews are drawn with."""
    return lambda name: named_rng(seed, split, "reviews", name)


@functools.lru_cache(maxsize=2)
def _imdb(folder: Path, tokens: int, n: int, test_samples: int, seed: int) -> Task:
    train, test, digest = _read_imdb(folder, tokens)
    for name, count, texts in (("n", n, train), ("test_samples", test_samples, test)):
        if count > len(texts.labels):
            raise BadValue(name, count, f"{folder} has {len(texts.labels)} such reviews.")
    train = _sample(train, n, stream_of(seed, "train")("choice"))
    test = _sample(test, test_samples, stream_of(seed, "test")("choice"))
    collections = {f"IMDb's first {tokens} bytes": digest}
    return replace(_task(train, test, VOCABULARY), collections=collections)


@functools.lru_cache(maxsize=1)
def _read_imdb(folder: Path, tokens: int) -> tuple[Texts, Texts, str]:
    with name_data_in_errors(folder):
        train, test = read_imdb(folder, tokens)
    return train, test, fingerprint(train.tokens, train.labels, test.tokens, test.labels)


def _sample(texts: Texts, count: int, order: np.random.Generator) -> Texts:
    rows = order.permutation(len(texts.labels))[:count]
    return Texts(texts.tokens[rows], texts.lengths[rows], texts.labels[rows])


def _task(train: Texts, test: Texts, vocabulary: int) -> Task:
    shortcut = bag_of_words_accuracy(train, test, vocabulary)
    return Task(_examples(train), _examples(test), vocabulary, shortcut)


def _examples(texts: Texts) -> Examples:
    unpadded = bool((texts.lengths == texts.tokens.shape[1]).all())
    return Examples(texts.tokens, texts.labels, None if unpadded else texts.lengths)


def generated_reviews(settings: ReviewSettings, stream: Stream, count: int) -> Texts:
    """Draw `count` reviews of a stream; more reviews extend fewer.

    A review with m sentiment words is drawn as follows:

    1. Its label is positive or negative with equal probability.
    2. The number of its sentiment words that agree with the label is uniform on (m + 1)/2, ..., m,
       and these words are a random choice; the others disagree. So the label is the sign of the
       sum.
    3. Each sentiment word is negated with probability `negated`, by the negation before it; the
       word itself then has the opposite sentiment. It is any of its sentiment's `kinds` words.
    4. Every sentiment word takes two positions, its own and the one before. These pairs do not
       overlap, and all arrangements of m pairs are equally likely. All other positions, and those
       before words that are not negated, have random neutral words.

    By default the rule that predicts the more frequent of positive and negative words is right for
    76.8 % of reviews, and the best rule that knows all counts, the negation's too, for 81.25 %.
    """
    shape = (count, settings.sentiment_words)
    labels = stream("labels").integers(0, 2, count)
    negated = stream("negations").random(shape) < settings.negated
    kinds = stream("kinds").integers(0, settings.kinds, shape)
    positive = _sentiments(settings, stream, labels) ^ negated
    words = np.where(positive, settings.positive.start, settings.negative.start) + kinds

    low, high = settings.neutral.start, settings.neutral.stop
    tokens = stream("neutral").integers(low, high, (count, settings.length), dtype=np.int16)
    rows, positions = np.arange(count)[:, None], _positions(settings, stream, count)
    tokens[rows, positions] = words
    tokens[rows, positions - 1] = np.where(negated, NEGATION, tokens[rows, positions - 1])
    return Texts(tokens, np.full(count, settings.length, np.int64), labels)


def _sentiments(settings: ReviewSettings, stream: Stream, labels: Integers) -> NDArray[np.bool_]:
    """Return whether each sentiment word, its negation read, is positive; shape (reviews, m)."""
    words, count = settings.sentiment_words, len(labels)
    agreeing = stream("agreeing").integers(words // 2 + 1, words + 1, count)
    keys = stream("order").random((count, words))
    agrees = np.argsort(keys, axis=1) < agreeing[:, None]
    return np.where(labels[:, None] == 1, agrees, ~agrees)


def _positions(settings: ReviewSettings, stream: Stream, count: int) -> Integers:
    """Return the positions of the sentiment words, ascending; shape (reviews, m).

    A review has `length` - m positions if each pair counts as one; m of these are chosen.
    """
    words = settings.sentiment_words
    keys = stream("places").random((count, settings.length - words))
    pairs = np.sort(np.argsort(keys, axis=1)[:, :words], axis=1)
    return pairs + np.arange(1, words + 1)


def bag_of_words_accuracy(train: Texts, test: Texts, vocabulary: int) -> float:
    """Return the test accuracy of ridge regression on how often each token occurs in a text.

    The rule is fitted by least squares of the labels ±1 on standardised counts, with a small
    penalty. A text is called positive where the rule is above 0.
    """
    counts, tested = _counts(train, vocabulary), _counts(test, vocabulary)
    centre, spread = counts.mean(axis=0), counts.std(axis=0)
    spread[spread == 0] = 1.0
    features = (counts - centre) / spread  # (texts, words)
    signs = 2.0 * train.labels - 1.0
    gram = features.T @ features + RIDGE * np.eye(features.shape[1])
    weights = linalg.solve(gram, features.T @ (signs - signs.mean()), assume_a="pos")
    scores = (tested - centre) / spread @ weights + signs.mean()
    return float(np.mean((scores > 0) == (test.labels == 1)))


def _counts(texts: Texts, vocabulary: int) -> Floats:
    """Return how often each token but padding occurs, (texts, vocabulary − 1)."""
    counts = np.empty((len(texts.tokens), vocabulary))
    for row, tokens, length in zip(counts, texts.tokens, texts.lengths.tolist(), strict=True):
        row[:] = np.bincount(tokens[:length], minlength=vocabulary)
    return np.delete(counts, PADDING, axis=1)


# IMDb's reviews

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
