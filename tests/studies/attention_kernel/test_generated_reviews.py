"""Generated reviews, and the accuracy of the rule that only counts words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from overfit_cli.studies.attention_kernel.text.data import bag_of_words_accuracy, stream_of
from overfit_cli.studies.attention_kernel.text.reviews import (
    NEGATION,
    ReviewSettings,
    Texts,
    generated_reviews,
)

TRAIN, TEST = stream_of(0, "train"), stream_of(0, "test")
DEFAULT = ReviewSettings()
OTHER = ReviewSettings(length=12, vocabulary=16, kinds=2, sentiment_words=3, negated=0.5)
FULL = ReviewSettings(length=10, vocabulary=13, kinds=5, sentiment_words=5, negated=0.25)


def sentiment_of(words: Sequence[int], settings: ReviewSettings) -> int:
    """A review read word by word: its sentiment words, each turned by a negation right before."""
    total = 0
    before = None
    for word in words:
        turned = -1 if before == NEGATION else 1
        if word in settings.positive:
            total += turned
        elif word in settings.negative:
            total -= turned
        before = word
    return total


@pytest.mark.parametrize("settings", [DEFAULT, OTHER, FULL])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_review_read_word_by_word_has_its_label(settings: ReviewSettings, seed: int) -> None:
    reviews = generated_reviews(settings, stream_of(seed, "train"), 300)
    read = [sentiment_of(words, settings) > 0 for words in reviews.tokens.tolist()]
    assert reviews.labels.tolist() == read


@pytest.mark.parametrize("settings", [DEFAULT, OTHER, FULL])
def test_a_review_has_its_sentiment_words_and_a_place_before_each(settings: ReviewSettings) -> None:
    tokens = generated_reviews(settings, TRAIN, 300).tokens
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


def test_labels_are_balanced_and_a_quarter_of_the_sentiment_words_is_negated() -> None:
    reviews = generated_reviews(DEFAULT, TRAIN, 20_000)
    assert reviews.labels.mean() == pytest.approx(0.5, abs=0.015)
    assert (reviews.tokens == NEGATION).sum() / 100_000 == pytest.approx(0.25, abs=0.006)


def test_three_four_or_five_of_the_sentiment_words_speak_for_the_label() -> None:
    reviews = generated_reviews(DEFAULT, TRAIN, 3000)
    sums = [abs(sentiment_of(words, DEFAULT)) for words in reviews.tokens.tolist()]
    shares = np.bincount(sums, minlength=6) / 3000
    assert shares == pytest.approx([0, 1 / 3, 0, 1 / 3, 0, 1 / 3], abs=0.035)


def test_every_word_and_every_place_is_used_alike() -> None:
    tokens = generated_reviews(DEFAULT, TRAIN, 5000).tokens
    for words in (DEFAULT.positive, DEFAULT.negative, DEFAULT.neutral):
        counts = np.array([(tokens == word).sum() for word in words])
        assert counts.min() > 0.9 * counts.mean()
    inner = np.isin(tokens, [*DEFAULT.positive, *DEFAULT.negative]).sum(axis=0)[10:-10]
    assert inner.min() > 0.75 * inner.mean()


def test_more_reviews_extend_fewer() -> None:
    few, many = (generated_reviews(DEFAULT, stream_of(3, "test"), count) for count in (7, 50))
    assert np.array_equal(few.tokens, many.tokens[:7])
    assert np.array_equal(few.labels, many.labels[:7])
    assert np.array_equal(few.lengths, np.full(7, 64))


def test_seeds_and_splits_draw_different_reviews() -> None:
    def draw(seed: int, which: Literal["train", "test"]) -> set[tuple[int, ...]]:
        split = generated_reviews(DEFAULT, stream_of(seed, which), 50)
        return set(map(tuple, split.tokens.tolist()))

    draws = [draw(0, "train"), draw(0, "test"), draw(1, "train")]
    assert len(set.union(*draws)) == 150
    assert draw(0, "train") == draws[0]


def test_counting_words_beats_chance_and_stays_well_below_one() -> None:
    """The best sign of a difference of counts is right for 76.8 % by construction."""
    train = generated_reviews(DEFAULT, TRAIN, 4000)
    test = generated_reviews(DEFAULT, TEST, 4000)
    assert bag_of_words_accuracy(train, test, 64) == pytest.approx(0.768, abs=0.02)


def test_counting_words_together_with_the_negation_before_is_always_right() -> None:
    def marked(reviews: Texts) -> Texts:
        before = np.roll(reviews.tokens, 1, axis=1) == NEGATION
        return replace(reviews, tokens=reviews.tokens + np.int16(64) * before)

    train = marked(generated_reviews(DEFAULT, TRAIN, 2000))
    test = marked(generated_reviews(DEFAULT, TEST, 1000))
    assert bag_of_words_accuracy(train, test, 128) > 0.99


def test_counting_words_is_right_by_chance_where_all_texts_are_alike() -> None:
    ones = np.ones((10, 4), np.int16)
    alike = Texts(ones, np.full(10, 4), np.arange(10) % 2)
    assert bag_of_words_accuracy(alike, alike, 3) == 0.5


def test_padding_and_what_lies_behind_a_text_is_not_counted() -> None:
    train = generated_reviews(DEFAULT, TRAIN, 500)
    test = generated_reviews(DEFAULT, TEST, 500)
    padded = np.pad(test.tokens, ((0, 0), (0, 30)))
    assert bag_of_words_accuracy(train, test, 64) == bag_of_words_accuracy(
        train, replace(test, tokens=padded), 64
    )
