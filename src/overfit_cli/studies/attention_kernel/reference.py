"""Attention entry by entry, as its definition says: what the fast one is tested against."""

from __future__ import annotations

import itertools
import math

import numpy as np


def attention_by_definition(kernel: str, query: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Return S, (tokens, tokens), of one head and sample from queries and keys (tokens, width).

    Equations 3, 11, 20 and 21 of Song et al. 2024, entry by entry.
    """
    tokens, width = key.shape
    raw = np.zeros((len(query), tokens))
    for k, j in itertools.product(range(len(query)), range(tokens)):
        distance = np.sum((query[k] - key[j]) ** 2)
        raw[k, j] = {
            "gaussian-eq11": math.exp(-distance / math.sqrt(width)),
            "softmax": math.exp(query[k] @ key[j] / math.sqrt(width)),
            "softmax-times-n": math.exp(query[k] @ key[j] / math.sqrt(width)),
        }.get(kernel, math.exp(-distance / (2 * math.sqrt(width))))
    if kernel in ("softmax", "gaussian-normalised", "softmax-times-n"):
        raw /= raw.sum(axis=1, keepdims=True)
    scaled: np.ndarray = raw * {"softmax-times-n": tokens, "gaussian-over-n": 1 / tokens}.get(
        kernel, 1
    )
    return scaled
