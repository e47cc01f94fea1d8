"""Files of a report: Markdown, JSON, JUnit, LaTeX.

The report for programs: `claims.json`.

The report in Markdown: `report.md`, and the summary of a CI run.

The report for CI systems: `junit.xml`, a test case for each claim.

Tables in LaTeX, with the rules of booktabs and the symbols of the papers.

The files of a report: the page, Markdown, JSON, JUnit, and the verdicts as TOML.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from overfit_cli.core.claim import VERDICTS, Interval
from overfit_cli.core.parameters import Value, describe
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import in_markdown, visible
from overfit_cli.report.contents import (
    ReportedPaper,
    ReportedRun,
    ReportedStudy,
    again,
    families,
    in_words,
    number_in_words,
)
from overfit_cli.report.judge import Judged

if TYPE_CHECKING:
    import pandas as pd


SCHEMA = 4


def claims_json(papers: Sequence[ReportedPaper]) -> str:
    """Return every claim with its measurement, and every run with its parameters, as JSON."""
    content = {
        "schema": SCHEMA,
        "claims": [{"paper": paper.key, **_claim(one)} for paper in papers for one in paper.judged],
        "runs": [
            _run_as_json(study, run)
            for paper in papers
            for study in paper.studies
            for run in study.runs
        ],
    }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def _claim(one: Judged) -> dict[str, Any]:
    repeat = again(one.claim)
    return {
        "study": one.study,
        "claim": one.claim.name,
        "statement": one.claim.statement,
        "source": one.claim.source,
        "holds_where": one.claim.holds_where,
        "figure": one.claim.figure or None,
        "preset": one.claim.preset or None,
        "verdict": one.measurement.verdict,
        "value": finite_or_null(one.measurement.value),
        "interval": interval_or_null(one.measurement.interval),
        "details": {name: finite_or_null(value) for name, value in one.measurement.details.items()},
        "note": one.measurement.note,
        "family": {"claims": one.family, "verdict": one.together} if one.family else None,
        "directory": str(one.directory) if one.directory else None,
        "again": repeat
        and {"command": repeat.command, "minutes": repeat.minutes, "needs": repeat.needs or None},
    }


def _run_as_json(study: ReportedStudy, run: ReportedRun) -> dict[str, Any]:
    facts = run.facts
    return {
        "directory": str(run.path),
        "study": study.study.name,
        "version": study.study.version,
        "cells": {"done": facts.done, "failed": sum(facts.reasons.values())},
        "reasons": dict(facts.reasons),
        "seeds": list(facts.seeds),
        "axes": {name: [_value(one) for one in values] for name, values in facts.axes.items()},
        "parameters": {name: _value(one) for name, one in facts.parameters.items()},
        "sweeps": [
            {
                "command": list(sweep.command),
                "started": sweep.started,
                "packages": dict(sweep.packages),
                "python": sweep.python,
                "platform": sweep.platform,
                "git_commit": sweep.git_commit,
            }
            for sweep in facts.sweeps
        ],
    }


def _value(value: Value) -> Value | None:
    """A parameter's value for JSON."""
    return finite_or_null(value) if isinstance(value, float) else value


def finite_or_null(value: float | None) -> float | None:
    """Return a number for JSON, which has no infinity: what isn't finite is null there."""
    return value if value is not None and math.isfinite(value) else None


def interval_or_null(found: Interval | None) -> dict[str, float | str | None] | None:
    """Return an interval for JSON; null where there is none."""
    if found is None:
        return None
    return {
        "low": finite_or_null(found.low),
        "high": finite_or_null(found.high),
        "kind": found.kind,
    }


_HEADINGS = ("claim", "verdict", "all together", "measured", "holds where", "source")


def markdown(papers: Sequence[ReportedPaper], unexpected: Mapping[str, str] | None = None) -> str:
    """Return the verdicts by paper; for each study a table of claims, and its runs.

    Args:
        papers: what is reported.
        unexpected: what is wrong with the verdict of a claim, by `study/claim`: it comes first.
    """
    lines = ["# Claims and verdicts", "", *_unexpected(unexpected or {})]
    lines += [*verdict_counts(papers), ""]
    for paper in papers:
        title = f": {paper.paper.title}" if paper.paper else ""
        lines += [f"## {in_markdown(paper.cited + title)}", ""]
        for study in paper.studies:
            title = f"{study.study.name}: {study.study.title}"
            lines += [f"### {in_markdown(title)}", "", *_claims(study.judged)]
            for run in study.runs:
                lines += _run_as_markdown(run)
    return "\n".join(lines)


def _unexpected(found: Mapping[str, str]) -> list[str]:
    """A line for each verdict that is another than expected."""
    lines = [f"- {in_markdown(f'{claim}: {what}')}." for claim, what in found.items()]
    return ["Unexpected verdicts:", "", *lines, ""] if lines else []


def verdict_counts(papers: Sequence[ReportedPaper]) -> list[str]:
    """Return the lines of a table: how many claims of each paper have each verdict."""
    found = [(paper.cited, paper.counts) for paper in papers if paper.judged]
    return [
        _row(["paper", *VERDICTS]),
        _row(["---", *("--:" for _ in VERDICTS)]),
        *(
            _row([in_markdown(cited), *(str(counts[verdict] or "") for verdict in VERDICTS)])
            for cited, counts in found
        ),
    ]


def _claims(judged: Sequence[Judged]) -> Iterator[str]:
    """The lines on the claims of a study: a table, and what stands behind it."""
    if not judged:
        return
    yield from (_row(_HEADINGS), _row(["---"] * len(_HEADINGS)))
    yield from (_row(_table_cells(one)) for one in judged)
    yield from ("", *(in_markdown(sentence) for sentence in families(judged)), "")
    yield from (_details(one) for one in judged)
    yield ""


def _run_as_markdown(run: ReportedRun) -> Iterator[str]:
    """The lines on a run: its cells, settings and failures, and what made them."""
    facts = run.facts
    yield from (f"#### {in_markdown(str(run.path))}", "")
    for sentence in (facts.cells, facts.settings, facts.failures, facts.made):
        if sentence:
            yield f"- {in_markdown(sentence)}"
    yield from (f"- {_code(command)}" for command in facts.commands)
    yield ""


def _code(text: str) -> str:
    """A command as code, unless it holds what may end that, HTML or a link."""
    return in_markdown(text) if set(text) & set("`<&[") else f"`{visible(text)}`"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _table_cells(one: Judged) -> list[str]:
    """A claim's row of the table."""
    others = (
        one.measurement.verdict,
        one.together or "–",
        number_in_words(one.measurement),
        one.claim.holds_where,
        one.claim.source,
    )
    statement = f"**{in_markdown(one.name)}**: {in_markdown(one.claim.statement)}"
    return [statement, *(in_markdown(text) for text in others)]


def _details(one: Judged) -> str:
    """What else there is to say of a claim, and how it is measured again."""
    parts = [in_markdown(in_words(one.measurement))]
    parts += [f"(from {in_markdown(str(one.directory))})"] if one.directory else []
    if repeat := again(one.claim):
        takes = f", {repeat.time} on two cores" if repeat.time else ""
        needs = f"; it needs {in_markdown(repeat.needs)}" if repeat.needs else ""
        parts.append(f"Again: `{repeat.command}`{takes}{needs}.")
    return f"- **{in_markdown(one.name)}**: {' '.join(parts)}"


_SKIPPED = ("inconclusive", "vacuous", "not run")


def junit(judged: Sequence[Judged], unexpected: Mapping[str, str] | None = None) -> str:
    """Return the verdicts as JUnit has them: a suite for each study.

    Args:
        judged: the claims.
        unexpected: what is wrong with the verdict of a claim, by `study/claim`, where verdicts are
            held to expected ones: only those claims fail then. Without it a claim fails that
            doesn't hold, and one that nothing decided is skipped.
    """
    root = ElementTree.Element("testsuites", name="overfit")
    for study in dict.fromkeys(one.study for one in judged):
        own = [one for one in judged if one.study == study]
        suite = ElementTree.SubElement(root, "testsuite", name=visible(study))
        for one in own:
            _case(suite, one, unexpected)
        for kind, counted in (("failure", "failures"), ("skipped", "skipped")):
            suite.set(counted, str(len(suite.findall(f"testcase/{kind}"))))
        suite.set("tests", str(len(own)))
        suite.set("errors", "0")
    ElementTree.indent(root)
    text: str = ElementTree.tostring(root, encoding="unicode", xml_declaration=True)
    return text + "\n"


def _case(suite: ElementTree.Element, one: Judged, unexpected: Mapping[str, str] | None) -> None:
    """Add a claim to its study's suite."""
    case = ElementTree.SubElement(
        suite, "testcase", classname=visible(f"overfit.{one.study}"), name=visible(one.name)
    )
    verdict = one.measurement.verdict
    message = visible(f"{verdict}: {number_in_words(one.measurement)}")
    wrong = None if unexpected is None else unexpected.get(one.address)
    if wrong or (unexpected is None and verdict == "fails"):
        failure = ElementTree.SubElement(case, "failure", message=visible(wrong or message))
        failure.text = visible(f"{one.claim.statement} {in_words(one.measurement)}")
    elif unexpected is None and verdict in _SKIPPED:
        ElementTree.SubElement(case, "skipped", message=message)
    else:
        ElementTree.SubElement(case, "system-out").text = message


ABSENT = "--"
"""What stands for a number that isn't there."""


def means_table(
    study: AnyStudy, means: pd.DataFrame, measured: Sequence[str], notes: Sequence[str]
) -> str:
    r"""Return means over seeds as a table, each as `$0.693 \pm 0.012$`.

    The numbers of seeds and of failed cells have columns where they tell something.

    Args:
        study: the study.
        means: as `sweeps.means` gives them.
        measured: the columns that means were taken of.
        notes: comments above the table.
    """
    names = list(means.columns)
    columns = {name: means[name] for name in names[: names.index("seeds")]}
    columns |= {"seeds": means["seeds"]} if means["seeds"].nunique() > 1 else {}
    columns |= {"failed": means["failed"]} if means["failed"].any() else {}
    written = {name: [value(one) for one in column.tolist()] for name, column in columns.items()}
    for name in measured:
        halves = (means[f"{name}_high"] - means[name]).tolist()
        written[name] = [
            estimate(mean, half) for mean, half in zip(means[name].tolist(), halves, strict=True)
        ]
    words = {name for name, column in columns.items() if column.dtype.kind not in "iuf"}
    return _tabular(study, written, words, notes)


def cells_table(study: AnyStudy, cells: pd.DataFrame, notes: Sequence[str]) -> str:
    """Return rows of cells as a table, with real numbers in four digits."""
    written = {str(name): [value(one, 4) for one in cells[name].tolist()] for name in cells.columns}
    words = {str(name) for name in cells.columns if cells[name].dtype.kind not in "iuf"}
    return _tabular(study, written, words, notes)


def _tabular(
    study: AnyStudy, columns: dict[str, list[str]], words: set[str], notes: Sequence[str]
) -> str:
    """A table of written columns; those of words are set flush left."""
    sides = "".join("l" if name in words else "r" for name in columns)
    rows = [" & ".join(row) for row in zip(*columns.values(), strict=True)]
    return "\n".join(
        [
            *(f"% {visible(note)}" for note in (r"\usepackage{booktabs}", *notes)),
            rf"\begin{{tabular}}{{{sides}}}",
            r"\toprule",
            " & ".join(head(study, name) for name in columns) + r" \\",
            r"\midrule",
            *(rf"{row} \\" for row in rows),
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def head(study: AnyStudy, name: str) -> str:
    """Return the head of a column: the symbol of a number that is set, else words and symbol."""
    settings, columns = describe(study.parameters), {one.name: one for one in study.columns}
    described = settings.get(name) or columns.get(name)
    if described is None:
        return text({"steps": study.step, "seconds": "time (s)"}.get(name, name))
    symbol = f"${described.symbol}$" if described.symbol else ""
    shown = [text(described.label or described.meaning or name.replace("_", " "))]
    if name in settings and settings[name].kind in ("int", "float") and symbol:
        shown = []
    elif name in settings:
        symbol = ""  # of words, which say themselves what they are
    unit = f"({text(described.unit)})" if described.unit else ""
    return " ".join(filter(None, [*shown, symbol, unit]))


def value(given: Any, digits: int = 6) -> str:
    """Return a value as a table writes it: numbers as formulas, real ones in so many digits."""
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, int):
        is_round = abs(given) >= 1e5 and given == float(f"{given:.3g}")
        return _formula(f"{given:.2e}") if is_round else f"${given}$"
    if not isinstance(given, float):
        return ABSENT if given is None else text(str(given))
    if math.isnan(given):
        return ABSENT
    if math.isinf(given):
        return r"$\infty$" if given > 0 else r"$-\infty$"
    return _formula(f"{given:.{digits}g}")


def _formula(number: str) -> str:
    """A number as Python writes it, with its power of ten as a formula."""
    mantissa, _, exponent = number.partition("e")
    if not exponent:
        return f"${mantissa}$"
    factor = {1.0: "", -1.0: "-"}.get(float(mantissa), rf"{float(mantissa):g} \cdot ")
    return f"${factor}10^{{{int(exponent)}}}$"


_NEGLIGIBLE = 1e-6
"""Beside a mean this much larger, an interval is rounding."""


def estimate(mean: float, half: float) -> str:
    r"""Return a mean with half its interval, `$0.693 \pm 0.012$`: the half in two digits.

    Where there is no interval, or nothing but rounding in it, the mean stands alone.
    """
    if not math.isfinite(mean + half) or half <= _NEGLIGIBLE * abs(mean):
        return value(float(mean), 4)
    power = math.floor(math.log10(max(abs(mean), half)))
    power = 0 if -4 < power < 5 else power
    of_mean, of_half = (Decimal(one).scaleb(-power) for one in (mean, half))
    last = Decimal(1).scaleb(Decimal(f"{of_half:.1e}").adjusted() - 1)
    both = rf"{of_mean.quantize(last) + 0:f} \pm {of_half.quantize(last):f}"
    return rf"$({both}) \cdot 10^{{{power}}}$" if power else f"${both}$"


_ESCAPED = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    **{letter: f"{{{letter}}}" for letter in "[]*"},  # else the end of a row may take them
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
_SIGNS = {"−": "-", "×": r"\times", "·": r"\cdot", "⋆": r"\star", "≤": r"\leq", "≥": r"\geq"}
_RAISED, _LOWERED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "₀₁₂₃₄₅₆₇₈₉₋"
_GREEK = "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ"
_IN_FORMULAS = re.compile(f"[{_RAISED}]+|[{_LOWERED}]+|[{_GREEK}]|[{''.join(_SIGNS)}]")
"""What LaTeX takes in formulas alone."""


def text(words: str) -> str:
    """Return words so that LaTeX shows them as they are."""
    escaped = "".join(_ESCAPED.get(letter, letter) for letter in visible(words))
    return _IN_FORMULAS.sub(lambda found: f"${_as_formula(found[0])}$", escaped)


def _as_formula(letters: str) -> str:
    """Raised or lowered digits, a sign, or a Greek letter, in LaTeX."""
    if letters in _SIGNS:
        return _SIGNS[letters]
    if letters in _GREEK:
        name = unicodedata.name(letters).rpartition(" ")[2].replace("LAMDA", "LAMBDA")
        return f"\\{name.lower() if letters.islower() else name.capitalize()}"
    plain = unicodedata.normalize("NFKC", letters).replace("−", "-")
    return f"{'^' if letters[0] in _RAISED else '_'}{{{plain}}}"
