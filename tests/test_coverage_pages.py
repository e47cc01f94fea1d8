"""The pages of coverage list every statement of a paper, with what tests it or why nothing does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from overfit_cli.core.registry import claims_of, installed_studies

ROOT = Path(__file__).parents[1]
PAPERS = sorted(
    {
        study.paper.key
        for study in installed_studies()
        if study.paper and type(study).__module__.startswith("overfit_cli.studies.")
    }
)


def rows_of(paper: str) -> list[list[str]]:
    """The rows of a page's table, as its four cells: statement, source, tests, reason."""
    text = (ROOT / "docs" / "coverage" / f"{paper}.md").read_text()
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))] for line in lines
    ]
    return rows[2:]  # without the head


def claims_of_paper(paper: str) -> dict[str, str]:
    """The kind of each claim of a paper, by name."""
    studies = [study for study in installed_studies() if study.paper and study.paper.key == paper]
    return {claim.name: claim.kind for study in studies for claim in claims_of(study)}


@pytest.mark.parametrize("paper", PAPERS)
def test_every_statement_has_a_test_or_a_reason(paper: str) -> None:
    rows = rows_of(paper)
    assert len(rows) > 10
    for statement, source, tests, reason in rows:
        assert statement and source
        assert tests or len(reason.split()) >= 3, statement


@pytest.mark.parametrize("paper", PAPERS)
def test_what_tests_a_statement_exists(paper: str) -> None:
    claims = claims_of_paper(paper)
    for statement, _, tests, _ in rows_of(paper):
        for name in re.findall(r"`([^`]+)`", tests):
            assert name in claims or (ROOT / name.split("::")[0]).is_file(), (statement, name)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_on_a_sentence_of_the_paper_is_listed(paper: str) -> None:
    listed = {name for row in rows_of(paper) for name in re.findall(r"`([^`]+)`", row[2])}
    sentences = {
        name for name, kind in claims_of_paper(paper).items() if kind in ("paper", "sharp")
    }
    assert sentences <= listed
