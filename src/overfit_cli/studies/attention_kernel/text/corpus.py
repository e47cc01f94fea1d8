"""Whole texts end to end: what is kept of a corpus, whatever length is asked for later."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overfit_cli.studies.attention_kernel.text.texts import Texts

_FIELDS = ("content", "lengths", "labels")
_SPLITS = ("train", "test")


@dataclass(frozen=True, eq=False)
class Corpus:
    """Labelled texts of any length, as bytes.

    Attributes:
        content: all texts one after another, shape (bytes,).
        lengths: bytes of each text, shape (texts,).
        labels: 1 for a positive text and 0 for a negative one, shape (texts,).
    """

    content: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    labels: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[bytes], labels: Sequence[int]) -> Corpus:
        """Lay `texts` end to end."""
        content = np.frombuffer(b"".join(texts), np.uint8)
        lengths = np.array([len(text) for text in texts], np.int64)
        return cls(content, lengths, np.array(labels, np.int64))

    def cut(self, length: int) -> Texts:
        """Return the texts cut or padded to `length`: byte b is token b + 1, 0 is padding."""
        kept = np.minimum(self.lengths, length)
        starts = np.cumsum(self.lengths) - self.lengths
        tokens = np.zeros((len(kept), length), np.int16)
        for row, start, size in zip(tokens, starts.tolist(), kept.tolist(), strict=True):
            np.add(self.content[start : start + size], 1, out=row[:size], dtype=np.int16)
        return Texts(tokens, kept, self.labels)


def packed(train: Corpus, test: Corpus) -> bytes:
    """Return both as the content of one `.npz` file."""
    arrays = {
        f"{split}_{field}": getattr(corpus, field)
        for split, corpus in zip(_SPLITS, (train, test), strict=True)
        for field in _FIELDS
    }
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def unpacked(content: bytes) -> tuple[Corpus, Corpus]:
    """Return what `packed` was given.

    Raises:
        Exception: of many kinds, if `content` isn't what `packed` wrote.
    """
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        train, test = (
            Corpus(*(file[f"{split}_{field}"] for field in _FIELDS)) for split in _SPLITS
        )
    return train, test
