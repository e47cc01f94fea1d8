"""Claims of papers: their cells, bounds that one exception refutes, and the best of a sweep."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from math import inf, nan
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest

from overfit_cli.claims import cells as of_claims
from overfit_cli.claims.papers import Claims, On, on
from overfit_cli.claims.sentences import read
from overfit_cli.claims.stated import Measure
from overfit_cli.core.arrays import varying
from overfit_cli.core.cell import Column
from overfit_cli.core.claim import Claim, UndecidedError, Verdict
from overfit_cli.core.parameters import StudyParameters, parameter

SEEDS = range(12)


class Toy(StudyParameters):
    """A network."""

    kernel: Literal["softmax", "gaussian"] = parameter("softmax", "kernel")
    n: int = parameter(4, "samples")
    d: int = parameter(8, "features")
    rate: float = parameter(0.5, "step size")


PRESET = """
title = "Toy"
study = "toy"
[set]
kernel = "softmax,gaussian"
n = "2,4,8"
[quick]
set.rate = 0.25
"""


@pytest.fixture(autouse=True)
def _preset(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"{tmp_path.name}.toml").write_text(PRESET)
    monkeypatch.setattr("overfit_cli.claims.papers.preset_folder", lambda: tmp_path)


@pytest.fixture
def cells_of_preset(tmp_path: Any) -> On:
    return on(tmp_path.name)


def cells(**columns: Any) -> pd.DataFrame:
    """A grid over kernels and n of 12 seeds; a function of the frame gives a column."""
    grid = [
        (kernel, n, seed) for kernel in ("softmax", "gaussian") for n in (2, 4, 8) for seed in SEEDS
    ]
    frame = pd.DataFrame(grid, columns=["kernel", "n", "seed"])
    frame = frame.assign(d=8, rate=0.25, status="done", reason="")
    return frame.assign(**columns)


def lose(frame: pd.DataFrame, row: int, column: str, reason: str) -> pd.DataFrame:
    """The cells, of which one failed."""
    lost = pd.Series(frame.index == row)
    return frame.assign(
        status=frame["status"].mask(lost, "failed"),
        reason=frame["reason"].mask(lost, reason),
        **{column: frame[column].mask(lost)},
    )


def judge(text: str, frame: pd.DataFrame, *columns: Column) -> Any:
    """The measurement of a sentence on all cells."""
    measure = Measure(read(text), Toy, columns=columns)
    return Claim(name="c", source="", statement="", holds_where="", measure=measure).judge(frame)


# Which cells


def test_a_preset_says_what_is_fixed_and_what_varies(cells_of_preset: On) -> None:
    others = cells(loss=1.0).assign(rate=0.5)
    chosen = cells_of_preset.of(pd.concat([cells(loss=1.0), others]), Toy)
    assert len(chosen) == 72 and set(chosen["rate"]) == {0.25}
    assert len(cells_of_preset.where(n=4).of(cells(loss=1.0), Toy)) == 24
    assert len(cells_of_preset.where("n >= 4", kernel="softmax").of(cells(loss=1.0), Toy)) == 24


@pytest.mark.parametrize(
    ("lost", "needs"),
    [
        ("rate == 0.25", "as in"),
        ("kernel == 'gaussian'", "kernel=gaussian"),
    ],
)
def test_cells_that_a_preset_has_and_a_run_lacks_are_named(
    cells_of_preset: On, lost: str, needs: str
) -> None:
    frame = cells(loss=1.0)
    with pytest.raises(UndecidedError) as raised:
        cells_of_preset.of(frame.drop(frame.query(lost).index), Toy)
    assert raised.value.measurement.verdict == "not run"
    assert needs in raised.value.measurement.note


def test_parameters_that_may_have_any_value_have_one_of_them(cells_of_preset: On) -> None:
    frame = pd.concat(
        [cells(loss=1.0), cells(loss=1.0).query("n < 8").assign(rate=0.5)], ignore_index=True
    )
    alike = On(cells_of_preset.preset, alike=("rate",))
    free = On(cells_of_preset.preset, free=("rate",))
    assert set(alike.of(frame, Toy)["rate"]) == {0.25}
    made = Claims("toy", "Toy 2026", Toy)
    made.ours("loss", "section 1", "It is.", "loss <= 1 on all seeds", on=alike)
    judged_at = "Judged at rate=0.25; 48 cells of other settings left out."
    assert judged_at in made.claims[0].judge(frame).note
    assert set(free.of(frame, Toy)["rate"]) == {0.25, 0.5}
    lacking = free.of(frame.drop(index=0), Toy)
    assert lacking["status"].tolist().count("failed") == 1  # the one that a seed lacks


def test_a_failed_cell_may_meet_a_condition_on_what_is_measured(cells_of_preset: On) -> None:
    frame = cells(steps=[0.0, 5.0] * 36)
    frame = lose(frame, 2, "steps", "killed")
    chosen = cells_of_preset.where("steps > 0").of(frame, Toy)
    assert len(chosen) == 37
    assert chosen["reason"].tolist().count("killed") == 1


# Bounds


@pytest.mark.parametrize(
    ("text", "columns", "verdict"),
    [
        ("q <= 1 on all seeds", {"q": 1.0}, "holds"),
        ("q < 1 on all seeds", {"q": 1.0}, "fails"),
        ("q >= 1 on all seeds", {"q": 0.9}, "fails"),
        ("q <= b on all seeds", {"q": 2.0, "b": 3.0}, "holds"),
        ("q <= 1 on all seeds", {"q": 1e-4}, "holds by far"),
        ("q <= 1 on 50 % of seeds", {"q": 0.9}, "holds"),
        ("q <= 1 on 50 % of seeds", {"q": 1.1}, "fails"),
        ("decades <= 0 on all seeds", {"decades": -4.0}, "holds by far"),
        ("q <= 1 on all seeds if a <= 0 and q >= 0", {"q": 0.9, "a": -1.0}, "holds"),
    ],
)
def test_a_bound_is_judged_on_the_cells_that_meet_its_conditions(
    text: str, columns: Mapping[str, float], verdict: str
) -> None:
    found = judge(text, cells(**columns), Column("decades", "over a bound", decades=True))
    assert found.verdict == verdict


# Powers


def of_powers() -> pd.DataFrame:
    """Steps that rise as n² and fall as 1/size, nearly, of each seed."""
    frame = cells(size=lambda f: np.where(f["kernel"] == "softmax", 2.0, 5.0) * (1 + f["n"] % 3))
    noise = 0.01 * (frame["seed"] % 5)
    return frame.assign(steps=frame["n"] ** (2 + noise) * frame["size"] ** (noise - 1))


EVERY, HALF = "n > 0", "n > 2 or seed % 2 == 0"  # of the seeds at one n


@pytest.mark.parametrize(
    ("text", "there", "verdict"),
    [
        ("mean of powers of (n, size) in steps are (2, -1)", EVERY, "holds"),
        ("powers of (n, size) in steps are (2, any)", EVERY, "holds"),
        ("powers of (n, size) in steps are (2, 0)", EVERY, "fails"),
        ("powers of (n, d) in steps are (2, 0)", EVERY, "not run"),
        ("powers of (n, size) in steps are (2, any)", HALF, "holds"),
        ("powers of (n, size) in lost are (2, -1)", EVERY, "holds"),  # which a median bears
    ],
)
def test_powers_are_fitted_together_seed_by_seed(text: str, there: str, verdict: str) -> None:
    frame = of_powers().query(there)
    frame = frame.assign(lost=frame["steps"].where(frame["seed"] > 0))
    assert judge(f"{text} within 0.1", frame).verdict == verdict


# Claims of a paper


def test_a_claim_on_several_presets_holds_where_all_do(cells_of_preset: On) -> None:
    made = Claims("toy", "Toy et al. 2024", Toy, figure="lines")
    small, large = cells_of_preset.where("n < 8"), cells_of_preset.where(n=8)
    made.paper(
        "bound", "Lemma 1", "q is below 1.", "q <= 1 on all seeds", on={"s": small, "l": large}
    )
    said = {"because": "a tenth", "hypotheses": "n > 0"}
    made.ours("mean", "Lemma 2", "q is 0.9.", "q is 0.9 within 0.1", on=small, **said)
    joint, single = made.claims
    assert (joint.name, joint.kind, joint.figure) == ("toy-bound", "paper", "lines")
    assert single.source == "after Toy et al. 2024, Lemma 2"
    assert "from 0.8 to 1, at every setting (a tenth); at least 6 seeds" in single.holds_where
    frame = cells(q=0.9)
    assert joint.judge(frame).verdict == single.judge(frame).verdict == "holds"
    frame.loc[frame["n"] == 8, "q"] = 1.5
    assert joint.judge(frame).verdict == "fails"
    assert single.judge(frame).verdict == "holds"


def test_a_seal_is_of_what_decides_and_not_of_words(cells_of_preset: On) -> None:
    def seal(statement: str, sentence: str, **at: Any) -> str:
        claims = Claims("toy", "Toy 2026", Toy, (Column("loss", "loss"),))
        claims.ours("loss", "section 1", statement, sentence, on=cells_of_preset.where(**at))
        return claims.claims[0].digest(with_code=False)

    loss = "loss <= 1 on all seeds"
    assert seal("It is at most 1.", loss) == seal("The loss is at most 1.", loss)
    others = {seal("It is.", "loss <= 2 on all seeds"), seal("It is.", "loss <= 1")}
    assert len({seal("It is.", loss), seal("It is.", loss, n=2), *others}) == 4


# Which cells a claim is judged on, and what is said of those that are missing


class Parameters(StudyParameters):
    """A model of two numbers and a word."""

    n: int = 2
    d: int = 8
    kernel: str = "softmax"


def test_a_seed_with_all_the_numbers_of_another_is_no_draw_of_its_own() -> None:
    frame = pd.DataFrame(itertools.product((2, 3), range(3)), columns=["n", "seed"])
    frame = frame.assign(d=8, kernel="softmax", status="done", reason="")
    cells = frame.assign(loss=np.random.default_rng(0).random(6))
    twice = cells.assign(loss=cells["loss"].mask(cells["seed"] == 2, cells["loss"].shift(2)))
    but_one = twice.assign(loss=twice["loss"] + 1e-3 * (twice.index == 5))
    by_chance = cells.assign(loss=0.75, errors=3)  # counts and accuracies agree often
    longer = twice.assign(steps=10 + twice["seed"])  # the same end, reached elsewhere
    is_two = twice["seed"] == 2
    missed = twice.assign(steps=10, loss=twice["loss"].mask(is_two))
    worlds = (cells, twice, but_one, by_chance, twice.assign(steps=10), longer, missed)
    told = [of_claims.repeated_seeds(one, Parameters) for one in worlds]
    assert told == [[], [2], [], [], [2], [], []]


def test_columns_that_vary_are_those_with_several_values_beside_nan() -> None:
    alike = {"whole": [2] * 3, "yes": [True] * 3, "nan": [nan, 0.5, 0.5], "nans": [nan] * 3}
    vary = {"words": ["a", "b", "a"], "wholes": [2, 2, 3], "no": [True, True, False]}
    vary |= {"numbers": [inf, nan, 0.5]}
    cells = pd.DataFrame({**alike, "word": ["a", None, "a"], **vary})
    assert varying(cells, cells.columns) == [*vary]
    assert varying(cells[:0], cells.columns) == []


# Two settings, each at its best step size, on cells whose best is known


class Sweep(StudyParameters):
    """A kernel and a step size."""

    kernel: Literal["a", "b"] = parameter("a", "kernel")
    rate: float = parameter(1.0, "step size", "r")


def of_kernels(b: float = 0.5, best_of_b: float = 1.0, best_of_a: float = 1.0) -> pd.DataFrame:
    """Losses that are least at the step size 1 for `a` (0.2), and at `best_of_b` for `b`."""
    rows = [
        (kernel, rate, seed, least + 0.3 * (rate != best) + 0.01 * seed + spread * (-1) ** seed)
        for kernel, least, best, spread in (("a", 0.2, best_of_a, 0.0), ("b", b, best_of_b, 0.002))
        for rate in (0.1, 1.0, 10.0)
        for seed in range(6)
    ]
    frame = pd.DataFrame(rows, columns=["kernel", "rate", "seed", "loss"])
    return frame.assign(status="done", reason="")


LOWER = "mean of loss[kernel=a, best rate] < loss[kernel=b, best rate]"
SMALL = "share of seeds with loss[kernel=b, best rate] < 0.1 > 0.5"


@pytest.mark.parametrize(
    ("sentence", "cells", "verdict"),
    [
        (LOWER, of_kernels(0.5), "holds"),
        (LOWER, of_kernels(0.1), "fails"),
        (LOWER, of_kernels(0.2), "inconclusive"),  # a tie: the differences are 0 on average
        (LOWER, of_kernels(0.5, best_of_b=10.0), "inconclusive"),
        (LOWER.replace("rate", "r"), of_kernels(0.5, best_of_b=10.0), "inconclusive"),
        (LOWER, of_kernels(0.1, best_of_b=10.0), "fails"),  # beyond its edge it can only be better
        (LOWER, of_kernels(0.5, best_of_a=0.1), "holds"),
        (LOWER, of_kernels(0.1, best_of_a=0.1), "inconclusive"),
        (LOWER, of_kernels(0.5).query("rate == 1"), "inconclusive"),  # there is no sweep
        (SMALL, of_kernels(0.5), "fails"),
        (SMALL, of_kernels(0.5, best_of_b=10.0), "inconclusive"),
        (SMALL, of_kernels(0.01, best_of_b=10.0), "holds"),
    ],
)
def test_each_setting_is_taken_at_its_best(
    sentence: str, cells: pd.DataFrame, verdict: Verdict
) -> None:
    found = Measure(read(sentence), Sweep)(cells)
    assert found.verdict == verdict
    of_b = cells[cells["kernel"] == "b"].groupby("rate")["loss"].mean()
    at_edge = of_b.idxmin() in (of_b.index[0], of_b.index[-1]) or of_b.min() < 0.15
    assert ("Beyond the edge" in found.note) == (verdict == "inconclusive" and at_edge)


def test_a_value_at_which_a_seed_diverged_is_not_the_best() -> None:
    frame = of_kernels()
    bad = (frame["kernel"] == "b") & (frame["rate"] == 1.0) & (frame["seed"] == 0)
    failed = {"status": "failed", "reason": "diverged", "loss": nan}
    frame = frame.assign(**{name: frame[name].mask(bad, to) for name, to in failed.items()})
    found = Measure(read("mean of loss[kernel=b, best rate] < 0.7"), Sweep)(frame)
    assert found.value == pytest.approx(0.825)
