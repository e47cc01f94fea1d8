"""The sides of a threshold, of a whole grid and of a sweep that refined: its cells lie unevenly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from overfit_cli.core.study import FigureData
from overfit_cli.figures.style import MUTED
from overfit_cli.stats.crossings import crossings, medians_by_row
from tests.fake_study import (
    NS,
    OPTIONS,
    SIDES,
    SNRS,
    NamedSides,
    data_of,
    draw_cutoff,
    draw_heatmap,
    fail,
    fake_cells,
    titles,
    words,
)


def sides(figure: Figure, place: int = 0) -> np.ndarray:
    (mesh,) = (one for one in figure.axes[place].collections if isinstance(one, QuadMesh))
    return np.ma.filled(np.ma.asarray(mesh.get_array()), np.nan)


def test_every_place_has_the_colour_of_its_side(cells: pd.DataFrame) -> None:
    """And none where there is no number."""
    gone = fail(cells, (cells["n"] == 20) & (cells["snr"] == 25))
    figure = draw_cutoff(data_of(gone), SIDES)
    median = cells.groupby(["n", "snr"])["test_loss"].median().unstack().to_numpy()
    assert np.isnan(sides(figure)[-1, -1])
    assert (sides(figure) == (median > 0.2)).sum() == median.size - 1
    mesh = figure.axes[0].collections[0]
    assert tuple(to_hex(colour).upper() for colour in mesh.get_cmap()([0.0, 1.0])) == MUTED
    text = words(figure)
    assert "\ntest loss ≤ 0.2\n" in text
    assert "\ntest loss > 0.2\n" in text
    assert "diverged: half the seeds or more (1)" in text
    assert len(figure.axes) == 1, "two colours need no bar"


def test_the_regions_are_named_where_they_are(cells: pd.DataFrame) -> None:
    data = replace(data_of(cells), study=NamedSides())
    figure = draw_cutoff(data, replace(SIDES, law=("n = 5",)))
    axes = figure.axes[0]
    places = {text.get_text(): text.get_position() for text in axes.texts}
    assert set(places) == {"benign", "harmful"}
    for name, (snr, n) in places.items():
        assert (n * snr**2 < 1000) == (name == "harmful")
    figure.draw_without_rendering()
    frame, law = axes.get_window_extent(), axes.transData.transform((5, 5))[1]
    for drawn in axes.texts:
        box = drawn.get_window_extent()
        assert frame.x0 < box.x0
        assert box.x1 < frame.x1
        assert not box.y0 <= law <= box.y1, "a name keeps clear of a line"
    text = words(figure)
    assert "\nbenign: test loss ≤ 0.2\n" in text
    assert "\nharmful: test loss > 0.2\n" in text


@pytest.mark.parametrize(
    ("value", "threshold", "named"),
    [("test_loss", 0.6995, ["benign"]), ("steps", 15.0, [])],
)
def test_a_region_too_small_for_its_name_and_one_of_another_column_have_none(
    cells: pd.DataFrame, value: str, threshold: float, named: list[str]
) -> None:
    data = replace(data_of(cells), study=NamedSides())
    figure = draw_cutoff(data, replace(SIDES, value=value, threshold=threshold))
    assert [text.get_text() for text in figure.axes[0].texts] == named
    assert ("benign" in words(figure)) == bool(named)


def test_without_a_threshold_the_middle_is_taken() -> None:
    cells = fake_cells([1, 2], [1.0, 2.0], seeds=1)
    cells["test_loss"] = [1.0, 2.0, 3.0, 4.0]
    figure = draw_cutoff(data_of(cells), OPTIONS)
    assert sides(figure).tolist() == [[0, 0], [1, 1]]
    assert "test loss > 2.5" in words(figure)
    cells["test_loss"] = [0.01, 0.02, 0.5, 1.0]  # by ratio
    figure = draw_cutoff(data_of(cells), OPTIONS)
    assert "test loss > 0.1" in words(figure)


def test_panels_have_the_same_two_colours(cells: pd.DataFrame) -> None:
    other = fake_cells(NS, SNRS, kernel="gaussian").assign(test_loss=0.0)
    figure = draw_cutoff(data_of(pd.concat([other, cells])), replace(SIDES, by="kernel"))
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "(a) kernel: softmax",
        "(b) kernel: gaussian",
    ]
    assert set(sides(figure, 0).ravel()) == {0, 1}
    assert set(sides(figure, 1).ravel()) == {0}
    assert words(figure).count("test loss > 0.2") == 1


ROWS = [2, 4, 8, 12, 16, 20]
COARSE = np.linspace(1, 25, 9).tolist()


def refined(seeds: int = 6, noise: float = 0.3) -> FigureData:
    """A coarse grid of two seeds, and all seeds of each row near its own crossing."""
    rows = [fake_cells(ROWS, COARSE, seeds=2, noise=noise)]
    for n in ROWS:
        at = float(np.sqrt(1000 / n))
        near = [round(at * factor, 3) for factor in (0.8, 0.9, 1.1, 1.25)]
        rows.append(fake_cells([n], near, seeds=seeds, noise=noise))
    cells = pd.concat(rows, ignore_index=True).query("snr <= 25")
    return replace(data_of(cells.reset_index(drop=True)), study=NamedSides(), refined=True)


def places(data: FigureData) -> set[tuple[float, float]]:
    return set(data.cells[["snr", "n"]].itertuples(index=False, name=None))


def test_a_heatmap_colours_sampled_places_alone_by_their_means() -> None:
    data = refined()
    figure = draw_heatmap(data, OPTIONS)
    [points] = figure.axes[0].collections
    assert isinstance(points, PathCollection)
    where = [tuple(place) for place in np.asarray(points.get_offsets()).tolist()]
    assert set(where) == places(data)
    mean = data.cells.groupby(["snr", "n"])["test_loss"].median()
    colours = np.asarray(points.get_array())
    np.testing.assert_allclose(colours, [mean[place] for place in where])
    text = words(figure)
    assert "missing" not in text
    assert "\nsampled\n" not in text, "all that has a colour is"
    whole = draw_heatmap(replace(data, refined=False), OPTIONS)
    assert any(isinstance(one, QuadMesh) for one in whole.axes[0].collections)


def test_a_cutoff_colours_the_plane_by_the_share_of_seeds_on_a_side() -> None:
    figure = draw_cutoff(refined(), SIDES)
    [mesh] = (one for one in figure.axes[0].collections if isinstance(one, QuadMesh))
    likely = np.asarray(mesh.get_array())
    assert likely.min() >= 0
    assert likely.max() <= 1
    corners = np.asarray(mesh.get_coordinates())
    snr, n = (corners[:-1, :-1] + corners[1:, 1:]).reshape(-1, 2).T / 2
    product = n * snr**2
    assert likely.ravel()[product < 300].mean() > 0.95
    assert likely.ravel()[product > 3000].mean() < 0.05
    text = words(figure)
    assert "\nshare of seeds harmful\n" in text
    assert "each seed's curve fitted to be monotone" in text
    assert "missing" not in text


@pytest.mark.parametrize(("seeds", "band"), [(6, "95 % interval"), (3, "least to greatest")])
def test_the_boundary_is_the_median_crossing_of_each_row_among_dots(seeds: int, band: str) -> None:
    data = refined(seeds)
    figure = draw_cutoff(data, SIDES)
    found = medians_by_row(crossings(data.cells, "snr", "n", "test_loss", 0.2), "n")
    known = found[(found["crossing"] > 0) & (found["crossing"] <= 25)]
    lines = figure.axes[0].lines
    boundary, dots = (np.asarray(line.get_xydata(), float) for line in (lines[0], lines[-1]))
    boundary = boundary[np.isfinite(boundary).all(axis=1)]
    np.testing.assert_allclose(boundary, known[["crossing", "n"]].to_numpy())
    assert {tuple(place) for place in dots.tolist()} == places(data)
    assert len(dots) == len(places(data))
    text = words(figure)
    for said in ("median crossing", "sampled", band):
        assert f"\n{said}\n" in text
    assert ("95 % interval" in text) != ("\nleast to greatest\n" in text)


def test_cells_of_one_side_are_one_colour_without_a_boundary() -> None:
    data = refined()
    figure = draw_cutoff(data, replace(SIDES, threshold=0.9))
    [mesh] = (one for one in figure.axes[0].collections if isinstance(one, QuadMesh))
    assert set(np.asarray(mesh.get_array()).ravel()) == {0.0}
    line = np.asarray(figure.axes[0].lines[0].get_xydata(), dtype=np.float64)
    assert not np.isfinite(line).all(axis=1).any()
    words(figure)


def test_panels_of_a_refined_sweep_have_a_boundary_each() -> None:
    one = refined()
    other = one.cells.assign(kernel="gaussian", snr=one.cells["snr"] / 1.25)
    data = replace(one, cells=pd.concat([other, one.cells], ignore_index=True))
    figure = draw_cutoff(data, replace(SIDES, by="kernel"))
    assert titles(figure) == ["(a) kernel: softmax", "(b) kernel: gaussian"]
    first, second = (np.asarray(axes.lines[0].get_xdata(), float) for axes in figure.axes[:2])
    assert np.isfinite(first).sum() > 3
    np.testing.assert_allclose(second, first / 1.25)
    words(figure)
