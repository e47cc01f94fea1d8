"""The same figure for each value of a parameter, and which parameter that is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from overfit_cli import UserError
from overfit_cli.core.figure import MOST_PANELS, Figure, FigureOptions
from overfit_cli.figures.inputs import resolve_options
from overfit_cli.figures.panels import Panel, panels
from tests.fake_study import data_of, draw_lines, fake_cells


def test_panels_hold_the_cells_and_the_plan_of_their_value() -> None:
    cells = fake_cells([5, 10], [1.0])
    planned = fake_cells([5, 10, 20], [1.0])[["seed", "n", "snr", "width", "kernel"]]
    data = data_of(cells, planned)
    assert panels(data, None) == [Panel("", data)]
    parts = panels(data, "n")
    assert [part.title for part in parts] == ["$N$ = 5", "$N$ = 10", "$N$ = 20"]
    for part, n in zip(parts, (5, 10, 20), strict=True):
        assert set(part.data.planned["n"]) == {n}
        assert set(part.data.cells["n"]) <= {n}
    assert [len(part.data.cells) for part in parts] == [3, 3, 0]


def test_panels_of_words_have_the_label_before_them_in_declared_order() -> None:
    cells = pd.concat([fake_cells([5], [1.0], kernel=k) for k in ("gaussian", "softmax")])
    titles = [part.title for part in panels(data_of(cells), "kernel")]
    assert titles == ["kernel: softmax", "kernel: gaussian"]


def test_too_many_panels_or_an_unknown_parameter_are_refused() -> None:
    snrs = np.arange(1.0, MOST_PANELS + 2).tolist()
    data = data_of(fake_cells([5], snrs, seeds=1))
    with pytest.raises(UserError, match="by='snr': it has 13 values here; at most 12"):
        panels(data, "snr")
    assert len(panels(data_of(fake_cells([5], snrs[:-1], seeds=1)), "snr")) == MOST_PANELS
    with pytest.raises(UserError, match="by='snrr': fake has no parameter 'snrr'; did you mean"):
        panels(data, "snrr")


@pytest.mark.parametrize(
    ("own", "asked", "taken"),
    [
        ("kernel,n,snr", None, "n"),
        ("snr,n", None, "n"),  # snr is the axis
        ("kernel,width", None, None),
        ("kernel", None, None),
        (None, None, None),
        ("n", "kernel", "kernel"),
        (None, "snr", "snr"),
    ],
)
def test_of_several_parameters_the_first_that_varies_is_panels(
    own: str | None, asked: str | None, taken: str | None
) -> None:
    data = data_of(fake_cells([5, 10], [1.0, 2.0]))
    figure = Figure("a", "", "cells", draw_lines, options=FigureOptions(x="snr", by=own))
    assert resolve_options(figure, FigureOptions(by=asked), data).by == taken
