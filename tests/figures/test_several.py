"""Panels of a parameter, and several run directories: side by side, overlaid, subtracted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import Normalize

from overfit_cli import UserError
from overfit_cli.core.figure import MOST_PANELS, Figure, FigureOptions
from overfit_cli.core.parameters import StudyParameters, parameter
from overfit_cli.core.study import FigureData
from overfit_cli.figures.inputs import resolve_options
from overfit_cli.figures.panels import Panel, difference, panels, side_by_side
from tests.fake_study import (
    NS,
    OPTIONS,
    SNRS,
    FakeStudy,
    data_of,
    draw_curves,
    draw_heatmap,
    draw_lines,
    fail,
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
    frames = [
        pd.concat([fake_cells([5, 10], SNRS, kernel=k) for k in ("gaussian", "softmax")])
        for _ in range(2)
    ]
    figure = draw_heatmap(two(*frames), replace(OPTIONS, by="kernel"))
    assert titles(figure) == [
        "(a) before, kernel: softmax",
        "(b) before, kernel: gaussian",
        "(c) after, kernel: softmax",
        "(d) after, kernel: gaussian",
    ]
    words(figure)
    widths = pd.concat([fake_cells([5, 10], [1.0, 2.0], width=2**p) for p in range(7)])
    with pytest.raises(UserError, match=r"by='width': 2 run directories make 14 panels of it"):
        draw_heatmap(two(widths, widths), replace(OPTIONS, by="width"))


def test_the_same_cell_in_two_directories_is_drawn_for_each() -> None:
    cells = fake_cells([5], [1.0, 2.0, 4.0])
    data = two(cells, cells)
    assert data.cells["key"].is_unique
    assert len(data.trajectories) == 2 * len(fake_trajectories(cells))
    figure = draw_lines(data, LINES)
    first, second = figure.axes[0].lines
    np.testing.assert_array_equal(heights(first), heights(second))
    text = words(figure)
    assert "\nbefore\n" in text
    assert "\nafter\n" in text


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


def test_a_parameter_may_be_called_run() -> None:
    cells = fake_cells([5], [1.0]).drop(columns=["n", "snr", "width", "kernel"])
    cells = pd.concat([cells.assign(run=run) for run in (1, 2, 3)], ignore_index=True)
    part = FigureData(RunStudy(), cells, pd.DataFrame(), pd.DataFrame())
    figure = draw_lines(side_by_side(["before", "after"], [part, part]), replace(LINES, x="run"))
    assert len(figure.axes[0].lines) == 2
    for line in figure.axes[0].lines:
        assert np.asarray(line.get_xdata()).tolist() == [1, 2, 3]
    assert figure.axes[0].get_xlabel() == "attempt"


class OtherParameters(StudyParameters):
    depth: int = parameter(2, "depth", at_least=1)


class OtherStudy(FakeStudy):
    name = "other"
    parameters = OtherParameters  # type: ignore[assignment]


def test_runs_that_vary_what_the_other_does_not_know_are_refused() -> None:
    deep = fake_cells([5], [1.0]).drop(columns=["n", "snr", "width", "kernel"])
    deep = pd.concat([deep.assign(depth=depth) for depth in (1, 2)], ignore_index=True)
    other = FigureData(OtherStudy(), deep, pd.DataFrame(), pd.DataFrame())
    with pytest.raises(UserError, match=r"from='after': other has no parameter 'n', which varies"):
        side_by_side(["before", "after"], [data_of(fake_cells([5, 10], [1.0])), other])
    with pytest.raises(UserError, match=r"from='after': fake has no parameter 'depth'"):
        side_by_side(["before", "after"], [data_of(fake_cells([5], [1.0])), other])


# One less the other


def plain_difference(first: pd.DataFrame, second: pd.DataFrame) -> pd.Series:
    """The difference at each place, with pandas alone, over the seeds that both have."""
    pair = first.merge(second, on=["n", "snr", "seed"], suffixes=("", "_other"))
    return (pair["test_loss"] - pair["test_loss_other"]).groupby([pair["n"], pair["snr"]]).mean()


def less(first: pd.DataFrame, second: pd.DataFrame) -> FigureData:
    return difference(data_of(first), data_of(second), "other", "test_loss")


def noisy(seeds: int, shift: int = 0, noise: float = 0.5) -> pd.DataFrame:
    cells = fake_cells([5, 10, 20], [4.0, 8.0, 12.0], seeds=seeds, noise=noise)
    return cells.assign(seed=cells["seed"] + shift)


def shown(data: FigureData) -> np.ndarray:
    figure = draw_heatmap(data, OPTIONS)
    return np.asarray(figure.axes[0].collections[0].get_array())


def test_a_difference_is_paired_by_seed() -> None:
    first, second = noisy(5), noisy(4, shift=2, noise=0.8)  # seeds 2 to 4 are in both
    data = less(first, second)
    assert sorted(set(data.cells["seed"])) == [2, 3, 4]
    expected = plain_difference(first, second)
    np.testing.assert_allclose(shown(data), expected.unstack())
    lines = draw_lines(data, replace(LINES, mean="arithmetic")).axes[0].lines
    for line, n in zip(lines, (5, 10, 20), strict=True):
        assert heights(line) == pytest.approx(expected[n].to_numpy())


def test_without_a_seed_in_common_means_are_subtracted_and_no_seed_is_named() -> None:
    first, second = noisy(3), noisy(4, shift=3, noise=0.8)
    data = less(first, second)
    means = [part.groupby(["n", "snr"])["test_loss"].mean().unstack() for part in (first, second)]
    np.testing.assert_allclose(shown(data), means[0] - means[1])
    at_one_n = replace(data, cells=data.cells[data.cells["n"] == 20])
    for figure in (draw_heatmap(data, OPTIONS), draw_lines(at_one_n, LINES)):
        text = words(figure)
        assert "mean of 3 seeds less mean of 4 seeds" in text
        assert "one seed" not in text


def test_what_has_no_counterpart_is_left_out_and_counted() -> None:
    """Values that agree to twelve digits are one place; a failed cell fails its pair."""
    first = noisy(2)
    second = first.assign(snr=first["snr"] * (1 + 1e-14), test_loss=first["test_loss"] - 0.25)
    whole = less(first, second)
    assert whole.unpaired == ""
    assert len(whole.cells) == len(first)
    assert whole.cells["test_loss"].to_numpy() == pytest.approx(0.25)
    data = less(first, fail(second[second["n"] > 5], second["snr"] > 11))
    count = int((second["n"] > 5).sum())
    sentence = f"{count} of {len(first)} cells here and of {count} there have a counterpart"
    assert data.unpaired == sentence
    assert set(data.cells["n"]) == {10, 20}
    assert (data.cells["status"].eq("failed") == (data.cells["snr"] == 12)).all()
    assert data.cells.query("snr < 12")["test_loss"].notna().all()


@pytest.mark.slow
def test_a_difference_has_diverging_colours_centred_at_zero_and_says_what_it_is() -> None:
    data = less(noisy(3), noisy(3, noise=0.9))
    figure = draw_heatmap(data, OPTIONS)
    mesh = figure.axes[0].collections[0]
    low, high = mesh.get_clim()
    assert low == -high
    assert high == pytest.approx(np.abs(np.asarray(mesh.get_array())).max())
    assert type(mesh.norm) is Normalize
    assert mesh.get_cmap().name == "RdBu_r"
    text = words(figure)
    assert "\ntest loss, less that of other\n" in text
    assert "Test loss, less that of other, over" in text
    assert "less that of other" in words(draw_lines(data, LINES))
    assert (shown(less(noisy(2), noisy(2))) == 0).all()


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


@pytest.mark.parametrize("column", ["test_loss", "snr"])
def test_runs_that_share_no_column_or_axis_have_no_difference(column: str) -> None:
    with pytest.raises(UserError) as refused:
        less(noisy(2), noisy(2).drop(columns=column))
    assert str(refused.value) == f"minus='other': its cells and the others don't share {column}."
