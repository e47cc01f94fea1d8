"""Generated reviews, which replace IMDb without a download, as rows of whole numbers.

A negation inverts the sentiment word after it: the counts of words classify some reviews, and pairs
of successive words classify all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
