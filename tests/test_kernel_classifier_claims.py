"""Which kernel is faster, surer, steadier: verdicts on cells whose answer is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pytest

from overfit_cli.claim import Measurement
from overfit_cli.studies.attention_kernel.classifier.claims import BEST_KERNELS
from overfit_cli.studies.attention_kernel.pathfinder.parameters import KernelPathfinderParameters
from overfit_cli.studies.attention_kernel.pathfinder.study import study as pathfinder
from overfit_cli.studies.attention_kernel.text.parameters import KernelTextParameters
from overfit_cli.studies.attention_kernel.text.study import study as text

BY_NAME = {claim.name: claim for claim in (*text.claims(), *pathfinder.claims())}
JITTER = (-0.02, -0.01, 0.0, 0.01, 0.02)
RATES = (0.001, 0.01, 0.1)
SOFTMAX, GAUSSIAN = (0.6, 0.5, 0.6), (0.5, 0.4, 0.5)
COMPARED = (
    "text-gaussian-faster",
    "text-gaussian-more-accurate",
    "text-above-shortcut",
    "pathfinder-gaussian-faster",
    "pathfinder-gaussian-more-accurate",
    "pathfinder-gaussian-steadier",
    "pathfinder-above-shortcut",
)


def cells(
    losses: Mapping[str, Sequence[float]],
    *,
    jitter: Sequence[float] = JITTER,
    wobble: Mapping[str, float] | None = None,
    **same: object,
) -> pd.DataFrame:
    """A row for each kernel, step size and seed; the accuracy is one less the loss.

    Args:
        losses: of each kernel at each step size, in the mean over seeds.
        jitter: what a seed adds to it.
        wobble: how many times the jitter goes into a kernel's accuracy, other than once.
        same: what all rows have.
    """
    defaults = KernelPathfinderParameters().model_dump() | KernelTextParameters().model_dump()
    rows = []
    for kernel, means in losses.items():
        for rate, mean in zip(RATES, means, strict=False):
            for seed, shift in enumerate(jitter):
                more = shift * (wobble or {}).get(kernel, 1.0)
                rows.append(
                    defaults
                    | {"kernel": kernel, "learning_rate": rate, "seed": seed, "status": "done"}
                    | {"steps": 600, "mean_test_loss": mean + shift, "test_loss": mean + shift}
                    | {"test_accuracy": 1 - mean - more, "shortcut_accuracy": 0.55}
                    | {"silent_head": 0.1, **same}
                )
    return pd.DataFrame(rows)


def fail(frame: pd.DataFrame, which: pd.Series[bool]) -> pd.DataFrame:
    frame = frame.copy()
    frame.loc[which, "status"] = "failed"
    frame.loc[which, ["mean_test_loss", "test_loss", "test_accuracy", "silent_head"]] = np.nan
    return frame


def measure(name: str, frame: pd.DataFrame) -> Measurement:
    return BY_NAME[name].judge(frame)


def expect(found: Measurement, verdict: str, value: float) -> None:
    assert found.verdict == verdict, found.note
    assert found.value == pytest.approx(value)
    if found.low is not None and found.high is not None:
        assert found.low - 1e-9 <= value <= found.high + 1e-9


PAPER = {"softmax": SOFTMAX, "gaussian": GAUSSIAN}
REVERSED = {"softmax": GAUSSIAN, "gaussian": SOFTMAX}


@pytest.mark.parametrize("where", ["text", "pathfinder"])
def test_a_kernel_whose_loss_is_lower_at_its_best_is_faster(where: str) -> None:
    name = f"{where}-gaussian-faster"
    found = measure(name, cells(PAPER))
    assert found.verdict == "holds"
    assert found.value == pytest.approx(-0.1)
    assert (found.low, found.high) == pytest.approx((-0.1, -0.1))
    assert found.interval == "95 % t over seeds"
    found = measure(name, cells(REVERSED))
    expect(found, "fails", 0.1)


def test_the_interval_is_students_over_the_seeds_differences() -> None:
    """Differences −0.1 plus −0.02, ..., 0.02: the half-width is 2.776 · 0.0158 / √5."""
    frame = cells(PAPER)
    frame.loc[frame["kernel"] == "softmax", "mean_test_loss"] = 0.5
    found = measure("text-gaussian-faster", frame[frame["learning_rate"] != 0.001])
    assert found.value == pytest.approx(-0.1)
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low == pytest.approx(2 * 2.776445 * 0.0158114 / 5**0.5, rel=1e-4)


def test_a_difference_within_the_seeds_spread_is_open() -> None:
    frame = cells({"softmax": (0.5, 0.5), "gaussian": (0.5, 0.51)})
    backwards = frame["kernel"] == "gaussian"
    for column in ("mean_test_loss", "test_accuracy"):
        frame.loc[backwards, column] = frame.loc[backwards, column].to_numpy()[::-1]
    for name in ("text-gaussian-faster", "text-gaussian-more-accurate"):
        assert measure(name, frame).verdict == "inconclusive", name


@pytest.mark.parametrize("where", ["text", "pathfinder"])
def test_a_kernel_that_ends_higher_is_more_accurate(where: str) -> None:
    name = f"{where}-gaussian-more-accurate"
    found = measure(name, cells(PAPER))
    expect(found, "holds", 0.1)
    assert "0.600 ± 0.016 with gaussian at 0.01" in found.note
    assert "0.500 ± 0.016 with softmax at 0.01" in found.note
    found = measure(name, cells(REVERSED))
    expect(found, "fails", -0.1)


def test_a_kernel_whose_accuracy_varies_less_is_steadier() -> None:
    """A fiftieth of the deviation is 2500 times the variance; equal ones leave it open."""
    name = "pathfinder-gaussian-steadier"
    found = measure(name, cells(PAPER, wobble={"gaussian": 0.02}))
    expect(found, "holds", 2500)
    assert found.interval == "95 % Pitman–Morgan"
    found = measure(name, cells(PAPER, wobble={"softmax": 0.02}))
    expect(found, "fails", 1 / 2500)
    found = measure(name, cells(PAPER))
    expect(found, "inconclusive", 1)
    assert found.low == pytest.approx(1)  # the hand-made seeds move together
    found = measure(name, cells(PAPER, wobble={"softmax": 0.0}))
    assert found.verdict == "inconclusive"
    assert "doesn't vary" in found.note


@pytest.mark.parametrize("where", ["text", "pathfinder"])
def test_more_than_the_shortcut_is_learned_where_the_better_kernel_is_above_it(where: str) -> None:
    name = f"{where}-above-shortcut"
    found = measure(name, cells(PAPER))
    expect(found, "holds", 0.05)
    assert "The best kernel is gaussian at 0.01" in found.note
    assert measure(name, cells(PAPER, shortcut_accuracy=0.7)).verdict == "fails"
    assert measure(name, cells(PAPER, shortcut_accuracy=0.6)).verdict == "inconclusive"


def test_a_dead_head_is_found_and_named() -> None:
    frame = cells(PAPER)
    found = measure("text-head-alive", frame)
    expect(found, "holds", 0)
    dead = (frame["kernel"] == "gaussian") & (frame["learning_rate"] == 0.1)
    frame.loc[dead, "silent_head"] = 1.0
    found = measure("text-head-alive", frame)
    expect(found, "fails", 5)
    assert "In 5 of 30 cells" in found.note
    assert "every test sample: gaussian at 0.1." in found.note
    nothing = fail(frame, frame["seed"] >= 0)
    assert measure("text-head-alive", nothing).verdict == "not run"


def test_the_best_step_size_is_each_kernels_own_and_none_at_which_a_seed_failed() -> None:
    frame = cells({"softmax": (0.3, 0.5, 0.4), "gaussian": (0.6, 0.2, 0.1)})
    failed = (frame["kernel"] == "gaussian") & (frame["learning_rate"] == 0.1)
    frame = fail(frame, failed & (frame["seed"] == 4))
    best = BEST_KERNELS.at_best(frame, "softmax")
    assert best is not None
    assert (best.value, best.tried) == (0.001, RATES)
    assert best.in_words() == "softmax at 0.001 of 0.001, 0.01, 0.1, at the edge of the sweep"
    best = BEST_KERNELS.at_best(frame, "gaussian")
    assert best is not None
    assert best.in_words() == "gaussian at 0.01 of 0.001, 0.01, 0.1"
    assert best.cells.index.tolist() == [0, 1, 2, 3, 4]
    assert BEST_KERNELS.at_best(frame, "gaussian-over-n") is None
    assert BEST_KERNELS.at_best(fail(frame, frame["seed"] == 0), "softmax") is None


def test_sentences_name_the_sweep_its_edge_and_one_rate_for_both() -> None:
    frame = cells({"softmax": (0.3, 0.5, 0.5), "gaussian": (0.6, 0.2, 0.4)})
    sentence = measure("text-gaussian-faster", frame).note
    assert "0.200 ± 0.016 with gaussian at 0.01 of 0.001, 0.01, 0.1;" in sentence
    assert "softmax at 0.001 of 0.001, 0.01, 0.1, at the edge of the sweep; 5 seeds" in sentence
    assert "600 steps" in sentence
    assert "at one step size for both, gaussian is lower at 2 of 3" in sentence


@pytest.mark.parametrize("control", ["gaussian-normalised", "softmax-times-n", "gaussian-over-n"])
def test_a_control_is_held_against_softmax_on_its_own_cells(control: str) -> None:
    frame = cells({**PAPER, control: (0.9, 0.8, 0.7)})
    found = measure(f"text-control-{control}", frame)
    expect(found, "fails", 0.2)
    assert f"with {control} at 0.1 of 0.001, 0.01, 0.1, at the edge" in found.note
    missing = measure(f"text-control-{control}", cells(PAPER))
    assert missing.verdict == "not run"
    assert f"kernel={control},softmax" in missing.note
    assert measure("text-gaussian-faster", frame).verdict == "holds"


@pytest.mark.parametrize("name", COMPARED)
def test_one_kernel_or_mixed_settings_leave_a_comparison_not_run(name: str) -> None:
    assert measure(name, cells({"gaussian": GAUSSIAN})).verdict == "not run"
    mixed = cells(PAPER)
    mixed.loc[mixed["seed"] == 0, "d"] = 32
    found = measure(name, mixed)
    assert found.verdict == "not run"
    assert found.note == "It needs cells of one value of d."


@pytest.mark.parametrize("name", COMPARED)
def test_few_seeds_or_a_single_step_size_leave_a_comparison_open(name: str) -> None:
    for few in (
        cells(PAPER, jitter=JITTER[:2]),
        cells({"softmax": SOFTMAX[:1], "gaussian": GAUSSIAN[:1]}),
    ):
        found = measure(name, few)
        assert found.verdict == "inconclusive"
        assert "at least 3 and 2 are needed" in found.note
    frame = cells(PAPER)
    found = measure(name, fail(frame, frame["seed"] == 0))
    assert found.verdict == "inconclusive"
    assert "no step size at which all seeds are done" in found.note


def test_seeds_that_one_kernel_lacks_are_left_out() -> None:
    frame = cells(PAPER)
    frame = frame[(frame["kernel"] == "gaussian") | (frame["seed"] < 3)]
    found = measure("text-gaussian-faster", frame)
    assert found.value == pytest.approx(-0.1)
    assert "3 seeds" in found.note
