"""The files of a report: the page, Markdown, JSON, JUnit, and the verdicts as TOML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from overfit_cli.errors import UserError
from overfit_cli.files import make_folder, reason_of, write_whole
from overfit_cli.report.claims_json import claims_json
from overfit_cli.report.contents import ReportedPaper
from overfit_cli.report.expected import as_expected
from overfit_cli.report.html import page
from overfit_cli.report.junit import junit
from overfit_cli.report.markdown import markdown


def write_report(
    papers: Sequence[ReportedPaper],
    folder: Path,
    where: Sequence[str] = (),
    unexpected: Mapping[str, str] | None = None,
    *,
    flag: str = "--out",
) -> list[Path]:
    """Write a report as a page, in Markdown, JSON and JUnit, with its verdicts; return the paths.

    Args:
        papers: what is reported.
        folder: where to write.
        where: the conditions that chose the cells.
        unexpected: what is wrong with the verdict of a claim, by `study/claim`, where they were
            held to expected ones.
        flag: what names the folder, for messages.

    Raises:
        UserError: if they can't be written.
    """
    make_folder(folder, flag)
    judged = [one for paper in papers for one in paper.judged]
    contents = {
        "index.html": page(papers, where),
        "report.md": markdown(papers, unexpected),
        "claims.json": claims_json(papers),
        "junit.xml": junit(judged, unexpected),
        "verdicts.toml": as_expected(judged),
    }
    for name, text in contents.items():
        try:
            write_whole(folder / name, text.encode())
        except OSError as error:
            raise UserError(f"{flag} {folder}: {name}: {reason_of(error)}.", exit_code=1) from error
    return [folder / name for name in contents]
