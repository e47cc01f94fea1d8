"""Boundaries: where a column crosses a threshold, and the power law through it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from overfit_cli.figures.panels import side_by_side
from tests.fake_study import (
    LAW,
    NS,
    SIDES,
    SNRS,
    data_of,
    draw_boundary,
    fake_cells,
    fake_loss,
    prose,
    words,
)


def line_of(axes: Axes, place: int = 0) -> Line2D:
    """The points of a boundary."""
    containers: list[Any] = list(axes.containers)
    line: Line2D = containers[place].lines[0]
    return line


def points(axes: Axes, place: int = 0) -> np.ndarray:
    """Where the points of a boundary lie: snr and n."""
    return np.asarray(line_of(axes, place).get_xydata(), float).T


def fit_of(figure: Figure) -> list[float]:
    """The exponent that a figure tells, the ends of its interval, and the largest residual in %."""
    text = prose(figure).replace("−", "-")
    fit = re.search(r"p\s=\s(\S+)\s\[(\S+),\s(\S+)\], C\s=.*largest residual (\d+) %", text)
    assert fit is not None, text
    return [float(number) for number in fit.groups()]


def test_a_boundary_recovers_the_law_on_logarithmic_axes() -> None:
    """Only values of y that cross have a point."""
    cells = fake_cells([1, *NS, 900], SNRS[2:], seeds=5, noise=0.05)
    figure = draw_boundary(data_of(cells), replace(SIDES, law=(LAW,)))
    [axes] = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    snr, n = points(axes)
    assert n.tolist() == NS
    np.testing.assert_allclose(n * snr**2, 1000, rtol=0.1)
    value, low, high, residual = fit_of(figure)
    assert low <= value <= high
    assert value == pytest.approx(2, abs=0.1)
    assert residual < 10


def test_values_of_y_at_which_some_seeds_never_cross_are_open_with_an_arrow_head() -> None:
    """The interval leaves the axes there."""
    cells = fake_cells(NS, SNRS, seeds=6)
    never = (cells["n"] == 4) & (cells["seed"] < 2)
    cells["test_loss"] = cells["test_loss"].where(~never, 0.6)
    figure = draw_boundary(data_of(cells), SIDES)
    [axes] = figure.axes
    assert "some seeds cross off the grid" in words(figure)
    assert points(axes, 1)[1].tolist() == [4]
    assert line_of(axes, 1).get_markerfacecolor() == "white"
    [head] = [line for line in axes.lines if line.get_marker() == ">"]
    assert np.asarray(head.get_xydata()).tolist() == [[axes.get_xlim()[1], 4.0]]


def test_each_value_of_a_parameter_has_a_boundary_of_its_colour() -> None:
    """In the order of declaration, not of the cells or of the alphabet."""
    one, other = fake_cells(NS, SNRS), fake_cells(NS, SNRS, kernel="gaussian")
    pairs = zip(other["n"], other["snr"], strict=True)
    other["test_loss"] = [fake_loss(2 * n, snr) for n, snr in pairs]
    figure = draw_boundary(data_of(pd.concat([other, one])), replace(SIDES, by="kernel"))
    [axes] = figure.axes
    for place, constant in enumerate((1000, 500)):
        snr, n = points(axes, place)
        np.testing.assert_allclose(n * snr**2, constant, rtol=0.1)
        assert line_of(axes, place).get_color() == f"C{place}"
    names = re.findall(r"^kernel: (\w+): N·SNR\^p = C, p", words(figure), re.MULTILINE)
    assert names == ["softmax", "gaussian"]


def test_run_directories_are_overlaid_with_their_names() -> None:
    one, other = data_of(fake_cells(NS, SNRS)), data_of(fake_cells([1, *NS], SNRS))
    figure = draw_boundary(side_by_side(["before", "after"], [one, other]), SIDES)
    assert len(figure.axes) == 1
    text = words(figure)
    names = re.findall(r"^(before|after): N·SNR\^p = C, p", text, re.MULTILINE)
    assert names == ["before", "after"]
    assert "after, N = 1: above 0.2 throughout" in text
    assert "before, N" not in text


def test_a_boundary_may_rise_and_its_largest_residual_is_a_share_of_x() -> None:
    """The losses cross 0.2 where SNR is the square root of N, and 1.5 times that at N = 4."""
    cells = fake_cells([1, 2, 4, 8, 16], SNRS, seeds=2)
    factor = np.where(cells["n"] == 4, 1.5, 1.0)
    bent = cells.assign(test_loss=0.2 * factor * cells["n"] ** 0.5 / cells["snr"])
    exponent, *_, residual = fit_of(draw_boundary(data_of(bent), SIDES))
    assert exponent == pytest.approx(-2, abs=0.1)
    assert residual == pytest.approx(38, abs=2)  # 1.5^(4/5) - 1: the fit takes a fifth


def test_the_whole_fit_of_a_bent_boundary_is_in_view() -> None:
    cells = fake_cells([5, 10, 20, 40, 80, 160], np.geomspace(0.1, 64, 60).tolist())
    bend = np.where(cells["n"] > 20, (cells["n"] / 20.0) ** 2, 1.0)
    bent = cells.assign(test_loss=0.7 / (1 + 2.5 * (cells["n"] * cells["snr"] ** 2 * bend / 1000)))
    [axes] = draw_boundary(data_of(bent), SIDES).axes
    [fit] = [line for line in axes.lines if line.get_linestyle() == "--"]
    ends, limits = np.asarray(fit.get_xdata(), float), axes.get_xlim()
    assert limits[0] <= min(ends) <= max(ends) <= limits[1]
