"""Figures of kernel-regression, from kept cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from overfit_cli.studies.attention_kernel.regression.study import FIGURES
from overfit_cli.sweeps.load import load_figure_data
from overfit_cli.sweeps.store import RunDirectory


def draw(name: str, run: str) -> Any:
    figure = FIGURES[name]
    return figure.draw(
        load_figure_data(RunDirectory(Path("results") / run, "from")), figure.options
    )


def test_minima_are_counted_by_seeds_with_exact_intervals() -> None:
    [axes] = draw("minima", "kernel-minima-quick").axes
    five = axes.containers[1]
    assert five.lines[0].get_ydata()[0] == 0.1, "2 of 20 seeds, n = 5 and d = 1"
    segments = five.lines[2][0].get_segments()
    np.testing.assert_allclose(segments[0][:, 1], [0.0123, 0.317], atol=1e-3)
    np.testing.assert_allclose(segments[3][:, 1], [0.0, 0.168], atol=1e-3)


def test_predicted_steps_have_the_statistic_of_those_that_were_measured() -> None:
    [axes] = draw("tangent-steps", "kernel-tangent-steps-quick").axes
    lines = [line for line in axes.lines if len(line.get_xdata()) == 13]
    for measured, predicted in (lines[:2], lines[2:4]):
        ended = np.isfinite(measured.get_ydata())
        apart = measured.get_ydata()[ended] - predicted.get_ydata()[ended]
        assert np.abs(apart).max() <= 1
