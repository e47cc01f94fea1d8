"""Seals of claims: digests that a run directory keeps from before its first cell, and looks.

A claim whose digest differs was changed after cells were seen. Seeds that are added to a run are a
further look at the same claims: the k-th further look is judged at the error α/2^(k + 1), so that
all further looks together err in at most half as many cases as the first.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from overfit_cli.core.claim import Claim


def digest_of_claim(claim: Claim, *, with_code: bool) -> str:
    """Return a digest of a claim in 16 hexadecimal digits: of its texts, and of its code.

    Args:
        with_code: whether the code of its `measure` counts, as of a user's own claim. That of an
            installed study changes with its package, whose version a run directory keeps.
    """
    texts = [claim.name, claim.kind, claim.statement, claim.hypotheses, claim.holds_where]
    if with_code and (sentence := sentence_of(claim)):
        texts = [claim.name, claim.kind, sentence]  # it says all: words about it may change
    elif with_code:
        texts.append(_code(claim.measure))
    return hashlib.sha256(repr(texts).encode()).hexdigest()[:16]


def _code(value: object) -> str:
    if isinstance(value, functools.partial):
        bound = [*value.args, *(item for pair in sorted(value.keywords.items()) for item in pair)]
        return " ".join(map(_code, (value.func, *bound)))
    if not inspect.isfunction(value):
        return repr(value) if not callable(value) else type(value).__qualname__
    try:
        text = inspect.getsource(value)
    except (OSError, TypeError):
        text = value.__code__.co_code.hex()
    cells = [cell.cell_contents for cell in value.__closure__ or ()]
    return " ".join([text, *map(_code, cells)])


def digests(claims: Iterable[Claim], *, with_code: bool) -> dict[str, str]:
    """Return the digest of each claim by its name; see `digest_of_claim`."""
    return {claim.name: digest_of_claim(claim, with_code=with_code) for claim in claims}


def sentence_of(claim: Claim) -> str:
    """Return the sentence that a claim was read from; empty of a claim that measures by itself."""
    sentence = getattr(claim.measure, "sentence", None)
    return "" if sentence is None else str(sentence.text)


def wording(claim: Claim) -> str:
    """Return the text of a claim that is kept beside its digest, to say what it was."""
    return sentence_of(claim) or f"{claim.statement} Holds where {claim.holds_where}."


@dataclass(frozen=True)
class Seals:
    """The claims of a run as they were before its first cell.

    Attributes:
        digests: the digest of each claim by its name; None where none were kept.
    """

    digests: Mapping[str, str] | None
    wordings: Mapping[str, str]
    with_code: bool

    def state(self, claim: Claim) -> Literal["sealed", "changed", "added", "unknown"]:
        """Return what became of a claim; one of another name with a sealed sentence is sealed."""
        if self.digests is None:
            return "unknown"
        if claim.name in self.digests:
            digest = digest_of_claim(claim, with_code=self.with_code)
            kept = self.wordings.get(claim.name) == sentence_of(claim) != ""
            return "sealed" if kept or self.digests[claim.name] == digest else "changed"
        return "sealed" if sentence_of(claim) in self.wordings.values() else "added"

    def removed(self, claims: Iterable[Claim]) -> dict[str, str]:
        """Return the texts of sealed claims that are not among these, by name."""
        present = list(claims)
        known = {claim.name for claim in present} | {sentence_of(claim) for claim in present}
        return {
            name: text for name, text in self.wordings.items() if known.isdisjoint((name, text))
        }


def count_further_looks(seeds: Sequence[Sequence[int]]) -> int:
    """Count the runs that added seeds to those of the runs before them."""
    known: set[int] = set()
    looks = 0
    for run in seeds:
        looks += bool(known) and not known.issuperset(run)
        known |= set(run)
    return looks


def spent_looks(further: int) -> int:
    """Return by how much the error of a look is divided, after so many further ones."""
    return 2 ** (further + 1) if further else 1


def looks_in_words(further: int, level: float) -> str:
    """Say that seeds were added, and the level that follows; empty where none were."""
    if not further:
        return ""
    times = "once" if further == 1 else f"{further} times"
    return f"Seeds were added {times}, so that intervals have the level {100 * level:.4g} %."
