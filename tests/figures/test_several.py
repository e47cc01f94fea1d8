"""Panels of a parameter, and several run directories: side by side, overlaid, subtracted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from overfit_cli import UserError
from overfit_cli.core.figure import MOST_PANELS, Figure, FigureOptions
from overfit_cli.core.parameters import StudyParameters, parameter
from overfit_cli.core.study import FigureData
from overfit_cli.figures.inputs import resolve_options
from overfit_cli.figures.panels import Panel, panels, side_by_side
from tests.fake_study import (
    NS,
    OPTIONS,
    SNRS,
    FakeStudy,
    data_of,
    draw_curves,
    draw_heatmap,
    draw_lines,
    fake_cells,
    fake_trajectories,
    heights,
    titles,
    words,
)

LINES = FigureOptions(x="snr", value="test_loss")


# Panels


def test_panels_hold_the_cells_and_the_plan_of_their_value() -> None:
    cells = fake_cells([5, 10], [1.0])
    planned = fake_cells([5, 10, 20], [1.0])[["seed", "n", "snr", "width", "kernel"]]
    data = data_of(cells, planned)
    assert panels(data, None) == [Panel("", data)]
    parts = panels(data, "n")
    assert [part.title for part in parts] == ["$N$ = 5", "$N$ = 10", "$N$ = 20"]
    for part, n in zip(parts, (5, 10, 20), strict=True):
        assert set(part.data.planned["n"]) == {n}
        assert set(part.data.cells["n"]) <= {n}
    assert [len(part.data.cells) for part in parts] == [3, 3, 0]


def test_too_many_panels_are_refused() -> None:
    snrs = np.arange(1.0, MOST_PANELS + 2).tolist()
    with pytest.raises(UserError, match="by='snr': it has 13 values here; at most 12"):
        panels(data_of(fake_cells([5], snrs, seeds=1)), "snr")
    assert len(panels(data_of(fake_cells([5], snrs[:-1], seeds=1)), "snr")) == MOST_PANELS


@pytest.mark.parametrize(
    ("own", "asked", "taken"),
    [
        ("kernel,n,snr", None, "n"),
        ("snr,n", None, "n"),  # snr is the axis
        ("kernel,width", None, None),
        ("kernel", None, None),
        (None, None, None),
        ("n", "kernel", "kernel"),
        (None, "snr", "snr"),
    ],
)
def test_of_several_parameters_the_first_that_varies_is_panels(
    own: str | None, asked: str | None, taken: str | None
) -> None:
    data = data_of(fake_cells([5, 10], [1.0, 2.0]))
    figure = Figure("a", "", "cells", draw_lines, options=FigureOptions(x="snr", by=own))
    assert resolve_options(figure, FigureOptions(by=asked), data).by == taken


# Side by side


def two(*cells: pd.DataFrame) -> FigureData:
    """Two run directories, `before` and `after`."""
    parts = [data_of(cell, None, fake_trajectories(cell)) for cell in cells]
    return side_by_side(["before", "after"], parts)


@pytest.mark.slow
def test_heatmaps_stand_side_by_side_in_the_same_colours() -> None:
    """What tells the runs apart is not told twice: their width needs no panels."""
    other = fake_cells(NS, SNRS, width=128)
    other["test_loss"] *= 0.5
    figure = draw_heatmap(two(fake_cells(NS, SNRS), other), OPTIONS)
    assert titles(figure) == ["(a) before", "(b) after"]
    left, right = (axes.collections[0] for axes in figure.axes[:2])
    assert np.asarray(right.get_array()) == pytest.approx(0.5 * np.asarray(left.get_array()))
    assert left.get_clim() == right.get_clim()
    assert words(figure).count("median of 3 seeds") == 1


@pytest.mark.slow
def test_panels_are_of_each_run_and_each_value() -> None:
    cells = pd.concat([fake_cells([5, 10], SNRS, kernel=k) for k in ("gaussian", "softmax")])
    assert titles(draw_heatmap(two(cells, cells), replace(OPTIONS, by="kernel"))) == [
        "(a) before, kernel: softmax",
        "(b) before, kernel: gaussian",
        "(c) after, kernel: softmax",
        "(d) after, kernel: gaussian",
    ]
    widths = pd.concat([fake_cells([5, 10], [1.0, 2.0], width=2**p) for p in range(7)])
    with pytest.raises(UserError, match=r"by='width': 2 run directories make 14 panels of it"):
        draw_heatmap(two(widths, widths), replace(OPTIONS, by="width"))


def test_the_same_cell_in_two_directories_is_drawn_for_each() -> None:
    cells = fake_cells([5], [1.0, 2.0, 4.0])
    data = two(cells, cells)
    assert data.cells["key"].is_unique
    assert len(data.trajectories) == 2 * len(fake_trajectories(cells))
    first, second = draw_lines(data, LINES).axes[0].lines
    np.testing.assert_array_equal(heights(first), heights(second))


def test_curves_are_overlaid_with_the_names_of_their_runs() -> None:
    data = two(fake_cells([5], [1.0], seeds=3), fake_cells([20], [1.0], seeds=3))
    figure = draw_curves(data, FigureOptions(value="train_loss"))
    [axes] = figure.axes
    assert len(axes.lines) == 2
    assert heights(axes.lines[0])[-1] > heights(axes.lines[1])[-1], "n = 20 learns faster"
    text = words(figure)
    for line in ("before", "after"):
        assert f"\n{line}\n" in text
    assert "median of 3 seeds" in text
    assert "N = " not in text, "the run says it already"


class RunParameters(StudyParameters):
    run: int = parameter(1, "attempt", at_least=1)


class RunStudy(FakeStudy):
    name = "runs"
    parameters = RunParameters  # type: ignore[assignment]


def of_runs() -> FigureData:
    """A run of a study whose only parameter is called `run`."""
    cells = fake_cells([5], [1.0]).drop(columns=["n", "snr", "width", "kernel"])
    cells = pd.concat([cells.assign(run=run) for run in (1, 2, 3)], ignore_index=True)
    return FigureData(RunStudy(), cells, pd.DataFrame(), pd.DataFrame())


def test_a_parameter_may_be_called_run() -> None:
    data = side_by_side(["before", "after"], [of_runs(), of_runs()])
    figure = draw_lines(data, replace(LINES, x="run"))
    assert [np.asarray(line.get_xdata()).tolist() for line in figure.axes[0].lines] == [
        [1, 2, 3],
        [1, 2, 3],
    ]
    assert figure.axes[0].get_xlabel() == "attempt"


def test_runs_that_vary_what_the_other_does_not_know_are_refused() -> None:
    for ns, sentence in (
        ([5, 10], "from='after': runs has no parameter 'n', which varies"),
        ([5], "from='after': fake has no parameter 'run'"),
    ):
        with pytest.raises(UserError, match=sentence):
            side_by_side(["before", "after"], [data_of(fake_cells(ns, [1.0])), of_runs()])


def test_a_contour_follows_the_points_of_its_own_run() -> None:
    """Beside a run with other values of x the contour is that of the run alone."""
    cells = fake_cells([5, 10, 20, 40], [2.0, 4.0, 8.0, 16.0], seeds=3)
    others = fake_cells([5, 10, 20, 40], [3.0, 5.0, 6.5, 9.0, 12.0], seeds=3)
    options = FigureOptions(x="snr", y="n", value="test_loss", threshold=0.2)
    alone = draw_heatmap(data_of(cells), options)
    beside = draw_heatmap(side_by_side(["a", "b"], [data_of(cells), data_of(others)], []), options)
    paths = [
        [path.vertices for path in figure.axes[0].collections[1].get_paths()]
        for figure in (alone, beside)
    ]
    np.testing.assert_allclose(np.concatenate(paths[0]), np.concatenate(paths[1]))
