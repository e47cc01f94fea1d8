"""The page's text: its size, what has room on it, and what it says of itself."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from overfit_cli import __version__
from overfit_cli.claims.rules import MET
from overfit_cli.core.claim import Interval, Kind, Verdict
from overfit_cli.core.registry import claims_of, installed_studies
from overfit_cli.figures.draw import Request, draw_figure
from overfit_cli.figures.picture import Picture
from overfit_cli.report import page as html
from overfit_cli.report import pictures
from overfit_cli.report.contents import ReportedPaper, contents, detail_lines
from overfit_cli.report.judge import judge_runs
from overfit_cli.report.runs import load_runs
from tests.command import call
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
    return contents(judge_runs(runs[:1], on_every_run=False), runs, [])


def bytes_of_figures(page: str) -> int:
    """The bytes of all figures and diagrams on a page."""
    pictures = re.findall(r'<img src="(data:[^"]*)"', page)
    diagrams = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    return len("".join([*pictures, *diagrams]).encode())


def shown_in(page: str) -> dict[str, list[str]]:
    """By run, what is drawn of it: its figures, and `diagram`."""
    found = {}
    for article in page.split('<details class="run"')[1:]:
        name = re.findall(r"<h4>(.*?)</h4>", article)[0]
        figures = re.findall(r"<figcaption><strong>([\w-]+)</strong>", article)
        found[name] = figures + ["diagram"] * article.count('<div class="diagram')
    return found


@pytest.mark.slow
def test_a_run_that_decides_has_room_before_a_run_that_does_not(
    papers: list[ReportedPaper], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = html.page(papers)
    assert shown_in(whole) == {name: [*FIGURES, "diagram"] for name in ("b", "a")}
    assert "no room" not in whole
    left_out = "Figures of this run are left out: the page has reached its size limit."
    found = {}
    for share in (0.0, 0.5, 0.9, 1.0):
        most = max(0, int(share * bytes_of_figures(whole)) - 1)
        monkeypatch.setattr(pictures, "MOST_BYTES", most)
        page = html.page(papers)
        assert bytes_of_figures(page) <= most
        assert '<tr id="claim-toy-toy-claim"' in page
        found[share] = shown_in(page), page.count(left_out)
    assert found[0.0] == ({"b": [], "a": []}, 2)
    assert found[1.0] == ({"b": [*FIGURES, "diagram"], "a": []}, 1)


def test_a_text_of_a_claim_is_escaped_and_has_no_control_characters() -> None:
    odd = judged('a"<b>\x1b\n', "holds", study="toy")
    page = html.page(contents([odd], [], []))
    assert "<strong>a&#34;&lt;b&gt;\\x1b\\n</strong>" in page
    assert 'data-name="a&#34;&lt;b&gt;\\x1b\\n"' in page
    assert "\x1b" not in page


def test_it_says_when_and_with_what_it_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "package_commit", lambda: "0123456789abcdef")
    before = datetime.now(UTC).date()
    (day,) = re.findall(
        rf"Written (\S+) with overfit {re.escape(__version__)} \(commit 0123456789\)\.",
        html.page([]),
    )
    assert before <= datetime.fromisoformat(day).date() <= before + timedelta(days=1)
    monkeypatch.setattr(html, "package_commit", lambda: None)
    assert f"with overfit {__version__}.</p>" in html.page([])


def test_ends_and_distances_to_a_hypothesis_are_told_as_intervals_and_ranges() -> None:
    details = {"power": 2.0, "power, from": 1.5, "power, to": 2.5, "cells, from": 3.0, "seeds": 4}
    assert detail_lines(details) == ["power 2 [1.5, 2.5]", "cells, from 3", "seeds 4"]
    details = {"heads missing, least": 1.0, "heads missing, most": 2.5, MET: 0.0, "loss, most": 3}
    missing = "heads missing (met at 0 or less) 1 to 2.5"
    assert detail_lines(details) == [missing, f"{MET} 0", "loss, most 3"]
    undefined = {"decades, least": math.nan, "decades, most": math.nan, "loss": math.nan}
    assert detail_lines(undefined) == ["decades undefined", "loss undefined"]


def test_infinite_numbers_are_explained() -> None:
    def shown(**changes: Any) -> str:
        made = judged("a", "inconclusive")
        measurement = replace(made.measurement, **changes)
        return html.page(contents([replace(made, measurement=measurement, study="toy")], [], []))

    target, bound = "cells that did not reach the target", "the bound is 0 there"
    finite = shown(value=1.0, interval=Interval(0.0, 2.0, "95 % t"))
    assert target not in finite
    assert bound not in finite
    assert target in shown(value=1.0, interval=Interval(0.0, math.inf, "95 % t"))
    over = shown(interval=None, details={"decades over the bound, most": math.inf})
    assert bound in over
    assert target not in over


def test_a_thin_line_over_many_shades_keeps_its_colour() -> None:
    shades = np.zeros((256, 256, 3), np.uint8)
    shades[..., 0], shades[..., 2] = np.arange(256), np.arange(256)[:, None]
    shades[100] = orange = (213, 94, 0)
    reduced = np.asarray(pictures.reduce_colours(Image.fromarray(shades)), int)
    assert np.abs(reduced[100] - orange).max() < 16
    assert np.abs(reduced - shades).max() < 48
    assert len(np.unique(reduced.reshape(-1, 3), axis=0)) <= pictures.COLOURS


@pytest.mark.slow
def test_a_claim_without_a_paper_fails_in_a_few_words_and_a_map_of_one_colour_is_left_out(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine.py").write_text(
        "from overfit_cli import experiment\n\n\n"
        '@experiment(claims=["low: loss < 0.1"])\n'
        "def mine(n: int = 1, m: int = 1, seed: int = 0) -> dict[str, float]:\n"
        '    """Returns the same number everywhere."""\n'
        '    return {"loss": 1.0}\n'
    )
    axes = ("--n", "1:3", "--m", "1:3", "--seeds", "12", "--jobs", "1", "--out", "run")
    call("sweep", "mine.py", *axes, cwd=tmp_path)
    runs = load_runs([tmp_path / "run"], tmp_path)
    page = html.page(contents(judge_runs(runs, on_every_run=True), runs, []))
    assert '<em class="meaning fails">The answer is no.</em>' in page
    assert not {"heatmap", "cutoff", "diagram"} & set(shown_in(page)["run"])


@pytest.mark.parametrize(
    ("kind", "study", "words"),
    [
        ("paper", "benign-vit", "Contradicts nowhere."),
        ("sharp", "benign-vit", "Not as sharp as asked; no sentence of the paper is contradicted."),
        ("ours", "benign-vit", "The answer to a question of our own is no."),
    ],
)
def test_a_claim_that_fails_says_what_that_means_before_its_sentence(
    kind: Kind, study: str, words: str
) -> None:
    failing = judged("a", "fails", study=study)
    page = html.page(contents([replace(failing, claim=replace(failing.claim, kind=kind))], [], []))
    assert f'<em class="meaning fails">{words}</em> It is so.' in page
    assert '<em class="meaning' not in html.page(
        contents([judged("a", "holds", study=study)], [], [])
    )


@pytest.mark.slow
def test_a_figure_that_can_not_be_drawn_is_named_and_costs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study's figure may have a defect, or a preset's be one of another study."""

    def fail_at_boundaries(request: Request) -> Picture:
        if request.figure == "boundary":
            raise ValueError("not enough values to unpack")
        return draw_figure(request)

    monkeypatch.setattr(pictures, "draw_figure", fail_at_boundaries)
    names = ("b", "kernel-fig4-quick")
    for name in names:
        sweep_toy(tmp_path / name)
    page = html.page(contents([], load_runs([tmp_path / name for name in names], tmp_path), []))
    assert shown_in(page)["b"] == ["heatmap", "cutoff", "lines", "diagram"]
    assert "boundary: its drawing failed (ValueError: not enough values to unpack)." in page
    assert "Not drawn: landscape: toy has no figure &#39;landscape&#39;" in page


@pytest.mark.parametrize(
    ("verdict", "is_shown"), [("holds", True), ("fails", False), ("inconclusive", False)]
)
def test_a_finding_is_shown_while_its_claims_have_their_verdicts(
    verdict: Verdict, is_shown: bool
) -> None:
    claims = [
        judged("fig1-exponent", "holds", study="benign-vit", value=1.97),
        judged("fig1-contour", verdict, study="benign-vit", value=1013.0),
    ]
    page = html.page(contents(claims, [], []))
    assert ("Figure 1&#39;s boundary" in page) is is_shown
    linked = (
        '<a href="#claim-benign-vit-fig1-contour" title="fig1-contour"><span class="number">1013'
    )
    assert (linked in page) is is_shown


def test_findings_name_claims_and_every_number_has_its_verdict() -> None:
    papers = {study.paper for study in installed_studies() if study.paper}
    for paper in (paper for paper in papers if paper.authors != "Nobody"):
        known = {
            claim.name
            for study in installed_studies()
            if study.paper == paper
            for claim in claims_of(study)
        }
        assert 2 <= len(paper.findings) <= 3
        for finding in paper.findings:
            named = set(re.findall(r"\{([\w.-]+)\}", finding.text))
            assert named <= finding.verdicts.keys() <= known
