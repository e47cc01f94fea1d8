"""Reviews of a cell: generated from its seed, or IMDb's in an order of the seed.

Generated reviews replace IMDb without a download. A negation inverts the sentiment word after it:
the counts of words classify some reviews, and pairs of successive words classify all. The shortcut
of the task is the accuracy of a rule that sees the counts alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from overfit_cli.core.arrays import Floats
from overfit_cli.core.classification import Examples, Task
from overfit_cli.core.errors import BadValue
from overfit_cli.core.files import data_folder, fingerprint, name_data_in_errors
from overfit_cli.core.training import named_rng
from overfit_cli.studies.attention_kernel.classifier_parameters import KernelTextParameters
from overfit_cli.studies.attention_kernel.imdb import PADDING, VOCABULARY, Texts, read_imdb

Integers = NDArray[np.int64]

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
