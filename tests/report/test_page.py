"""The page's text: its size, what has room on it, and what it says of itself."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from overfit_cli import __version__
from overfit_cli.report import page as html
from overfit_cli.report.contents import ReportedPaper, contents, details_in_words
from overfit_cli.report.judge import judge_runs, load_runs
from overfit_cli.report.page import weight
from tests.report.made_up import judged
from tests.toy_runs import sweep_toy

FIGURES = ["heatmap", "cutoff", "boundary"]


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> list[ReportedPaper]:
    """Two toy runs: `b` decides the toy's claim, and `a` nothing."""
    folder = tmp_path_factory.mktemp("runs")
    for name in ("b", "a"):
        sweep_toy(folder / name)
    runs = load_runs([folder / "b", folder / "a"], folder)
    return contents(judge_runs(runs[:1], every=False), runs, [])


@pytest.fixture(scope="module")
def whole(papers: list[ReportedPaper]) -> str:
    """The page with all that there is."""
    return html.page(papers)


def limited(papers: list[ReportedPaper], most: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """The page within so many bytes."""
    monkeypatch.setattr(html, "MOST_BYTES", most)
    written = html.page(papers)
    assert len(written.encode()) <= most
    return written


def shown_in(page: str) -> dict[str, list[str]]:
    """By run, what is drawn of it: its figures, and `diagram`."""
    found = {}
    for article in page.split('<article class="run"')[1:]:
        name = re.findall(r'<h4 id="run-\d+-name">(.*?)</h4>', article)[0]
        figures = re.findall(r"<figcaption><strong>([\w-]+)</strong>", article)
        found[name] = figures + ["diagram"] * article.count('<div class="diagram')
    return found


@pytest.mark.slow
def test_everything_has_room_on_a_page_of_few_runs(whole: str) -> None:
    assert shown_in(whole) == {name: [*FIGURES, "diagram"] for name in ("b", "a")}
    assert "no room" not in whole


@pytest.mark.slow
def test_a_diagram_counts_and_what_decides_has_room_first(
    papers: list[ReportedPaper], whole: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = limited(papers, len(whole.encode()) - 1, monkeypatch)
    # The last to be added was the diagram of what decides nothing.
    assert shown_in(page) == {"b": [*FIGURES, "diagram"], "a": FIGURES}
    assert page.count("Figures are left out here: the page has no room for more.") == 1


def test_a_page_of_too_many_claims_says_how_many_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = [judged(f"claim-{number}", "holds", study="toy") for number in range(500)]
    page = limited(contents(many, [], []), 200_000, monkeypatch)
    rows = page.count('<tr id="claim-toy-')
    assert 0 < rows < 500
    assert f"Left out here: {500 - rows} claims." in page


@pytest.mark.parametrize("share", [0.01, 0.5])
def test_the_page_stays_within_its_limit(
    share: float, papers: list[ReportedPaper], whole: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "MOST_BYTES", 0)
    frame = len(html.page(papers).encode())  # the least that a page can be
    page = limited(papers, frame + int(share * (len(whole.encode()) - frame)), monkeypatch)
    assert "no room for more" in page


def test_what_decides_and_reproduces_comes_before_what_does_one(
    papers: list[ReportedPaper],
) -> None:
    deciding, other = (run for paper in papers for study in paper.studies for run in study.runs)
    assert (deciding.decides, other.decides) == (True, False)
    both = replace(deciding, figure="fig1")
    assert weight(both) < weight(deciding) == weight(replace(other, figure="fig1")) < weight(other)


def test_a_figure_that_a_presets_cells_can_not_carry_is_named_with_the_reason(
    tmp_path: Path,
) -> None:
    sweep_toy(tmp_path / "kernel-fig4-quick", n="1")  # the preset's figure is none of the toy's
    runs = load_runs([tmp_path / "kernel-fig4-quick"], tmp_path)
    page = html.page(contents([], runs, []))
    assert "Not drawn: landscape: toy has no figure &#39;landscape&#39;" in page


def test_it_says_when_and_with_what_it_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "git_commit", lambda: "0123456789abcdef")
    before = datetime.now(UTC).date()
    (day,) = re.findall(
        rf"Written (\S+) with overfit {re.escape(__version__)} \(commit 0123456789\)\.",
        html.page([]),
    )
    assert before <= datetime.fromisoformat(day).date() <= before + timedelta(days=1)
    monkeypatch.setattr(html, "git_commit", lambda: None)
    assert f"with overfit {__version__}.</p>" in html.page([])


def test_numbers_with_ends_are_told_as_intervals() -> None:
    details = {"power": 2.0, "power, from": 1.5, "power, to": 2.5, "cells, from": 3.0, "seeds": 4}
    assert details_in_words(details) == ["power 2 [1.5, 2.5]", "cells, from 3", "seeds 4"]
