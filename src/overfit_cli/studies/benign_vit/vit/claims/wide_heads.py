"""Claims of this tool on wide heads: the test loss in closed form, and how fast attention ends.

Both follow from Theorem 4.1's own dynamics (Jiang et al. 2024) to leading order in √d_h, without a
constant that is fitted: see `theory.wide_heads_test_loss` and `theory.attention_deficit`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import add_absent, one_setting, positive_numbers, require_done
from overfit_cli.claims.rules import (
    Margin,
    exponentiate,
    factor_margin,
    judge_estimate,
    judge_estimates,
    tolerance_margin,
)
from overfit_cli.core.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.stats.boundaries import scaling_exponents
from overfit_cli.stats.intervals import level_of_each, mean_estimate
from overfit_cli.studies.benign_vit.vit.claims.condition import (
    LARGE,
    MAY_VARY,
    OfCell,
    cells_of_side,
    numbers_of,
)
from overfit_cli.studies.benign_vit.vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.vit.theory import (
    SMALL_DEFICIT,
    attention_deficit,
    boundary_product,
    stage_3_error,
    wide_heads_test_attention,
    wide_heads_test_loss,
    width_of_attention,
)

if TYPE_CHECKING:
    from overfit_cli.core.claim import Kind

AS_PREDICTED = factor_margin(1.0, 1.02, "what is missing goes as 1/√d_h", 5)
LOSS_AS_PREDICTED = factor_margin(1.0, 1.1, "attention that is missing, and leaps, change it", 5)
DEFICIT_AS_PREDICTED = factor_margin(
    1.0, 1.25, "the next order is a tenth, and other keys and leaps take a few percent", 5
)
RISES = Margin(least=1.0, because="1 is no change", fewest_seeds=5)
WIDTH_AS_PREDICTED = factor_margin(
    1.0, 2.0, "the deficit's 1.25 squared, and steps of the grid that are decades wide", 5
)
ORDER_OF_ERROR = factor_margin(1.0, 10.0, "an order of magnitude: the constant is open", 5)

DEFICIT_POWERS = {"n": 1.0, "snr": 2.0, "d_h": -0.5}
"""The powers in N·SNR²/√d_h."""

POWER_TOLERANCE = 0.1
SYMBOLS = {"n": "N", "snr": "SNR", "d_h": "d_h"}

LEAST_FACTORS = {"n": 2.0, "snr": 3.0, "d_h": 100.0}
"""By which factor the values of a parameter must differ: a power is told over a range alone."""

LEAST_RANGE = 1e4
"""By which factor the widest heads must be wider than the narrowest."""

LEAST_VALUES = 2
"""The fewest values of each parameter that a formula has."""

_NAMES = [name for name in BenignVitParameters.model_fields if name not in MAY_VARY]

Judge = Callable[[pd.DataFrame], Measurement]


def _measure(cells: pd.DataFrame, judge: Judge, free: frozenset[str], example: str) -> Measurement:
    """Judge benign cells with weights as Condition 4.1 asks, alike but for `free`."""
    drawn = cells[cells["initialisation"] == "condition"]
    chosen = cells_of_side(drawn[drawn["labels"] == "balanced"], "benign")
    if chosen.empty:
        raise not_run(
            f"It needs benign cells with initialisation=condition and labels=balanced, as in "
            f"`overfit sweep {example}`."
        )
    alike = one_setting(chosen, [name for name in _NAMES if name not in free])
    if lacking := [name for name in sorted(free) if alike[name].nunique() < LEAST_VALUES]:
        raise not_run(
            f"It needs {LEAST_VALUES} values of {', '.join(lacking)}, as in `overfit sweep "
            f"{example}`."
        )
    return judge(require_done(add_absent(alike, _NAMES)))


def _with_wide_heads(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells in which the formula's deficit is small."""
    chosen: pd.DataFrame = cells[numbers_of(cells, attention_deficit) <= SMALL_DEFICIT]
    if chosen.empty:
        raise not_run(f"It needs heads so wide that training attention misses {SMALL_DEFICIT:g}.")
    return chosen


def _ends_over(
    cells: pd.DataFrame, column: pd.Series[float], number: OfCell, margin: Margin, words: str
) -> Measurement:
    """Measure the least and the most of a positive column over a formula, of each seed's cells."""
    logs = (column / numbers_of(cells, number)).map(np.log).groupby(cells["seed"])
    level = level_of_each(2)
    ends = {"least": logs.min(), "most": logs.max()}
    return judge_estimates(
        {
            f"{name} {words} over the formula's": (
                exponentiate(mean_estimate(of_seeds, level)),
                margin,
            )
            for name, of_seeds in ends.items()
        },
        note="Over each seed's cells.",
        details={"cells": len(cells)},
    )


def _test_attention(cells: pd.DataFrame) -> Measurement:
    wide = _with_wide_heads(cells)
    return _ends_over(
        wide,
        positive_numbers(wide, "test_attention_signal"),
        lambda cell: float(wide_heads_test_attention(cell.tokens)),
        AS_PREDICTED,
        "test attention on the signal",
    )


def _test_loss(cells: pd.DataFrame) -> Measurement:
    wide = _with_wide_heads(cells)
    return _ends_over(
        wide,
        positive_numbers(wide, "test_loss"),
        wide_heads_test_loss,
        LOSS_AS_PREDICTED,
        "test loss",
    )


def _loss_rises(cells: pd.DataFrame) -> Measurement:
    """Measure the test loss with the widest heads over that with the narrowest, the least."""
    widths = np.sort(cells["d_h"].unique())
    if widths[-1] / widths[0] < LEAST_RANGE:
        raise not_run(f"It needs heads that are a factor of {LEAST_RANGE:g} apart.")
    logs = cells.assign(log=np.log(positive_numbers(cells, "test_loss")))
    table = logs.pivot_table(index=["seed", "tokens", "epsilon"], columns="d_h", values="log")
    rises = table[widths[-1]] - table[widths[0]]
    return judge_estimate(
        exponentiate(mean_estimate(rises.groupby("seed").min())),
        RISES,
        note=f"The test loss at d_h = {widths[-1]:.2g} over that at {widths[0]:.2g}, the least of "
        "a seed's M and ε.",
        details={
            "most, geometric mean over seeds": float(np.exp(rises.groupby("seed").max().mean()))
        }
        | {"cells": len(cells)},
    )


def _deficits(cells: pd.DataFrame) -> pd.Series[float]:
    """What the mean training attention on the signal misses of 1; positive."""
    missing = cells.assign(deficit=1 - cells["train_attention_signal"].astype(float))
    return positive_numbers(missing, "deficit")


def _deficit_formula(cells: pd.DataFrame) -> Measurement:
    wide = _with_wide_heads(cells)
    return _ends_over(wide, _deficits(wide), attention_deficit, DEFICIT_AS_PREDICTED, "deficit")


def _deficit_powers(cells: pd.DataFrame) -> Measurement:
    # The deficit is no power of M, and not every N has every M: a fit over all would tilt.
    wide = one_setting(_with_wide_heads(cells), ["tokens"])
    for name, factor in LEAST_FACTORS.items():
        if float(wide[name].max() / wide[name].min()) < factor:
            raise not_run(f"It needs values of {name} that are a factor of {factor:g} apart.")
    measured = scaling_exponents(
        wide.assign(deficit=_deficits(wide)),
        list(DEFICIT_POWERS),
        "deficit",
        level_of_each(len(DEFICIT_POWERS)),
    )
    if measured is None:
        raise inconclusive("No seed has cells that tell the axes apart.")
    return judge_estimates(
        {
            f"power of {SYMBOLS[name]}": (
                measured[name],
                tolerance_margin(power, POWER_TOLERANCE, "the formula has a logarithm of N"),
            )
            for name, power in DEFICIT_POWERS.items()
        },
        note="Fitted seed by seed, at one M.",
        details={"cells": len(wide)},
    )


def _paper_error(cells: pd.DataFrame) -> Measurement:
    wide = _with_wide_heads(cells)
    deficits = _deficits(wide).map(np.log)
    over = deficits - numbers_of(wide, stage_3_error).map(np.log)
    rates = boundary_product(wide["n"], wide["snr"]) / np.sqrt(wide["d_h"].astype(float))
    constants = (deficits - np.log(rates)).groupby(wide["tokens"]).mean()
    return judge_estimate(
        exponentiate(mean_estimate(over.groupby(wide["seed"]).mean())),
        ORDER_OF_ERROR,
        note="The deficit over N·SNR² log(6N²M²/δ)³/√d_h, the geometric mean of a seed's cells.",
        details={"cells": len(wide)}
        | {
            f"deficit over N·SNR²/√d_h, M = {tokens}": float(np.exp(log))
            for tokens, log in constants.items()
        },
    )


def _width(cells: pd.DataFrame) -> Measurement:
    """Measure the d_h at which the deficit is `SMALL_DEFICIT`, over the formula's."""
    logs = cells.assign(log=np.log(_deficits(cells)))
    over = {}
    for (seed, *setting), line in logs.groupby(["seed", "tokens", "n", "snr", "epsilon"]):
        along = line.sort_values("log")
        level = np.log(SMALL_DEFICIT)
        if along["log"].iloc[0] > level or along["log"].iloc[-1] < level:
            continue
        crossing = np.interp(level, along["log"], np.log(along["d_h"].astype(float)))
        first = along.iloc[:1]
        predicted = numbers_of(first, lambda cell: width_of_attention(cell, SMALL_DEFICIT))
        over[(seed, *setting)] = crossing - float(np.log(predicted.iloc[0]))
    if not over:
        raise not_run(f"No line of cells over d_h crosses a deficit of {SMALL_DEFICIT:g}.")
    by_seed = pd.Series(over).groupby(level=0)
    level_of_both = level_of_each(2)
    ends = {"least": by_seed.min(), "most": by_seed.max()}
    return judge_estimates(
        {
            f"{name} d_h over the formula's": (
                exponentiate(mean_estimate(of_seeds, level_of_both)),
                WIDTH_AS_PREDICTED,
            )
            for name, of_seeds in ends.items()
        },
        note=f"The d_h at which mean training attention on the signal is {1 - SMALL_DEFICIT:g}: "
        "between neighbouring d_h, on logarithms.",
        details={"lines that cross it": len(over) / len(by_seed)},
    )


DESIGN = (
    f"weights as Condition 4.1 asks for, equally many labels of both kinds; {LARGE}; N is below "
    "log d, which item 3 asks for, and noise tokens overlap by NM/√d, a millionth or less"
)
WIDE = f"the formula's deficit of training attention is at most {SMALL_DEFICIT:g}"


def _claim(
    name: str,
    statement: str,
    holds_where: str,
    judge: Judge,
    free: frozenset[str],
    *,
    preset: str,
    source: str = "Theorem 4.1",
    kind: Kind = "ours",
    hypotheses: str = f"{DESIGN}; {WIDE}",
) -> Claim:
    return Claim(
        name=name,
        kind=kind,
        source=f"Jiang et al. 2024, {source}",
        statement=statement,
        hypotheses=hypotheses,
        holds_where=holds_where,
        measure=partial(_measure, judge=judge, free=free, example=preset),
        figure="wide-heads" if preset == "wide-heads" else "deficit",
        preset=preset,
    )


_LOSS_AXES = frozenset({"tokens", "epsilon", "d_h"})
_DEFICIT_AXES = frozenset({"tokens", "n", "snr", "d_h"})
_POWERS_IN_WORDS = ", ".join(f"{power:g} of {SYMBOLS[n]}" for n, power in DEFICIT_POWERS.items())

WIDE_HEADS = (
    _claim(
        "wide-heads-test-attention",
        "As d_h → ∞, test attention on the signal is (2M − 1)/M²: the signal's query pays all of "
        "its attention, and each of M − 1 new noise tokens pays 1/M.",
        AS_PREDICTED.in_words(
            "test attention over that, the least and the most of a seed's cells,"
        ),
        _test_attention,
        _LOSS_AXES,
        preset="wide-heads",
    ),
    _claim(
        "wide-heads-test-loss",
        "As d_h → ∞, the test loss is log(1 + (e^ε − 1)^((2M − 1)/M²)).",
        LOSS_AS_PREDICTED.in_words("the test loss over that, the least and the most,"),
        _test_loss,
        _LOSS_AXES,
        preset="wide-heads",
    ),
    _claim(
        "wide-heads-test-loss-rises",
        "Wider heads raise the test loss, at the same training loss.",
        RISES.in_words(
            "the test loss with the widest heads over that with the narrowest, the least,"
        ),
        _loss_rises,
        _LOSS_AXES,
        preset="wide-heads",
        hypotheses=DESIGN,
    ),
    _claim(
        "attention-deficit-formula",
        "What the mean training attention misses of 1 is NM‖w_O‖²/(2 s² σ_h² d_h "
        "log²(1/(e^ε − 1))), averaged over tokens of length s.",
        DEFICIT_AS_PREDICTED.in_words("what is missing over that, the least and the most,"),
        _deficit_formula,
        _DEFICIT_AXES,
        preset="attention-deficit",
        source="(65) and (111)",
    ),
    _claim(
        "attention-deficit-powers",
        "What the mean training attention misses of 1 scales as N·SNR²/√d_h.",
        f"each power has its whole interval within {POWER_TOLERANCE:g} of {_POWERS_IN_WORDS} (the "
        "formula has a logarithm of N); at least 5 seeds",
        _deficit_powers,
        _DEFICIT_AXES,
        preset="attention-deficit",
        source="(65) and (111)",
    ),
    _claim(
        "attention-deficit-constant",
        "The error of stage 3, N·SNR² log(6N²M²/δ)³/√d_h with a constant of 1, is the order of "
        "what the mean training attention misses of 1.",
        ORDER_OF_ERROR.in_words("what is missing over that error"),
        _paper_error,
        _DEFICIT_AXES,
        preset="attention-deficit",
        source="(65) and (111)",
        kind="sharp",
    ),
    _claim(
        "attention-deficit-width",
        f"Training attention on the signal is {1 - SMALL_DEFICIT:g} where d_h is the formula's.",
        WIDTH_AS_PREDICTED.in_words("that d_h over the formula's, the least and the most,"),
        _width,
        _DEFICIT_AXES,
        preset="attention-deficit",
        source="section 5.3, stage 3",
        hypotheses=DESIGN,
    ),
)
