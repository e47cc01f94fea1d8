"""The one error that a user is meant to read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LONGEST_QUOTED = 60


class UserError(Exception):
    """A sentence for the user: what was given, and what would be accepted.

    The command line catches it in one place, prints the sentence and exits with `exit_code`:
    2 for bad input, 1 when something ran and failed.
    """

    def __init__(self, sentence: str, *, exit_code: int = 2) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


class MissingError(UserError):
    """What a study needs isn't here: data, or an optional package."""


def is_plain_number(text: str) -> bool:
    """Whether a number is written as people write it: Python would take `1_0` and `２` too."""
    return text.isascii() and "_" not in text


def shortened(text: str) -> str:
    """Return what a user wrote, cut to what a sentence can carry."""
    return text if len(text) <= LONGEST_QUOTED else f"{text[:LONGEST_QUOTED]}..."


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.5) -> str:
    """End a sentence about an unknown `word`: the nearest known one, or the list of all of them.

    `cutoff` is how alike they must be, from 0 to 1.
    """
    names = sorted(known)
    close = most_alike(word, names, cutoff=cutoff)
    if close:
        return f"did you mean {close!r}?"
    return f"known: {', '.join(names)}." if names else "none is known."


def most_alike(word: str, known: Iterable[str], *, cutoff: float = 0.5) -> str:
    """Return the known name that is most like `word`, in small letters or large; empty for none.

    `cutoff` is how alike they must be, from 0 to 1.
    """
    names = {name.casefold(): name for name in sorted(known)}
    close = difflib.get_close_matches(word.casefold(), names, n=1, cutoff=cutoff)
    return names[close[0]] if close else ""
