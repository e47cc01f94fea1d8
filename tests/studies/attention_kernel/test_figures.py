"""Figures of attention kernels: of kernel-regression, from kept cells, and surfaces."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.contour import QuadContourSet

import overfit_cli
from overfit_cli.figures.picture import looking
from overfit_cli.figures.style import Look
from overfit_cli.studies.attention_kernel.landscape.figures import Surface, draw_surfaces
from overfit_cli.studies.attention_kernel.regression.theory import lacks_width
from tests.fake_study import corners, words

BALANCED = "kernel-eigenvalue-balanced-quick"


def draw(name: str, run: str) -> Any:
    return overfit_cli.draw(name, f"results/{run}")


def heights(axes: Any, marker: str, *, hollow: bool = False) -> list[float]:
    """The heights of single markers, filled or hollow."""
    return [
        float(line.get_ydata()[0])
        for line in axes.lines
        if line.get_marker() == marker and (line.get_markerfacecolor() == "white") == hollow
    ]


def test_steps_count_the_seeds_that_diverge_as_slower_than_all_others() -> None:
    figure = draw("tangent-steps", "kernel-tangent-steps-quick")
    [axes] = figure.axes
    cells = overfit_cli.load("results/kernel-tangent-steps-quick")
    softmax = cells[cells["kernel"] == "softmax"]
    counted = softmax["steps_to_millionth"].astype(float).fillna(np.inf)
    medians = counted.groupby(softmax["learning_rate"]).median()
    assert heights(axes, "o") == pytest.approx(medians[np.isfinite(medians)].tolist())
    [few] = heights(axes, "o", hollow=True)
    assert few == softmax.loc[softmax["learning_rate"] == 131072, "steps_to_millionth"].median()
    said = {text.get_text() for text in axes.texts}
    assert {"5/20", "12/20", "14/20"} <= said
    assert len(heights(axes, "$\\uparrow$")) == 7, "softmax ends above the target, undiverged"
    assert len(heights(axes, "x")) == 8


def test_predicted_steps_have_the_statistic_of_those_that_were_measured() -> None:
    [axes] = draw("tangent-steps", "kernel-tangent-steps-quick").axes
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    joined = [
        line
        for line in axes.lines
        if line.get_linestyle() == "-" and len(line.get_xdata()) > 1 and line.get_marker() == "None"
    ]
    for measured, predicted in zip(joined, dashed, strict=True):
        expected = dict(zip(predicted.get_xdata(), predicted.get_ydata(), strict=True))
        for rate, steps in zip(measured.get_xdata(), measured.get_ydata(), strict=True):
            assert steps == pytest.approx(expected[rate], abs=1)


@pytest.mark.parametrize(("run", "proof"), [("kernel-eigenvalue-quick", False), (BALANCED, True)])
def test_the_slowest_rate_stands_over_the_theorems_and_over_its_bound(
    run: str, proof: bool
) -> None:
    figure = draw("eigenvalue", run)
    columns = len(figure.axes) // 2
    upper, lower = figure.axes[0], figure.axes[columns]
    cells = overfit_cli.load(f"results/{run}")
    cells = cells[(cells["d"] == cells["d"].min()) & (cells["d_h"] == 8)]
    medians = cells.groupby("heads")["rate_margin"].median()
    [line] = [line for line in upper.lines if line.get_marker() == "s"]
    [below] = [line for line in lower.lines if line.get_marker() == "s"]
    assert line.get_ydata() == pytest.approx(medians.to_numpy())
    assert all(line.get_xdata() == medians.index), "unshifted: it lies on a slope"
    assert below.get_ydata() == pytest.approx(medians.to_numpy() * medians.index.to_numpy() / 2)
    level = [line.get_ydata()[0] for line in upper.lines if line.get_linestyle() == ":"]
    assert level == ([0.25] if proof else [])
    assert ("beta" if proof else "alpha") in upper.get_ylabel()
    assert figure.get_figwidth() <= 7


def widths_along(axes: Any, features: int) -> list[float]:
    """The d at which the black line crosses a D, and from which on it says nothing."""
    [black] = [line for line in axes.lines if line.get_color() == "0.1"]
    corners = [tuple(map(float, corner)) for corner in black.get_xydata()]
    upright = [(a[0], a[1], b[1]) for a, b in itertools.pairwise(corners)]
    return [d for d, low, high in upright if low <= features < high]


def test_the_black_line_is_the_fifth_size_of_softmax() -> None:
    figure = draw("ranks", "kernel-ranks-further-quick")
    tokens, samples = 3, (2, 3, 5)
    assert len(figure.axes) == 3
    for axes, n in zip(figure.axes, samples, strict=True):
        for features in range(tokens, 15):
            least = widths_along(axes, features)
            for width in range(2, 15):
                sizes = [np.array(size) for size in (n, tokens, features, width)]
                lacks = bool(lacks_width(True, *sizes))
                assert lacks == any(width < d for d in least), (n, features, width)
    assert all(axes.get_xticks().tolist() == [2, 3, 4, 5, 6, 7, 8, 9] for axes in figure.axes)


STEEPER = {"rise": ("4", "5", "3", "6"), "roughness": ("0", "0", "0", "0")}
"""Measures with the number here, the median and the quartiles of all surfaces."""


def ramps() -> list[Surface]:
    """One rises from 0 to 1 along the first direction, the other from 0 to 4 along the second."""
    across, up = np.linspace(-1, 1, 5), np.linspace(-1, 1, 7)
    first, second = np.meshgrid((across + 1) / 2, 2 * (up + 1), indexing="ij")
    return [
        Surface("a ramp", {"rise": ("1", "2", "0", "4")}, 12, across, up, first),
        Surface("a steeper one", STEEPER, 12, across, up, second),
    ]


def test_surfaces_have_a_row_each_on_one_scale() -> None:
    with looking(Look()):
        figure = draw_surfaces(ramps(), ("to the right", "upwards", "height"))
    solid = [axes for axes in figure.axes if axes.name == "3d"]
    flat = [axes for axes in figure.axes if axes.get_xlabel() == "to the right"]
    assert len(solid) == len(flat) == 2
    for axes in solid:
        assert axes.get_zlim() == (0, 4)  # type: ignore[attr-defined]
    contours = [axes.collections[0] for axes in flat]
    assert all(isinstance(each, QuadContourSet) for each in contours)
    assert {each.get_clim() for each in contours} == {(-4, 4)}, "0 has the middle colour"
    text = words(figure)
    for word in ("roughness", "4", "upwards", "height", "this pair (1 of 12)", "5 [3, 6]"):
        assert f"\n{word}\n" in text
    assert ["a ramp" in axes.get_title(loc="left") for axes in flat] == [True, False]


def test_one_bar_has_the_colours_of_all_surfaces_and_small_heights_a_unit() -> None:
    small = [replace(surface, heights=surface.heights / 10_000) for surface in ramps()]
    figure = draw_surfaces(small, ("to the right", "upwards", "height"))
    [bar] = [axes for axes in figure.axes if axes.get_label() == "<colorbar>"]
    assert bar.get_ylabel() == r"$height\ (10^{-4})$"
    [solid, _] = [axes for axes in figure.axes if axes.name == "3d"]
    assert solid.get_zlim() == pytest.approx((0, 4))  # type: ignore[attr-defined]
    assert len(solid.get_xticklabels()) > 0


def test_contours_rise_along_the_direction_that_the_surface_does() -> None:
    figure = draw_surfaces(ramps(), ("to the right", "upwards", "height"))
    right, up = (axes for axes in figure.axes if axes.get_xlabel() == "to the right")
    for axes, side in ((right, 0), (up, 1)):
        lowest = corners(axes.collections[0])
        assert lowest[:, side].max() < 0.5
        assert lowest[:, 1 - side].max() == pytest.approx(1)
