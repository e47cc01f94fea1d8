"""Equations of the user's on a figure: several, none, and in the names or symbols of the axes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from overfit_cli import UserError
from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.figures.inputs import resolve_options, resolve_symbols
from overfit_cli.figures.laws import DASHES
from tests.fake_study import (
    LAW,
    NS,
    OPTIONS,
    SIDES,
    SNRS,
    FakeStudy,
    data_of,
    draw_boundary,
    draw_cutoff,
    draw_heatmap,
    fake_cells,
    words,
)

AT = np.linspace(2, 24, 100)
CELLS = fake_cells(NS, SNRS)
LAWS = (LAW, "n = snr", "n = 20 - snr / 2")


def test_several_equations_have_a_dash_each_and_a_place_in_the_legend() -> None:
    figure = draw_heatmap(data_of(CELLS), replace(OPTIONS, law=LAWS))
    lines = figure.axes[0].lines
    assert len(lines) == 3
    assert len({str(line.get_linestyle()) for line in lines}) >= 2
    assert len({str(line._dash_pattern) for line in lines}) == 3  # type: ignore[attr-defined]
    assert len({line.get_color() for line in lines}) == 1
    heights = [1000 / AT**2, AT, 20 - AT / 2]
    for line, height in zip(lines, heights, strict=True):
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


@pytest.mark.slow
def test_an_equation_has_its_label_in_the_legend() -> None:
    law = "the paper's line: n * snr**2 = 1000"
    figure = draw_heatmap(data_of(CELLS), replace(OPTIONS, law=(law,)))
    text = words(figure)
    assert "\nN·SNR² = 1000 (the paper's line)\n" in text
    assert "\nLine: N·SNR² = 1000 (the paper's line).\n" in text


def test_more_equations_than_dashes_begin_anew() -> None:
    laws = tuple(f"n = {height}" for height in range(3, 3 + len(DASHES) + 1))
    lines = draw_heatmap(data_of(CELLS), replace(OPTIONS, law=laws)).axes[0].lines
    assert str(lines[0]._dash_pattern) == str(lines[-1]._dash_pattern)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "draw",
    [
        draw_heatmap,
        pytest.param(draw_cutoff, marks=pytest.mark.slow),
        pytest.param(draw_boundary, marks=pytest.mark.slow),
    ],
)
def test_every_figure_over_two_parameters_draws_them(draw: object) -> None:
    assert callable(draw)
    figure = draw(data_of(CELLS), replace(SIDES, law=LAWS))
    text = words(figure)
    assert all(f"ine: {law}.\n" in text for law in ("N·SNR² = 1000", "N = SNR"))
    none = draw(data_of(CELLS), replace(SIDES, law=()))
    assert "Line:" not in words(none)


def test_symbols_and_names_may_be_mixed() -> None:
    figure = draw_heatmap(data_of(CELLS), replace(OPTIONS, law=("N * snr**2 = 10 * SNR * n",)))
    assert "\nN·SNR² = 10·SNR·N\n" in words(figure)


@pytest.mark.parametrize(
    ("law", "sentence"),
    [
        ("M = 3", "'M' is neither an axis nor a constant here; known: n, snr, width."),
        ("N = ", "one side is empty"),
        ("N · SNR = 1", "it has a '·'"),
        ("N^2 = SNR", r"powers are written \*\*, not \^"),
    ],
)
def test_one_bad_equation_of_several_is_refused(law: str, sentence: str) -> None:
    with pytest.raises(UserError, match=f"^law='{law[0]}.*{sentence}"):
        draw_heatmap(data_of(CELLS), replace(OPTIONS, law=(LAW, law)))


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
    assert resolve_options(OWN, asked, data_of(CELLS)).law == taken


def test_options_take_symbols_for_names() -> None:
    asked = FigureOptions(x="SNR", y="N", by="kernel", value="test_loss")
    spelled = resolve_symbols(asked, FakeStudy())
    assert spelled == FigureOptions(x="snr", y="n", by="kernel", value="test_loss")
