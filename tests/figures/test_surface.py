"""Surfaces in three dimensions and as contours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.contour import QuadContourSet

from overfit_cli.studies.attention_kernel.landscape.figures import Surface, draw_surfaces
from tests.fake_study import corners, words


def ramps() -> list[Surface]:
    """One rises from 0 to 1 along the first direction, the other from 0 to 4 along the second."""
    across, up = np.linspace(-1, 1, 5), np.linspace(-1, 1, 7)
    first, second = np.meshgrid((across + 1) / 2, 2 * (up + 1), indexing="ij")
    return [
        Surface("a ramp", {"rise": "1"}, across, up, first),
        Surface("a steeper one", {"rise": "4", "roughness": "0"}, across, up, second),
    ]


def test_surfaces_have_a_row_each_on_one_scale(tmp_path: Path) -> None:
    figure = draw_surfaces(ramps(), ("to the right", "upwards", "height"))
    solid = [axes for axes in figure.axes if axes.name == "3d"]
    flat = [axes for axes in figure.axes if axes.get_xlabel() == "to the right"]
    assert len(solid) == len(flat) == 2
    for axes in solid:
        assert axes.get_zlim() == (0, 4)  # type: ignore[attr-defined]
    contours = [axes.collections[0] for axes in flat]
    assert all(isinstance(each, QuadContourSet) for each in contours)
    assert {each.get_clim() for each in contours} == {(-4, 4)}, "0 has the middle colour"
    text = words(figure, tmp_path)
    for word in ("a ramp", "a steeper one", "roughness", "4", "upwards", "height"):
        assert f"\n{word}\n" in text


def test_contours_rise_along_the_direction_that_the_surface_does() -> None:
    figure = draw_surfaces(ramps(), ("to the right", "upwards", "height"))
    right, up = (axes for axes in figure.axes if axes.get_xlabel() == "to the right")
    for axes, side in ((right, 0), (up, 1)):
        lowest = corners(axes.collections[0])
        assert lowest[:, side].max() < 0.5
        assert lowest[:, 1 - side].max() == pytest.approx(1)
