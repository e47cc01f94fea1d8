"""Claims on regression, and on what the paper leaves open, on cells whose verdict is known."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from overfit_cli import Measurement
from overfit_cli.claims.stated import JointMeasure
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


def part(name: str, label: str, cells: pd.DataFrame) -> Measurement:
    """Judge a part of a claim of several."""
    measure = BY_NAME[name].measure
    assert isinstance(measure, JointMeasure)
    return measure.parts[label].judge(cells)


def stuck_between(cell: Mapping[str, object]) -> list[dict[str, object]]:
    """Cells that stop above zero at three step sizes, lowest at the middle one."""
    return [
        {**cell, "learning_rate": rate, "relative_loss": loss}
        for rate, loss in ((0.1, 0.7), (1.0, 0.5), (10.0, 0.9))
    ]


def test_gaussian_zero_holds_where_one_step_size_serves_all_seeds() -> None:
    good = {"learning_rate": 0.1, "relative_loss": 1e-9, "floor": 0.0, "condition_12": 800.0}
    bad = good | {"learning_rate": 3.0, "relative_loss": 0.5}
    held = part("zero-gaussian-below", "below the hull", frame(good, bad))
    assert (held.verdict, held.value) == ("holds", 1.0)
    assert held.details["seeds at zero, step size 0.1"] == 10
    assert held.details["seeds at zero, step size 3"] == 0
    assert (
        part("zero-gaussian-below", "below the hull", frame(*stuck_between(bad))).verdict == "fails"
    )
    for few in (1, 2):
        edge = part("zero-gaussian-below", "below the hull", frame(*stuck_between(bad)[:few]))
        assert edge.verdict == "inconclusive"
        assert "at the edge of those tried" in edge.note
    assert (
        part("zero-gaussian-below", "below the hull", frame(good, seeds=5)).verdict
        == "inconclusive"
    )
    assert part("zero-gaussian-below", "inside the hull", frame(good)).verdict == "not run"


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
    assert slow.verdict == "holds by far"
    assert "5 decades or more below" in slow.note


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
    assert part("theorem1-paper-two", "H = 2", cells).verdict == "holds"
    broken = part("theorem1-paper-two", "H = 4", cells)
    assert (broken.verdict, broken.value) == ("fails", 0.0)
    assert broken.details["cells with a step above it"] == 10
    assert part("theorem1-corrected-four", "H = 4", cells).verdict == "holds"
    unstable = frame(bounded(4), bounded(4, broken=7, stability=0.9, learning_rate=1.0))
    measurement = part("theorem1-paper-two", "H = 4", unstable)
    assert measurement.verdict == "holds"
    assert measurement.details["cells whose step size is larger than allowed"] == 10
    assert measure("theorem2-paper-two", cells).verdict == "not run"
    together = measure("theorem1-paper-two", cells)
    assert (together.verdict, together.value) == ("fails", 0.0)
    assert together.details["H = 2"] == 1
    flat = frame(bounded(4, broken=7, lambda_b=0.0))
    assert part("theorem1-paper-two", "H = 4", flat).verdict == "vacuous", "λ_B is zero"


def test_a_seed_refutes_a_bound_where_no_step_size_keeps_it() -> None:
    """The theorem says that there is a step size."""
    small, large = bounded(4), bounded(4, broken=7, learning_rate=0.4)
    assert part("theorem1-paper-two", "H = 4", frame(small, large)).verdict == "holds"
    both = frame(bounded(4, broken=1), large)
    refuted = part("theorem1-paper-two", "H = 4", both)
    assert refuted.verdict == "fails"
    sentence = BY_NAME["theorem1-paper-two"].contradiction(refuted)
    assert sentence.startswith("Contradicts Song et al. 2024, Theorem 1, measured ")
    assert ": With W_V alone trained there is, for each of H = 2 and 4" in sentence
    assert "block-diagonal over heads" in sentence


def test_the_slowest_rate_refutes_theorem_1_before_any_step_shows_it() -> None:
    """With W_V alone it is exact; with all weights trained it says that the steps are too few."""
    slow = bounded(2, rate_margin=0.9)
    refuted = part("theorem1-paper-two", "H = 2", frame(slow))
    assert refuted.verdict == "fails"
    assert "sooner or later, on 10 of 10 seeds; the steps taken do so on none." in refuted.note
    assert part("theorem1-corrected-four", "H = 2", frame(slow)).verdict == "holds"
    all_weights = slow | MET | {"trained": "all"}
    short = part("theorem2-paper-two", "H = 2", frame(all_weights))
    assert short.verdict == "inconclusive"
    assert "too few to break it" in short.note
    assert "slowest rate is above β/4, the proof's" in short.note
    fast = part("theorem2-paper-two", "H = 2", frame(all_weights | {"rate_margin": 0.2}))
    assert "β/4" not in fast.note
    unmeasured = all_weights | {"rate_margin": np.nan}
    assert part("theorem2-paper-two", "H = 2", frame(unmeasured)).verdict == "inconclusive"
    assert part("theorem2-corrected-four", "H = 2", frame(all_weights)).verdict == "holds"


@pytest.mark.parametrize(("kernel", "name"), [("softmax", ""), ("gaussian", "-gaussian")])
def test_theorem_2_is_judged_where_its_condition_is_met(kernel: str, name: str) -> None:
    cell = bounded(4, kernel=kernel, trained="all", relative_loss=1e-9, train_loss=1e-9)
    cell |= {"gradient": 0.0}
    missed = frame(cell | {"condition_8": 18.0})
    claim = f"theorem2{name}-corrected-four"
    assert part(claim, "H = 4", missed).verdict == "vacuous"
    assert part(claim, "H = 4", frame(cell | MET)).verdict == "holds"
    one = missed.copy()
    one.loc[4, "condition_8"] = -1.0
    assert part(claim, "H = 4", one).verdict == "inconclusive", "one seed meets it"
    free = frame(cell | {"heads": 1, "condition_8": 18.0})
    assert part("zero-softmax-all", kernel.replace("g", "G"), free).verdict == "holds"


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


def test_the_example_holds_only_where_gradients_are_exactly_zero_and_the_loss_stays() -> None:
    def verdict(name: str, **values: object) -> str:
        return measure(name, frame({**STUCK, **TOLD, **values}, seeds=1)).verdict

    assert verdict("example-gradient") == "holds"
    assert verdict("example-gradient", gradient_key_start=1e-17) == "fails"
    assert verdict("example-gradient", train_loss=0.999) == "fails"
    assert verdict("example-gradient", condition_12=9.0) == "vacuous"
    free = {"value_gap": 1.0, "gradient_query_start": 0.3, "relative_loss": 0.2}
    assert verdict("example-escape", **free) == "holds"
    assert verdict("example-escape", **free | {"relative_loss": 1.0}) == "fails"


def test_told_and_drawn_weights_lie_in_one_directory_and_are_told_apart() -> None:
    cells = pd.concat([frame(STUCK | {"condition_12": 9.0}), frame(STUCK | TOLD, seeds=1)])
    assert measure("example-gradient", cells).verdict == "holds"
    assert measure("example-gradient", frame(STUCK)).verdict == "not run"


def test_sizes_are_sufficient_only_where_every_cell_of_them_has_full_rank() -> None:
    base = {"kernel": "softmax", "trained": "value", "training_steps": 1}
    good = {"lambda_b": 1e-3, "delta": 1e-3}
    wide = base | {"d": 32, "d_h": 8, **good}
    small = base | {"d": 4, "d_h": 4, "lambda_b": 0.0, "delta": 0.0}
    cells = frame(wide, small)
    assert measure("sizes-lambda-b", frame(wide, small, seeds=20)).verdict == "holds"
    assert measure("sizes-lambda-b", cells).verdict == "inconclusive", "10 of 10 may be 70 %"
    assert measure("sizes-delta", cells).verdict == "holds"
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
    both = slow_modes(4, 0.5, **met)
    assert part("eigenvalue-proved", "β, 4 to 16 heads", frame(*both)).verdict == "holds"
    assert measure("eigenvalue-proved", frame(*both)).verdict == "not run"
    assert measure("eigenvalue-proved", frame(*slow_modes(4, 0.5, **missed))).verdict == "vacuous"
    for ratio, verdict in ((0.2, "holds"), (0.3, "fails")):
        cells = frame(*both, *slow_modes(16, ratio, **met))
        assert measure("eigenvalue-proved", cells).verdict == verdict


# Tangent kernels, and layers on top


NEAR_QUERY = {"trained": "query", "target": "near", "sigma_w": 0.02, "condition_12": -0.5}


def descents(softmax: float, gaussian: float) -> pd.DataFrame:
    """Cells of both kernels that come down in so many steps, at one step size each."""
    cells = frame(
        NEAR_QUERY | {"kernel": "softmax", "learning_rate": 4e4, "steps_to_millionth": softmax},
        NEAR_QUERY | {"kernel": "gaussian", "learning_rate": 10.0, "steps_to_millionth": gaussian},
    )
    spread = np.where(cells["kernel"] == "softmax", 2e-3, 1e-3)
    cells["steps_to_millionth"] *= 1 + spread * cells["seed"]
    return cells


def test_steps_at_the_best_step_sizes_are_compared_seed_by_seed() -> None:
    assert measure("tangent-slower", descents(300.0, 100.0)).verdict == "holds"
    assert measure("tangent-slower", descents(50.0, 100.0)).verdict == "fails"
    assert measure("tangent-slower", descents(np.nan, 100.0)).verdict == "inconclusive"


def with_layers(*rows: Mapping[str, object], alone: float = 1000.0) -> pd.DataFrame:
    """Cells without layers on top, and with 1, 2 and 4; rows change those of each."""
    base = {"kernel": "softmax", "heads": 4, "lambda_b": 0.1, "learning_rate": 0.01}
    base |= {"train_loss": 1e-7, "gradient": 1.0, "relative_loss": 1e-7}
    cells = frame(
        base | {"trained": "all", "steps_to_millionth": alone},
        *(
            base
            | {"trained": f"layers-{count}", "steps_to_millionth": 900.0}
            | {"steps_to_trillionth": 2000.0, **row}
            for count in (1, 2, 4)
            for row in rows or ({},)
        ),
    )
    cells["steps_to_millionth"] *= (
        1 + cells["seed"] * np.where(cells["trained"] == "all", 1, 2) / 1e3
    )
    return cells


def test_layers_converge_linearly_at_some_step_size_or_not() -> None:
    name = "corollary1-linear"
    assert measure(name, with_layers()).verdict == "holds"
    falling = {"steps_to_trillionth": np.nan, "gradient": 1.0}
    at_another = with_layers(falling, {"learning_rate": 0.02})
    assert measure(name, at_another).verdict == "holds"
    assert measure(name, with_layers(falling)).verdict == "inconclusive"
    stopped = falling | {"gradient": 0.0}
    assert measure(name, with_layers(stopped)).verdict == "fails"
    assert measure(name, with_layers(stopped, {"learning_rate": 0.02})).verdict == "holds"
    assert measure(name, with_layers({}, stopped | {"learning_rate": 0.02})).verdict == "holds"
    too_large = with_layers(falling, stopped | {"learning_rate": 0.02})
    assert measure(name, too_large).verdict == "inconclusive", "the smallest still falls"
    power_law = measure(name, with_layers({"steps_to_trillionth": 1e5}))
    assert (power_law.verdict, power_law.details["seeds that do, layers-2"]) == ("fails", 0)
    longer = falling | {"steps": 100_000}
    assert measure(name, with_layers(longer)).verdict == "fails", "30 times the steps are over"
    uncounted = stopped | {"relative_loss": 1e-13}
    assert measure(name, with_layers(uncounted)).verdict == "inconclusive", "it has come down"
    lost = with_layers(stopped)
    lost.loc[lost["seed"] < 20, ["status", "reason"]] = ["failed", "worker killed"]
    assert measure(name, lost).verdict == "inconclusive"
    assert measure(name, with_layers({"lambda_b": 0.0})).verdict == "vacuous"
    one_depth = with_layers()
    assert measure(name, one_depth[one_depth["trained"] != "layers-4"]).verdict == "not run"


def test_layers_take_as_many_steps_or_fewer_or_more() -> None:
    assert measure("remark2-rate", with_layers()).verdict == "holds"
    assert measure("remark2-rate", with_layers({"steps_to_millionth": 100.0})).verdict == "holds"
    assert measure("remark2-rate", with_layers({"steps_to_millionth": 2500.0})).verdict == "fails"
    never = {"steps_to_millionth": np.nan, "steps": 3000}
    assert measure("remark2-rate", with_layers(never)).verdict == "fails", "3000 steps and more"
    cells = with_layers()
    lost = (cells["trained"] == "layers-2") & (cells["seed"] < 5)
    cells.loc[lost, ["status", "reason"]] = ["failed", "worker killed"]
    cells.loc[lost, "steps_to_millionth"] = np.nan
    assert measure("remark2-rate", cells).verdict == "inconclusive"
    cells = with_layers(alone=np.nan)
    assert measure("remark2-rate", cells).verdict == "holds", "without layers it takes more"
