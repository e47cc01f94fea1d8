"""`mine.py`, the file of a user's function, and what is swept of it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import overfit_cli
from tests.command import call, run


def written(folder: Path, text: str, name: str = "mine.py") -> Path:
    """Write a file, by default `mine.py`."""
    (folder / name).write_text(text)
    return folder / name


def edit(file: Path, old: str, new: str) -> None:
    """Replace the first of these words in a file."""
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def swept(
    folder: Path, text: str, *options: str, expect: int = 0, jobs: int = 1, apart: bool = False
) -> pd.DataFrame:
    """Write `mine.py`, sweep it into `out`, and return the cells."""
    written(folder, text)
    how = (f"--jobs={jobs}", "--out=out")
    run("sweep", "mine.py", *options, *how, cwd=folder, expect=expect, apart=apart)
    return overfit_cli.load(folder / "out")


def told(folder: Path, *command: str) -> str:
    """What a command prints, in one line."""
    return " ".join(call(*command, cwd=folder).stdout.split())


class Scaled:
    """An object that is called like a function."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, n: int = 1) -> dict[str, float]:
        return {"loss": self.factor * n}

    def train(self, n: int = 1) -> dict[str, float]:
        return self(n)


def scaled(factor: float, n: int = 1) -> dict[str, float]:
    return {"loss": factor * n}
