"""Contents of a report: runs in the order of the paper's figures, under names of their own."""

from __future__ import annotations

from pathlib import Path

from overfit_cli.report.contents import ReportedRun, contents, reproduced_figures
from overfit_cli.report.judge import judge_runs
from overfit_cli.report.runs import load_runs
from tests.toy_runs import sweep_toy


def runs_of(folder: Path, *names: str) -> list[ReportedRun]:
    """What a report shows of toy runs of these names, the first of which decides."""
    for name in names:
        sweep_toy(folder / name, n="1")
    runs = load_runs([folder / name for name in names], folder)
    papers = contents(judge_runs(runs[:1], on_every_run=False), runs, [])
    return [run for paper in papers for study in paper.studies for run in study.runs]


def test_what_reproduces_a_figure_comes_first_and_then_what_decides(tmp_path: Path) -> None:
    names = ["z", "c", "a", "softmax-table1-quick", "dynamics-quick", "fig1-quick"]
    found = runs_of(tmp_path, *names)
    assert [run.name for run in found] == [
        "fig1-quick",  # figure 1
        "dynamics-quick",  # figures 3 and 4
        "softmax-table1-quick",
        "z",
        "a",
        "c",
    ]
    assert [run.decides for run in found] == [False, False, False, True, False, False]


def test_a_run_of_several_figures_stands_where_the_first_does() -> None:
    found = reproduced_figures()
    assert (found["dynamics-quick"], found["heads-planted-paper"]) == ("fig3", "fig4")
    assert "dimension-quick" not in found


def test_runs_whose_last_names_are_alike_are_told_apart(tmp_path: Path) -> None:
    found = runs_of(tmp_path, "x/run", "y/run")
    assert [run.name for run in found] == ["run", "run (2)"]
