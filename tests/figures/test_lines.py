"""Lines, panels, surfaces and curves: what is drawn of made-up cells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import matplotlib.axes
import numpy as np
import pandas as pd
import pytest
from matplotlib.artist import Artist
from matplotlib.collections import Collection
from matplotlib.contour import QuadContourSet

from overfit_cli.analysis.best import best_of_sweep
from overfit_cli.errors import UserError
from overfit_cli.figure import MOST_PANELS, Figure, FigureData, FigureOptions
from overfit_cli.figures.best_curves import (
    draw_best_curves,
    draw_loss_and_accuracy,
)
from overfit_cli.figures.curves import draw_columns, draw_curves
from overfit_cli.figures.lines import draw_lines
from overfit_cli.figures.options import resolved_options
from overfit_cli.figures.panels import Panel, panels
from overfit_cli.figures.picture import styled
from overfit_cli.figures.surface import Surface, draw_surfaces
from overfit_cli.parameters import StudyParameters, parameter
from overfit_cli.study import Column
from tests.fake_study import FakeStudy, data_of, fail, fake_cells, fake_trajectories, words

LINES = FigureOptions(x="snr", value="test_loss")


def drawn(axes: matplotlib.axes.Axes) -> list[list[float]]:
    """The heights of each line that has more than a point."""
    lines = [np.asarray(line.get_ydata(), dtype=np.float64) for line in axes.lines]
    return [line.tolist() for line in lines if len(line) > 1]


def titles(figure_axes: list[matplotlib.axes.Axes]) -> list[str]:
    """What stands over the axes, however it is broken into lines."""
    return [" ".join(axes.get_title(loc="left").split()) for axes in figure_axes]


def corners(artist: Artist) -> np.ndarray:
    """The vertices of the first path of a collection, (vertices, 2)."""
    assert isinstance(artist, Collection)
    return np.asarray(artist.get_paths()[0].vertices, dtype=np.float64)


# Lines


def test_a_line_is_the_mean_over_seeds_with_a_band_of_one_deviation(tmp_path: Path) -> None:
    cells = fake_cells([5, 10], [1.0, 2.0, 4.0], noise=1.0)
    figure = draw_lines(data_of(cells), replace(LINES, threshold=0.3))
    [axes] = figure.axes
    groups = cells.groupby(["n", "snr"])["test_loss"]
    mean, deviation = groups.mean(), groups.std()
    assert drawn(axes)[:2] == [pytest.approx(mean[n].to_list()) for n in (5, 10)]
    for n, band in zip((5, 10), axes.collections, strict=True):
        heights = corners(band)[:, 1]
        assert heights.min() == pytest.approx((mean[n] - deviation[n]).min())
        assert heights.max() == pytest.approx((mean[n] + deviation[n]).max())
    text = words(figure, tmp_path)
    for word in ("n = 5<", "n = 10<", "mean of 3 seeds, band of one deviation", "threshold 0.3"):
        assert word in text


def test_failed_cells_are_left_out_and_crossed_where_every_seed_failed(tmp_path: Path) -> None:
    cells = fake_cells([5], [1.0, 2.0, 4.0], noise=1.0)
    kept = cells[cells["seed"] > 0].groupby("snr")["test_loss"].mean()
    one_gone = fail(cells, cells["seed"] == 0)
    figure = draw_lines(data_of(one_gone), LINES)
    assert drawn(figure.axes[0]) == [pytest.approx(kept.to_list())]
    text = words(figure, tmp_path)
    assert "3 failed cells left out" in text
    assert "every seed failed" not in text
    figure = draw_lines(data_of(fail(cells, cells["snr"] == 4.0)), LINES)
    line, cross = figure.axes[0].lines
    assert np.isnan(np.asarray(line.get_ydata(), dtype=np.float64)).tolist() == [False, False, True]
    assert (cross.get_marker(), np.asarray(cross.get_xdata()).tolist()) == ("x", [4.0])
    assert "every seed failed" in words(figure, tmp_path)


def test_a_column_that_spans_a_million_is_averaged_geometrically(tmp_path: Path) -> None:
    cells = fake_cells([5], [1.0, 2.0], seeds=2)
    cells["test_loss"] = [1e-8, 1e-2, 1e-4, 1.0]
    figure = draw_lines(data_of(cells), LINES)
    assert drawn(figure.axes[0]) == [pytest.approx([1e-6, 1e-1])]
    assert figure.axes[0].get_yscale() == "log"
    assert "geometric mean of 2 seeds" in words(figure, tmp_path)
    cells["test_loss"] = [0.0, 1e-2, 1e-8, 1.0]  # Nothing counts as the least there is.
    assert drawn(draw_lines(data_of(cells), LINES).axes[0]) == [pytest.approx([1e-8, 1e-1])]
    cells["test_loss"] = [-1e-8, 1e-2, 1e-4, 1.0]
    figure = draw_lines(data_of(cells), LINES)
    assert figure.axes[0].get_yscale() == "linear"
    assert drawn(figure.axes[0]) == [pytest.approx([5e-5, 0.505], rel=1e-3)]


def test_where_x_is_no_number_points_stand_beside_each_other_with_bars(tmp_path: Path) -> None:
    cells = pd.concat(
        [
            fake_cells([5, 10], [1.0], seeds=3, noise=1.0, kernel="gaussian"),
            fake_cells([5], [1.0], seeds=3, kernel="softmax"),
        ]
    )
    figure = draw_lines(data_of(cells), replace(LINES, x="kernel"))
    [axes] = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["softmax", "gaussian"]
    five, ten = [np.asarray(bars.lines[0].get_xdata()) for bars in axes.containers]  # type: ignore[attr-defined]
    assert five.round().tolist() == [0, 1]
    assert ten.round().tolist() == [1]
    assert 0 < ten[0] - five[1] < 0.2
    mean = cells.groupby(["n", "kernel"])["test_loss"].mean()
    drawn_five = axes.containers[0].lines[0].get_ydata()  # type: ignore[attr-defined]
    assert drawn_five == pytest.approx([mean[5, "softmax"], mean[5, "gaussian"]])
    gone = fail(cells, cells["kernel"] == "softmax")
    assert "every seed failed" in words(
        draw_lines(data_of(gone), replace(LINES, x="kernel")), tmp_path
    )


def test_a_parameter_can_be_panels_and_keeps_the_lines_colours(tmp_path: Path) -> None:
    cells = pd.concat(
        [
            fake_cells([5, 10], [1.0, 2.0], seeds=2, kernel="gaussian"),
            fake_cells([10], [1.0, 2.0], seeds=2, kernel="softmax"),
        ]
    )
    figure = draw_lines(data_of(cells), replace(LINES, by="kernel"))
    left, right = figure.axes
    assert titles([left, right]) == ["kernel = softmax", "kernel = gaussian"]
    assert (len(left.lines), len(right.lines)) == (1, 2)
    assert left.lines[0].get_color() == right.lines[1].get_color() != right.lines[0].get_color()
    assert words(figure, tmp_path).count("n = 10<") == 1
    assert len(draw_lines(data_of(cells), LINES).axes[0].lines) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (FigureOptions(value="test_loss"), "--x: this figure needs the name of a parameter"),
        (FigureOptions(x="width"), "--x width: width has one value"),
        (FigureOptions(x="snrr"), "--x snrr: .* did you mean 'snr'"),
        (
            FigureOptions(x="snr"),
            "--x snr: .* have 10 settings here, .* up to 8 lines; --by n makes",
        ),
        (FigureOptions(x="n", by="kernal"), "--by kernal: .* did you mean 'kernel'"),
        (FigureOptions(x="n", by="kernel", value="loss"), "--value loss: fake measures no 'loss'"),
        (FigureOptions(x="n", by="kernel", threshold=np.inf), "--threshold inf: .* finite"),
    ],
)
def test_lines_that_cannot_be_drawn_are_refused(options: FigureOptions, message: str) -> None:
    cells = [fake_cells([2, 4, 6, 8, 10], [1.0, 2.0], kernel=k) for k in ("softmax", "gaussian")]
    with pytest.raises(UserError, match=message):
        draw_lines(data_of(pd.concat(cells)), options)


def test_lines_of_many_settings_propose_no_panels_that_would_still_be_too_many() -> None:
    ns = np.arange(2.0, 15.0).tolist()
    cells = [fake_cells(ns, [1.0, 2.0], seeds=1, kernel=k) for k in ("softmax", "gaussian")]
    with pytest.raises(
        UserError, match=r"26 settings here, .* 8 lines; a heatmap over two of them"
    ):
        draw_lines(data_of(pd.concat(cells)), FigureOptions(x="snr", value="test_loss"))


# Panels


def test_panels_hold_the_cells_and_the_plan_of_their_value() -> None:
    cells = fake_cells([5, 10], [1.0])
    planned = fake_cells([5, 10, 20], [1.0])[["seed", "n", "snr", "width", "kernel"]]
    data = data_of(cells, planned)
    assert panels(data, None) == [Panel("", data)]
    parts = panels(data, "n")
    assert [part.title for part in parts] == ["n = 5", "n = 10", "n = 20"]
    for part, n in zip(parts, (5, 10, 20), strict=True):
        assert set(part.data.planned["n"]) == {n}
        assert set(part.data.cells["n"]) <= {n}
    assert [len(part.data.cells) for part in parts] == [3, 3, 0]


def test_too_many_panels_or_an_unknown_parameter_are_refused() -> None:
    snrs = np.arange(1.0, MOST_PANELS + 2).tolist()
    data = data_of(fake_cells([5], snrs, seeds=1))
    with pytest.raises(UserError, match="--by snr: it has 13 values here; at most 12"):
        panels(data, "snr")
    assert len(panels(data_of(fake_cells([5], snrs[:-1], seeds=1)), "snr")) == MOST_PANELS
    with pytest.raises(UserError, match="--by snrr: fake has no parameter 'snrr'; did you mean"):
        panels(data, "snrr")


# The study's choice


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
    assert resolved_options(figure, FigureOptions(by=asked), data).by == taken


# Curves in panels and columns


def test_curves_are_drawn_in_panels_with_one_colour_a_setting(tmp_path: Path) -> None:
    cells = pd.concat([fake_cells([5, 10], [snr], seeds=5) for snr in (1.0, 2.0)])
    data = data_of(cells, None, fake_trajectories(cells))
    figure = draw_curves(data, FigureOptions(value="train_loss", by="snr", threshold=0.3))
    left, right = figure.axes
    assert titles([left, right]) == ["snr = 1", "snr = 2"]
    for axes in (left, right):
        assert len(axes.lines) == 2 + 1
        assert axes.get_xlabel() == "gradient steps"
    assert left.lines[0].get_color() == right.lines[0].get_color()
    text = words(figure, tmp_path)
    assert text.count("n = 5<") == 1
    assert text.count("threshold 0.3<") == 1
    with pytest.raises(UserError, match=r"--by kernal: .* did you mean 'kernel'"):
        draw_curves(data, FigureOptions(by="kernal"))


def test_a_setting_has_its_name_and_colour_in_a_panel_that_has_no_other(tmp_path: Path) -> None:
    cells = pd.concat([fake_cells([5, 10], [1.0], seeds=9), fake_cells([10], [2.0], seeds=9)])
    data = data_of(cells, None, fake_trajectories(cells))
    figure = draw_curves(data, FigureOptions(value="train_loss", by="snr"))
    left, right = figure.axes
    assert left.lines[1].get_color() == right.lines[0].get_color() != left.lines[0].get_color()
    assert words(figure, tmp_path).count("n = 10<") == 1


def test_several_columns_are_told_apart_by_dashes(tmp_path: Path) -> None:
    cells = fake_cells([5, 10], [1.0], seeds=1)
    data = data_of(cells, None, fake_trajectories(cells))
    figure = draw_curves(data, FigureOptions(value="train_loss, attention"))
    lines = figure.axes[0].lines
    assert [line.get_linestyle() for line in lines] == ["-", "--", "-", "--"]
    assert lines[0].get_color() == lines[1].get_color() != lines[2].get_color()
    assert figure.axes[0].get_ylabel() == "", "one of them is no loss"
    text = words(figure, tmp_path)
    for word in ("training loss<", "attention on the signal<", "n = 5<"):
        assert word in text


def test_columns_without_a_number_or_named_twice_are_left_out() -> None:
    cells = fake_cells([5, 10], [1.0], seeds=1)
    logged = fake_trajectories(cells).assign(attention=np.nan)
    data = data_of(cells, None, logged)
    figure = draw_curves(data, FigureOptions(value="train_loss,attention"))
    assert len(figure.axes[0].lines) == 2
    assert figure.axes[0].get_ylabel() == "training loss"
    twice = draw_curves(data, FigureOptions(value="train_loss,train_loss"))
    assert len(twice.axes[0].lines) == 2
    with pytest.raises(UserError, match="names of logged columns, commas between"):
        draw_curves(data, FigureOptions(value="train_loss,,attention"))
    with pytest.raises(UserError, match=r"--value atention: .* did you mean 'attention'"):
        draw_curves(data, FigureOptions(value="train_loss,atention"))


def test_curves_that_span_a_million_are_averaged_geometrically(tmp_path: Path) -> None:
    cells = fake_cells([5], [1.0], seeds=9)
    step = np.arange(3)
    pieces = [
        pd.DataFrame({"key": key, "step": step, "train_loss": 10.0 ** (-4 * step - seed % 3)})
        for key, seed in zip(cells["key"], cells["seed"], strict=True)
    ]
    data = data_of(cells, None, pd.concat(pieces, ignore_index=True))
    figure = draw_curves(data, FigureOptions(value="train_loss"))
    assert drawn(figure.axes[0]) == [pytest.approx([1e-1, 1e-5, 1e-9])]
    assert "geometric mean of 9 seeds" in words(figure, tmp_path)


def test_columns_side_by_side_have_scales_of_their_own(tmp_path: Path) -> None:
    cells = fake_cells([5, 10, 20], [1.0])
    data = data_of(cells, None, fake_trajectories(cells))
    figure = styled(draw_columns)(Panel("of all", data), ["train_loss", "attention"])
    left, right = figure.axes
    assert [axes.get_ylabel() for axes in (left, right)] == [
        "training loss",
        "attention on the signal",
    ]
    assert left.get_ylim() != right.get_ylim()
    assert [len(axes.lines) for axes in (left, right)] == [3, 3]
    assert left.lines[1].get_color() == right.lines[1].get_color()
    text = words(figure, tmp_path)
    assert "of all" in text
    assert text.count("n = 10<") == 1


# The best step size


class RatesParameters(StudyParameters):
    kernel: Literal["softmax", "gaussian"] = parameter("softmax", "kernel")
    n: int = parameter(10, "samples", at_least=1)
    learning_rate: float = parameter(0.1, "step size", above=0)


class RatesStudy(FakeStudy):
    parameters = RatesParameters  # type: ignore[assignment]
    trajectory_columns = (
        Column("test_loss", "test loss"),
        Column("test_accuracy", "test accuracy"),
    )


LOSSES = {("softmax", 0.01): 0.4, ("softmax", 0.1): 0.3, ("gaussian", 0.01): 0.1}
LOSSES |= {("gaussian", 0.1): 0.2}


def rates(ns: tuple[int, ...] = (10,)) -> FigureData:
    """Two kernels at two step sizes, three seeds; what is logged stays at the loss."""
    rows, logged = [], []
    for n in ns:
        for (kernel, rate), loss in LOSSES.items():
            for seed in range(3):
                row = {"key": f"{kernel}-{rate}-{n}-{seed}", "seed": seed, "status": "done"}
                row |= {"kernel": kernel, "learning_rate": rate, "n": n, "test_loss": loss}
                rows.append({**row, "study": "fake", "steps": 2})
                steps = {"step": [0, 1], "test_loss": loss + 0.01 * seed, "test_accuracy": 1 - loss}
                logged.append(pd.DataFrame({"key": row["key"], **steps}))
    logs = pd.concat(logged, ignore_index=True)
    return FigureData(RatesStudy(), pd.DataFrame(rows), pd.DataFrame(), logs)


def chosen(cells: pd.DataFrame) -> dict[str, float]:
    best = best_of_sweep(cells, "learning_rate", ["kernel"], "test_loss")
    assert len(best) == 6
    return dict(zip(best["kernel"], best["learning_rate"], strict=True))


def test_the_best_step_size_is_each_kernels_own() -> None:
    cells = rates().cells
    assert chosen(cells) == {"softmax": 0.1, "gaussian": 0.01}
    assert set(best_of_sweep(cells, "learning_rate", [], "test_loss")["learning_rate"]) == {0.01}


def test_a_step_size_at_which_a_seed_failed_comes_after_the_others() -> None:
    cells = rates().cells
    one = (cells["kernel"] == "gaussian") & (cells["learning_rate"] == 0.01) & (cells["seed"] == 1)
    failed = cells.assign(
        status=cells["status"].mask(one, "failed"), test_loss=cells["test_loss"].mask(one)
    )
    assert chosen(failed) == {"softmax": 0.1, "gaussian": 0.1}
    every = failed.assign(status="failed", test_loss=np.nan)
    assert set(chosen(every)) == {"softmax", "gaussian"}


def test_curves_are_each_kernels_at_its_best_and_the_title_says_so(tmp_path: Path) -> None:
    figure = draw_best_curves(rates(), FigureOptions(value="test_loss"))
    heights = sorted({line[0] for line in drawn(figure.axes[0])})
    assert heights == pytest.approx([0.11, 0.31])
    text = words(figure, tmp_path)
    assert "best step sizes: gaussian 0.01, softmax 0.1" in text
    assert "learning_rate = " not in text


def test_each_panel_names_its_own_best_step_sizes(tmp_path: Path) -> None:
    figure = draw_best_curves(rates((10, 20)), FigureOptions(value="test_loss", by="kernel"))
    assert titles(figure.axes[:2]) == [
        "kernel = softmax best step sizes: 10 0.1, 20 0.1",
        "kernel = gaussian best step sizes: 10 0.01, 20 0.01",
    ]
    figure = draw_best_curves(rates(), FigureOptions(value="test_loss", by="learning_rate"))
    assert titles(figure.axes[:2]) == ["learning_rate = 0.01", "learning_rate = 0.1"]
    alone = rates()
    data = replace(alone, cells=alone.cells.query("kernel == 'softmax'"))
    assert "best step size: 0.1<" in words(draw_best_curves(data, FigureOptions()), tmp_path)


def test_a_single_step_size_is_not_called_the_best(tmp_path: Path) -> None:
    every = rates()
    data = replace(every, cells=every.cells.query("learning_rate == 0.1"))
    assert "best" not in words(draw_best_curves(data, FigureOptions()), tmp_path)


def test_loss_and_accuracy_stand_side_by_side_unless_a_column_is_asked_for(tmp_path: Path) -> None:
    figure = draw_loss_and_accuracy(rates(), FigureOptions())
    assert [axes.get_ylabel() for axes in figure.axes] == ["test loss", "test accuracy"]
    assert "best step sizes: gaussian 0.01, softmax 0.1" in words(figure, tmp_path)
    figure = draw_loss_and_accuracy(rates(), FigureOptions(value="test_accuracy"))
    assert [axes.get_ylabel() for axes in figure.axes] == ["test accuracy"]
    figure = draw_loss_and_accuracy(rates(), FigureOptions(by="kernel"))
    assert len(figure.axes) == 2
    assert figure.axes[0].get_ylabel() == "test loss"


# Surfaces


def ramps() -> list[Surface]:
    """One rises from 0 to 1 along the first direction, the other from 0 to 4 along the second."""
    across, up = np.linspace(-1, 1, 5), np.linspace(-1, 1, 7)
    first, second = np.meshgrid((across + 1) / 2, 2 * (up + 1), indexing="ij")
    return [
        Surface("a ramp", "it rises to the right", across, up, first),
        Surface("a steeper one", "it rises upwards", across, up, second),
    ]


def test_surfaces_have_a_row_each_on_one_scale(tmp_path: Path) -> None:
    figure = draw_surfaces(ramps(), ("to the right", "upwards", "height"), "two ramps")
    solid = [axes for axes in figure.axes if axes.name == "3d"]
    flat = [axes for axes in figure.axes if axes.get_xlabel() == "to the right"]
    assert len(solid) == len(flat) == 2
    for axes in solid:
        assert axes.get_zlim() == (0, 4)  # type: ignore[attr-defined]
    contours = [axes.collections[0] for axes in flat]
    assert all(isinstance(each, QuadContourSet) for each in contours)
    assert {each.get_clim() for each in contours} == {(0, 4)}
    text = words(figure, tmp_path)
    for word in ("two ramps", "a steeper one", "it rises upwards", "upwards<", "height<"):
        assert word in text


def test_contours_rise_along_the_direction_that_the_surface_does() -> None:
    figure = draw_surfaces(ramps(), ("to the right", "upwards", "height"), "")
    right, up = (axes for axes in figure.axes if axes.get_xlabel() == "to the right")
    for axes, side in ((right, 0), (up, 1)):
        lowest = corners(axes.collections[0])
        assert lowest[:, side].max() < 0.5
        assert lowest[:, 1 - side].max() == pytest.approx(1)
