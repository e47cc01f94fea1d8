"""SST-2's sentences of a cell, as tokens: words known here, or those of the pretrained model."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from overfit_cli.core.classification import Examples, Task
from overfit_cli.core.errors import BadValue
from overfit_cli.core.files import data_folder, fingerprint, name_data_in_errors
from overfit_cli.core.training import named_rng
from overfit_cli.studies.multihead.sst2.parameters import MultiheadSst2Parameters
from overfit_cli.studies.multihead.sst2.sentences import (
    PAD,
    UNKNOWN,
    Sentences,
    known_words,
    pad_rows,
    read_sst2,
    tokens_of_words,
)

Texts = tuple[NDArray[np.int32], NDArray[np.int64]]
Labels = NDArray[np.int64]

RIDGE = 1.0
"""The penalty on the squared weights: the weight of one further sample."""


def sst2_folder() -> Path:
    """Return the folder that `--data` names."""
    return data_folder("multihead-sst2")


def check_enough(folder: Path, cells: Sequence[MultiheadSst2Parameters]) -> dict[str, str]:
    """Read the sentences, and return their fingerprint by their name."""
    splits = _read(folder)
    counts = (("n", "training"), ("test_samples", "test"))
    for (name, kind), sentences in zip(counts, splits, strict=True):
        largest, available = max(getattr(cell, name) for cell in cells), len(sentences.labels)
        if largest > available:
            raise BadValue(name, largest, f"{folder} has {available} {kind} sentences.")
    texts = [np.frombuffer("\n".join(split.texts).encode(), np.uint8) for split in splits]
    return {"SST-2": fingerprint(*texts, *(split.labels for split in splits))}


def sst2_task(parameters: MultiheadSst2Parameters, seed: int) -> Task:
    """Return a cell's sentences, with the accuracy of the rule on counts of words."""
    settings = (parameters.weights, parameters.tokens, parameters.vocabulary)
    return _task(sst2_folder(), settings, parameters.n, parameters.test_samples, seed)


@functools.lru_cache(maxsize=6)
def _task(
    folder: Path, settings: tuple[str, int, int], n: int, test_samples: int, seed: int
) -> Task:
    splits, vocabulary = _encode(folder, *settings)
    train = _sample(splits["train"], n, named_rng(seed, "train", "choice"))
    test = _sample(splits["test"], test_samples, named_rng(seed, "test", "choice"))
    texts = [(examples.tokens, examples.row_lengths) for examples in (train, test)]
    shortcut = word_counts_accuracy(texts[0], train.labels, texts[1], test.labels, vocabulary)
    return Task(train, test, vocabulary, shortcut)


def _sample(examples: Examples, count: int, order: np.random.Generator) -> Examples:
    return examples.take(order.permutation(len(examples.labels))[:count])


@functools.lru_cache(maxsize=1)
def _read(folder: Path) -> tuple[Sentences, Sentences]:
    with name_data_in_errors(folder):
        return read_sst2(folder)


@functools.lru_cache(maxsize=2)
def _encode(
    folder: Path, weights: str, tokens: int, words: int
) -> tuple[Mapping[str, Examples], int]:
    train, test = _read(folder)
    if weights == "pretrained":
        from overfit_cli.studies.multihead.sst2.engine import pretrained_tokenizer

        tokenize, vocabulary, padding = pretrained_tokenizer(folder, tokens)
    else:
        numbers = known_words(train.texts, words)
        vocabulary, padding = len(numbers) + UNKNOWN + 1, PAD

        def tokenize(texts: Sequence[str]) -> Sequence[Sequence[int]]:
            return [tokens_of_words(text, numbers, tokens) for text in texts]

    splits = {}
    for split, sentences in (("train", train), ("test", test)):
        rows, lengths = pad_rows(tokenize(sentences.texts), padding)
        splits[split] = Examples(rows, sentences.labels, lengths)
    return splits, vocabulary


def word_counts_accuracy(
    train: Texts, train_labels: Labels, test: Texts, test_labels: Labels, vocabulary: int
) -> float:
    """Return the test accuracy of ridge regression on the counts of words.

    The counts are not standardised: they stay sparse.

    Args:
        train, test: tokens, shape (samples, longest), and the number of each row's tokens that are
            not padding.
        train_labels, test_labels: 0 or 1, shape (samples,).
        vocabulary: the number of different tokens.
    """
    signs = 2.0 * train_labels - 1.0
    counts = _word_counts(train, vocabulary)
    solution = sparse.linalg.lsqr(
        counts, signs - signs.mean(), damp=RIDGE**0.5, atol=1e-4, btol=1e-4
    )
    scores = _word_counts(test, vocabulary) @ solution[0] + signs.mean()
    return float(np.mean((scores > 0) == (test_labels == 1)))


def _word_counts(texts: Texts, vocabulary: int) -> sparse.csr_array:
    """Return the count of each token in a text, shape (samples, vocabulary)."""
    tokens, lengths = texts
    words = tokens[np.arange(tokens.shape[1]) < lengths[:, None]]
    rows = np.repeat(np.arange(len(tokens)), lengths)
    return sparse.csr_array((np.ones(len(rows)), (rows, words)), shape=(len(tokens), vocabulary))
