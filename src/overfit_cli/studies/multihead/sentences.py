"""SST-2's sentences (Socher et al. 2013, as in GLUE) from TSV or parquet files, and their tokens.

The test sentences are those of GLUE's development split, since its test split has no labels. Tokens
are words known here, or those of the pretrained model.
"""

from __future__ import annotations

import csv
import functools
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from overfit_cli.core.classification import Examples, Task
from overfit_cli.core.errors import BadValue, MissingError, UserError
from overfit_cli.core.files import (
    data_folder,
    error_text,
    fingerprint,
    name_data_in_errors,
    read_bounded,
)
from overfit_cli.core.text import shorten
from overfit_cli.core.training import named_rng
from overfit_cli.studies.multihead.parameters import MultiheadSst2Parameters

MOST_BYTES = 200_000_000
"""The limit of a file: many times the published 4 MB."""

_SPLITS = (("train",), ("dev", "validation"))
_FOLDERS = ("", "sst2", "SST-2", "data", "sst2/data")
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
    train, test = (_split(folder, names) for names in _SPLITS)
    return train, test


def _split(folder: Path, names: tuple[str, ...]) -> Sentences:
    rows = pd.concat([_rows(path) for path in _files(folder, names)])
    if rows.empty:
        raise UserError(f"{folder}: SST-2's split {names[0]} has no sentences; {_ACCEPTED}.")
    return Sentences(tuple(rows["text"]), rows["label"].to_numpy().astype(np.int64))


def _files(folder: Path, names: tuple[str, ...]) -> list[Path]:
    for candidate in (folder / subfolder for subfolder in _FOLDERS):
        for pattern in ("{}.tsv", "{}*.parquet"):
            for name in names:
                if files := sorted(candidate.glob(pattern.format(name))):
                    return files
    raise MissingError(f"{folder}: SST-2's split {names[0]} isn't there; {_ACCEPTED}.")


def _rows(path: Path) -> pd.DataFrame:
    """Return the columns `text` and `label` of a file, as words."""
    table = _table(path)
    text = next((name for name in ("sentence", "content") if name in table), None)
    if text is None or "label" not in table:
        excerpt = shorten(", ".join(map(str, table.columns)))
        raise UserError(
            f"{path}: its columns are {excerpt}; it takes label, and sentence or content."
        )
    texts = table[text].fillna("").astype(str).str.strip()
    rows = pd.DataFrame({"text": texts, "label": table["label"].astype(str)})
    wrong = ~rows["label"].isin(["0", "1"]) | (rows["text"] == "")
    if wrong.any():
        number, row = int(np.argmax(wrong)) + 1, rows[wrong].iloc[0]
        raise UserError(
            f"{path}, row {number}: it has the label {shorten(row['label'])!r} and the sentence "
            f"{shorten(row['text'])!r}; labels are 0 and 1, and a sentence has a word."
        )
    return rows


def _table(path: Path) -> pd.DataFrame:
    try:
        content = io.BytesIO(read_bounded(path, MOST_BYTES))
        if path.suffix == ".parquet":
            return pd.read_parquet(content)
        return pd.read_csv(
            content,
            sep="\t",
            quoting=csv.QUOTE_NONE,
            encoding="utf-8-sig",
            dtype=str,
            keep_default_na=False,
            skip_blank_lines=False,
        )
    except OSError as error:
        raise UserError(f"{path}: it can't be read: {error_text(error)}; {_ACCEPTED}.") from error
    except Exception as error:  # pandas and pyarrow raise many kinds
        raise UserError(f"{path}: it isn't a whole {path.suffix} file; {_ACCEPTED}.") from error


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


# A cell's sentences

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
        from overfit_cli.studies.multihead.encoder import pretrained_tokenizer

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
