"""A generated review read word by word, as a person would."""

from __future__ import annotations

from collections.abc import Sequence

from overfit_cli.datasets.reviews import NEGATION, ReviewSettings


def sentiment(words: Sequence[int], settings: ReviewSettings) -> int:
    """Add up a review's sentiment words, each turned round by a negation right before it."""
    total = 0
    before = None
    for word in words:
        turned = -1 if before == NEGATION else 1
        if word in settings.positive:
            total += turned
        elif word in settings.negative:
            total -= turned
        before = word
    return total


def label(words: Sequence[int], settings: ReviewSettings) -> int:
    """Return 1 for a positive review and 0 for a negative one."""
    return 1 if sentiment(words, settings) > 0 else 0
