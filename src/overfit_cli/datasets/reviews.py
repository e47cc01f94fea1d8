"""Labelled texts as rows of whole numbers: generated reviews, and SST-2's sentences.

Generated reviews replace IMDb without a download. A negation inverts the sentiment word after it:
the counts of words classify some reviews, and pairs of successive words classify all. SST-2 (Socher
et al. 2013, as in GLUE) is read from its TSV or parquet files; the test sentences are those of
GLUE's development split, since its test split has no labels.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from overfit_cli.core.errors import MissingError, UserError
from overfit_cli.core.files import error_text, read_bounded
from overfit_cli.core.text import shorten

PADDING = 0
"""The token after the end of a short review; no word and no byte has this number."""


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts cut or padded to one length: tokens, (texts, length), with `PADDING` at the end.

    `lengths` counts the tokens before it; labels are 1 for a positive text and 0 for a negative
    one.
    """

    tokens: NDArray[np.int16]
    lengths: NDArray[np.int64]
    labels: NDArray[np.int64]


NEGATION = PADDING + 1
"""The word that inverts the sentiment of the next one."""

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

    def __post_init__(self) -> None:
        _check(self)

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
    neutral = stream("neutral")
    tokens = neutral.integers(low, high, (count, settings.length), dtype=np.int16)
    rows, positions = np.arange(count)[:, None], _positions(settings, stream, count)
    tokens[rows, positions] = words
    tokens[rows, positions - 1] = np.where(negated, NEGATION, tokens[rows, positions - 1])
    return Texts(tokens, np.full(count, settings.length, np.int64), labels)


def _sentiments(
    settings: ReviewSettings, stream: Stream, labels: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return whether each sentiment word, its negation read, is positive; shape (reviews, m)."""
    words, count = settings.sentiment_words, len(labels)
    numbers = stream("agreeing")
    agreeing = numbers.integers(words // 2 + 1, words + 1, count)
    keys = stream("order").random((count, words))
    agrees = np.argsort(keys, axis=1) < agreeing[:, None]
    return np.where(labels[:, None] == 1, agrees, ~agrees)


def _positions(settings: ReviewSettings, stream: Stream, count: int) -> NDArray[np.int64]:
    """Return the positions of the sentiment words, ascending; shape (reviews, m).

    A review has `length` - m positions if each pair counts as one; m of these are chosen.
    """
    words = settings.sentiment_words
    shape = (count, settings.length - words)
    keys = stream("places").random(shape)
    pairs = np.sort(np.argsort(keys, axis=1)[:, :words], axis=1)
    return pairs + np.arange(1, words + 1)


def _check(settings: ReviewSettings) -> None:
    words, smallest = settings.sentiment_words, settings.negative.stop + 1
    if settings.kinds < 1:
        raise UserError(f"kinds {settings.kinds}: a whole number of at least 1 is needed.")
    if words < 1 or words % 2 == 0:
        raise UserError(f"sentiment_words {words}: an odd number is needed, so that none is a tie.")
    if settings.length < 2 * words:
        raise UserError(
            f"length {settings.length}: {words} sentiment words, each with a place before it, "
            f"need at least {2 * words} words."
        )
    if not smallest <= settings.vocabulary <= np.iinfo(np.int16).max:
        raise UserError(
            f"vocabulary {settings.vocabulary}: {smallest} to {np.iinfo(np.int16).max} words are "
            f"accepted, as padding, the negation, {2 * settings.kinds} sentiment words and a "
            "neutral one have to be there."
        )
    if not 0 <= settings.negated <= 1:
        raise UserError(f"negated {settings.negated}: a chance from 0 to 1 is needed.")


MOST_BYTES = 200_000_000
"""The limit of a file: many times the published 4 MB."""

_SPLITS = (("train",), ("dev", "validation"))
_FOLDERS = ("", "sst2", "SST-2", "data", "sst2/data")
_TEXTS = ("sentence", "content")
_ACCEPTED = (
    "name a folder that has SST-2's train.tsv and dev.tsv, or its train*.parquet and "
    "validation*.parquet, directly or in a subfolder sst2"
)


@dataclass(frozen=True, eq=False)
class Sentences:
    """Words separated by blanks, as published, and labels, 1 for a positive sentence."""

    texts: tuple[str, ...]
    labels: NDArray[np.int64]


def read_sst2(folder: Path) -> tuple[Sentences, Sentences]:
    """Read SST-2's training sentences, and those of its development split, in their order.

    A file has the columns `sentence` (or `content`) and `label`. Of TSV and parquet files the TSV
    files are read.
    """
    try:
        train, test = (_split(folder, names) for names in _SPLITS)
    except OSError as error:
        culprit = error.filename or folder
        raise UserError(
            f"{culprit}: it can't be read: {error_text(error)}; {_ACCEPTED}."
        ) from error
    return train, test


def _split(folder: Path, names: tuple[str, ...]) -> Sentences:
    rows = [row for path in _files(folder, names) for row in _rows(path)]
    if not rows:
        raise UserError(f"{folder}: SST-2's split {names[0]} has no sentences; {_ACCEPTED}.")
    texts, labels = zip(*rows, strict=True)
    return Sentences(texts, np.array(labels, np.int64))


def _files(folder: Path, names: tuple[str, ...]) -> list[Path]:
    for candidate in (folder / subfolder for subfolder in _FOLDERS):
        for pattern in ("{}.tsv", "{}*.parquet"):
            for name in names:
                if files := sorted(candidate.glob(pattern.format(name))):
                    return files
    raise MissingError(f"{folder}: SST-2's split {names[0]} isn't there; {_ACCEPTED}.")


def _rows(path: Path) -> Iterator[tuple[str, int]]:
    content = read_bounded(path, MOST_BYTES)
    rows = _tsv_rows(path, content) if path.suffix == ".tsv" else _parquet_rows(path, content)
    for row, text, label in rows:
        if label not in ("0", "1"):
            excerpt = shorten(label)
            raise UserError(f"{path}, {row}: the label is {excerpt!r}; labels are 0 and 1.")
        if not text.strip():
            raise UserError(f"{path}, {row}: the sentence is empty; it takes at least a word.")
        yield text.strip(), int(label)


def _tsv_rows(path: Path, content: bytes) -> Iterator[tuple[str, str, str]]:
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        line_breaks = content[: error.start].count(b"\n")
        raise UserError(
            f"{path}, line {line_breaks + 1}: it isn't UTF-8 text; {_ACCEPTED}."
        ) from error
    header = lines[0].rstrip("\r").split("\t")
    text, label = (header.index(name) for name in _columns(path, header))
    last = len(lines) - (not lines[-1])
    for number, line in enumerate(lines[1:last], start=2):
        fields = line.rstrip("\r").split("\t")
        if len(fields) != len(header):
            raise UserError(
                f"{path}, line {number}: it has {len(fields)} fields separated by tabs; the first "
                f"line has {len(header)}."
            )
        yield f"line {number}", fields[text], fields[label]


def _parquet_rows(path: Path, content: bytes) -> Iterator[tuple[str, str, str]]:
    try:
        table = pd.read_parquet(io.BytesIO(content))
    except Exception as error:  # pyarrow raises many kinds
        raise UserError(f"{path}: it is not a complete parquet file; {_ACCEPTED}.") from error
    text, label = (table[name] for name in _columns(path, list(map(str, table.columns))))
    for number, (sentence, sign) in enumerate(zip(text, label, strict=True), start=1):
        yield f"row {number}", sentence if isinstance(sentence, str) else "", str(sign)


def _columns(path: Path, header: list[str]) -> tuple[str, str]:
    text = next((name for name in _TEXTS if name in header), None)
    if text is None or "label" not in header:
        excerpt = shorten(", ".join(header))
        raise UserError(
            f"{path}: its columns are {excerpt}; it takes label, and sentence or content."
        )
    return text, "label"


START, PAD, END, UNKNOWN = range(4)
"""Tokens of a sentence that are not words, numbered as in RoBERTa (Liu et al. 2019)."""


def known_words(texts: Iterable[str], limit: int) -> dict[str, int]:
    """Return the most frequent words with their tokens; the first of equally frequent ones."""
    counts = Counter(word for text in texts for word in text.split())
    ranked = (word for word, _ in counts.most_common(limit))
    return {word: token for token, word in enumerate(ranked, start=UNKNOWN + 1)}


def tokens_of_words(text: str, numbers: Mapping[str, int], limit: int) -> list[int]:
    """Return a sentence's tokens, with `START` and `END`, at most `limit` of them."""
    words = text.split()[: limit - 2]
    return [START, *(numbers.get(word, UNKNOWN) for word in words), END]


def pad_rows(
    rows: Sequence[Sequence[int]], padding: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Pad rows to the longest, shape (rows, longest); return them and their lengths."""
    lengths = np.array([len(row) for row in rows], np.int64)
    tokens = np.full((len(rows), lengths.max()), padding, np.int32)
    tokens[np.arange(tokens.shape[1]) < lengths[:, None]] = np.concatenate(rows)
    return tokens, lengths
