"""Reviews of a cell: generated from its seed, or IMDb's in an order of the seed."""

from __future__ import annotations

import functools
from dataclasses import replace
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
from overfit_cli.studies.attention_kernel.text.imdb import VOCABULARY, read_imdb
from overfit_cli.studies.attention_kernel.text.parameters import KernelTextParameters
from overfit_cli.studies.attention_kernel.text.reviews import (
    PADDING,
    ReviewSettings,
    Stream,
    Texts,
    generated_reviews,
)

Labels = NDArray[np.int64]

WORDS = 64

RIDGE = 1.0
"""The penalty on the squared weights: the weight of one further sample."""


def text_task(parameters: KernelTextParameters, seed: int) -> Task:
    """Return a cell's task, with the accuracy of the bag-of-words rule as its shortcut."""
    sizes = (parameters.n, parameters.test_samples)
    if parameters.source == "imdb":
        return _imdb(data_folder("source=imdb"), parameters.tokens, *sizes, seed)
    return _generate_task(parameters.tokens, parameters.negated, *sizes, seed)


@functools.lru_cache(maxsize=2)
def _generate_task(tokens: int, negated: float, n: int, test_samples: int, seed: int) -> Task:
    settings = ReviewSettings(length=tokens, vocabulary=WORDS, negated=negated)
    train = generated_reviews(settings, stream_of(seed, "train"), n)
    test = generated_reviews(settings, stream_of(seed, "test"), test_samples)
    return _task(train, test, WORDS)


def stream_of(seed: int, split: Literal["train", "test"]) -> Stream:
    """Return the stream that a seed's training or test reviews are drawn with."""
    return lambda name: named_rng(seed, split, "reviews", name)


@functools.lru_cache(maxsize=2)
def _imdb(folder: Path, tokens: int, n: int, test_samples: int, seed: int) -> Task:
    train, test, digest = _read(folder, tokens)
    for name, count, texts in (("n", n, train), ("test_samples", test_samples, test)):
        if count > len(texts.labels):
            raise BadValue(name, count, f"{folder} has {len(texts.labels)} such reviews.")
    task = _task(
        _sample(train, n, stream_of(seed, "train")("choice")),
        _sample(test, test_samples, stream_of(seed, "test")("choice")),
        VOCABULARY,
    )
    return replace(task, collections={f"IMDb's first {tokens} bytes": digest})


@functools.lru_cache(maxsize=1)
def _read(folder: Path, tokens: int) -> tuple[Texts, Texts, str]:
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


def bag_of_words_accuracy(train: Texts, test: Texts, vocabulary: int) -> float:
    """Return the test accuracy of ridge regression on how often each token occurs in a text."""
    counts = _counts(train, vocabulary), _counts(test, vocabulary)
    return ridge_accuracy(counts[0], train.labels, counts[1], test.labels)


def _counts(texts: Texts, vocabulary: int) -> Floats:
    counts = np.empty((len(texts.tokens), vocabulary))
    for row, tokens, length in zip(counts, texts.tokens, texts.lengths.tolist(), strict=True):
        row[:] = np.bincount(tokens[:length], minlength=vocabulary)
    return np.delete(counts, PADDING, axis=1)


def ridge_accuracy(train: Floats, train_labels: Labels, test: Floats, test_labels: Labels) -> float:
    """Return the test accuracy of ridge regression on standardised features.

    The rule is fitted by least squares of the labels ±1, with a small penalty. A sample is called
    positive where the rule is above 0.
    """
    centre, spread = train.mean(axis=0), train.std(axis=0)
    spread[spread == 0] = 1.0
    features = (train - centre) / spread
    signs = 2.0 * train_labels - 1.0
    gram = features.T @ features + RIDGE * np.eye(features.shape[1])
    weights = linalg.solve(gram, features.T @ (signs - signs.mean()), assume_a="pos")
    scores = (test - centre) / spread @ weights + signs.mean()
    return float(np.mean((scores > 0) == (test_labels == 1)))
