"""Several run directories in one figure: side by side, overlaid, and one less the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import Normalize

from overfit_cli import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.parameters import StudyParameters, parameter
from overfit_cli.core.study import FigureData
from overfit_cli.figures.panels import difference, side_by_side
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


def two(*cells: pd.DataFrame) -> FigureData:
    """Two run directories, `before` and `after`."""
    parts = [data_of(cell, None, fake_trajectories(cell)) for cell in cells]
    return side_by_side(["before", "after"], parts)


# Side by side


@pytest.mark.slow
def test_heatmaps_stand_side_by_side_in_the_same_colours() -> None:
    other = fake_cells(NS, SNRS)
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
    assert "\nbefore\n" in text
    assert "\nafter\n" in text
    assert "median of 3 seeds" in text


@pytest.mark.slow
def test_what_tells_runs_apart_is_not_told_twice() -> None:
    data = two(fake_cells(NS, SNRS, width=64), fake_cells(NS, SNRS, width=128))
    assert titles(draw_heatmap(data, OPTIONS)) == ["(a) before", "(b) after"], (
        "width needs no panels"
    )


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


def noisy(seeds: int, shift: int = 0, noise: float = 0.5) -> pd.DataFrame:
    cells = fake_cells([5, 10, 20], [4.0, 8.0, 12.0], seeds=seeds, noise=noise)
    return cells.assign(seed=cells["seed"] + shift)


def shown(data: FigureData) -> np.ndarray:
    figure = draw_heatmap(data, OPTIONS)
    return np.asarray(figure.axes[0].collections[0].get_array())


def test_a_difference_is_paired_by_seed() -> None:
    first, second = noisy(5), noisy(4, shift=2, noise=0.8)  # seeds 2 to 4 are in both
    data = difference(data_of(first), data_of(second), "other", "test_loss")
    assert sorted(set(data.cells["seed"])) == [2, 3, 4]
    np.testing.assert_allclose(shown(data), plain_difference(first, second).unstack())
    unpaired = first.groupby(["n", "snr"])["test_loss"].mean().unstack()
    unpaired -= second.groupby(["n", "snr"])["test_loss"].mean().unstack()
    assert not np.allclose(shown(data), unpaired, rtol=1e-3), "which is another number"


def test_without_a_seed_in_common_means_are_subtracted() -> None:
    first, second = noisy(3), noisy(4, shift=3, noise=0.8)
    data = difference(data_of(first), data_of(second), "other", "test_loss")
    means = [part.groupby(["n", "snr"])["test_loss"].mean().unstack() for part in (first, second)]
    np.testing.assert_allclose(shown(data), means[0] - means[1])


def test_means_that_are_subtracted_are_called_so_and_no_seed_is() -> None:
    first, second = noisy(3), noisy(4, shift=3)
    data = difference(data_of(first), data_of(second), "other", "test_loss")
    for figure in (draw_heatmap(data, OPTIONS), draw_lines(at_one_n(data), LINES)):
        text = words(figure)
        assert "mean of 3 seeds less mean of 4 seeds" in text
        assert "one seed" not in text


def test_what_has_no_counterpart_is_counted() -> None:
    first, second = noisy(2), noisy(2)
    data = difference(data_of(first), data_of(second[second["n"] > 5]), "other", "test_loss")
    count = int((second["n"] > 5).sum())
    sentence = f"{count} of {len(first)} cells here and of {count} there have a counterpart"
    assert data.unpaired == sentence
    assert difference(data_of(first), data_of(first), "other", "test_loss").unpaired == ""


def at_one_n(data: FigureData) -> FigureData:
    return replace(data, cells=data.cells[data.cells["n"] == data.cells["n"].max()])


def test_values_that_agree_to_twelve_digits_are_one_place() -> None:
    first = noisy(2)
    second = first.assign(snr=first["snr"] * (1 + 1e-14), test_loss=first["test_loss"] - 0.25)
    data = difference(data_of(first), data_of(second), "other", "test_loss")
    assert len(data.cells) == len(first)
    assert data.cells["test_loss"].to_numpy() == pytest.approx(0.25)


def test_what_one_of_the_two_lacks_is_left_out_and_a_failed_cell_fails_its_pair() -> None:
    first, second = noisy(2), fail(noisy(2), noisy(2)["snr"] == 12)
    data = difference(data_of(first[first["n"] > 5]), data_of(second), "other", "test_loss")
    assert set(data.cells["n"]) == {10, 20}
    assert (data.cells["status"].eq("failed") == (data.cells["snr"] == 12)).all()
    assert data.cells.query("snr < 12")["test_loss"].notna().all()


@pytest.mark.slow
def test_a_difference_has_diverging_colours_centred_at_zero_and_says_what_it_is() -> None:
    first, second = noisy(3), noisy(3, noise=0.9)
    data = difference(data_of(first), data_of(second), "other", "test_loss")
    figure = draw_heatmap(data, OPTIONS)
    mesh = figure.axes[0].collections[0]
    low, high = mesh.get_clim()
    values = np.asarray(mesh.get_array())
    assert low == -high
    assert high == pytest.approx(np.abs(values).max())
    assert type(mesh.norm) is Normalize
    assert mesh.get_cmap().name == "RdBu_r"
    text = words(figure)
    assert "\ntest loss, less that of other\n" in text
    assert "Test loss, less that of other, over" in text


def test_a_difference_of_nothing_is_drawn() -> None:
    data = difference(data_of(noisy(2)), data_of(noisy(2)), "other", "test_loss")
    assert (shown(data) == 0).all()


@pytest.mark.slow
def test_lines_are_drawn_of_a_difference() -> None:
    first, second = noisy(3), noisy(3, noise=0.9)
    data = difference(data_of(first), data_of(second), "other", "test_loss")
    figure = draw_lines(data, replace(LINES, mean="arithmetic"))
    expected = plain_difference(first, second)
    for line, n in zip(figure.axes[0].lines, (5, 10, 20), strict=True):
        assert heights(line) == pytest.approx(expected[n].to_numpy())
    assert "less that of other" in words(figure)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda cells: cells.assign(n=cells["n"] + 1000),
            "minus='other': no cell of it has the seed and the values of n, snr of a cell here.",
        ),
        (
            lambda cells: cells.drop(columns="test_loss"),
            "minus='other': its cells and the others don't share test_loss.",
        ),
        (
            lambda cells: cells.drop(columns="snr"),
            "minus='other': its cells and the others don't share snr.",
        ),
    ],
)
def test_runs_that_share_nothing_have_no_difference(
    change: Callable[[pd.DataFrame], pd.DataFrame], sentence: str
) -> None:
    with pytest.raises(UserError) as refused:
        difference(data_of(noisy(2)), data_of(change(noisy(2))), "other", "test_loss")
    assert str(refused.value) == sentence


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
