"""Words of verdicts: numbers, margins, families and counts, as all outputs say them."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from overfit_cli.claims.rules import MET
from overfit_cli.core import text
from overfit_cli.core.claim import Interval, Kind, Measurement, Verdict, number_with_interval
from overfit_cli.core.text import three_digits
from overfit_cli.stats.intervals import LEVEL, level_of_each

if TYPE_CHECKING:
    from overfit_cli.report.judge import Judged

TEMPLATES = Path(__file__).parent / "templates"

templates = functools.partial(text.templates, TEMPLATES)
"""Returns the templates of all outputs."""


def sentences(template: str, **values: Any) -> list[str]:
    """Return the lines that a template makes of values, without empty ones."""
    lines = templates().get_template(template).render(values).splitlines()
    return [line for line in lines if line]


COUNTED = (
    "Counts use a stricter level, at which all verdicts of one study and kind are right together "
    "95 times in 100. A claim that holds by itself at 95 % may be inconclusive there."
)


HAVE: Mapping[Verdict, str] = {"holds": "hold", "holds by far": "hold by far", "fails": "fail"}
"""The verdicts that are verbs, of several claims."""


def counts_in_words(verdicts: Iterable[Verdict]) -> str:
    """Return how many claims have each verdict: `16 hold, 0 fail, 4 vacuous`."""
    counts = Counter(verdicts)
    always = ("holds", "fails")
    told = [each for each in get_args(Verdict) if counts[each] or each in always]
    texts = [f"{counts[verdict]} {HAVE.get(verdict, verdict)}" for verdict in told]
    return f"{', '.join(texts)}."


def by_itself(judged: Judged) -> str:
    """Return the verdict of a claim by itself, where that of all together is another one."""
    alone = judged.measurement.verdict
    return "" if judged.headline == alone else f"by itself {alone}"


def claim_sentence(judged: Judged) -> str:
    """Return a sentence on a claim: its number, what was measured, and when it holds."""
    number = f"{judged.measurement.number}.".replace("–.", "")
    parts = [f"{judged.name}:", number, describe_measurement(judged.measurement)]
    return " ".join(filter(None, [*parts, f"Holds where {judged.claim.holds_where}."]))


def family_sentences(judged: Sequence[Judged]) -> list[str]:
    """Return a sentence on each family, of a study and a kind: its level, and what changes."""
    families: dict[tuple[str, Kind], list[Judged]] = {}
    for claim in judged:
        if claim.family:
            families.setdefault((claim.study, claim.claim.kind), []).append(claim)
    levels = {"level": LEVEL, "level_of_each": level_of_each}
    return sentences("families.txt", families=families, **levels)


# Numbers


def margin_in_words(margin: tuple[float | None, float | None] | None, name: str = "margin") -> str:
    """Return a margin in three digits: `margin 1.75 to 2.25`, `margin below 10`; empty without."""
    least, most = (
        None if end is None or math.isinf(end) else three_digits(end)
        for end in margin or (None, None)
    )
    if least is None:
        return f"{name} below {most}" if most else ""
    return f"{name} {least} to {most}" if most else f"{name} above {least}"


def requirement_in_words(measurement: Measurement, kind: Kind = "ours") -> str:
    """Return the number that a claim states, and from where on a number counts as it.

    It is `paper: 2; holds from 1.75 to 2.25`, or `must be 1, without an exception` of a theorem.
    """
    is_closed = all(map(math.isfinite, measurement.margin or ()))
    counted = margin_in_words(measurement.margin, "holds from" if is_closed else "holds")
    if measurement.target is None:
        return counted
    target = three_digits(measurement.target)
    if not counted:
        return f"must be {target}, without an exception"
    return f"{'paper' if kind == 'paper' else 'stated'}: {target}; {counted}"


def describe_measurement(measurement: Measurement) -> str:
    """Return the note and the details of a measurement: `N·SNR² …; curves 640`."""
    details = "; ".join(f"{name} {number}" for name, number in detail_pairs(measurement.details))
    if len(details.split(" ", 1)[0]) > 1:  # d and D are different symbols
        details = details[:1].upper() + details[1:]
    return f"{measurement.note} {details}{'.' if details else ''}".strip()


def detail_pairs(details: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return the names of the details and their numbers in three digits.

    `…, from` and `…, to` are the interval of `…`; `…, least` and `…, most` are its range, which for
    a theorem is the distance to a hypothesis.
    """
    pairs = []
    for name, value in details.items():
        parent, _, end = name.rpartition(", ")
        least, most = (details.get(f"{parent}, {which}") for which in ("least", "most"))
        if least is not None and most is not None and end == "least":
            met = " (met at 0 or less)" if MET in details else ""
            ends = dict.fromkeys(number_with_interval(end, None) for end in (least, most))
            pairs.append((f"{parent}{met}", " to ".join(ends)))
        elif not (end == "most" and least is not None) and not (
            end in ("from", "to") and parent in details
        ):
            low, high = (details.get(f"{name}, {which}") for which in ("from", "to"))
            interval = None if low is None or high is None else Interval(low, high, "")
            pairs.append((name, number_with_interval(value, interval)))
    return pairs
