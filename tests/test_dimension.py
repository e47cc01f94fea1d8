"""The theorems at any dimension: their regime is met, boundaries are found, verdicts follow."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from overfit_cli.claim import Measurement
from overfit_cli.figure import FigureData
from overfit_cli.studies.benign_vit.boundaries import boundaries
from overfit_cli.studies.benign_vit.claims import CLAIMS
from overfit_cli.studies.benign_vit.condition import condition_in_words, condition_items
from overfit_cli.studies.benign_vit.data import Weights, draw_directly
from overfit_cli.studies.benign_vit.figures import FIGURES
from overfit_cli.studies.benign_vit.model import VisionTransformer, logistic_loss
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.scales import token_scales
from overfit_cli.studies.benign_vit.study import study
from overfit_cli.studies.benign_vit.theory import (
    Regime,
    boundary_constant,
    learning_balance,
    predicted_steps,
)
from overfit_cli.study import Cell
from overfit_cli.sweep.grid import make_grid
from tests.command import run

BY_NAME = {claim.name: claim for claim in CLAIMS}
PRESETS = Path(__file__).parent.parent / "experiments"


def measure(name: str, cells: pd.DataFrame) -> Measurement:
    return BY_NAME[name].measure(cells)


def preset(name: str, **changed: str) -> list[Cell]:
    """All cells of a preset's quick profile, with some of its values changed."""
    content = tomllib.loads((PRESETS / f"{name}.toml").read_text())
    quick = content["quick"]
    values = content["set"] | quick.get("set", {}) | changed
    texts = {key: str(value) for key, value in values.items()}
    return make_grid(study, texts, tuple(range(quick["seeds"])), {}).cells()


def settings(cells: list[Cell]) -> list[BenignVitParameters]:
    return [one.parameters for one in cells if isinstance(one.parameters, BenignVitParameters)]


def small(**values: object) -> BenignVitParameters:
    fixed = {"initialisation": "condition", "sampling": "law"}
    return BenignVitParameters.model_validate(fixed | values)


def test_every_cell_of_the_theorems_regime_meets_condition_4_1() -> None:
    cells = settings(preset("theorem-regime"))
    assert len(cells) == 680
    for one in cells:
        missed = [str(item) for item in condition_items(one, one.output_scale) if item.decades > 0]
        assert not missed


def test_weights_drawn_as_the_condition_asks_lie_within_its_bounds() -> None:
    for snr in (0.1, 1.0, 10.0):
        one = small(d=10**12, d_h=10**8, snr=snr, output_scale=2.0)
        items = {item.number: item for item in condition_items(one, 2.0)}
        assert items[7].decades == items[8].decades == 0
        assert items[8].slack > 0.1, "in the middle of the window"


def test_the_condition_is_gone_through_and_shown_where_it_is_tightest() -> None:
    said = study.remarks(preset("theorem-regime"))
    assert "is met by 680 of 680 cells" in said[0]
    for number, words in ((1, "1.48e+10 ≤ d_h: it is 1.5e+10"), (9, "ε ≤ 0.0241: it is 0.024")):
        [line] = [line for line in said if line.startswith(f"  ({number}) ")]
        assert words in line
    narrow = study.remarks(preset("theorem-regime", d="1e15"))
    assert "is met by 0 of 680 cells" in narrow[0]
    assert "missed by 3.0 decades; 680 cells miss it" in narrow[2]
    assert not study.remarks(preset("fig1"))


def test_the_tightest_cell_is_the_one_that_misses_most() -> None:
    cells = [small(d=10**9, d_h=d_h) for d_h in (10**3, 10**9)]
    [line] = [line for line in condition_in_words(cells) if line.startswith("  (1) ")]
    assert "it is 1e+03" in line
    assert "2 cells miss it" in line


def made_up(
    axis: str,
    constants: dict[float, float],
    *,
    exponent: float = 2.0,
    slope: dict[float, float] | float = 2.0,
    seeds: int = 5,
    noise: float = 0.02,
    own_noise: float = 0.0,
    **fixed: object,
) -> pd.DataFrame:
    """Grids whose test loss is 0.2 where N · SNR^exponent is the constant of their axis's value.

    Seeds differ by `noise`, and each of a seed's values by `own_noise`, both of the logarithm.
    """
    draws = np.random.default_rng(0)
    defaults = BenignVitParameters.model_validate(fixed).model_dump()
    rows = []
    for seed in range(seeds):
        shift = draws.normal(0, noise)
        for at, constant in constants.items():
            steep = slope[at] if isinstance(slope, dict) else slope
            away_by = shift + draws.normal(0, own_noise)
            for n in (8, 12, 16, 20):
                for snr in np.geomspace(1, 40, 36):
                    away = steep * (np.log(n * snr**exponent / constant) + away_by)
                    rows.append(
                        defaults
                        | {axis: at, "n": n, "snr": snr, "seed": seed, "status": "done"}
                        | {"test_loss": 0.69 / (1 + 2.45 * np.exp(away)), "steps": 10}
                    )
    return pd.DataFrame(rows)


def test_boundaries_are_those_that_made_the_cells() -> None:
    found = boundaries(made_up("d", {1e3: 900.0, 1e6: 1100.0}), "d", 0.2)
    assert found is not None
    assert [one.at for one in found] == [1e3, 1e6]
    for one, constant in zip(found, (900, 1100), strict=True):
        assert one.median == pytest.approx(constant, rel=0.03)
        assert one.low <= one.median <= one.high
        assert one.constants.to_numpy() == pytest.approx(constant, rel=0.06)
        assert one.law is not None
        assert one.law.exponent == pytest.approx(2, abs=0.1)
        # 0.69 / (1 + 2.45 e^(2a)) is 0.5 where e^(2a) = 0.155.
        assert one.onsets.to_numpy() == pytest.approx(constant * 0.155**0.5, rel=0.06)
        assert one.balance == 2 * (20**2 + 14) * (one.at > 0)
        assert one.widths.to_numpy() == pytest.approx(0.155**-0.5, rel=0.05)
        assert (one.curves, one.never) == (20, 0)


def test_a_seeds_constant_is_the_middle_of_its_curves() -> None:
    """Of four N, with boundaries at 800, 900, 1100 and 1200: between the second and the third."""
    parts = [
        made_up("d", {1e3: constant, 1e6: constant}, noise=0).query(f"n == {n}")
        for n, constant in zip((8, 12, 16, 20), (800.0, 1100.0, 900.0, 1200.0), strict=True)
    ]
    found = boundaries(pd.concat(parts), "d", 0.2)
    assert found is not None
    assert found[0].constants.to_numpy() == pytest.approx(np.sqrt(900 * 1100), rel=0.01)


def test_seeds_that_never_cross_count_as_beyond_the_grid() -> None:
    found = boundaries(made_up("d", {1e3: 1e3, 1e6: 1e7, 1e9: 0.01}), "d", 0.2)
    assert found is not None
    never, always = found[1], found[2]
    assert never.never == always.never == 20
    assert np.isinf(never.constants).all()
    assert np.isinf(never.median)
    assert (always.constants == 0).all()
    assert never.widths.isna().all()


def test_no_boundary_is_told_where_something_else_varies() -> None:
    cells = made_up("d", {1e3: 1e3, 1e6: 1e3})
    mixed = cells.assign(epsilon=np.where(cells["snr"] > 5, 0.01, 0.02))
    assert boundaries(mixed, "d", 0.2) is None
    assert boundaries(cells[cells["n"] < 13], "d", 0.2) is None


@pytest.mark.parametrize(
    ("constants", "verdict"),
    [
        ({1e3: 1e3, 1e9: 1.1e3}, "holds"),
        ({1e3: 1e3, 1e9: 2e3}, "fails"),
        ({1e3: 2e3, 1e9: 1e3}, "fails"),
        ({1e3: 1e3, 1e9: 1e7}, "fails"),
        ({1e3: 1e7, 1e9: 1e7}, "inconclusive"),
        ({1e3: 1e3, 1e4: 1e3}, "not run"),
    ],
)
def test_the_constant_is_that_of_many_dimensions(
    constants: dict[float, float], verdict: str
) -> None:
    assert measure("dimension-constant", made_up("d", constants)).verdict == verdict


@pytest.mark.parametrize(("exponent", "verdict"), [(2.0, "holds"), (1.5, "fails")])
def test_the_exponent_at_the_largest_d(exponent: float, verdict: str) -> None:
    cells = made_up("d", {1e3: 1e3, 1e9: 300.0}, exponent=exponent)
    found = measure("dimension-exponent", cells)
    assert found.verdict == verdict
    assert found.value == pytest.approx(exponent, abs=0.1)


def test_one_seed_that_leaves_the_grid_leaves_it_open() -> None:
    cells = made_up("d", {1e3: 1e3, 1e9: 1e3})
    away = (cells["seed"] == 0) & (cells["d"] == 1e9)
    cells["test_loss"] = cells["test_loss"].mask(away, 0.69)
    found = measure("dimension-constant", cells)
    assert found.verdict == "inconclusive"
    assert "1 of 5 seeds" in found.sentence
    few = made_up("d", {1e3: 1e3, 1e9: 1e3}, seeds=2)
    assert measure("dimension-constant", few).verdict == "inconclusive"


@pytest.mark.parametrize(
    ("slopes", "verdict"), [((2.0, 2.0), "holds"), ((2.0, 4.0), "fails"), ((2.0, 1.0), "fails")]
)
def test_a_transition_is_as_wide_as_its_slope_makes_it(
    slopes: tuple[float, float], verdict: str
) -> None:
    cells = made_up("d", {1e3: 1e3, 1e9: 1e3}, slope=dict(zip((1e3, 1e9), slopes, strict=True)))
    found = measure("dimension-sharpness", cells)
    assert found.verdict == verdict
    assert found.value == pytest.approx(0.155 ** (1 / slopes[0] - 1 / slopes[1]), rel=0.05)


@pytest.mark.parametrize(
    ("power", "noise", "verdict"),
    [(1.0, 0.02, "holds"), (0.7, 0.02, "fails"), (1.3, 0.02, "fails"), (1.15, 0.1, "inconclusive")],
)
def test_the_transition_begins_where_learning_is_balanced(
    power: float, noise: float, verdict: str
) -> None:
    balances = {at: float(learning_balance(at / 0.2, 16)) for at in (1.0, 2.0, 4.0)}
    constants = {at: 3 * balance**power for at, balance in balances.items()}
    slopes = dict.fromkeys(constants, 2.0)
    cells = made_up("sigma_p_tilde", constants, slope=slopes, noise=noise, own_noise=noise)
    found = measure("transition-balance", cells)
    assert found.value == pytest.approx(power, abs=0.05)
    assert found.verdict == verdict, found.sentence


@pytest.mark.parametrize(("ratio", "tokens"), [(20.0, 16), (5.0, 4), (0.5, 12)])
def test_a_first_step_is_balanced_where_the_theory_says(ratio: float, tokens: int) -> None:
    """By autograd, from even attention and no values: what each sample's own tokens gain."""
    n, d = 60, 3000
    snr = float(np.sqrt(learning_balance(ratio, tokens) / n))
    shape = {"n": n, "d": d, "tokens": tokens, "d_h": 2, "d_v": 2, "test_samples": 1, "snr": snr}
    settings = small(**shape, sampling="direct", noise="orthogonal", sigma_p_tilde=ratio * 0.2)
    drawn = draw_directly(settings, 0)
    nothing, output = np.zeros((d, 2)), np.ones(2)
    model = VisionTransformer(Weights(nothing, nothing, nothing, output), torch.float64)
    x = torch.from_numpy(drawn.train.tokens * token_scales(settings)[:, None])
    y = torch.from_numpy(drawn.train.labels)
    [gradient] = torch.autograd.grad(logistic_loss(y * model(x)), [model.value])
    gained = y[:, None] * (x @ -gradient @ torch.from_numpy(output))
    by_signal, by_noise = float(gained[:, 0].mean()), float(gained[:, 1:].sum(1).mean())
    assert by_signal == pytest.approx(by_noise, rel=0.1)


def test_figure_1s_curve_is_drawn_where_the_cells_tokens_put_it() -> None:
    law_of = FIGURES["heatmap"].law_of
    assert law_of is not None
    cells = made_up("d", {1e3: 1e3})
    data = FigureData(study, cells, cells, pd.DataFrame())
    assert law_of(data) == "n * snr**2 = 1000"
    weaker = replace(data, cells=cells.assign(sigma_p_tilde=2.0, tokens=4))
    assert law_of(weaker) == f"n * snr**2 = {1000 * 102 / 414:.4g}"
    assert float(boundary_constant(10, 4)) == pytest.approx(1000 * 102 / 414)
    mixed = replace(data, cells=cells.assign(tokens=np.where(cells["n"] > 10, 4, 16)))
    assert law_of(mixed) is None


@functools.cache
def theorems_cells() -> pd.DataFrame:
    """The preset's cells as the theorems have them: a boundary at 300, a loss that goes with ε."""
    rows = []
    for one, cell in zip(settings(preset("theorem-regime")), preset("theorem-regime"), strict=True):
        product = one.n * one.snr**2
        benign = 0.1 * (one.epsilon / 0.024) ** 0.5
        regime: Regime = "benign" if product > 300 else "harmful"
        shares = np.interp(np.log(product), np.log([100, 600]), [0, 1])
        rows.append(
            one.model_dump()
            | {"seed": cell.seed, "status": "done", "reason": ""}
            | {"steps": round(2 * predicted_steps(one, 1.0, regime))}
            | {"test_loss": 0.69 * (benign / 0.69) ** shares, "test_error": 0.5 * (1 - shares)}
        )
    return pd.DataFrame(rows)


THEOREM = [name for name in BY_NAME if name.startswith("theorem-")]


@pytest.mark.parametrize("name", THEOREM)
def test_the_theorems_hold_on_cells_that_follow_them(name: str) -> None:
    found = measure(name, theorems_cells())
    assert found.verdict == "holds", found.sentence


@pytest.mark.parametrize("name", THEOREM)
def test_the_theorems_are_not_judged_outside_of_their_condition(name: str) -> None:
    cells = theorems_cells()
    assert measure(name, cells.assign(d=10**12)).verdict == "not run"
    assert measure(name, cells.assign(initialisation="gaussian")).verdict == "not run"
    assert measure(name, cells[cells["snr"] < 1]).verdict == "not run"


def with_products(cells: pd.DataFrame, low: float, high: float, **values: object) -> pd.DataFrame:
    """The cells with other values where N · SNR² lies between two numbers."""
    products = cells["n"] * cells["snr"] ** 2
    changed = cells.copy()
    for name, value in values.items():
        changed[name] = changed[name].mask((products > low) & (products < high), value)
    return changed


def test_a_test_loss_that_never_comes_down_breaks_theorem_4_1() -> None:
    cells = theorems_cells().assign(test_loss=0.69)
    assert measure("theorem-benign-test-loss", cells).verdict == "fails"
    assert measure("theorem-transition", cells).verdict == "fails"
    assert measure("theorem-harmful-test-loss", cells).verdict == "holds"


def test_the_test_losses_must_go_with_epsilon_as_stated() -> None:
    cells = theorems_cells()
    constant = with_products(cells, 600, np.inf, test_loss=0.15)
    assert measure("theorem-benign-test-loss", constant).verdict == "fails"
    falling = with_products(cells, 0, 60, test_loss=50 * cells["epsilon"])
    assert measure("theorem-harmful-test-loss", falling).verdict == "fails"


def test_steps_of_another_order_than_t_break_the_theorems() -> None:
    cells = theorems_cells()
    for side in ("benign", "harmful"):
        slow = cells.assign(steps=cells["steps"] * 6)
        assert measure(f"theorem-{side}-steps", slow).verdict == "fails"
        bent = cells.assign(steps=cells["steps"] * cells["epsilon"] ** -0.5)
        assert measure(f"theorem-{side}-powers", bent).verdict == "fails"


def test_failed_cells_leave_it_open_unless_they_took_longer_than_the_theorem_allows() -> None:
    cells = theorems_cells()
    stopped = {"status": "failed", "reason": "step limit"}
    early = with_products(cells, 900, np.inf, **stopped, steps=1000)
    assert measure("theorem-benign-steps", early).verdict == "inconclusive"
    for name in ("theorem-benign-powers", "theorem-benign-test-loss"):
        assert measure(name, early).verdict == "inconclusive"
    late = with_products(cells, 900, np.inf, **stopped, steps=cells["steps"] * 20)
    assert measure("theorem-benign-steps", late).verdict == "fails"
    diverged = with_products(cells, 900, np.inf, status="failed", reason="diverged")
    assert measure("theorem-benign-steps", diverged).verdict == "fails"


TINY = ["--set=tokens=3", "--set=test_samples=10", "--set=d_h=8", "--set=epsilon=0.1"]


def test_the_figure_is_drawn_of_a_sweep_over_dimensions(tmp_path: Path) -> None:
    grid = ["--n=4,8,12", "--set=snr=1:40:8:log", "--set=d=1e3,1e12", "--seeds=2", "--jobs=1"]
    done = run("sweep", "dimension", *grid, *TINY, cwd=tmp_path).stdout
    assert "Done: 96 trained" in done
    assert "Next: overfit plot dimension --from results/dimension-quick" in done
    drawn = run("plot", "dimension", "--out=d.svg", cwd=tmp_path)
    assert "Drawn: d.svg" in drawn.stdout
    text = (tmp_path / "d.svg").read_text()
    for words in (
        "features of a token",
        "N·SNR² at the crossing",
        "test loss crosses 0.2",
    ):
        assert words in text
    other = run("plot", "dimension", "--threshold=0.4", "--out=e.svg", cwd=tmp_path)
    assert other.returncode == 0
    assert "crosses 0.4" in (tmp_path / "e.svg").read_text()


def test_the_figure_says_what_it_needs(tmp_path: Path) -> None:
    grid = ["--n=4,8", "--set=snr=4,9", "--set=d=1e3,1e6", "--seeds=1", "--jobs=1", "--out=out"]
    run("sweep", "dimension", *grid, *TINY, cwd=tmp_path)
    refused = run("plot", "dimension", "--from=out", cwd=tmp_path, expect=2)
    assert "three or more of n and of snr" in refused.stderr


def test_a_resumed_sweep_speaks_of_all_of_its_cells(tmp_path: Path) -> None:
    grid = ["--n=44", "--set=snr=1,3", "--set=epsilon=0.024", "--seeds=1", "--jobs=1", "--out=out"]
    first = run("sweep", "theorem-regime", *grid, "--set=leap=0.3", cwd=tmp_path).stdout
    again = run("sweep", "theorem-regime", *grid, "--set=leap=0.3", cwd=tmp_path).stdout
    assert "2 trained" in first
    assert "0 trained" in again
    for said in (first, again):
        assert "is met by 2 of 2 cells" in said
        assert "\n  (1) " in said


def test_refinement_works_in_law(tmp_path: Path) -> None:
    grid = ["--n=8,12", "--set=snr=1:40:6:log", "--set=d=1e12", "--seeds=2", "--jobs=1"]
    said = run("sweep", "dimension", *grid, *TINY, "--refine=2", "--tolerance=2", cwd=tmp_path)
    assert "Round 1" in said.stdout
    assert "of 2 values of n" in said.stdout
