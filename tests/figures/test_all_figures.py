"""Properties of every figure: no text says nonsense, and none is drawn of nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from overfit_cli import UserError
from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.figures.draw import Request, draw_figure
from overfit_cli.figures.panels import side_by_side
from overfit_cli.figures.picture import Picture, new_figure, styled
from tests.fake_study import (
    NS,
    SIDES,
    SNRS,
    Drawing,
    data_of,
    draw_boundary,
    draw_curves,
    draw_cutoff,
    draw_heatmap,
    draw_lines,
    fail,
    fake_cells,
    fake_trajectories,
    heights,
    words,
)
from tests.toy_runs import sweep_toy

LINES = FigureOptions(x="snr", value="test_loss")
FIGURES: list[tuple[Drawing, FigureOptions]] = [
    (draw_heatmap, SIDES),
    (draw_cutoff, SIDES),
    (draw_boundary, SIDES),
    (draw_lines, LINES),
    (draw_lines, replace(LINES, band="sd")),
    (draw_curves, FigureOptions(value="train_loss")),
    (draw_curves, FigureOptions(value="train_loss", band="seeds")),
]


def with_steps(cells: pd.DataFrame) -> FigureData:
    return data_of(cells, None, fake_trajectories(cells))


def few(seeds: int, failed: int = 0) -> FigureData:
    """Cells that every figure can draw, of which the first seeds have failed at one n."""
    cells = fake_cells([2, 5, 10, 20], SNRS[::8], seeds=seeds, noise=0.05)
    return with_steps(fail(cells, (cells["n"] == 20) & (cells["seed"] < failed)))


@pytest.mark.parametrize(("draw", "options"), FIGURES)
@pytest.mark.parametrize(
    ("seeds", "failed"),
    [
        (1, 0),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in [(4, 3), (2, 0), (2, 1), (4, 4)]),
    ],
)
@pytest.mark.one_in(3)
def test_seeds_are_told_in_words_that_a_person_would_use(
    draw: Drawing, options: FigureOptions, seeds: int, failed: int
) -> None:
    text = words(draw(few(seeds, failed), options))
    assert not re.search(r"\b1 (seeds|cells)\b", text)
    assert not re.search(r"(mean|median|bars?) of 1 (?!to \d)", text)
    assert not re.search(r"\bnan\b|\binf\b|None|0 failed", text)
    if seeds == 1:
        assert any(said in text for said in ("one seed", "single cell"))
        assert "mean of" not in text
        assert "deviation" not in text


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("draw", "options"), FIGURES)
def test_figures_of_two_runs_can_be_drawn_too(draw: Drawing, options: FigureOptions) -> None:
    data = side_by_side(["one", "other"], [few(3), few(2)])
    text = words(draw(data, options))
    assert re.search(r"\n(\(a\) )?one", text)
    assert re.search(r"\n(\(b\) )?other", text)


@pytest.mark.parametrize(("draw", "options"), FIGURES)
@pytest.mark.one_in(3)
def test_no_text_lies_outside_of_the_picture(draw: Drawing, options: FigureOptions) -> None:
    figure = draw(few(3, 1), options)
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert min(box.x0, box.y0) > -0.02
    assert box.x1 < width + 0.02
    assert box.y1 < height + 0.02


# Nothing to draw


@styled
def empty(data: object = None, options: object = None) -> Picture:
    figure, axes = new_figure()
    axes.plot([1.0, 2.0], [np.nan, np.nan])
    axes.text(0.5, 0.5, "here is nothing")
    return figure


def test_a_figure_without_anything_on_it_is_a_sentence(tmp_path: Path) -> None:
    directory = sweep_toy(tmp_path / "run")
    figures = {"empty": Figure("empty", "Nothing", "cells", empty)}
    with (
        mock.patch("overfit_cli.figures.draw.figures_of", lambda study: figures),
        pytest.raises(UserError, match=r"^empty: nothing would be drawn; the cells hold no number"),
    ):
        draw_figure(Request("empty", [directory], FigureOptions()))


@pytest.mark.parametrize(
    ("what", "where"),
    [("plot", ([np.nan, 2.0], [1.0, 3.0])), ("scatter", (1.0, 2.0)), ("bar", (1.0, 2.0))],
)
def test_a_figure_with_something_on_it_is_not_empty(what: str, where: tuple[Any, Any]) -> None:
    figure = empty()
    assert figure.is_empty()
    getattr(figure.axes[0], what)(*where)
    assert not figure.is_empty()
    image = empty()
    image.axes[0].imshow([[1.0]])
    assert not image.is_empty()


@pytest.mark.parametrize(("draw", "options"), FIGURES)
def test_cells_that_all_failed_are_refused(draw: Drawing, options: FigureOptions) -> None:
    cells = fake_cells([2, 5, 10, 20], SNRS[::3])
    gone = fail(cells, pd.Series(True, index=cells.index))
    logged = fake_trajectories(cells).assign(train_loss=np.nan)
    with pytest.raises(UserError, match="number"):
        draw(data_of(gone, None, logged), options)


# Colours


@pytest.mark.parametrize("kinds", [("softmax", "gaussian"), ("gaussian", "softmax")])
@pytest.mark.one_in(2)
def test_colours_of_words_follow_their_declaration_in_every_figure(kinds: tuple[str, ...]) -> None:
    """Not the order of the cells, nor the alphabet: a kernel has one colour in all figures."""
    cells = pd.concat([fake_cells(NS[2:5], SNRS, kernel=k) for k in kinds], ignore_index=True)
    cells["key"] = cells["key"] + cells["kernel"]
    lower = cells["kernel"] == "gaussian"
    cells.loc[lower, "test_loss"] *= 0.8
    one = with_steps(cells[cells["n"] == 10])
    lines = draw_lines(one, LINES).axes[0].lines[:2]
    assert [line.get_color() for line in lines] == ["C0", "C1"]
    assert heights(lines[0])[0] > heights(lines[1])[0]
    boundary = draw_boundary(with_steps(cells), replace(SIDES, by="kernel"))
    first, second = (found.lines[0] for found in boundary.axes[0].containers)  # type: ignore[attr-defined]
    assert (first.get_color(), second.get_color()) == ("C0", "C1")
    assert first.get_xdata()[0] > second.get_xdata()[0]
    curves = draw_curves(with_steps(cells[(cells["n"] == 10) & (cells["snr"] == 1)]), LINES)
    legend = curves.legends[0]
    assert [text.get_text() for text in legend.get_texts()][:2] == ["softmax", "gaussian"]
