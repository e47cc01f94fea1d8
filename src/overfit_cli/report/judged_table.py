"""Judged claims as a table for notebooks: a row for each, under which its details unfold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from overfit_cli.core.claim import MARKS, VERDICTS, Measurement, number_with_interval
from overfit_cli.core.html import folded, html_table, strong
from overfit_cli.core.text import plural
from overfit_cli.report.interval_bar import requirement_in_words

if TYPE_CHECKING:
    from overfit_cli.report.judge import Judged

_HEADINGS = ("claim", "verdict", "measured", "required")


def judged_table(judged: Sequence[Judged]) -> str:
    """Return claims with their verdicts, numbers and margins as HTML."""
    return html_table(_caption(judged), _HEADINGS, [_row(each) for each in judged])


def _caption(judged: Sequence[Judged]) -> str:
    counts = Counter(each.headline for each in judged)
    verdicts = [f"{name} {counts[name]}" for name in VERDICTS if counts[name]]
    studies = ", ".join(dict.fromkeys(each.study for each in judged))
    claims = plural(len(judged), "claim")
    return f"{claims} of {studies}: {', '.join(verdicts)}." if judged else f"{claims}."


def _row(judged: Judged) -> list[str]:
    measurement = judged.measurement
    verdict = f"{MARKS[judged.headline]} {judged.headline}"
    differs = judged.headline != measurement.verdict
    return [
        folded(_title(judged), _details(judged)),
        strong(verdict) + (f" By itself it {_alone(measurement)}." if differs else ""),
        number_with_interval(measurement.value, measurement.interval),
        requirement_in_words(measurement, judged.claim.kind),
    ]


def _title(judged: Judged) -> str:
    is_own = judged.is_only and not judged.claim.source
    return judged.claim.statement if is_own else judged.name


def _alone(measurement: Measurement) -> str:
    verdict = measurement.verdict
    return verdict if verdict in ("holds", "fails") else f"is {verdict}"


def _details(judged: Judged) -> Iterator[str]:
    claim, measurement = judged.claim, judged.measurement
    if claim.source:
        yield f"{claim.statement} ({claim.source})"
    yield f"It holds where {claim.holds_where}."
    if claim.hypotheses:
        yield f"Hypotheses: {claim.hypotheses}."
    if measurement.interval is not None and measurement.interval.kind:
        yield f"Interval: {measurement.interval.kind}."
    if measurement.note:
        yield measurement.note
    if judged.directory is not None:
        yield f"Measured on {judged.directory}."
