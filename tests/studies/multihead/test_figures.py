"""The figures of attention heads: training against the step, and certificates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.axes
import numpy as np
import pandas as pd
import pytest

import overfit_cli
from overfit_cli import UserError
from overfit_cli.figures.picture import Picture
from tests.fake_study import words

SMALL: dict[str, Any] = {"n": 20, "test_samples": 10, "training_steps": 12}
CERTIFIED: dict[str, Any] = {**SMALL, "first_phase": "signs", "certify": True}
PLANTED: dict[str, Any] = {**SMALL, "tokens": 4, "d": 3, "heads": [1, 3]}

Drawn = Callable[..., tuple[pd.DataFrame, Picture]]


@pytest.fixture
def drawn(tmp_path: Path) -> Drawn:
    """Sweep a study, and draw a figure of its cells; it returns both."""

    def sweep_and_draw(
        figure: str, seeds: int, study: str = "mixture", **given: Any
    ) -> tuple[pd.DataFrame, Picture]:
        out, name = tmp_path / f"run-{len(list(tmp_path.iterdir()))}", f"multihead-{study}"
        cells = overfit_cli.sweep(
            name, seeds=seeds, parameters=given, trajectories=True, out=out, jobs=1, quiet=True
        )
        return cells, overfit_cli.draw(figure, out)

    return sweep_and_draw


def long_lines(axes: matplotlib.axes.Axes) -> list[np.ndarray]:
    """The heights of the lines that have more than two points."""
    lines = [np.asarray(line.get_ydata(), dtype=np.float64) for line in axes.lines]
    return [line for line in lines if len(line) > 2]


@pytest.mark.slow
def test_heads_have_a_line_for_each_number_of_them_in_every_row(drawn: Drawn) -> None:
    cells, figure = drawn("heads", 3, heads=[1, 5], **SMALL)
    losses, norms, attention, margins = figure.axes
    assert len(long_lines(losses)) == 4  # training and test
    assert len(long_lines(norms)) == 4
    assert len(long_lines(attention)) == len(long_lines(margins)) == 2
    for line, heads in zip(long_lines(losses)[::2], (1, 5), strict=True):
        ends = cells.loc[cells["heads"] == heads, "train_loss"]
        assert line[-1] == pytest.approx(float(ends.median()))
    mark = next(text for text in margins.texts if "attn" in text.get_text())
    assert margins.get_ylim()[0] < mark.get_position()[1] < margins.get_ylim()[1]
    said = words(figure)
    assert "median of 3 seeds, band: the middle half" in said
    assert "gradient steps" in said


@pytest.mark.slow
def test_seeds_that_miss_the_planted_head_are_counted(drawn: Drawn) -> None:
    """After twelve steps no seed has found it, whatever the median cosine is."""
    cells, figure = drawn("heads", 3, "planted", **PLANTED)
    assert ((cells["alignment_w"] <= 0.9) | (cells["alignment_u"] <= 0.9)).all()
    assert "3 of 3 at H = 1, 3 of 3 at H = 3" in " ".join(figure.caption.split())
    shares = next(axes for axes in figure.axes if "share of seeds" in axes.get_ylabel())
    assert all(line[-1] == 0 for line in long_lines(shares))


@pytest.mark.slow
def test_shorter_trainings_of_a_setting_have_no_panel_of_their_own(drawn: Drawn) -> None:
    _, figure = drawn("heads", 1, **{**SMALL, "training_steps": [5, 12]})
    assert figure.axes[0].get_xlim() == (0, 12)
    assert len({axes.get_position().x0 for axes in figure.axes}) == 1


@pytest.mark.slow
def test_panels_of_several_settings_are_refused_in_one_column(drawn: Drawn, tmp_path: Path) -> None:
    drawn("heads", 1, **SMALL, optimiser=["gd", "adam"])
    with pytest.raises(UserError, match=r"needs 4\.6 inches or more"):
        overfit_cli.draw("heads", tmp_path / "run-0", size="column")


@pytest.mark.slow
def test_certificates_say_how_far_below_its_bound_each_number_is(drawn: Drawn) -> None:
    cells, figure = drawn("certificates", 2, **CERTIFIED, heads=[1, 4])
    said, caption = words(figure), " ".join(figure.caption.split())
    assert f"\n{cells['model_gradient'].max():.2g}\n" in said
    assert "Theorem 1 is vacuous here: it requires" in caption
    assert "decades more heads, and a step size" in caption
    ratios, margins = figure.axes
    assert ratios.get_xscale() == "log"
    ends = [f"{end:.3g}" for end in (cells["ntk_margin"].min(), cells["ntk_margin"].max())]
    assert " to ".join(ends) in said
    far = [line for line in margins.lines if line.get_marker() == "<"]
    assert far, "γ⋆ lies far below the axis"
    assert "farther left" in said
    colours = {line.get_color() for line in ratios.lines if line.get_marker() == "o"}
    assert len(colours) == 2, "a colour for each H"


@pytest.mark.slow
def test_certificates_tell_two_parameters_apart_and_name_a_third(drawn: Drawn) -> None:
    varied = {"heads": [1, 4], "sigma": [0.02, 0.1], "first_samples": [10, 20]}
    _, figure = drawn("certificates", 1, **CERTIFIED, **varied)
    shapes = {line.get_marker() for line in figure.axes[0].lines} - {"None", ""}
    assert shapes == {"o", "s"}, "a marker for each σ"
    assert "attention heads, deviation of the noise" in words(figure)
    assert " Together: n_1 = 10, 20." in " ".join(figure.caption.split())


def test_certificates_of_cells_that_are_held_to_none_are_refused(drawn: Drawn) -> None:
    with pytest.raises(UserError, match="certify=true"):
        drawn("certificates", 1, **SMALL, optimiser="adam")


@pytest.mark.slow
def test_steps_to_the_target_are_drawn_over_heads_and_step_size(drawn: Drawn) -> None:
    rates = {"learning_rate": [0.3, 1.0, 3.0], "target_loss": 0.5}
    said = words(drawn("heatmap", 3, **SMALL, heads=[1, 5, 20], **rates)[1])
    assert "\nattention heads H\n" in said
    assert "\nsteps to the target loss\n" in said


def test_a_difference_is_of_the_column_that_the_figure_draws(drawn: Drawn, tmp_path: Path) -> None:
    """Steps to the target: not the headline, which is the training loss."""
    axes: dict[str, Any] = {"heads": [1, 5, 20], "learning_rate": [1.0, 3.0], "target_loss": 0.5}
    means = []
    for momentum in (0.9, 0.1):
        given: dict[str, Any] = {**SMALL, **axes, "momentum": momentum, "optimiser": "momentum"}
        cells, _ = drawn("heatmap", 2, **given)
        by_place = cells.groupby(["learning_rate", "heads"])["steps_to_target"]
        means.append(by_place.mean().unstack())
    figure = overfit_cli.draw("heatmap", tmp_path / "run-0", minus=tmp_path / "run-1")
    shown = np.asarray(figure.axes[0].collections[0].get_array(), dtype=np.float64)
    assert np.ptp(shown) > 0
    assert shown == pytest.approx((means[0] - means[1]).to_numpy(), nan_ok=True)


@pytest.mark.slow
def test_least_heads_has_the_conclusion_and_the_condition_side_by_side(drawn: Drawn) -> None:
    cells, figure = drawn("least-heads", 3, **SMALL, certify=True, heads=[1, 100])
    conclusion, condition = (
        np.asarray(axes.lines[0].get_ydata(), dtype=np.float64) for axes in figure.axes
    )
    ratio = (cells["mean_train_loss"] / cells["theorem1_bound"]).groupby(cells["heads"]).median()
    assert conclusion == pytest.approx(ratio.to_numpy())
    needed = 10.0 ** cells["theorem1_heads"] * cells["d"] ** 2 / cells["heads"]
    assert condition == pytest.approx(needed.groupby(cells["heads"]).median().to_numpy())
    said = words(figure)
    assert "\nmedian of 3 seeds\n" in said
    assert "\nleast to greatest\n" in said


@pytest.mark.parametrize(
    ("seeds", "band"),
    [
        ("0:2", "3 seeds, with the least and the greatest"),
        ("0:9", "10 seeds, with its 95 % interval"),
    ],
)
@pytest.mark.one_in(2)
def test_required_heads_of_few_seeds_lie_between_the_least_and_the_greatest(
    seeds: str, band: str
) -> None:
    """The median of fewer than six has no interval."""
    run = Path(__file__).parents[3] / "results" / "heads-least-margin-quick"
    figure = overfit_cli.draw("least-margin", run, where=[f"seed={seeds}"])
    assert f"the median of {band}" in words(figure)
