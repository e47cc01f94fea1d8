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
        {**columns, **defaults, "status": "done", "reason": "", "steps": 3000, "seed": seed, **row}
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


NEAR = {"target": "near", "sigma_w": 0.02, "condition_12": -0.5, "learning_rate": 1.0}


def test_theorem_3_is_judged_where_its_condition_is_met() -> None:
    zero = NEAR | {"relative_loss": 1e-9, "train_loss": 1e-27, "gradient": 0.0}
    assert measure("theorem3-gaussian-zero", frame(zero)).verdict == "holds"
    missed = measure("theorem3-gaussian-zero", frame(zero | {"condition_12": 800.0}))
    assert missed.verdict == "vacuous"
    assert missed.details["decades by which (12) is missed, most"] == 800
    stuck = zero | {"relative_loss": 0.5, "train_loss": 0.5}
    larger = stuck | {"learning_rate": 10.0}
    assert measure("theorem3-gaussian-zero", frame(stuck, larger)).verdict == "fails"
    falling = stuck | {"gradient": 0.1}
    still = measure("theorem3-gaussian-zero", frame(falling, larger))
    assert still.verdict == "inconclusive"
    assert "10 seeds the loss has not come down yet" in still.note
    assert measure("theorem3-gaussian-zero", frame(zero, larger)).verdict == "holds"


def test_a_setting_that_meets_a_condition_is_judged_though_another_has_more_cells() -> None:
    free = {"relative_loss": 0.5, "train_loss": 0.5, "gradient": 0.0, "condition_12": 800.0}
    zero = NEAR | {"relative_loss": 1e-9, "train_loss": 1e-27, "gradient": 0.0}
    cells = pd.concat([frame(free, seeds=40), frame(zero)])
    assert measure("theorem3-gaussian-zero", cells).verdict == "holds"


def test_a_claim_is_judged_on_the_longer_or_shorter_cells_and_says_so() -> None:
    short = {"training_steps": 10, "relative_loss": 0.5, "floor": 0.0}
    long = {"training_steps": 1500, "relative_loss": 1e-9, "floor": 0.0}
    cells = pd.concat([frame(short, seeds=8), frame(long)])
    measurement = measure("zero-gaussian-below", cells)
    assert measurement.verdict == "holds"
    assert "Judged at training_steps=1500; 8 cells" in measurement.note


def ended(above: float, floor: float, fall: float, **values: object) -> dict[str, object]:
    """A cell of softmax that ends above its floor, and by what share of that it falls on."""
    return {
        "kernel": "softmax",
        "learning_rate": 1.0,
        "start_loss": 1.0,
        "floor": floor,
        "train_loss": floor + above,
        "gradient": np.sqrt(fall * above / 3000),
        **values,
    }


@pytest.mark.parametrize("floor", [0.4, 0.0], ids=["above its floor", "with floor 0"])
def test_softmax_is_trapped_where_it_stops_above_its_optimum(floor: float) -> None:
    """At 1.3 times its floor, or at a twentieth of its start where it could go to zero."""
    above = 0.3 * floor or 0.05
    stuck = ended(above, floor, fall=0.001)
    held = measure("trapped-softmax", frame(stuck))
    assert (held.verdict, held.value, held.decided) == ("holds", 1.0, "case")
    assert measure("trapped-softmax", frame(ended(above, floor, 0.5))).verdict == ("inconclusive")
    found = ended(1e-5, floor, 0.0)
    optimum = measure("trapped-softmax", frame(found))
    assert (optimum.verdict, optimum.value) == ("inconclusive", 0.0)
    assert "does not say that none can" in optimum.note
    elsewhere = found | {"learning_rate": 10.0}
    assert measure("trapped-softmax", frame(stuck, elsewhere)).value == 0.0
    some = pd.concat([frame(stuck, seeds=1), frame(found).iloc[1:]], ignore_index=True)
    assert measure("trapped-softmax", some).verdict == "holds", "once is enough"
    killed = frame(elsewhere, seeds=1).assign(status="failed", reason="worker killed")
    missing = pd.concat([some, killed], ignore_index=True)
    assert measure("trapped-softmax", missing).verdict == "inconclusive"


def test_the_rate_of_theorem_3_can_fail_unless_it_is_out_of_reach() -> None:
    cell = NEAR | {
        "relative_loss": 1e-4,
        "violations_gamma": 0,
        "log10_gamma": -3.0,
        "descent": 0.9,
    }
    assert measure("theorem3-rate", frame(cell)).verdict == "holds"
    above = cell | {"violations_gamma": 5}
    assert measure("theorem3-rate", frame(above)).verdict == "fails"
    assert measure("theorem3-rate", frame(above | {"descent": 0.1})).verdict == "inconclusive"
    assert measure("theorem3-rate", frame(above | {"condition_12": 9.0})).verdict == "vacuous"
    for column in ("violations_gamma", "log10_gamma"):
        unmeasured = frame(above | {column: np.nan})
        assert measure("theorem3-rate", unmeasured).verdict == "inconclusive"
    aside = above | {"learning_rate": 30.0}
    assert measure("theorem3-rate", frame(cell, aside)).verdict == "holds"
    slow = measure("theorem3-rate", frame(cell | {"log10_gamma": -8.0}))
    assert slow.verdict == "vacuous"
    assert "out of reach" in slow.note


def test_descent_is_judged_at_the_smallest_step_size_where_condition_12_is_met() -> None:
    softmax = NEAR | {"kernel": "softmax", "descent": 0.99, "lipschitz_gradients": 0.4}
    softmax |= {"gradient_query_start": 0.5}
    large = softmax | {"learning_rate": 30.0, "descent": 0.03}
    measurement = measure("theorem3-descent", frame(softmax, large))
    assert measurement.verdict == "holds"
    assert measurement.details["least fall, step size 30"] == pytest.approx(0.03)
    little = softmax | {"descent": 0.4}
    assert measure("theorem3-descent", frame(little, large)).verdict == "fails"
    missed = measure("theorem3-descent", frame(softmax | {"condition_12": 700.0}))
    assert missed.verdict == "vacuous"
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
    lost.loc[0, "reason"] = "worker killed"
    lost.loc[1, "descent"] = 0.3
    assert measure("theorem3-descent", lost).verdict == "fails", "one exception is enough"
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
        "stability": 0.4,
        "lambda_b": 0.1,
        "rate_margin": 1.5,
        "rate_paper": 0.1,
        "rate_corrected": 0.01,
        "relative_loss": 1e-12,
        "violations_corrected": 0,
        "violations_paper": broken,
        **values,
    }


def test_bounds_are_judged_by_heads_and_only_at_the_step_sizes_of_the_proof() -> None:
    cells = frame(bounded(1), bounded(2), bounded(4, broken=7))
    assert measure("theorem1-paper-one", cells).verdict == "holds"
    assert measure("theorem1-paper-two", cells).verdict == "holds"
    broken = measure("theorem1-paper-four", cells)
    assert (broken.verdict, broken.value) == ("fails", 0.0)
    assert broken.details["cells with a step above it"] == 10
    assert measure("theorem1-corrected-four", cells).verdict == "holds"
    unstable = frame(bounded(4), bounded(4, broken=7, stability=0.9, learning_rate=1.0))
    measurement = measure("theorem1-paper-four", unstable)
    assert measurement.verdict == "holds"
    assert measurement.details["cells whose step size is larger than allowed"] == 10
    assert measure("theorem2-paper-one", cells).verdict == "not run"
    flat = frame(bounded(4, broken=7, lambda_b=0.0))
    assert measure("theorem1-paper-four", flat).verdict == "vacuous", "λ_B is zero"


def test_a_seed_refutes_a_bound_where_no_step_size_keeps_it() -> None:
    """The theorem says that there is a step size."""
    small, large = bounded(4), bounded(4, broken=7, learning_rate=0.4)
    assert measure("theorem1-paper-four", frame(small, large)).verdict == "holds"
    both = frame(bounded(4, broken=1), large)
    refuted = measure("theorem1-paper-four", both)
    assert refuted.verdict == "fails"
    sentence = BY_NAME["theorem1-paper-four"].contradiction(refuted)
    assert sentence.startswith("Contradicts Song et al. 2024, Theorem 1, measured ")
    assert ": With W_V alone trained and H = 4" in sentence
    assert "block-diagonal over heads" in sentence


def test_the_slowest_rate_refutes_theorem_1_before_any_step_shows_it() -> None:
    """With W_V alone it is exact; with all weights trained it says that the steps are too few."""
    slow = bounded(2, rate_margin=0.9)
    refuted = measure("theorem1-paper-two", frame(slow))
    assert refuted.verdict == "fails"
    assert "sooner or later, on 10 of 10 seeds; the steps taken do so on none." in refuted.note
    assert measure("theorem1-corrected-two", frame(slow)).verdict == "holds"
    all_weights = slow | MET | {"trained": "all"}
    short = measure("theorem2-paper-two", frame(all_weights))
    assert short.verdict == "inconclusive"
    assert "too few to break it" in short.note
    assert "slowest rate is above β/4, the proof's" in short.note
    fast = measure("theorem2-paper-two", frame(all_weights | {"rate_margin": 0.2}))
    assert "β/4" not in fast.note
    unmeasured = all_weights | {"rate_margin": np.nan}
    assert measure("theorem2-paper-two", frame(unmeasured)).verdict == "inconclusive"
    assert measure("theorem2-corrected-two", frame(all_weights)).verdict == "holds"


def test_killed_workers_hide_no_exception_and_confirm_nothing() -> None:
    cells = frame(bounded(4, broken=7), bounded(4, broken=7, learning_rate=0.3))
    numbers = [column.name for column in study.columns]
    cells.loc[[0, 5, 12], ["status", "reason"]] = ["failed", "MemoryError"]
    cells.loc[[0, 5, 12], numbers] = np.nan
    assert measure("theorem1-paper-four", cells).verdict == "fails"
    cells = frame(bounded(4))
    cells.loc[3, ["status", "reason"]] = ["failed", "MemoryError"]
    cells.loc[3, numbers] = np.nan
    assert measure("theorem1-paper-four", cells).verdict == "inconclusive"
    met = frame(bounded(4) | MET | {"trained": "all"})
    met.loc[3, ["status", "reason"]] = ["failed", "MemoryError"]
    met.loc[3, numbers] = np.nan
    assert measure("theorem2-paper-four", met).verdict == "inconclusive"


def test_rows_of_another_setting_change_nothing() -> None:
    cells = frame(bounded(4, broken=7))
    other = frame(bounded(4, sigma_w=0.3), seeds=3)
    assert measure("theorem1-paper-four", pd.concat([cells, other])).verdict == "fails"
    small = frame(bounded(4, broken=7, n=2, tokens=2))
    assert measure("theorem1-paper-four", small).verdict == "fails", "any size may be judged"


def test_a_bound_far_above_every_loss_says_nothing() -> None:
    flat = frame(bounded(1, rate_paper=1e-5))
    assert measure("theorem1-paper-one", flat).verdict == "vacuous"


def test_what_algebra_decides_is_no_finding_about_the_paper() -> None:
    """With one head twice the least curvature is twice the rate; (8) falls as the weights grow."""
    by_algebra = ("theorem1-paper-one", "theorem2-paper-one", "theorem2-zero", "condition-8")
    assert {BY_NAME[name].kind for name in by_algebra} == {"identity"}
    assert BY_NAME["theorem1-paper-two"].kind == BY_NAME["theorem2-paper-two"].kind == "paper"


@pytest.mark.parametrize(("kernel", "name"), [("softmax", ""), ("gaussian", "-gaussian")])
def test_theorem_2_is_judged_where_its_condition_is_met(kernel: str, name: str) -> None:
    cell = bounded(4, kernel=kernel, trained="all", relative_loss=1e-9, train_loss=1e-9)
    cell |= {"gradient": 0.0}
    missed = frame(cell | {"condition_8": 18.0})
    for claim in (f"theorem2{name}-corrected-four", f"theorem2{name}-zero"):
        assert measure(claim, missed).verdict == "vacuous"
        assert measure(claim, frame(cell | MET)).verdict == "holds"
        one = missed.copy()
        one.loc[4, "condition_8"] = -1.0
        assert measure(claim, one).verdict == "inconclusive", "one seed meets it"
    free = frame(cell | {"heads": 1, "condition_8": 18.0})
    assert measure(f"zero-{kernel}-all", free).verdict == "holds"


def test_a_condition_that_other_weights_may_meet_is_not_refuted() -> None:
    met = {"target": "near", "condition_12": -0.5}
    assert measure("condition-12", frame(met)).verdict == "holds"
    cells = frame(met)
    cells.loc[0, "condition_12"] = 5.0
    measurement = measure("condition-12", cells)
    assert measurement.verdict == "inconclusive"
    assert measurement.details["decades by which it is missed, most"] == 5.0


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
    assert verdict("example-gradient", condition_12=9.0) == ("holds" if where else "vacuous")
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
    assert measure("example-gradient-far", cells).verdict == "holds"
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
    assert measure("sizes-lambda-b", frame(wide, small, seeds=20)).verdict == "holds"
    assert measure("sizes-lambda-b", cells).verdict == "inconclusive", "10 of 10 may be 70 %"
    assert measure("sizes-delta", cells).verdict == "holds"
    assert measure("sizes-delta-needed", cells).verdict == "holds"
    thin = base | {"d": 32, "d_h": 2, "lambda_b": 1e-3, "delta": 1e-17}
    measurement = measure("sizes-delta", frame(wide, small, thin))
    assert measurement.verdict == "fails"
    assert measurement.details["of them with δ zero"] == 10
    heads = small | {"heads": 4}
    assert measure("sizes-lambda-b", frame(wide, small, heads)).verdict == "fails"
    assert measure("sizes-lambda-b", frame(wide)).verdict == "not run"


def slow_modes(heads: int, ratio: float, **values: object) -> list[dict[str, object]]:
    """Cells of two widths whose slowest rate is so much of the paper's."""
    cell = {"kernel": "softmax", "trained": "value", "training_steps": 1, "heads": heads}
    cell |= {"lambda_b": 0.1, "condition_8": 20.0, "rate_margin": ratio, **values}
    return [cell | {"d_h": width} for width in (8, 32)]


def test_an_eigenvalue_decides_theorem_1_and_where_8_is_met_theorem_2() -> None:
    slow, fast = slow_modes(4, 0.5), slow_modes(4, 1.01)
    assert measure("eigenvalue-theorem1", frame(*slow)).verdict == "holds"
    assert measure("eigenvalue-theorem1", frame(*slow, *fast[:1])).verdict == "fails"
    assert measure("eigenvalue-theorem1", frame(*slow_modes(4, np.nan))).verdict == "inconclusive"
    flat = slow_modes(4, np.nan, lambda_b=0.0)
    assert measure("eigenvalue-theorem1", frame(*flat)).verdict == "vacuous"
    missed = {"trained": "all", "balance": 1.0}
    met = {"trained": "all", "balance": 1e20, "condition_8": -20.0}
    assert measure("eigenvalue-theorem2", frame(*slow_modes(4, 0.5, **met))).verdict == "holds"
    assert measure("eigenvalue-theorem2", frame(*slow_modes(4, 0.5, **missed))).verdict == "vacuous"
    assert measure("eigenvalue-proved", frame(*slow_modes(16, 0.2, **met))).verdict == "holds"
    assert measure("eigenvalue-proved", frame(*slow_modes(16, 0.3, **met))).verdict == "fails"


@pytest.mark.parametrize(("over", "verdict"), [(0.98, "holds"), (1.3, "fails"), (0.7, "fails")])
def test_the_slowest_rate_is_two_over_h_of_the_papers_or_not(over: float, verdict: str) -> None:
    cells = frame(*slow_modes(2, over), *slow_modes(8, over / 4))
    cells["rate_margin"] *= 1 + 0.001 * cells["seed"]
    assert measure("eigenvalue-law", cells).verdict == verdict
    assert measure("eigenvalue-at-most", cells).verdict == ("fails" if over > 1 else "holds")


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


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "trapped-softmax",
        "example-gradient",
        "zero-gaussian-below",
        "theorem2-paper-four",
        "theorem3-descent",
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
