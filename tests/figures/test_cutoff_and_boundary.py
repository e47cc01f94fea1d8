"""Where a column crosses a threshold: the plane's two sides, and the boundary between them."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from overfit_cli import UserError
from overfit_cli.core.study import FigureData
from overfit_cli.figures.panels import side_by_side
from overfit_cli.figures.style import MUTED
from overfit_cli.stats.crossings import crossings, medians_by_row
from tests.fake_study import (
    LAW,
    NS,
    OPTIONS,
    SIDES,
    SNRS,
    NamedSides,
    data_of,
    draw_boundary,
    draw_cutoff,
    draw_heatmap,
    fail,
    fake_cells,
    fake_loss,
    prose,
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


def points(axes: Axes, place: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Where the points of a boundary lie: snr and n."""
    line = axes.containers[place].lines[0]  # type: ignore[attr-defined]
    return np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)


def legend(figure: Figure) -> list[str]:
    inside = [artist for artist in figure.axes[0].get_children() if isinstance(artist, Legend)]
    return [text.get_text() for each in inside for text in each.get_texts()]


def test_a_boundary_recovers_the_law_on_logarithmic_axes() -> None:
    noisy = fake_cells(NS, SNRS, seeds=5, noise=0.1)
    figure = draw_boundary(data_of(noisy), replace(SIDES, law=(LAW,)))
    axes = figure.axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    snr, n = points(axes)
    np.testing.assert_allclose(n * snr**2, 1000, rtol=0.1)
    text = words(figure)
    assert (
        "Where test loss crosses 0.2, for each value of training samples N: median of 5 seeds"
        in text
    )
    assert "\nmedian of 5 seeds, least to greatest\n" in text
    assert "\ntest loss = 0.2\n" in text
    assert "\nN·SNR² = 1000\n" in text
    assert "throughout" not in text
    assert "no fit" not in text


def test_the_fitted_numbers_stand_in_the_legend_inside() -> None:
    figure = draw_boundary(data_of(fake_cells(NS, SNRS, seeds=5, noise=0.1)), SIDES)
    [fit] = [text for text in legend(figure) if "^p = C" in text]
    equation, exponent, constant, lack = fit.replace("\N{NO-BREAK SPACE}", " ").split("\n")
    assert equation == r"${N} \cdot {\mathrm{SNR}}^p = C$"
    numbers = re.fullmatch(r"\$p\$ = (\S+) \[(\S+), (\S+)\]", exponent)
    assert numbers is not None
    value, low, high = map(float, numbers.groups())
    assert low <= value <= high
    assert value == pytest.approx(2, abs=0.1)
    assert constant.startswith("$C$ =")
    assert re.fullmatch(r"largest residual \d %", lack)
    assert not figure.legends, "all of it is inside"


def test_values_of_y_that_never_cross_are_named_with_their_side() -> None:
    figure = draw_boundary(data_of(fake_cells([1, 2, 8, 10, 12, 900], SNRS[2:21])), SIDES)
    text = words(figure)
    assert "N = 1, 2: above 0.2 throughout" in text
    assert "N = 900: below 0.2 throughout" in text
    assert points(figure.axes[0])[1].tolist() == [8, 10, 12]


def test_values_of_y_at_which_some_seeds_never_cross_are_open_with_an_arrow_head() -> None:
    """The interval leaves the axes there."""
    cells = fake_cells(NS, SNRS, seeds=6)
    far = (cells["n"] == 4) & (cells["seed"] < 2)
    cells["test_loss"] = cells["test_loss"].where(~far, 0.6)
    figure = draw_boundary(data_of(cells), SIDES)
    [axes] = figure.axes
    assert "some seeds cross off the grid" in words(figure)
    assert points(axes, 1)[1].tolist() == [4]
    assert axes.containers[1].lines[0].get_markerfacecolor() == "white"  # type: ignore[attr-defined]
    [head] = [line for line in axes.lines if line.get_marker() == ">"]
    assert np.asarray(head.get_xydata()).tolist() == [[axes.get_xlim()[1], 4.0]]


def test_few_rows_and_one_seed_are_drawn_without_a_fit() -> None:
    figure = draw_boundary(data_of(fake_cells([5, 10], SNRS, seeds=1)), SIDES)
    text = words(figure)
    assert "\nTest loss of 0.2: one seed\n" in text
    assert "no fit of N·SNR^p = C, fewer than three points" in text


def test_what_a_boundary_cannot_show_is_refused() -> None:
    cells = pd.concat([fake_cells([5], SNRS), fake_cells([5], SNRS, kernel="gaussian")])
    with pytest.raises(UserError) as refused:
        draw_boundary(data_of(cells), replace(SIDES, x="snr", y="kernel"))
    assert "y='kernel': a boundary needs an axis of positive numbers." in str(refused.value)


def test_each_value_of_a_parameter_has_a_boundary_of_its_colour() -> None:
    one, other = fake_cells(NS, SNRS), fake_cells(NS, SNRS, kernel="gaussian")
    other["test_loss"] = [
        fake_loss(2 * n, snr) for n, snr in zip(other["n"], other["snr"], strict=True)
    ]
    figure = draw_boundary(data_of(pd.concat([other, one])), replace(SIDES, by="kernel"))
    axes = figure.axes[0]
    for place, constant in enumerate((1000, 500)):  # in the order of declaration
        snr, n = points(axes, place)
        np.testing.assert_allclose(n * snr**2, constant, rtol=0.1)
    first, second = (axes.containers[place].lines[0].get_color() for place in (0, 1))  # type: ignore[attr-defined]
    assert to_hex(first) != to_hex(second)
    names = re.findall(r"^kernel: (\w+): p\s=\s", words(figure), re.MULTILINE)
    assert names == ["softmax", "gaussian"]


def test_run_directories_are_overlaid_with_their_names() -> None:
    one, other = data_of(fake_cells(NS, SNRS)), data_of(fake_cells([1, *NS], SNRS))
    figure = draw_boundary(side_by_side(["before", "after"], [one, other]), SIDES)
    assert len(figure.axes) == 1
    text = words(figure)
    assert re.findall(r"^(before|after): p\s=\s", text, re.MULTILINE) == ["before", "after"]
    assert "after, N = 1: above 0.2 throughout" in text
    assert "before, N" not in text
    widths = [fake_cells([5, 10], SNRS, seeds=1, width=2**power) for power in range(9)]
    with pytest.raises(UserError, match=r"by='width': it makes 9 boundaries, .* up to 8"):
        draw_boundary(data_of(pd.concat(widths)), replace(SIDES, by="width"))


def test_notes_on_a_boundary_are_one_line_however_many_seeds_cross() -> None:
    """Inside the axes there is room for a short line; the caption counts seeds."""
    cells = fake_cells([*range(5, 15), 20, 40], SNRS, seeds=6)
    for n, least in ((5, 2), (6, 1)):
        above = (cells["n"] == n) & (cells["seed"] >= least)
        cells["test_loss"] = cells["test_loss"].where(~above, 0.6)
    figure = draw_boundary(data_of(cells), SIDES)
    assert "$N$ = 5, 6: median beyond the grid" in legend(figure)
    told = prose(figure)
    assert "N = 5: median beyond the grid (2 of 6 seeds cross on it). N = 6: median" in told
    rising = (cells["seed"] < 2) & (cells["n"] > 6)
    cells["test_loss"] = cells["test_loss"].where(~rising, 0.4 - cells["test_loss"])
    told = prose(draw_boundary(data_of(cells[cells["n"] > 6]), SIDES))
    assert "crossing curves rise, the others fall." in told


def rising() -> pd.DataFrame:
    """Losses that cross 0.2 where SNR is the square root of N."""
    cells = fake_cells([1, 2, 4, 8, 16], SNRS, seeds=2)
    return cells.assign(test_loss=0.2 * cells["n"] ** 0.5 / cells["snr"])


def test_a_boundary_that_rises_is_drawn_as_a_function_without_a_constant() -> None:
    figure = draw_boundary(data_of(rising()), replace(SIDES, law=("snr = n**0.5",)))
    axes = figure.axes[0]
    n, snr = points(axes)
    np.testing.assert_allclose(snr, n**0.5, rtol=0.02)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "2", "4", "8", "16"]
    n_of_law, snr_of_law = np.asarray(axes.lines[-1].get_xydata(), float).T
    known = np.isfinite(n_of_law)
    np.testing.assert_allclose(snr_of_law[known], n_of_law[known] ** 0.5, rtol=0.01)
    text = words(figure)
    assert re.search(r"SNR ∝ N\^?q?.*: q\s=\s0\.(49|5)", text)
    assert "C\N{NO-BREAK SPACE}=" not in text
    bent = rising()
    bent["test_loss"] = bent["test_loss"].where(bent["n"] != 4, 1.5 * bent["test_loss"])
    share = re.search(r"largest residual (\d+) %", prose(draw_boundary(data_of(bent), SIDES)))
    assert share is not None
    assert int(share[1]) == pytest.approx(38, abs=2)  # 1.5^(4/5) - 1: the fit takes a fifth


def test_a_bent_boundary_has_the_powers_of_its_halves_and_its_whole_fit_in_view() -> None:
    cells = fake_cells([5, 10, 20, 40, 80, 160], np.geomspace(0.1, 64, 60).tolist())
    bend = np.where(cells["n"] > 20, (cells["n"] / 20.0) ** 2, 1.0)
    bent = cells.assign(test_loss=0.7 / (1 + 2.5 * (cells["n"] * cells["snr"] ** 2 * bend / 1000)))
    figure = draw_boundary(data_of(bent), SIDES)
    text = prose(figure)
    assert "No one power law: p is 2 for N up to 20, and 0.67 from 40 on." in text
    [axes] = figure.axes
    [fit] = [line for line in axes.lines if line.get_linestyle() == "--"]
    ends, limits = np.asarray(fit.get_xdata(), float), axes.get_xlim()
    assert limits[0] <= min(ends) <= max(ends) <= limits[1]
    straight = draw_boundary(data_of(fake_cells(NS, SNRS, seeds=5)), SIDES)
    assert "No one power law" not in words(straight)


@pytest.mark.slow
def test_a_caption_says_which_powers_the_grid_alone_leaves() -> None:
    # N = 1 crosses at √1000 = 31.6, between 16 and 32, and N = 100 at 3.16, between 2 and 4.
    coarse = fake_cells([1, 10, 100], [2.0**k for k in range(7)], seeds=4)
    text = prose(draw_boundary(data_of(coarse), SIDES))
    low, high = np.log(100) / np.log(32 / 2), np.log(100) / np.log(16 / 4)
    assert f"Grid alone: p from {low:.2g} to {high:.2g}, wherever in its step of" in text
    refined = words(draw_boundary(replace(data_of(coarse), refined=True), SIDES))
    assert "Grid alone" not in refined


def test_a_caption_says_that_intervals_lie_under_their_markers() -> None:
    narrow, wide = (fake_cells(NS, SNRS, seeds=5, noise=noise) for noise in (0.01, 0.3))
    hidden = "The intervals are narrower than the markers."
    assert hidden in words(draw_boundary(data_of(narrow), SIDES)).replace("\n", " ")
    assert hidden not in words(draw_boundary(data_of(wide), SIDES)).replace("\n", " ")
