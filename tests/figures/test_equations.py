"""Equations of the user's on a figure, expressions for columns and axes, and theories."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from overfit_cli import UserError
from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.figures.draw import drawn
from overfit_cli.figures.expressions import derive_columns
from overfit_cli.figures.inputs import resolve_options
from overfit_cli.figures.laws import DASHES, equation_curve
from overfit_cli.figures.look import read_laws
from overfit_cli.figures.panels import difference
from overfit_cli.figures.picture import Picture
from overfit_cli.stats.equations import parse_equation
from tests.fake_study import (
    FIGURES,
    LAW,
    NS,
    OPTIONS,
    SIDES,
    SNRS,
    data_of,
    draw_heatmap,
    fake_cells,
    fake_trajectories,
    line_heights,
    titles,
    words,
)

AT = np.linspace(2, 24, 100)
PLAIN_CELLS = fake_cells(NS, SNRS)
LAWS = (LAW, "n = snr", "n = 20 - snr / 2")


def test_several_equations_have_a_dash_each_and_a_place_in_the_legend() -> None:
    figure = draw_heatmap(data_of(PLAIN_CELLS), replace(OPTIONS, law=LAWS))
    lines = figure.axes[0].lines
    assert len(lines) == 3
    assert len({str(line._dash_pattern) for line in lines}) == 3  # type: ignore[attr-defined]
    assert len({line.get_color() for line in lines}) == 1
    for line, height in zip(lines, [1000 / AT**2, AT, 20 - AT / 2], strict=True):
        snr, n = np.asarray(line.get_xydata(), dtype=np.float64).T
        known = np.isfinite(snr)
        assert known.sum() > 100
        order = np.argsort(snr[known])
        at = np.interp(AT, snr[known][order], n[known][order], left=np.nan, right=np.nan)
        within = np.isfinite(at) & (height > 2) & (height < 20)
        assert within.sum() > 20
        np.testing.assert_allclose(at[within], height[within], rtol=0.02)
    text = words(figure)
    for law in ("N·SNR² = 1000", "N = SNR", "N = 20 - SNR / 2"):
        assert f"\n{law}\n" in text
        assert f"ine: {law}.\n" in text
    many = tuple(f"n = {height}" for height in range(3, 3 + len(DASHES) + 1))
    lines = draw_heatmap(data_of(PLAIN_CELLS), replace(OPTIONS, law=many)).axes[0].lines
    assert str(lines[0]._dash_pattern) == str(lines[-1]._dash_pattern)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("law", "told"),
    [
        ("the paper's line: n * snr**2 = 1000", "N·SNR² = 1000 (the paper's line)"),
        ("N * snr**2 = 10 * SNR * n", "N·SNR² = 10·SNR·N"),
    ],
)
def test_an_equation_may_have_a_label_and_symbols_beside_names(law: str, told: str) -> None:
    text = words(draw_heatmap(data_of(PLAIN_CELLS), replace(OPTIONS, law=(law,))))
    assert f"\n{told}\n" in text
    assert f"\nLine: {told}.\n" in text


@pytest.mark.parametrize("name", ["heatmap", "cutoff", "boundary"])
@pytest.mark.one_in(3)
def test_every_figure_over_two_parameters_draws_them_unless_there_are_none(name: str) -> None:
    text = words(FIGURES[name].draw(data_of(PLAIN_CELLS), replace(SIDES, law=LAWS)))
    assert all(f"ine: {law}.\n" in text for law in ("N·SNR² = 1000", "N = SNR"))
    none = replace(SIDES, law=read_laws(["none"]))
    assert "Line:" not in words(FIGURES[name].draw(data_of(PLAIN_CELLS), none))


# Whose equation it is


OWN = Figure("a", "", "cells", draw_heatmap, options=replace(OPTIONS, law=(LAW,)), axes=2)


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        (FigureOptions(), (LAW,)),
        (FigureOptions(law=()), ()),
        (FigureOptions(law=("n = snr",)), ("n = snr",)),
        (FigureOptions(value="steps"), None),  # it is about another column
        (FigureOptions(x="n", y="snr"), (LAW,)),
    ],
)
def test_a_figures_own_equation_gives_way(
    asked: FigureOptions, taken: tuple[str, ...] | None
) -> None:
    assert resolve_options(OWN, asked, data_of(PLAIN_CELLS)).law == taken


# Its curve


def curve_of(text: str, *, most: tuple[float, float] = (16, 20), log: bool = False) -> np.ndarray:
    """The points of a law's curve, SNR from 0.1 and n from 2 to the most, where it has some."""
    law = parse_equation(text, ("n", "snr"))
    curve = equation_curve(law, "snr", "n", (0.1, most[0]), (2, most[1]), log_x=log, log_y=log)
    return curve[np.isfinite(curve[:, 0])]


@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("text", [LAW, "snr = 1000 / n", "log(n) + 3 = snr", "n - snr = 0"])
def test_the_points_of_a_curve_satisfy_the_law(text: str, log: bool) -> None:
    law = parse_equation(text, ("n", "snr"))
    snr, n = curve_of(text, most=(200, 100), log=log).T
    assert snr.size > 50
    scale = np.abs(law.difference({"snr": 1.01 * snr, "n": n}))
    assert (np.abs(law.difference({"snr": snr, "n": n})) <= scale).all()


def test_a_pole_is_no_part_of_a_law() -> None:
    snr, n = curve_of("n = 10 / (snr - 3.02)").T
    np.testing.assert_allclose(n * (snr - 3.02), 10, rtol=0.02)


@pytest.mark.parametrize("text", ["n = n", "9**9**9**9 = n", "log(-n) = 1", "n = -5"])
def test_a_law_without_a_curve_has_no_points(text: str) -> None:
    assert not curve_of(text).size


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


def picture(name: str, data: FigureData, **options: object) -> Picture:
    """A figure as the command line draws it."""
    asked = FigureOptions(**options)  # type: ignore[arg-type]
    return drawn(FIGURES[name], derive_columns(FIGURES[name], data, asked), asked, [])


def test_a_constant_stands_in_a_law_and_each_panel_has_its_own() -> None:
    """The curve of n · SNR² = width passes n = 16 at SNR = √(width / 16)."""
    options = {"x": "snr", "y": "n", "by": "width", "law": ("n * snr**2 = width",)}
    figure = picture("heatmap", data_of(CELLS), **options)
    for axes, width in zip(figure.axes[:2], WIDTHS, strict=True):
        snr, n = np.asarray(axes.lines[0].get_xydata(), dtype=np.float64).T
        seen = np.isfinite(snr)
        np.testing.assert_allclose((n * snr**2)[seen], width, rtol=0.01)
    assert titles(figure) == ["(a) width = 64", "(b) width = 128"]
    assert "\nLine: N·SNR² = width = 64, 128.\n" in words(figure)


def test_lines_take_laws_in_the_column_and_in_constants_of_a_line() -> None:
    laws = ("test_loss = snr * n / width", "test_loss = 0.25", "test_loss = 99")
    figure = picture("lines", data_of(AT_ONE_SNR), x="n", law=laws)
    lines = figure.axes[0].lines[2:]
    measured = [line.get_color() for line in figure.axes[0].lines[:2]]
    assert [line.get_color() for line in lines[:2]] == measured
    for line, width in zip(lines, WIDTHS, strict=False):
        n, loss = np.asarray(line.get_xydata(), dtype=np.float64).T
        seen = np.isfinite(n)
        np.testing.assert_allclose(loss[seen], 2.0 * n[seen] / width, rtol=0.01)
    assert len(lines) == 4, "a law without a line's constants has one curve"
    text = words(figure)
    assert "\ntest_loss = 0.25\n" in text
    assert "\nDashed line: test_loss = SNR·N / width.\n" in text
    assert "\nDash-dotted line: test_loss = 99 (out of view).\n" in text


def test_a_theory_is_dashed_beside_its_line_without_a_band() -> None:
    """And drawn once, in grey, where all lines share it."""
    figure = picture("lines", data_of(AT_ONE_SNR), x="n", theory="train_loss")
    [axes] = figure.axes
    for index, _ in enumerate(WIDTHS):
        measured, theory = (line_heights(axes)[index + skip] for skip in (0, len(WIDTHS)))
        assert theory == pytest.approx([height / 2 for height in measured])
        colours = [axes.lines[index + skip].get_color() for skip in (0, len(WIDTHS))]
        assert colours[0] == colours[1]
    assert len(axes.collections) == len(WIDTHS)
    text = words(figure)
    assert "\ntraining loss\n" in text
    assert "Dashed: training loss.\n" in text
    [axes] = picture("lines", data_of(AT_ONE_SNR), x="n", theory="1 / n").axes
    *alone, shared = axes.lines
    assert len(alone) == len(WIDTHS)
    n, height = np.asarray(shared.get_xydata(), dtype=np.float64).T
    assert height == pytest.approx(1 / n)
    assert shared.get_color() == "0.3"


def test_a_figures_own_value_and_theory_may_be_expressions_with_a_name_in_words() -> None:
    value, asked = "test_loss - train_loss", FigureOptions()
    own = FigureOptions(x="n", value=value, theory="1 - train_loss")
    figure = replace(FIGURES["lines"], name="gap", options=own, labels={value: "gap of losses"})
    gap = drawn(figure, derive_columns(figure, data_of(AT_ONE_SNR), asked), asked, [])
    heights = line_heights(gap.axes[0])
    assert heights[len(WIDTHS)] == pytest.approx([1 - height for height in heights[0]])
    text = words(gap)
    assert "\ngap of losses (median, the middle half)\n" in text.replace("\xa0", " ")
    assert "test_loss" not in text
    other = FigureOptions(value="2 * test_loss")
    text = words(drawn(figure, derive_columns(figure, data_of(AT_ONE_SNR), other), other, []))
    assert "gap of losses" not in text, "another expression is another number"


def test_curves_have_a_theory_too() -> None:
    cells = AT_ONE_SNR[AT_ONE_SNR["width"] == 64]
    data = data_of(cells, trajectories=fake_trajectories(cells))
    value = "test_loss - train_loss"
    figure = picture("curves", data, value=value, theory="0.1 - 0.4 * train_loss")
    for axes in figure.axes:
        measured, theory = line_heights(axes)
        assert theory == pytest.approx(measured)
        assert [line.get_color() for line in axes.lines][1] == "black"
    assert len(figure.axes) == 3, "each setting has a theory of its own"
    assert "Test_loss" not in figure.caption
    with pytest.raises(UserError, match=r"^theory='train_loss': it is drawn beside one column"):
        picture("curves", data, value="test_loss,train_loss", theory="train_loss")


@pytest.mark.parametrize("name", ["heatmap", "cutoff", "lines"])
def test_a_value_may_be_an_expression(name: str) -> None:
    cells = CELLS[CELLS["width"] == 64]
    figure = picture(name, data_of(cells), x="snr", value="sqrt(test_loss - train_loss) * N")
    assert "√(test_loss - train_loss)·N" in words(figure)
    if name == "lines":
        first = cells[cells["n"] == 4].groupby("snr")[["n", "train_loss"]].mean()
        heights = np.sqrt(first["train_loss"]) * first["n"]
        assert line_heights(figure.axes[0])[0] == pytest.approx(heights.tolist())


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        (
            "lines",
            {"x": "n", "value": "log(test_loss - 0.1)"},
            "Left out: 3 cells where log(test_loss - 0.1) is not a finite number.",
        ),
        (
            "heatmap",
            {"x": "snr", "y": "n", "by": "width", "law": ("n = 3 + log(0 * snr)",)},
            ". Line: N = 3 + log(0·SNR) (not a finite number anywhere here).",
        ),
    ],
)
def test_what_is_no_number_is_told(name: str, options: dict[str, object], told: str) -> None:
    data = data_of(CELLS if name == "heatmap" else AT_ONE_SNR)
    assert told in picture(name, data, **options).caption.replace("\n", " ")


def test_an_axis_may_be_an_expression_and_laws_may_contain_it() -> None:
    """It takes the place of n, which has more values; each width keeps its line."""
    law = ("test_loss = 2 * (n / width)",)
    figure = picture("lines", data_of(AT_ONE_SNR), x="n/width", law=law)
    [axes] = figure.axes
    for line, width in zip(axes.lines, WIDTHS, strict=False):
        np.testing.assert_allclose(np.asarray(line.get_xdata()), np.array([4, 8, 16]) / width)
    x, loss = np.asarray(axes.lines[2].get_xydata(), dtype=np.float64).T
    np.testing.assert_allclose(loss[np.isfinite(x)], 2 * x[np.isfinite(x)], rtol=0.01)
    assert len(axes.lines) == 3
    text = words(figure)
    assert "\nN / width\n" in text
    assert "\ntest_loss = 2·(N / width)\n" in text
    assert "Axes: N (n) 4, 8, 16; width 64, 128." in figure.caption
    uneven = AT_ONE_SNR.assign(width=AT_ONE_SNR["width"].replace({64: 60, 128: 101}))
    [axes] = picture("lines", data_of(uneven), x="n/width").axes
    points = [len(np.asarray(line.get_xdata())) for line in axes.lines]
    assert points == [3, 3], "also where no two share an x"


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("lines", {"x": "n/wdith"}, "'wdith' is none of the parameters that are numbers here; did"),
        ("lines", {"x": "3/7"}, "it names none of them"),
        ("lines", {"x": "log(n-4)"}, "it is not a finite number where n=4."),
        ("lines", {"x": "snr * 2"}, "x='snr * 2': it has one value in these cells; here"),
        ("lines", {"x": "n/width", "law": ("n = 3",)}, "'n' is neither an axis nor a constant"),
        ("lines", {"x": "n", "value": "test_los*2"}, "'test_los' is none of the columns and"),
        ("lines", {"x": "n", "value": "__import__('os')"}, "it is not arithmetic: it has a"),
        ("lines", {"x": "n", "theory": "thoery"}, "theory='thoery': fake measures no 'thoery'"),
        ("heatmap", {"x": "n/width", "y": "width"}, "its values with those of width make no grid"),
        ("heatmap", {"x": "n/width", "y": "n", "by": "width"}, "that varies here has an axis or"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    name: str, options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UserError) as refused:
        picture(name, data_of(AT_ONE_SNR), **options)
    assert sentence in str(refused.value)


def test_a_parameter_that_is_averaged_over_by_no_figure_may_be_an_axis_panels_or_chosen() -> None:
    would_do = r"make it an axis, make panels of it \(option by\), or choose one value \(option wh"
    with pytest.raises(UserError, match=would_do):
        picture("cutoff", data_of(CELLS), x="snr", y="n")


def test_a_difference_of_runs_takes_an_expression() -> None:
    value = "test_loss / n"
    double = CELLS.assign(test_loss=2 * CELLS["test_loss"])
    asked = FigureOptions(value=value)
    data, minus = (
        derive_columns(FIGURES["lines"], data_of(cells), asked) for cells in (double, CELLS)
    )
    less = difference(data, minus, "single", value)
    assert less.cells[value].to_list() == pytest.approx((CELLS["test_loss"] / CELLS["n"]).to_list())
