"""Intervals in the documents are those of the kept report, or of a kept picture's caption.

A run that is kept anew changes its numbers; this test names the intervals that are still the old.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.kept import RESULTS, kept_claims

ROOT = RESULTS.parent
PAGES = sorted([*ROOT.glob("docs/*/results.md"), *ROOT.glob("docs/*/guide.md"), ROOT / "README.md"])

NUMBER = r"[−-]?\d[\d,]*\.?\d*(?: · 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?"
INTERVAL = re.compile(rf"\[({NUMBER}), ({NUMBER})\](?!\()")
GENERATED = re.compile(r"<!-- generated.*?<!-- end", re.DOTALL)
EXPONENT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")

ELSEWHERE = {
    "jiang2024": """
        [992, 1060] [1.82, 2.06] [919, 958] [2.07, 2.22] [992, 1087] [1.86, 2.20] [966, 1011]
        [1.94, 2.16] [1255, 2708] [0.89, 2.30] [934, 989] [4.0, 5.7] [1.78, 2.15] [1.84, 2.13]
        [1.82, 2.13] [−1, −0.700] [−0.742, 0.253]
    """,
    "deora2024": """
        [0.012, 0.016]
    """,
    "cao2024": """
        [0.99, 1.19] [−2.13, −1.94] [0.06, 0.35] [0.10, 0.40] [−0.78, −0.67] [0.60, 0.69]
        [1.48, 1.87] [0.0078, 0.0095] [0.015, 0.019] [−0.208, −0.202] [−0.57, −0.16]
        [−0.51, −0.44] [1.1, 1.8] [160, 380]
    """,
}
"""Intervals of kept cells that no claim has: other seeds, settings, powers or inverses, by page."""


def number(text: str) -> tuple[float, float]:
    """The number of a text, and half of its last digit."""
    plain, _, exponent = text.replace("−", "-").replace(",", "").partition(" · 10")
    scale = 10.0 ** int(exponent.translate(EXPONENT) or 0)
    digits = len(plain.partition(".")[2])
    return float(plain) * scale, 0.501 * 10.0**-digits * scale


def pairs() -> Iterator[tuple[float | None, float | None]]:
    """The intervals of kept claims, of their details (`p, from` and `p, to`) and of captions."""
    for claim in (one for of_run in kept_claims().values() for one in of_run):
        details = claim["details"] or {}
        if claim["interval"]:
            yield claim["interval"]["low"], claim["interval"]["high"]
        for name in (name.removesuffix("from") for name in details if name.endswith(", from")):
            yield details[f"{name}from"], details[f"{name}to"]
    for caption in RESULTS.glob("*/figures/*.txt"):
        for match in INTERVAL.finditer(" ".join(caption.read_text().split())):
            yield number(match[1])[0], number(match[2])[0]


@cache
def kept() -> NDArray[np.float64]:
    """The intervals whose ends are known, as they are and in percent."""
    known = np.array([pair for pair in pairs() if None not in pair], dtype=float)
    return np.concatenate([known, 100 * known])


def strange(text: str) -> set[str]:
    """The intervals of a text, outside of its generated parts, that are no kept ones."""
    found = {match[0]: match for match in INTERVAL.finditer(GENERATED.sub("", text))}
    ends = {one: np.array([number(match[1]), number(match[2])]) for one, match in found.items()}
    return {
        one
        for one, end in ends.items()
        if not (np.abs(kept() - end[:, 0]) <= end[:, 1]).all(axis=1).any()
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_every_interval_of_a_page_is_a_kept_one(page: Path) -> None:
    known = INTERVAL.finditer(ELSEWHERE.get(page.parent.name, ""))
    assert strange(page.read_text()) - {match[0] for match in known} == set()


def test_an_interval_of_an_older_run_is_noticed() -> None:
    assert strange("| 1.234 [1.2303, 1.2377] | and a [link](to.md) |\n") == {"[1.2303, 1.2377]"}
