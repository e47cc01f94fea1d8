"""The figure `bounds`: what was measured over bounds, cell by cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

from overfit_cli import Column, UserError
from overfit_cli.core.figure import FigureOptions, bounds_figure
from overfit_cli.figures.picture import Picture
from tests import fake_study as fake

CELLS = fake.fake_cells([5, 10], [1.0, 2.0], seeds=4)
"""Sixteen cells with a training loss of 0.01."""


class Logarithms(fake.FakeStudy):
    """A study whose test loss is a logarithm over a bound."""

    columns = (fake.FakeStudy.columns[0], Column("test_loss", "test loss", decades=True))


def drawn(rows: Mapping[str, str], cells: pd.DataFrame = CELLS, *told: str) -> Picture:
    figure = bounds_figure(rows, told)
    data = fake.data_of(cells, study=Logarithms())
    picture: Picture = figure.draw(data, FigureOptions())
    return picture


def shown(picture: Picture, *, hollow: bool = False) -> list[float]:
    """How far along the axis points stand, in order; open ones, or full ones."""
    lines = [line for line in picture.axes[0].lines if line.get_linestyle() == "None"]
    chosen = [line for line in lines if (line.get_markerfacecolor() == "none") == hollow]
    return sorted(float(x) for line in chosen for x in np.asarray(line.get_xdata()))


def test_points_stand_at_the_ratio_and_logarithms_at_their_powers() -> None:
    ratio = drawn({"loss over its bound": "train_loss <= 2 * n * 0.01 where n = 5"})
    assert shown(ratio) == pytest.approx([0.1] * 8)
    assert "\n0.1\n" in fake.words(ratio), "the largest one"
    decades = drawn({"excess": "test_loss <= 0"}, CELLS.assign(test_loss=-2.0))
    assert shown(decades) == pytest.approx([0.01] * 16)


def test_cells_that_miss_a_hypothesis_have_open_markers() -> None:
    picture = drawn({"loss": "train_loss <= 0.1 if n <= 5 and snr <= 8"})
    assert len(shown(picture)) == len(shown(picture, hollow=True)) == 8
    assert not fake.untold(picture, "hypotheses not met", "vacuous")


def test_a_bound_whose_hypotheses_no_cell_meets_is_vacuous_by_so_many_decades() -> None:
    picture = drawn({"Theorem\n1": "train_loss <= 0.1 if snr * 0 + 1000 <= 1 and n <= 10"})
    said = "0.1, vacuous … Theorem 1 is vacuous: no cell meets its hypotheses; decades missing, in"
    assert not fake.untold(picture, f"{said} … snr * 0 + 1000 <= 1 by 3; n <= 10 by")
    assert shown(picture) == []


def test_numbers_without_a_logarithm_are_told_and_far_ones_stand_at_the_end() -> None:
    zero = CELLS.assign(train_loss=np.where(CELLS["seed"] == 0, 0.0, 0.01))
    picture = drawn({"loss": "train_loss <= 1"}, zero)
    assert len(shown(picture)) == 12
    assert "loss: 4 numbers at 0 or less not shown." in picture.facts
    far = drawn({"excess": "test_loss <= 0"}, CELLS.assign(test_loss=-400.0))
    assert shown(far) == pytest.approx([1e-300] * 16, rel=1e-9)


def test_the_first_two_parameters_that_vary_are_told_apart() -> None:
    picture = drawn({"loss": "train_loss <= 1"}, CELLS, "width", "snr", "n")
    lines = [line for line in picture.axes[0].lines if len(np.asarray(line.get_xdata())) == 4]
    looks = {(line.get_color(), line.get_marker()) for line in lines}
    assert len(looks) == 4
    assert not fake.untold(picture, "SNR = 1 … SNR = 2 … N = 5 … N = 10")


def test_rows_without_cells_or_columns_are_left_out_and_a_figure_of_none_is_refused() -> None:
    older = CELLS.drop(columns="test_loss")
    rows = {"one": "train_loss <= 1", "two": "test_loss <= 1", "three": "train_loss <= 1 where n=7"}
    picture = drawn(rows, older)
    assert [label.get_text() for label in picture.axes[0].get_yticklabels()] == ["one"]
    none: dict[str, Any] = {"two": rows["two"]}
    assert not bounds_figure(none).fits(fake.data_of(older))
    with pytest.raises(UserError, match="No cell here has a number over one of these bounds"):
        drawn(none, older)
    for wrong in ("train_loss", "trian_loss <= 1"):
        with pytest.raises(UserError, match=r"no comparison of two sides|trian_loss"):
            drawn({"one": wrong})
