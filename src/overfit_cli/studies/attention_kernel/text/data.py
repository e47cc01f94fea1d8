"""What `kernel-text` trains on: generated reviews of a seed, or IMDb's in an order of the seed."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np

from overfit_cli.data_folder import data_folder, fingerprint, naming_data
from overfit_cli.errors import UserError
from overfit_cli.rng import named_rng
from overfit_cli.studies.attention_kernel.classifier.task import Examples, Task
from overfit_cli.studies.attention_kernel.text.baseline import bag_of_words_accuracy
from overfit_cli.studies.attention_kernel.text.imdb import VOCABULARY, read_imdb
from overfit_cli.studies.attention_kernel.text.parameters import KernelTextParameters
from overfit_cli.studies.attention_kernel.text.reviews import ReviewSettings, generated_reviews
from overfit_cli.studies.attention_kernel.text.texts import Texts

WORDS = 64
"""Different words of generated reviews."""


def text_task(parameters: KernelTextParameters, seed: int) -> Task:
    """Return a cell's task, with the accuracy of the bag-of-words rule as its shortcut.

    Raises:
        UserError: if IMDb is asked for and isn't where `--data` says, or has too few reviews.
    """
    sizes = (parameters.n, parameters.test_samples)
    if parameters.source == "imdb":
        return _imdb(data_folder("source=imdb"), parameters.tokens, *sizes, seed)
    return _generated(parameters.tokens, parameters.negated, *sizes, seed)


@functools.lru_cache(maxsize=2)
def _generated(tokens: int, negated: float, n: int, test_samples: int, seed: int) -> Task:
    settings = ReviewSettings(length=tokens, vocabulary=WORDS, negated=negated)
    train = generated_reviews(settings, seed, "train", n)
    test = generated_reviews(settings, seed, "test", test_samples)
    return _task(train, test, WORDS)


@functools.lru_cache(maxsize=2)
def _imdb(folder: Path, tokens: int, n: int, test_samples: int, seed: int) -> Task:
    train, test, held = _read(folder, tokens)
    for name, count, texts in (("n", n, train), ("test_samples", test_samples, test)):
        if count > len(texts.labels):
            raise UserError(f"--set {name} {count}: {folder} has {len(texts.labels)} such reviews.")
    task = _task(
        _some(train, n, named_rng(seed, "train", "reviews", "choice")),
        _some(test, test_samples, named_rng(seed, "test", "reviews", "choice")),
        VOCABULARY,
    )
    return replace(task, collections={f"IMDb's first {tokens} bytes": held})


@functools.lru_cache(maxsize=1)
def _read(folder: Path, tokens: int) -> tuple[Texts, Texts, str]:
    """Training and test reviews, and a fingerprint of both."""
    with naming_data(folder):
        train, test = read_imdb(folder, tokens)
    return train, test, fingerprint(train.tokens, train.labels, test.tokens, test.labels)


def _some(texts: Texts, count: int, order: np.random.Generator) -> Texts:
    """The first `count` texts in a random order: more extend fewer."""
    rows = order.permutation(len(texts.labels))[:count]
    return Texts(texts.tokens[rows], texts.lengths[rows], texts.labels[rows])


def _task(train: Texts, test: Texts, vocabulary: int) -> Task:
    return Task(
        _examples(train),
        _examples(test),
        vocabulary,
        bag_of_words_accuracy(train, test, vocabulary),
    )


def _examples(texts: Texts) -> Examples:
    whole = bool((texts.lengths == texts.tokens.shape[1]).all())
    return Examples(texts.tokens, texts.labels, None if whole else texts.lengths)
