"""Claims on the faster, surer, steadier kernel: verdicts on cells whose answer is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pytest

from overfit_cli import Measurement
from overfit_cli.studies.attention_kernel.parameters import PAPER_RATES, PAPER_STEPS, PAPER_TRAINING
from overfit_cli.studies.attention_kernel.pathfinder.parameters import KernelPathfinderParameters
from overfit_cli.studies.attention_kernel.text.parameters import KernelTextParameters
from overfit_cli.sweeps.presets import find_subject
from overfit_cli.sweeps.run import grid_of
from tests.judged import claims_by_name, measure

BY_NAME = claims_by_name("kernel-text", "kernel-pathfinder")
JITTER = (-0.025, -0.015, -0.005, 0.005, 0.015, 0.025)
CALMER = {"softmax": 0.9}
RATES = (0.001, 0.01, 0.1)
SOFTMAX, GAUSSIAN = (0.6, 0.5, 0.6), (0.5, 0.4, 0.5)
AT_BEST = ("text-gaussian-faster", "pathfinder-above-shortcut")
AT_ONE_RATE = {
    "text-imdb-gaussian-faster": 0.0001,
    "text-imdb-gaussian-more-accurate": 0.0001,
    "pathfinder-lra-gaussian-faster": 0.0002,
    "pathfinder-lra-gaussian-more-accurate": 0.0002,
}


def setting_of(name: str) -> dict[str, Any]:
    """The data and training of a claim's cells: the paper's, where it is about one step size."""
    task = name.partition("-")[0]
    paper = {**PAPER_TRAINING[task], "training_steps": PAPER_STEPS}
    return {} if name in AT_BEST else paper


def cells(
    losses: Mapping[str, Sequence[float]],
    *,
    jitter: Sequence[float] = JITTER,
    wobble: Mapping[str, float] | None = None,
    rates: Sequence[float] = RATES,
    **same: object,
) -> pd.DataFrame:
    """A row for each kernel, step size and seed; the accuracy is one less the loss.

    Args:
        losses: of each kernel at each step size, in the mean over seeds.
        jitter: what a seed adds to it; to softmax's a little less, so that differences spread.
        wobble: how many times the jitter goes into a kernel's accuracy, other than once.
        rates: the step sizes.
        same: what all rows have.
    """
    defaults = KernelPathfinderParameters().model_dump() | KernelTextParameters().model_dump()
    rows = []
    for kernel, means in losses.items():
        for rate, mean in zip(rates, means, strict=False):
            for seed, apart in enumerate(jitter):
                shift = apart * CALMER.get(kernel, 1.0)
                more = apart * (wobble or CALMER).get(kernel, 1.0)
                rows.append(
                    defaults
                    | {"kernel": kernel, "learning_rate": rate, "seed": seed}
                    | {"status": "done", "reason": ""}
                    | {"steps": 600, "mean_test_loss": mean + shift, "test_loss": mean + shift}
                    | {"test_accuracy": 1 - mean - more, "shortcut_accuracy": 0.55}
                    | {"silent_head": 0.1, **same}
                )
    return pd.DataFrame(rows)


def expect(actual: Measurement, verdict: str, value: float) -> None:
    assert actual.verdict == verdict, actual.note
    assert actual.value == pytest.approx(value)
    if actual.interval is not None:
        assert actual.interval.low - 1e-9 <= value <= actual.interval.high + 1e-9


PAPER = {"softmax": SOFTMAX, "gaussian": GAUSSIAN}
REVERSED = {"softmax": GAUSSIAN, "gaussian": SOFTMAX}


def test_the_interval_is_students_and_wider_where_step_sizes_were_chosen() -> None:
    """Differences −0.1 plus −0.025, ..., 0.025, whose deviation over √6 is 0.0076376."""
    frame = cells(PAPER, rates=(0.0001, 0.001, 0.01))
    frame.loc[frame["kernel"] == "softmax", "mean_test_loss"] = 0.5 + 0.1 * (
        frame["learning_rate"] == 0.0001
    )
    for name, t in (
        ("text-gaussian-faster", 3.534066),
        ("text-imdb-gaussian-faster", 2.570582),
    ):
        measurement = measure(name, frame.assign(**setting_of(name)))
        assert measurement.value == pytest.approx(-0.1)
        assert measurement.interval is not None
        assert measurement.interval.high == pytest.approx(-0.1 + t * 0.0076376, rel=1e-4)


def test_curves_are_as_steady_as_they_are_at_the_same_step() -> None:
    """Curves that rise as one are steady, however far they rise; the start does not count."""
    name = "pathfinder-lra-gaussian-steadier-epochs"
    apart, rates = (-0.022, -0.02, -0.018, 0.018, 0.02, 0.022), (0.0002, 0.01)

    def logged(wobbles: str) -> pd.DataFrame:
        frame = cells(PAPER, rates=rates, jitter=apart, wobble={wobbles: 0.1}, **setting_of(name))
        steps = [frame.assign(step=step) for step in (0, 50, 100)]
        steps[0]["test_accuracy"] *= frame["seed"]
        steps[2]["test_accuracy"] += 0.2
        return pd.concat(steps, ignore_index=True)

    expect(measure(name, logged("gaussian")), "holds", 0.018)
    expect(measure(name, logged("softmax")), "fails", -0.018)
    one = logged("softmax")
    assert measure(name, one[one["kernel"] == "softmax"]).verdict == "not run"


REAL_TEXT = {**PAPER_TRAINING["text"], "training_steps": PAPER_STEPS}


@pytest.mark.parametrize("task", ["text", "pathfinder"])
def test_the_paper_profile_has_the_cells_that_the_papers_claims_take(task: str) -> None:
    preset = {"text": "kernel-fig2", "pathfinder": "kernel-fig3"}[task]
    cells_of_it = grid_of(find_subject(preset, "paper")).cells()
    settings = [cell.parameters.model_dump() for cell in cells_of_it]
    wanted = {**PAPER_TRAINING[task], "training_steps": PAPER_STEPS}
    assert all(wanted.items() <= setting.items() for setting in settings)
    assert PAPER_RATES[task] in {setting["learning_rate"] for setting in settings}


def test_claims_of_the_paper_are_on_its_data_and_optimiser() -> None:
    """On generated data the same questions are this tool's."""
    frame = cells(PAPER, rates=(0.0001, 0.01, 0.1))
    real = frame.assign(**REAL_TEXT)
    assert measure("text-imdb-gaussian-faster", real).verdict == "holds"
    others: list[dict[str, Any]] = [{"tokens": 32}, {"d": 8}, {"layers": 1}, {"batch_size": 32}]
    others += [{"training_steps": 100}, {"source": frame["source"].iloc[0]}]
    for other in (frame, frame.assign(source="imdb"), *(real.assign(**each) for each in others)):
        assert measure("text-imdb-gaussian-faster", other).verdict == "not run"
    assert measure("text-gaussian-faster", real).verdict == "not run"
    for claim in BY_NAME.values():
        words = {"imdb": "on IMDb", "lra": "on LRA's Pathfinder images"}
        real_data = next((text for name, text in words.items() if f"-{name}-" in claim.name), "")
        assert (claim.kind == "paper") == bool(real_data), claim.name
        if real_data:
            assert real_data in claim.statement
        else:
            assert "generated" in claim.statement
            assert "stand in for" in claim.statement


def test_more_than_the_shortcut_is_learned_where_the_better_kernel_is_above_it() -> None:
    name = "pathfinder-above-shortcut"
    measurement = measure(name, cells(PAPER))
    expect(measurement, "holds", 0.05)
    assert "for the better kernel, gaussian at 0.01" in measurement.note
    assert measure(name, cells(PAPER, shortcut_accuracy=0.7)).verdict == "fails"
    assert measure(name, cells(PAPER, shortcut_accuracy=0.6)).verdict == "inconclusive"


def test_sentences_name_the_sweep_its_edge_and_one_rate_for_both() -> None:
    frame = cells({"softmax": (0.3, 0.5, 0.5), "gaussian": (0.6, 0.2, 0.4)})
    measurement = measure("text-gaussian-faster", frame)
    assert "over 600 steps: gaussian at 0.01 of 0.001, 0.01, 0.1, less softmax" in measurement.note
    assert "softmax at 0.001 of 0.001, 0.01, 0.1, at the edge of the sweep" in measurement.note
    assert measurement.details["step sizes of both"] == 3
    assert measurement.details["step sizes of both at which gaussian is lower"] == 2


@pytest.mark.parametrize("where", ["text-imdb", "pathfinder-lra"])
def test_kernels_are_compared_at_the_papers_step_size_whatever_is_best(where: str) -> None:
    """There the Gaussian is behind, though it is ahead at its best."""
    rate = AT_ONE_RATE[f"{where}-gaussian-faster"]
    losses = {"softmax": (0.55, 0.5, 0.6), "gaussian": (0.65, 0.4, 0.6)}
    frame = cells(losses, rates=(rate, 0.01, 0.1), **setting_of(where))
    for name, here in (("faster", 0.1), ("more-accurate", -0.1)):
        measurement = measure(f"{where}-gaussian-{name}", frame)
        expect(measurement, "fails", here)
        assert f"gaussian at {rate:g}, less softmax at {rate:g}, seed by seed" in measurement.note
