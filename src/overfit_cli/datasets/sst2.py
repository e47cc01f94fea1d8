"""SST-2's sentences (Socher et al. 2013, as in GLUE) from their TSV files or their parquet files.

The test sentences are those of GLUE's development split: its test split has no labels.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from overfit_cli.errors import MissingError, UserError, shortened
from overfit_cli.files import read_bounded, reason_of

MOST_BYTES = 200_000_000
"""Of a file: many times what was published, 4 MB."""

_SPLITS = (("train",), ("dev", "validation"))
_FOLDERS = ("", "sst2", "SST-2", "data", "sst2/data")
_TEXTS = ("sentence", "content")
_ACCEPTED = (
    "accepted is a folder with SST-2's train.tsv and dev.tsv, or its train*.parquet and "
    "validation*.parquet, in it or in its folder sst2"
)


@dataclass(frozen=True, eq=False)
class Sentences:
    """Labelled sentences.

    Attributes:
        texts: words with blanks between, as published.
        labels: 1 for a positive sentence and 0 for a negative one, shape (sentences,).
    """

    texts: tuple[str, ...]
    labels: NDArray[np.int64]


def read_sst2(folder: Path) -> tuple[Sentences, Sentences]:
    """Read SST-2's training sentences, and those of its development split, in their order.

    Args:
        folder: the folder with the files, or one with that folder in it. A file has the columns
            `sentence` (or `content`) and `label`, in any order. Where there are both, TSV files are
            read and parquet files aren't.

    Raises:
        MissingError: if a split isn't there.
        UserError: if a split has no sentences, or a row isn't as it should be.
    """
    try:
        train, test = (_split(folder, names) for names in _SPLITS)
    except OSError as error:
        place = error.filename or folder
        raise UserError(f"{place}: it can't be read: {reason_of(error)}; {_ACCEPTED}.") from error
    return train, test


def _split(folder: Path, names: tuple[str, ...]) -> Sentences:
    rows = [row for path in _files(folder, names) for row in _rows(path)]
    if not rows:
        raise UserError(f"{folder}: SST-2's split {names[0]} has no sentences; {_ACCEPTED}.")
    texts, labels = zip(*rows, strict=True)
    return Sentences(texts, np.array(labels, np.int64))


def _files(folder: Path, names: tuple[str, ...]) -> list[Path]:
    """The files of a split: one TSV file, or one or several parquet files in their order."""
    for place in (folder / inside for inside in _FOLDERS):
        for pattern in ("{}.tsv", "{}*.parquet"):
            for name in names:
                if found := sorted(place.glob(pattern.format(name))):
                    return found
    raise MissingError(f"{folder}: SST-2's split {names[0]} isn't there; {_ACCEPTED}.")


def _rows(path: Path) -> Iterator[tuple[str, int]]:
    """Sentences of a file with their labels."""
    content = read_bounded(path, MOST_BYTES)
    rows = _of_tsv(path, content) if path.suffix == ".tsv" else _of_parquet(path, content)
    for place, text, label in rows:
        if label not in ("0", "1"):
            said = shortened(label)
            raise UserError(f"{path}, {place}: the label is {said!r}; accepted are 0 and 1.")
        if not text.strip():
            raise UserError(f"{path}, {place}: the sentence is empty; one of a word is accepted.")
        yield text.strip(), int(label)


def _of_tsv(path: Path, content: bytes) -> Iterator[tuple[str, str, str]]:
    """Where each row stands, its sentence and its label; nothing is quoted."""
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        before = content[: error.start].count(b"\n")
        raise UserError(f"{path}, line {before + 1}: it isn't UTF-8 text; {_ACCEPTED}.") from error
    header = lines[0].rstrip("\r").split("\t")
    text, label = (header.index(name) for name in _columns(path, header))
    last = len(lines) - (not lines[-1])
    for number, line in enumerate(lines[1:last], start=2):
        fields = line.rstrip("\r").split("\t")
        if len(fields) != len(header):
            raise UserError(
                f"{path}, line {number}: it has {len(fields)} fields with tabs between; accepted "
                f"are {len(header)}, as the first line has."
            )
        yield f"line {number}", fields[text], fields[label]


def _of_parquet(path: Path, content: bytes) -> Iterator[tuple[str, str, str]]:
    """Where each row stands, its sentence and its label."""
    try:
        table = pd.read_parquet(io.BytesIO(content))
    except Exception as error:  # pyarrow raises many kinds
        raise UserError(f"{path}: it is not a complete parquet file; {_ACCEPTED}.") from error
    text, label = (table[name] for name in _columns(path, list(map(str, table.columns))))
    for number, (sentence, sign) in enumerate(zip(text, label, strict=True), start=1):
        yield f"row {number}", sentence if isinstance(sentence, str) else "", str(sign)


def _columns(path: Path, header: list[str]) -> tuple[str, str]:
    """The names of the columns that have the sentences and the labels."""
    text = next((name for name in _TEXTS if name in header), None)
    if text is None or "label" not in header:
        said = shortened(", ".join(header))
        raise UserError(f"{path}: its columns are {said}; it takes label, and sentence or content.")
    return text, "label"
