"""The report as a table on the terminal, `report.md` and `claims.json`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from overfit_cli.analysis.intervals import LEVEL, level_of_each
from overfit_cli.claim import Interval, Measurement
from overfit_cli.errors import UserError
from overfit_cli.files import make_folder, reason_of, write_whole
from overfit_cli.plain_text import in_markdown, visible
from overfit_cli.report.judged import Judged
from overfit_cli.words import plural

_COLOURS = {
    "holds": "green",
    "fails": "bold red",
    "inconclusive": "yellow",
    "vacuous": "cyan",
    "not run": "dim",
}

_HEADINGS = ("claim", "verdict", "all together", "measured", "holds where", "source")


def verdict_table(judged: Sequence[Judged]) -> Table:
    """Return the verdicts as a table for the terminal."""
    table = Table(box=SIMPLE_HEAD)
    table.add_column("claim", no_wrap=True)
    table.add_column("verdict", no_wrap=True, min_width=len("inconclusive"))
    table.add_column("measured")
    for one in judged:
        verdict = one.measurement.verdict
        table.add_row(
            visible(one.name),
            Text(verdict, style=_COLOURS[verdict]),
            number_in_words(one.measurement),
        )
    return table


def sentences(judged: Sequence[Judged]) -> list[str]:
    """Return what was measured for each claim, in words, and what it takes to hold."""
    return [
        f"{one.name}: {_in_words(one.measurement)} Holds where {one.claim.holds_where}."
        for one in judged
    ]


def families(judged: Sequence[Judged]) -> list[str]:
    """Return a sentence on each study's claims together: their level, and which verdicts change."""
    found = []
    for study in dict.fromkeys(one.study for one in judged if one.family):
        own = [one for one in judged if one.study == study and one.family]
        changed = [
            f"{one.name} is {one.together}"
            for one in own
            if one.together != one.measurement.verdict
        ]
        but = f" but {', '.join(changed)}" if changed else ""
        found.append(
            f"{study}: seeds decide {plural(own[0].family, 'verdict')}, at {LEVEL:.0%} each. At "
            f"{LEVEL:.0%} for all together (Holm, from {level_of_each(own[0].family):.2%} each) "
            f"every verdict stays{but}."
        )
    return found


def write_report(judged: Sequence[Judged], folder: Path) -> list[Path]:
    """Write `report.md` and `claims.json` into `folder` and return their paths.

    Raises:
        UserError: if they can't be written.
    """
    make_folder(folder, "--out")
    contents = {"report.md": _markdown(judged), "claims.json": _json(judged)}
    for name, text in contents.items():
        try:
            write_whole(folder / name, text.encode())
        except OSError as error:
            raise UserError(f"--out {folder}: {name}: {reason_of(error)}.", exit_code=1) from error
    return [folder / name for name in contents]


def number_in_words(measurement: Measurement) -> str:
    """Return the measured value with its interval: `2.03 [1.95, 2.11] 95 % t over 10 seeds`."""
    if measurement.value is None:
        return "–"
    found = measurement.interval
    if found is None:
        return f"{measurement.value:.4g}"
    return f"{measurement.value:.4g} [{found.low:.4g}, {found.high:.4g}] {found.kind}".strip()


def _in_words(measurement: Measurement) -> str:
    """What must be known of a number, and the further numbers: `N·SNR² …; curves 640`."""
    details = "; ".join(f"{name} {number:.4g}" for name, number in measurement.details.items())
    return f"{measurement.note} {details[:1].upper()}{details[1:]}{'.' if details else ''}".strip()


def _markdown(judged: Sequence[Judged]) -> str:
    lines = ["# Claims and verdicts", ""]
    for study in dict.fromkeys(one.study for one in judged):
        own = [one for one in judged if one.study == study]
        lines += [f"## {in_markdown(study)}", ""]
        lines += [f"| {' | '.join(_HEADINGS)} |", "|---" * len(_HEADINGS) + "|"]
        lines += [f"| {' | '.join(_table_cells(one))} |" for one in own]
        lines += ["", *(in_markdown(sentence) for sentence in families(own)), ""]
        for one in own:
            where = f" (from {in_markdown(str(one.directory))})" if one.directory else ""
            words = in_markdown(_in_words(one.measurement))
            lines.append(f"- **{in_markdown(one.name)}**: {words}{where}")
        lines.append("")
    return "\n".join(lines)


def _table_cells(one: Judged) -> list[str]:
    """A claim's row of the table in Markdown."""
    others = (
        one.measurement.verdict,
        one.together or "–",
        number_in_words(one.measurement),
        one.claim.holds_where,
        one.claim.source,
    )
    statement = f"**{in_markdown(one.name)}**: {in_markdown(one.claim.statement)}"
    return [statement, *(in_markdown(text) for text in others)]


def _finite(value: float | None) -> float | None:
    """JSON has no infinity: what isn't finite is null there."""
    return value if value is not None and math.isfinite(value) else None


def _interval(found: Interval | None) -> dict[str, float | str | None] | None:
    if found is None:
        return None
    return {"low": _finite(found.low), "high": _finite(found.high), "kind": found.kind}


def _json(judged: Sequence[Judged]) -> str:
    content = [
        {
            "study": one.study,
            "claim": one.claim.name,
            "statement": one.claim.statement,
            "source": one.claim.source,
            "holds_where": one.claim.holds_where,
            "figure": one.claim.figure or None,
            "preset": one.claim.preset or None,
            "verdict": one.measurement.verdict,
            "value": _finite(one.measurement.value),
            "interval": _interval(one.measurement.interval),
            "details": {name: _finite(value) for name, value in one.measurement.details.items()},
            "note": one.measurement.note,
            "family": {"claims": one.family, "verdict": one.together} if one.family else None,
            "directory": str(one.directory) if one.directory else None,
        }
        for one in judged
    ]
    return json.dumps({"schema": 2, "claims": content}, indent=2, allow_nan=False) + "\n"
