"""Equations of the user's on a figure, expressions for columns and axes, and theories."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D

from overfit_cli import UserError
from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.figures.draw import drawn
from overfit_cli.figures.inputs import read_options, resolve_options
from overfit_cli.figures.laws import DASHES, equation_curve
from overfit_cli.figures.panels import difference
from overfit_cli.figures.picture import Picture
from tests.fake_study import (
    FIGURES,
    LAW,
    NS,
    OPTIONS,
    SNRS,
    data_of,
    draw_heatmap,
    fake_cells,
    fake_trajectories,
    law_of,
    line_heights,
    titles,
    words,
)

PLAIN = fake_cells(NS, SNRS)
LAWS = (LAW, "n = snr", "n = 20 - snr / 2")
WIDTHS = (64, 128)


def wide_cells() -> pd.DataFrame:
    """Cells of two widths; the training loss is the theory of the test loss, half as large."""
    parts = [fake_cells([4, 8, 16], [1.0, 2.0, 4.0], width=width) for width in WIDTHS]
    cells = pd.concat(parts, ignore_index=True)
    cells["test_loss"] = cells["n"] / cells["width"] * cells["snr"]
    cells["key"] += cells["width"].astype(str)
    return cells.assign(train_loss=cells["test_loss"] / 2)


CELLS = wide_cells()
AT_ONE_SNR = CELLS[CELLS["snr"] == 2.0]
ONE_WIDTH = CELLS[CELLS["width"] == 64]
MAP = {"x": "snr", "y": "n", "by": "width"}


def picture(name: str | Figure, cells: pd.DataFrame, **options: Any) -> Picture:
    """A figure as the command line draws it."""
    figure, asked = FIGURES[name] if isinstance(name, str) else name, FigureOptions(**options)
    data = data_of(cells, trajectories=fake_trajectories(cells))
    return drawn(figure, *read_options(figure, data, asked))


def points(line: Line2D) -> np.ndarray:
    """The places along a line that are known, (2, points)."""
    places = np.asarray(line.get_xydata(), dtype=np.float64)
    return places[np.isfinite(places).all(axis=1)].T


# What a picture says of equations and expressions

BOTH = {"x": "snr", "y": "n", "value": "test_loss", "threshold": 0.2}
NAMED = {**BOTH, "law": ("the paper's line: n * snr**2 = 1000",)}
CANCELLED = {**BOTH, "law": ("N * snr**2 = 10 * SNR * n",)}
TWO, NONE = {**BOTH, "law": LAWS[:2]}, {**BOTH, "law": FigureOptions.read(law="none").law}
TOLD = ["\nLine: N·SNR² = 1000.\n", "\nDashed line: N = SNR.\n"]
ROOT = {"x": "snr", "value": "sqrt(test_loss - train_loss) * N"}
NO_LOG = {"x": "n", "value": "log(test_loss - 0.1)"}
LEFT_OUT = "3 cells without a number left out."
UNSEEN = {**MAP, "law": ("n = 3 + log(0 * snr)",)}


@pytest.mark.parametrize(
    ("name", "cells", "options", "said"),
    [
        *[(name, PLAIN, TWO, TOLD) for name in ("heatmap", "cutoff", "boundary")],
        *[(name, PLAIN, NONE, []) for name in ("heatmap", "cutoff", "boundary")],
        ("heatmap", PLAIN, NAMED, ["\nLine: N·SNR² = 1000 (the paper's line).\n"]),
        ("heatmap", PLAIN, CANCELLED, ["\nN·SNR² = 10·SNR·N\n", "\nLine: N·SNR² = 10·SNR·N.\n"]),
        ("heatmap", CELLS, UNSEEN, ["\nLine: N = 3 + log(0·SNR) (out of view).\n"]),
        ("lines", AT_ONE_SNR, NO_LOG, [LEFT_OUT]),
        ("heatmap", ONE_WIDTH, ROOT, ["√(test_loss - train_loss)·N"]),
        ("cutoff", ONE_WIDTH, ROOT, ["√(test_loss - train_loss)·N"]),
    ],
)
def test_a_picture_says_equations_and_expressions_in_symbols(
    name: str, cells: pd.DataFrame, options: dict[str, Any], said: list[str]
) -> None:
    text = words(picture(name, cells, **options))
    assert [part for part in said if part not in text] == []
    assert options is not NONE or "SNR²" not in text


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("lines", {"x": "n/wdith"}, "'wdith' is no name here; did"),
        ("lines", {"x": "3/7"}, "it has one value in these cells"),
        ("lines", {"x": "log(n-4)"}, "it is not a finite number where n=4."),
        ("lines", {"x": "snr * 2"}, "x='snr * 2': it has one value in these cells; here"),
        ("lines", {"x": "n/width", "law": ("n = 3",)}, "'n' is no name here"),
        ("lines", {"x": "n", "value": "test_los*2"}, "'test_los' is no name here; did"),
        ("lines", {"x": "n", "value": "__import__('os')"}, "it can't be read from"),
        ("lines", {"x": "n", "theory": "thoery"}, "theory='thoery': fake measures no 'thoery'"),
        ("heatmap", {"x": "n/width", "y": "width"}, "its values with those of width make no grid"),
        ("heatmap", {"x": "n/width", "y": "n", "by": "width"}, "that varies here has an axis or"),
        ("cutoff", {"x": "snr", "y": "n"}, "make it an axis, make panels of it (option by), or ch"),
    ],
)
def test_what_cannot_be_drawn_is_refused(name: str, options: dict[str, Any], sentence: str) -> None:
    """No figure averages over a parameter."""
    with pytest.raises(UserError) as refused:
        picture(name, CELLS if name == "cutoff" else AT_ONE_SNR, **options)
    assert sentence in str(refused.value)


OWN = Figure("a", "", "cells", draw_heatmap, options=replace(OPTIONS, law=(LAW,)), axes=2)


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        ({}, (LAW,)),
        ({"law": ()}, ()),
        ({"law": ("n = snr",)}, ("n = snr",)),
        ({"value": "steps"}, None),  # it is about another column
        ({"x": "n", "y": "snr"}, (LAW,)),
    ],
)
def test_a_figures_own_equation_gives_way(
    asked: dict[str, Any], taken: tuple[str, ...] | None
) -> None:
    assert resolve_options(OWN, FigureOptions(**asked), data_of(PLAIN)).law == taken


# Where their curves lie


def curve_of(text: str, *, most: tuple[float, float] = (16, 20), log: bool = False) -> np.ndarray:
    """The points of a law's curve, SNR from 0.1 and n from 2 to the most, where it has some."""
    scale = "log" if log else "linear"
    axes = Drawing().add_subplot(xscale=scale, yscale=scale)
    axes.set(xlim=(0.1, most[0]), ylim=(2, most[1]))
    curve = equation_curve(law_of(text, "n", "snr"), ("snr", "n"), axes, {})
    return curve[np.isfinite(curve[:, 0])]


@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("text", [LAW, "snr = 1000 / n", "log(n) + 3 = snr", "n - snr = 0"])
def test_the_points_of_a_curve_satisfy_the_law(text: str, log: bool) -> None:
    law = law_of(text, "n", "snr")
    snr, n = curve_of(text, most=(200, 100), log=log).T
    assert snr.size > 50
    scale = np.abs(law.difference({"snr": 1.01 * snr, "n": n}))
    assert (np.abs(law.difference({"snr": snr, "n": n})) <= scale).all()


def test_a_pole_is_no_part_of_a_law_and_some_laws_have_no_curve() -> None:
    snr, n = curve_of("n = 10 / (snr - 3.02)").T
    np.testing.assert_allclose(n * (snr - 3.02), 10, rtol=0.02)
    for text in ("n = n", "9**9**9**9 = n", "log(-n) = 1", "n = -5"):
        assert not curve_of(text).size


def test_several_equations_have_a_dash_each_and_their_curves() -> None:
    lines = picture("heatmap", PLAIN, **{**BOTH, "law": LAWS}).axes[0].lines
    assert len({line.get_color() for line in lines}) == 1
    first, second, third = map(points, lines)
    assert min(np.ptp(snr) for snr, _ in (first, second, third)) > 5
    np.testing.assert_allclose(first[1] * first[0] ** 2, 1000, rtol=0.02)
    np.testing.assert_allclose(second[1], second[0], rtol=0.02)
    np.testing.assert_allclose(third[1], 20 - third[0] / 2, rtol=0.02)
    many = tuple(f"n = {height}" for height in range(3, 3 + len(DASHES) + 1))
    lines = picture("heatmap", PLAIN, **{**BOTH, "law": many}).axes[0].lines
    dashes = [str(line._dash_pattern) for line in lines]  # type: ignore[attr-defined]
    assert len(set(dashes)) == len(DASHES)
    assert dashes[0] == dashes[-1]


def test_a_constant_stands_in_a_law_and_each_panel_has_its_own() -> None:
    """The curve of n · SNR² = width passes n = 16 at SNR = √(width / 16)."""
    figure = picture("heatmap", CELLS, **MAP, law=("n * snr**2 = width",))
    for axes, width in zip(figure.axes[:2], WIDTHS, strict=True):
        snr, n = points(axes.lines[0])
        np.testing.assert_allclose(n * snr**2, width, rtol=0.01)
    assert titles(figure) == ["(a) width = 64", "(b) width = 128"]
    assert "\nLine: N·SNR² = width = 64, 128.\n" in words(figure)


def test_lines_take_laws_in_the_column_and_in_constants_of_a_line() -> None:
    laws = ("test_loss = snr * n / width", "test_loss = 0.25", "test_loss = 99")
    figure = picture("lines", AT_ONE_SNR, x="n", law=laws)
    *measured, first, second, _, _ = figure.axes[0].lines
    for line, own, width in zip(measured, (first, second), WIDTHS, strict=True):
        n, loss = points(own)
        np.testing.assert_allclose(loss, 2.0 * n / width, rtol=0.01)
        assert line.get_color() == own.get_color(), "a law without its constants has one curve"
    text = words(figure)
    assert "\ntest_loss = 0.25\n" in text
    assert "\nDashed line: test_loss = SNR·N / width.\n" in text
    assert "\nDash-dotted line: test_loss = 99 (out of view).\n" in text


# Theories and expressions


def test_a_theory_is_dashed_beside_its_line_without_a_band() -> None:
    """And drawn once, in black, where all lines share it."""
    figure = picture("lines", AT_ONE_SNR, x="n", theory="train_loss")
    [axes] = figure.axes
    for measured, theory in zip(axes.lines[:2], axes.lines[2:], strict=True):
        assert points(theory)[1] == pytest.approx(points(measured)[1] / 2)
        assert theory.get_color() == measured.get_color()
    assert len(axes.collections) == len(WIDTHS)
    text = words(figure)
    assert "\ntraining loss\n" in text
    assert "Dashed: training loss.\n" in text
    _, _, shared = picture("lines", AT_ONE_SNR, x="n", theory="1 / n").axes[0].lines
    n, height = points(shared)
    assert height == pytest.approx(1 / n)
    assert shared.get_color() == "black"


def test_a_figures_own_value_and_theory_may_be_expressions_with_a_name_in_words() -> None:
    value = "test_loss - train_loss"
    own = FigureOptions(x="n", value=value, theory="1 - train_loss")
    figure = replace(FIGURES["lines"], name="gap", options=own, labels={value: "gap of losses"})
    gap = picture(figure, AT_ONE_SNR)
    measured, _, theory, _ = line_heights(gap.axes[0])
    assert measured == pytest.approx([4 / 64, 8 / 64, 16 / 64])
    assert theory == pytest.approx([1 - height for height in measured])
    text = words(gap)
    assert "\ngap of losses (median, the middle half)\n" in text.replace("\xa0", " ")
    assert "test_loss" not in text
    other = words(picture(figure, AT_ONE_SNR, value="2 * test_loss"))
    assert "gap of losses" not in other, "another expression is another number"


def test_settings_with_a_theory_have_a_panel_each_in_their_colour() -> None:
    cells = AT_ONE_SNR[AT_ONE_SNR["width"] == 64]
    options = {"value": "test_loss - train_loss", "theory": "0.1 - 0.4 * train_loss"}
    figure = picture("curves", cells, **options)
    assert titles(figure) == ["(a) $N$ = 4", "(b) $N$ = 8", "(c) $N$ = 16"]
    for axes in figure.axes:
        measured, theory = line_heights(axes)
        assert theory == pytest.approx(measured)
        assert axes.lines[1].get_color() == "black"
    assert len({axes.lines[0].get_color() for axes in figure.axes}) == 3
    assert "Test_loss" not in figure.caption


def test_an_axis_may_be_an_expression_and_laws_may_contain_it() -> None:
    """It takes the place of n, which has more values; each width keeps its line."""
    figure = picture("lines", AT_ONE_SNR, x="n/width", law=("test_loss = 2 * (n / width)",))
    *measured, law = figure.axes[0].lines
    for line, width in zip(measured, WIDTHS, strict=True):
        np.testing.assert_allclose(points(line)[0], np.array([4, 8, 16]) / width)
    x, loss = points(law)
    np.testing.assert_allclose(loss, 2 * x, rtol=0.01)
    text = words(figure)
    assert "\nN / width\n" in text
    assert "\ntest_loss = 2·(N / width)\n" in text
    assert "Axes: N (n) 4, 8, 16; width 64, 128." in figure.caption
    uneven = AT_ONE_SNR.assign(width=AT_ONE_SNR["width"].replace({64: 60, 128: 101}))
    lines = picture("lines", uneven, x="n/width").axes[0].lines
    assert [points(line).shape for line in lines] == [(2, 3)] * 2, "also where no two share an x"


def test_a_difference_of_runs_takes_an_expression() -> None:
    value = "test_loss / n"
    parts = [data_of(CELLS.assign(test_loss=times * CELLS["test_loss"])) for times in (2, 1)]
    asked = FigureOptions(value=value)
    double, single = (read_options(FIGURES["lines"], part, asked)[0] for part in parts)
    less = difference(double, single, ("here", "single"), value)
    assert less.trained[value].to_numpy() == pytest.approx(CELLS["test_loss"] / CELLS["n"])
