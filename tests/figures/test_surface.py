"""Surfaces in three dimensions and as contours."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.contour import QuadContourSet

from overfit_cli.studies.attention_kernel.landscape.figures import Surface, draw_surfaces
from tests.fake_study import corners, words

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
