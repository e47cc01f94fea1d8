"""What a report shows: runs with their figures, as far as the page has room for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from overfit_cli.report import contents as report_contents
from overfit_cli.report.contents import ReportedRun, contents
from overfit_cli.report.html import page
from overfit_cli.report.judge import judge_runs, load_runs
from tests.toy_runs import sweep_toy


def runs_of(folder: Path, *names: str, by: int = 0) -> list[ReportedRun]:
    """What a report shows of toy runs of these names, one of which decides."""
    for name in names:
        sweep_toy(folder / name)
    runs = load_runs([folder / name for name in names], folder)
    papers = contents(judge_runs([runs[by]], every=False), runs, [])
    return [run for paper in papers for study in paper.studies for run in study.runs]


def test_the_run_that_decides_comes_first(tmp_path: Path) -> None:
    found = runs_of(tmp_path, "a", "b", by=1)
    assert [run.name for run in found] == ["b", "a"]
    assert all(run.pictures and not run.left_out for run in found)


def test_runs_whose_last_names_are_alike_are_told_apart(tmp_path: Path) -> None:
    found = runs_of(tmp_path, "x/run", "y/run")
    assert [run.name for run in found] == ["run", "run (2)"]


def test_pictures_without_room_are_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = runs_of(tmp_path, "a")[0].pictures
    monkeypatch.setattr(report_contents, "MOST_PICTURED", len(first[0].address) + 1)
    runs = load_runs([tmp_path / "a"], tmp_path)
    papers = contents([], runs, [])
    (run,) = papers[0].studies[0].runs
    assert [one.name for one in run.pictures] == [first[0].name]
    assert run.left_out
    assert "the page has no room for more" in page(papers)
