"""Sentences as rows of whole numbers, one for each word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

START, PADDING, END, UNKNOWN = range(4)
"""Tokens that are no words, numbered as RoBERTa's are (Liu et al. 2019)."""


def known_words(texts: Iterable[str], most: int) -> dict[str, int]:
    """Return the most frequent words with their tokens; of equally frequent ones the first come."""
    counts = Counter(word for text in texts for word in text.split())
    ranked = (word for word, _ in counts.most_common(most))
    return {word: token for token, word in enumerate(ranked, start=UNKNOWN + 1)}


def tokens_of_words(text: str, known: Mapping[str, int], most: int) -> list[int]:
    """Return a sentence's tokens, `START` and `END` among them, at most so many."""
    words = text.split()[: most - 2]
    return [START, *(known.get(word, UNKNOWN) for word in words), END]


def padded(
    rows: Sequence[Sequence[int]], padding: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return rows filled up to the longest, shape (rows, longest), and the length of each."""
    lengths = np.array([len(row) for row in rows], np.int64)
    tokens = np.full((len(rows), lengths.max()), padding, np.int32)
    tokens[np.arange(tokens.shape[1]) < lengths[:, None]] = np.concatenate(rows)
    return tokens, lengths
