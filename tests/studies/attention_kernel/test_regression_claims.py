from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from calibration.kernel_regression import WORLDS
from calibration.rates import MOST_ERRORS, TRUTHS, design, errors, rates
from overfit_cli.claims.rules import judge_instance
from overfit_cli.studies.attention_kernel.regression.claims.bounds import LEMMAS, Lemma
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters
from overfit_cli.studies.attention_kernel.regression.study import study
from tests.judged import claims_by_name, measure

BY_NAME = claims_by_name(study.name)
MET = {"condition_8": -1.0, "condition_12": -1.0}
"""Values of cells of which the theorems say something."""


def frame(*rows: Mapping[str, object], seeds: int = 10) -> pd.DataFrame:
    """Cells of the demo with these values; every measurement is there, null where not given."""
    defaults = KernelRegressionParameters().model_dump()
    columns = {column.name: np.nan for column in study.columns}
    filled = [
        {**columns, **defaults, "status": "done", "steps": 3000, "seed": seed, **row}
        for row in rows
        for seed in range(seeds)
    ]
    return pd.DataFrame(filled)


def stuck_between(cell: Mapping[str, object]) -> list[dict[str, object]]:
    """Cells that stop above zero at three step sizes, lowest at the middle one."""
    return [
        {**cell, "learning_rate": rate, "relative_loss": loss}
        for rate, loss in ((0.1, 0.7), (1.0, 0.5), (10.0, 0.9))
    ]


def test_gaussian_zero_holds_where_one_step_size_serves_all_seeds() -> None:
    good = {"learning_rate": 0.1, "relative_loss": 1e-9, "floor": 0.0, "condition_12": 800.0}
    bad = good | {"learning_rate": 3.0, "relative_loss": 0.5}
    held = measure("zero-gaussian-below", frame(good, bad))
    assert (held.verdict, held.value) == ("holds", 1.0)
    assert held.details["seeds at zero, step size 0.1"] == 10
    assert held.details["seeds at zero, step size 3"] == 0
    assert measure("zero-gaussian-below", frame(*stuck_between(bad))).verdict == "fails"
    for few in (1, 2):
        edge = measure("zero-gaussian-below", frame(*stuck_between(bad)[:few]))
        assert edge.verdict == "inconclusive"
        assert "at the edge of those tried" in edge.note
    assert measure("zero-gaussian-below", frame(good, seeds=5)).verdict == "inconclusive"
    assert measure("zero-gaussian-inside", frame(good)).verdict == "not run"


def test_the_theorem_says_nothing_where_its_condition_is_missed() -> None:
    zero = {"relative_loss": 1e-9, "floor": 0.0, "condition_12": 800.0}
    measurement = measure("theorem3-gaussian-below", frame(zero))
    assert measurement.verdict == "vacuous"
    assert measurement.details["decades by which (12) is missed, median"] == 800
    assert measure("theorem3-gaussian-below", frame(zero | MET)).verdict == "holds"
    assert measure("theorem3-gaussian-below", frame(*stuck_between(zero | MET))).verdict == "fails"


def test_a_claim_doesnt_mix_cells_of_different_lengths() -> None:
    short = {"training_steps": 10, "relative_loss": 0.5, "condition_12": 1.0}
    long = {"training_steps": 1500, "relative_loss": 1e-9, "condition_12": 1.0}
    measurement = measure("theorem3-gaussian-below", frame(short, long))
    assert measurement.verdict == "not run"
    assert "one value of training_steps" in measurement.note


def test_softmax_stops_where_its_floor_is_reached_and_no_seed_gets_to_zero() -> None:
    softmax = {"kernel": "softmax", "relative_loss": 0.4, "floor": 0.1, "floor_ratio": 1.02}
    assert measure("floor-softmax-below", frame(softmax)).verdict == "holds"
    far = softmax | {"floor_ratio": 1.3}
    not_yet = measure("floor-softmax-below", frame(far))
    assert not_yet.verdict == "inconclusive"
    assert "has not come down to it yet" in not_yet.note
    zero = {"kernel": "softmax", "target": "inside", "relative_loss": 1e-8, "floor": 0.0}
    assert measure("floor-softmax-inside", frame(zero)).verdict == "fails"
    slow = zero | {"relative_loss": 0.1}
    open_ended = measure("floor-softmax-inside", frame(slow))
    assert open_ended.verdict == "inconclusive"
    assert "10 of 10 seeds have a floor of 0" in open_ended.note


def test_the_rate_of_theorem_3_can_fail_unless_no_number_could_break_it() -> None:
    cell = {"relative_loss": 1e-9, "pl_ratio_min": 0.1, "log10_gamma": -3.0, **MET}
    assert measure("theorem3-rate", frame(cell)).verdict == "holds"
    small = cell | {"pl_ratio_min": 1e-4}
    assert measure("theorem3-rate", frame(small)).verdict == "fails"
    for column in ("pl_ratio_min", "log10_gamma"):
        unmeasured = small | {column: np.nan}
        assert measure("theorem3-rate", frame(unmeasured)).verdict == "inconclusive"
    nowhere = cell | {"relative_loss": 0.5}
    assert measure("theorem3-rate", frame(nowhere)).verdict == "inconclusive"
    aside = small | {"learning_rate": 30.0, "relative_loss": 0.5}
    assert measure("theorem3-rate", frame(cell, aside)).verdict == "holds"
    tiny = measure("theorem3-rate", frame(cell | {"log10_gamma": -1000.0}))
    assert tiny.verdict == "vacuous"
    assert "smallest number of double precision" in tiny.note


def test_descent_is_judged_at_the_smallest_step_size_of_each_target() -> None:
    softmax = {"kernel": "softmax", "descent": 0.99, "lipschitz_gradients": 0.7}
    softmax |= {"gradient_query_start": 0.5}
    large = softmax | {"learning_rate": 30.0, "descent": 0.03}
    measurement = measure("theorem3-descent", frame(softmax, large))
    assert measurement.verdict == "holds"
    assert measurement.details["least fall, step size 30"] == pytest.approx(0.03)
    inside = softmax | {"target": "inside", "descent": 0.4}
    assert measure("theorem3-descent", frame(softmax, inside)).verdict == "fails"
    still = softmax | {"descent": np.nan, "gradient_query_start": 0.0}  # nothing falls, nor must it
    assert measure("theorem3-descent", frame(still)).verdict == "holds"
    for column in ("descent", "lipschitz_gradients", "gradient_query_start"):
        unmeasured = softmax | {column: np.nan}
        assert measure("theorem3-descent", frame(unmeasured)).verdict == "inconclusive"
    lost = frame(softmax)
    lost.loc[0, ["status", "reason"]] = ["failed", "worker killed"]
    assert measure("theorem3-descent", lost).verdict == "inconclusive"
    lost.loc[0, "reason"] = "diverged"
    assert measure("theorem3-descent", lost).verdict == "fails"
    rough = softmax | {"lipschitz_gradients": 6.0}
    assert "smallest step size" in measure("theorem3-descent", frame(rough)).note
    assert measure("theorem3-descent", frame(rough)).verdict == "inconclusive"
    assert measure("theorem3-descent", frame(softmax, seeds=9)).verdict == "inconclusive"


def bounded(heads: int, broken: int = 0, **values: object) -> dict[str, object]:
    """A cell of softmax with W_V alone and a bound that bites, above which `broken` steps lie."""
    return {
        "kernel": "softmax",
        "trained": "value",
        "heads": heads,
        "stability": 0.5,
        "rate_paper": 0.1,
        "rate_corrected": 0.01,
        "violations_corrected": 0,
        "violations_paper": broken,
        **values,
    }


def test_bounds_are_counted_by_heads_and_only_at_stable_steps() -> None:
    cells = frame(bounded(1), bounded(2), bounded(4, broken=7))
    assert measure("theorem1-paper-one", cells).verdict == "holds"
    broken = measure("theorem1-paper-several", cells)
    assert (broken.verdict, broken.value) == ("fails", 0.0)
    assert broken.details["cells that break it"] == 10
    assert broken.details["steps above it"] == 70
    assert measure("theorem1-corrected-several", cells).verdict == "holds"
    unstable = frame(bounded(2), bounded(4, broken=7, stability=3.0))
    measurement = measure("theorem1-paper-several", unstable)
    assert measurement.verdict == "holds"
    assert measurement.details["cells whose step is too large to descend"] == 10
    assert measure("theorem2-paper-one", cells).verdict == "not run"


def test_a_bound_near_the_start_says_nothing() -> None:
    flat = frame(bounded(1, rate_paper=1e-4))
    assert measure("theorem1-paper-one", flat).verdict == "vacuous"


@pytest.mark.parametrize(("kernel", "name"), [("softmax", ""), ("gaussian", "-gaussian")])
def test_the_gaussians_analogue_of_theorem_2_is_judged_as_the_theorem(
    kernel: str, name: str
) -> None:
    cell = bounded(1, kernel=kernel, trained="all", relative_loss=1e-9)
    missed = frame(cell | {"condition_8": 18.0})
    for claim in (f"theorem2{name}-paper-one", f"theorem2{name}-zero"):
        assert measure(claim, missed).verdict == "vacuous"
        assert measure(claim, frame(cell | MET)).verdict == "holds"
    assert measure(f"zero-{kernel}-all", missed).verdict == "holds"


def test_conditions_are_judged_in_decades_whatever_the_labels() -> None:
    cells = frame(*({"target": t, "condition_12": d} for t, d in (("below", 5.0), ("inside", 9.0))))
    measurement = measure("condition-12", cells)
    assert (measurement.verdict, measurement.value) == ("fails", 0.0)
    assert measurement.details["decades by which it is missed, least"] == 5.0
    assert measurement.details["most"] == 9.0
    some = frame({"condition_12": -50.0})
    some.loc[0, "condition_12"] = 5.0
    assert measure("condition-12", some).verdict == "fails", "a mean would not show it"
    assert measure("condition-12", frame({"condition_12": -1.0})).verdict == "holds"


SIZES = KernelRegressionParameters.model_validate({"instance": "example"}).model_dump()
STUCK = {
    **SIZES,
    **MET,
    "kernel": "softmax",
    "gradient_query_start": 0.0,
    "gradient_key_start": 0.0,
    "start_loss": 1.0,
    "train_loss": 1.0,
    "delta": 0.1,
}
TOLD = {"label": 2.995, "weights": "identity", "sigma_w": 0.1}


@pytest.mark.parametrize(
    ("where", "seeds", "told"), [("", 1, TOLD), ("-far", 10, {})], ids=["told", "drawn"]
)
def test_the_example_holds_only_where_gradients_are_exactly_zero_and_the_loss_stays(
    where: str, seeds: int, told: dict[str, object]
) -> None:
    def verdict(name: str, **values: object) -> str:
        return measure(f"{name}{where}", frame({**STUCK, **told, **values}, seeds=seeds)).verdict

    assert verdict("example-gradient") == "holds"
    assert verdict("example-gradient", gradient_key_start=1e-17) == "fails"
    assert verdict("example-gradient", train_loss=0.999) == "fails"
    assert verdict("example-gradient", condition_12=9.0) == "vacuous"
    free = {"value_gap": 1.0, "gradient_query_start": 0.3, "relative_loss": 0.2}
    assert verdict("example-escape", **free) == "holds"
    assert verdict("example-escape", **free | {"relative_loss": 1.0}) == "fails"
    gaussian = {"kernel": "gaussian", "gradient_query_start": 2.0, "relative_loss": 0.5}
    assert verdict("example-gaussian", **gaussian) == "holds"
    assert verdict("example-gaussian", kernel="gaussian", relative_loss=0.5) == "fails"
    assert verdict("example-gaussian", **gaussian | {"gradient_query_start": np.nan}) == (
        "inconclusive"
    )


def test_told_and_drawn_weights_lie_in_one_directory_and_are_told_apart() -> None:
    cells = pd.concat([frame(STUCK | {"condition_12": 9.0}), frame(STUCK | TOLD, seeds=1)])
    assert measure("example-gradient", cells).verdict == "holds"
    assert measure("example-gradient-far", cells).verdict == "vacuous"
    assert measure("example-gradient", frame(STUCK)).verdict == "not run"


def test_what_is_computed_without_a_draw_decides_by_itself() -> None:
    assert judge_instance(True, 0.0).verdict == "holds"
    assert judge_instance(False, 1.0).verdict == "fails"
    assert judge_instance(True, 0.0).interval is None
    assert judge_instance(True, np.nan).verdict == "inconclusive"


def test_sizes_are_sufficient_only_where_every_cell_of_them_has_full_rank() -> None:
    base = {"kernel": "softmax", "trained": "value", "training_steps": 1}
    good = {"lambda_b": 1e-3, "delta": 1e-3}
    wide = base | {"d": 32, "d_h": 8, **good}
    small = base | {"d": 4, "d_h": 4, "lambda_b": 0.0, "delta": 0.0}
    cells = frame(wide, small)
    assert measure("sizes-lambda-b", cells).verdict == "holds"
    assert measure("sizes-delta", cells).verdict == "holds"
    assert measure("sizes-delta-needed", cells).verdict == "vacuous"
    thin = base | {"d": 32, "d_h": 2, "lambda_b": 1e-3, "delta": 1e-17}
    measurement = measure("sizes-delta", frame(wide, small, thin))
    assert measurement.verdict == "fails"
    assert measurement.details["of them with δ zero"] == 10
    heads = small | {"heads": 4}
    assert measure("sizes-lambda-b", frame(wide, small, heads)).verdict == "fails"
    assert measure("sizes-lambda-b", frame(wide)).verdict == "not run"


@pytest.mark.parametrize("lemma", LEMMAS, ids=[item.name for item in LEMMAS])
def test_one_cell_on_the_wrong_side_of_a_bound_breaks_a_lemma(lemma: Lemma) -> None:
    values = {
        name: item[0] if isinstance(item, tuple) else item for name, item in lemma.values.items()
    }
    column, name = lemma.column, lemma.name
    right, wrong = (5.0, 0.9) if column == "lemma_least" else (0.2, 1.1)
    cells = frame(values | {column: right})
    assert measure(name, cells).verdict == "holds"
    assert measure(name, cells).details["median"] == right
    cells.loc[3, column] = wrong
    assert measure(name, cells).verdict == "fails"
    assert measure(name, frame(values)).verdict == "inconclusive"


def test_every_claim_has_its_worlds() -> None:
    assert set(WORLDS) == set(BY_NAME)


@pytest.mark.parametrize(
    "name",
    [
        "floor-softmax-below",
        "example-gradient",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("zero-gaussian-below", "condition-12", "theorem3-descent", "sizes-delta")
        ),
    ],
)
def test_a_claim_is_seldom_wrong_in_its_worlds(name: str) -> None:
    """A few runs: most errors, with the luck of 20 draws."""
    cells = design(BY_NAME[name].preset)
    runs = 20
    for truth in TRUTHS:
        error_rates = rates(BY_NAME[name], getattr(WORLDS[name], truth), cells, runs, truth)
        for verdict, share in errors(truth, error_rates).items():
            assert share <= 2 * MOST_ERRORS, (truth, verdict)
        if truth == "true":
            assert error_rates.share("holds") >= 0.9
