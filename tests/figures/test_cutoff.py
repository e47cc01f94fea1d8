from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from overfit_cli.figures.style import MUTED
from tests.fake_study import (
    NS,
    OPTIONS,
    SIDES,
    SNRS,
    NamedSides,
    data_of,
    draw_cutoff,
    fail,
    fake_cells,
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
