"""Studies' figures of what no kept picture shows: refusals, odd cells, and further parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import overfit_cli
from overfit_cli import UserError
from overfit_cli.figures.picture import Picture
from tests.fake_study import words

RESULTS = Path(__file__).parents[2] / "results"
HEADS: dict[str, Any] = {"n": 20, "test_samples": 10, "training_steps": 12}
SCORES: dict[str, Any] = {"n": 20, "m": 16, "validation": 10, "training_steps": 4}


def sweep(out: Path, study: str, seeds: int = 1, **given: Any) -> pd.DataFrame:
    return overfit_cli.sweep(
        study, seeds=seeds, parameters=given, trajectories=True, out=out, jobs=1, quiet=True
    )


def drawn(out: Path, figure: str, study: str, seeds: int = 1, **given: Any) -> Picture:
    sweep(out, study, seeds, **given)
    return overfit_cli.draw(figure, out)


@pytest.mark.parametrize(
    ("figure", "run", "sentence"),
    [
        ("bounds", "heads-normalised", "No cell here has"),
        ("phase", "positional-sizes", "phase. needs cells as in .overfit"),
        ("overlaps", "positional-sizes", "overlaps. needs cells as in .overfit"),
        ("sizes", "positional-phase", "d is constant in these cells"),
        ("samples", "softmax-scores-gd", "samples. needs cells as in .overfit"),
    ],
)
def test_cells_that_a_figure_has_nothing_of_are_refused(
    figure: str, run: str, sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        overfit_cli.draw(figure, RESULTS / f"{run}-quick")


@pytest.mark.parametrize("error", [KeyError("depth"), ValueError("Index contains duplicates")])
def test_a_figure_of_other_columns_or_parameters_says_what_varies(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overfit_cli.figures.lines.draw_lines", mock.Mock(side_effect=error))
    varies = "^lines is no figure of these cells; here varies kernel, .*learning_rate"
    with pytest.raises(UserError, match=rf"{varies} \({type(error).__name__}: "):
        overfit_cli.draw("lines", RESULTS / "kernel-example-quick")


@pytest.mark.slow
def test_rows_of_curves_share_steps_and_colours_and_have_columns_for_other_parameters() -> None:
    figure = overfit_cli.draw("heads", RESULTS / "heads-planted-quick")
    titles = [axes.get_title(loc="left").partition(",")[0] for axes in figure.axes]
    assert titles[:4] == ["(a) gradient descent", "(b) momentum", "(c) Adam", "(d)"]
    assert {axes.get_xlim() for axes in figure.axes} == {figure.axes[0].get_xlim()}
    colours = [{line.get_color() for line in axes.lines} for axes in figure.axes]
    assert len(colours[0]) == 6
    assert all(others == colours[0] for others in colours)
    refused: list[tuple[str, str, dict[str, Any]]] = [
        ("planted", r"needs 4\.8 inches or more", {"size": "column"}),
        ("normalised", "6 panels here; at most 4 with rows of others", {"by": "heads"}),
        ("normalised", "it takes a figure of one row", {"theory": "test_loss"}),
    ]
    for run, sentence, options in refused:
        with pytest.raises(UserError, match=sentence):
            overfit_cli.draw("heads", RESULTS / f"heads-{run}-quick", **options)


@pytest.mark.slow
def test_a_difference_is_of_the_column_that_the_figure_draws(tmp_path: Path) -> None:
    """Steps to the target: not the headline, which is the training loss."""
    axes: dict[str, Any] = {"heads": [1, 5, 20], "learning_rate": [1.0, 3.0], "target_loss": 0.5}
    means = []
    for momentum in (0.9, 0.1):
        given: dict[str, Any] = {**HEADS, **axes, "momentum": momentum, "optimiser": "momentum"}
        cells = sweep(tmp_path / f"{momentum}", "multihead-mixture", 2, **given)
        by_place = cells.groupby(["learning_rate", "heads"])["steps_to_target"]
        means.append(by_place.mean().unstack())
    figure = overfit_cli.draw("heatmap", tmp_path / "0.9", minus=tmp_path / "0.1")
    shown = np.asarray(figure.axes[0].collections[0].get_array(), dtype=np.float64)
    assert np.ptp(shown) > 0
    assert shown == pytest.approx((means[0] - means[1]).to_numpy(), nan_ok=True)
    assert "\nattention heads H\n" in words(figure)


@pytest.mark.slow
def test_curves_of_scores_leave_out_what_was_not_trained(tmp_path: Path) -> None:
    models = ["softmax", "relu", "true", "posterior", "constant"]
    figure = drawn(tmp_path / "run", "curves", "softmax-diffusion", **SCORES, model=models)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["(a) denoiser: softmax", "(b) denoiser: ReLU"]
