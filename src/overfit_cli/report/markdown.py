"""The report in Markdown: `report.md`, and the summary of a CI run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from overfit_cli.claim import VERDICTS
from overfit_cli.plain_text import in_markdown, visible
from overfit_cli.report.contents import ReportedPaper, ReportedRun, again
from overfit_cli.report.judged import Judged
from overfit_cli.report.words import families, in_words, number_in_words

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
                lines += _run(run)
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


def _run(run: ReportedRun) -> Iterator[str]:
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
