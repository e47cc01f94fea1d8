"""Intervals in the documents are those of the kept report, or of a kept picture's caption.

A run that is kept anew changes its numbers; this test names the lines that still have the old ones.
"""

from __future__ import annotations

import bisect
import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("docs/*/results.md"), *ROOT.glob("docs/*/guide.md"), ROOT / "README.md"])

NUMBER = r"[−-]?\d[\d,]*\.?\d*(?: · 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?"
INTERVAL = re.compile(rf"\[({NUMBER}), ({NUMBER})\](?!\()")
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


def pairs_of(claim: Mapping[str, Any]) -> Iterator[tuple[float, float]]:
    """The interval of a claim, and those of its details: `p, from` and `p, to`."""
    details = claim["details"] or {}
    if claim["interval"]:
        yield claim["interval"]["low"], claim["interval"]["high"]
    for name, low in details.items():
        if name.endswith(", from"):
            yield low, details[name.removesuffix("from") + "to"]


@cache
def kept_pairs() -> list[tuple[float, float]]:
    """The intervals of the kept claims and captions, as they are and in percent, ascending."""
    claims = json.loads((ROOT / "results/report/claims.json").read_text())["claims"]
    pairs = [pair for claim in claims for pair in pairs_of(claim)]
    for caption in ROOT.glob("results/*/figures/*.txt"):
        text = " ".join(caption.read_text().split())
        pairs += [(number(match[1])[0], number(match[2])[0]) for match in INTERVAL.finditer(text)]
    known = [pair for pair in pairs if all(isinstance(end, float) for end in pair)]
    return sorted({*known, *((100 * low, 100 * high) for low, high in known)})


def is_kept(low: str, high: str) -> bool:
    """Whether a printed interval is that of a kept claim or caption, to its last digits."""
    (least, half), (most, other_half) = number(low), number(high)
    kept = kept_pairs()
    start = bisect.bisect_left(kept, (least - half, -math.inf))
    stop = bisect.bisect_right(kept, (least + half, math.inf))
    return any(abs(end - most) <= other_half for _, end in kept[start:stop])


def strange(page: Path) -> list[str]:
    """The intervals of a page, outside of its generated parts, that none of these has."""
    elsewhere = ELSEWHERE.get(page.parent.name, "")
    is_generated, lines = False, []
    for row, line in enumerate(page.read_text().splitlines(), start=1):
        is_generated = (is_generated or "<!-- generated" in line) and "<!-- end" not in line
        lines += [
            f"{page.parent.name}/{page.name}:{row}: {match[0]}"
            for match in INTERVAL.finditer("" if is_generated else line)
            if match[0] not in elsewhere and not is_kept(match[1], match[2])
        ]
    return lines


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_every_interval_of_a_page_is_a_kept_one(page: Path) -> None:
    assert strange(page) == []


def test_an_interval_of_an_older_run_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    page.write_text("| 1.234 [1.2303, 1.2377] | and a [link](to.md) |\n")
    assert strange(page) == [f"{tmp_path.name}/results.md:1: [1.2303, 1.2377]"]
