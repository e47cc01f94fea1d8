"""Words of verdicts: numbers, margins and counts, as all outputs say them; formulas of a page."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup, escape

from overfit_cli.claims.bounds import MET
from overfit_cli.core import text as texts
from overfit_cli.core.claim import MARKS, Interval, Kind, Measurement, Verdict, number_with_interval
from overfit_cli.core.text import three_digits, visible

TEMPLATES = Path(__file__).parent / "templates"


def templates(*, autoescape: bool = False) -> Environment:
    """Return the templates of all outputs, which know how numbers and counts are written."""
    environment = texts.templates(TEMPLATES, autoescape=autoescape)
    environment.filters["typeset"] = typeset
    environment.globals |= {"marks": MARKS, "number_with_interval": number_with_interval}
    return environment


def sentences(template: str, **values: Any) -> list[str]:
    """Return the lines that a template makes of values, without empty ones."""
    return [line for line in templates().get_template(template).render(values).splitlines() if line]


COUNTED = (
    "Counts use a stricter level, at which all verdicts of one study and kind are right together "
    "95 times in 100. A claim that holds by itself at 95 % may be inconclusive there."
)


HAVE: Mapping[Verdict, str] = {"holds": "hold", "holds by far": "hold by far", "fails": "fail"}
"""The verdicts that are verbs, of several claims."""


def count_verdicts(verdicts: Iterable[Verdict]) -> dict[Verdict, int]:
    """Return how many claims have each verdict."""
    counts = Counter(verdicts)
    return {verdict: counts[verdict] for verdict in MARKS}


def counts_in_words(verdicts: Iterable[Verdict]) -> str:
    """Say how many claims have each verdict: `16 hold, 0 fail, 4 vacuous`."""
    told = [
        f"{count} {HAVE.get(verdict, verdict)}"
        for verdict, count in count_verdicts(verdicts).items()
        if count or verdict in ("holds", "fails")
    ]
    return f"{', '.join(told)}."


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


# Formulas

_POWER = re.compile(r"(?<![\w.-])(-?\d[\d.]*)e([+-]?\d+)\b")
_NEGATIVE = re.compile(r"(?<![\w.&;)/-])-(?=\d)")
_SUBSCRIPT = re.compile(
    r"(?<![^\W\d²³⁴ᵀ])([Δd]?[^\W\d_][\u0300-\u036f]?\*?|min|max|Cov|(?<=[‖²)′∇]))"
    r"_(\{[^{}]{1,6}\}|[A-Za-zℓ],[a-z\d]|[A-Za-zα-ω\dℓ*⋆∞]{1,5}|[+-](?![\d(]))(?![A-Za-z\d_])"
)
_SUPERSCRIPT = re.compile(
    r"\^(\((?:[^()]|\([^()]*\)){1,14}\)|o\(1\)|[−-]?\d+(?:\.\d+)?|[*⋆]|[^\W\d_]{1,4}(?!\w))"
)


def typeset(text: str) -> Markup:
    """Return a text with the indices and powers of its symbols, as in `W_Q` and `N·SNR^p`.

    Numbers have a minus sign and powers of ten, for `-2` and `1e-10`, in which no line breaks.
    Names of several letters, such as `train_loss`, stay as they are.
    """
    escaped = str(escape(visible(text)))
    escaped = _NEGATIVE.sub(texts.MINUS, _POWER.sub(_power_of_ten, escaped))
    return Markup(set_indices(escaped))


def set_indices(escaped: str) -> str:
    """Return an escaped text with the indices and powers of its symbols as HTML."""
    return _SUPERSCRIPT.sub(r"<sup>\1</sup>", _SUBSCRIPT.sub(r"\1<sub>\2</sub>", escaped))


def _power_of_ten(number: re.Match[str]) -> str:
    return f'<span class="number">{texts.power_of_ten(number[1], int(number[2]))}</span>'
