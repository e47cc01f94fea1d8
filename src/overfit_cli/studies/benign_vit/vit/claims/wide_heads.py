"""Claims of this tool on wide heads: the test loss in closed form, and how fast attention ends.

Both follow from Theorem 4.1's own dynamics (Jiang et al. 2024) to leading order in √d_h, without a
constant that is fitted: see `theory.wide_heads_test_loss` and `theory.attention_deficit`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import add_absent, one_setting, positive_numbers, require_done
from overfit_cli.claims.python import above, geometric_mean, near
from overfit_cli.claims.rules import judge_estimates, tolerance_margin
from overfit_cli.claims.sentences import Sentence
from overfit_cli.claims.stated import Choose, stated_claim
from overfit_cli.core.claim import Claim, Measurement, add_remark, inconclusive, not_run
from overfit_cli.stats.boundaries import scaling_exponents
from overfit_cli.stats.intervals import level_of_each
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


def _design(cells: pd.DataFrame, free: frozenset[str], example: str) -> pd.DataFrame:
    """The benign cells with weights as Condition 4.1 asks, alike but for `free`, all done."""
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
    return require_done(add_absent(alike, _NAMES))


def _with_wide_heads(cells: pd.DataFrame) -> pd.DataFrame:
    chosen: pd.DataFrame = cells[numbers_of(cells, attention_deficit) <= SMALL_DEFICIT]
    if chosen.empty:
        raise not_run(f"It needs heads so wide that training attention misses {SMALL_DEFICIT:g}.")
    return chosen


def _over_formula(cells: pd.DataFrame, column: str, number: OfCell) -> pd.DataFrame:
    wide = _with_wide_heads(_with_deficit(cells) if column == "deficit" else cells)
    return wide.assign(over=wide[column].astype(float) / numbers_of(wide, number))


def _over_large_range(cells: pd.DataFrame) -> pd.DataFrame:
    widths = cells["d_h"]
    if widths.max() / widths.min() < LEAST_RANGE:
        raise not_run(f"It needs heads that are a factor of {LEAST_RANGE:g} apart.")
    return cells


def _with_deficit(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells with what the mean training attention on the signal misses of 1."""
    return cells.assign(deficit=1 - cells["train_attention_signal"].astype(float))


def _deficits(cells: pd.DataFrame) -> pd.Series[float]:
    """What the mean training attention on the signal misses of 1; positive."""
    return positive_numbers(_with_deficit(cells), "deficit")


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


def _over_paper_error(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells with wide heads, with their deficit over the error of stage 3."""
    over = _over_formula(cells, "deficit", stage_3_error)
    rates = boundary_product(over["n"], over["snr"]) / np.sqrt(over["d_h"].astype(float))
    constants = np.exp(np.log(over["deficit"] / rates).groupby(over["tokens"]).mean())
    words = ", ".join(f"{constant:.3g} at M = {m}" for m, constant in constants.items())
    add_remark(f"The deficit over N·SNR²/√d_h is {words}.")
    return over


def _widths_over_formula(cells: pd.DataFrame) -> pd.DataFrame:
    """The d_h at which the deficit is `SMALL_DEFICIT` over the formula's, a row for each line.

    A line is of cells over d_h; that which does not cross the deficit has none.
    """
    logs = cells.assign(log=np.log(_deficits(cells)))
    level = np.log(SMALL_DEFICIT)
    rows = []
    for _, line in logs.groupby(["seed", "tokens", "n", "snr", "epsilon"]):
        along = line.sort_values("log")
        if along["log"].iloc[0] > level or along["log"].iloc[-1] < level:
            continue
        width = np.exp(np.interp(level, along["log"], np.log(along["d_h"].astype(float))))
        predicted = numbers_of(along.iloc[:1], lambda cell: width_of_attention(cell, SMALL_DEFICIT))
        rows.append(along.iloc[:1].assign(over=width / predicted))
    if not rows:
        raise not_run(f"No line of cells over d_h crosses a deficit of {SMALL_DEFICIT:g}.")
    add_remark(
        f"The d_h at which mean training attention on the signal is {1 - SMALL_DEFICIT:g}: between "
        "neighbouring d_h, on logarithms."
    )
    crossed = pd.concat(rows)
    d_h = float(crossed["d_h"].iloc[0])
    whole = crossed.groupby(["tokens", "n", "snr", "epsilon"])["seed"].transform("size")
    return crossed[whole == crossed["seed"].nunique()].assign(d_h=d_h)


DESIGN = (
    f"weights as Condition 4.1 asks for, equally many labels of both kinds; {LARGE}; N is below "
    "log d, which item 3 asks for, and noise tokens overlap by NM/√d, a millionth or less"
)
WIDE = f"the formula's deficit of training attention is at most {SMALL_DEFICIT:g}"


def _fields(
    name: str,
    statement: str,
    preset: str,
    source: str = "Theorem 4.1",
    kind: Kind = "ours",
    hypotheses: str = f"{DESIGN}; {WIDE}",
) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "source": f"Jiang et al. 2024, {source}",
        "statement": statement,
        "hypotheses": hypotheses,
        "figure": "wide-heads" if preset == "wide-heads" else "deficit",
        "preset": preset,
    }


def _sentence(choose: Choose, stated: Sentence, number: str, because: str, **fields: Any) -> Claim:
    preset = fields["preset"]
    free = _LOSS_AXES if preset == "wide-heads" else _DEFICIT_AXES
    return stated_claim(
        lambda cells: choose(_design(cells, free, preset)),
        BenignVitParameters,
        stated,
        number=number,
        because=because,
        **_fields(**fields),
    )


def _powers(cells: pd.DataFrame) -> Measurement:
    return _deficit_powers(_design(cells, _DEFICIT_AXES, "attention-deficit"))


_LOSS_AXES = frozenset({"tokens", "epsilon", "d_h"})
_DEFICIT_AXES = frozenset({"tokens", "n", "snr", "d_h"})
_POWERS_IN_WORDS = ", ".join(f"{power:g} of {SYMBOLS[n]}" for n, power in DEFICIT_POWERS.items())

AT_WORST = partial(near, value=1, over="worst")

WIDE_HEADS = (
    _sentence(
        partial(
            _over_formula,
            column="test_attention_signal",
            number=lambda cell: float(wide_heads_test_attention(cell.tokens)),
        ),
        AT_WORST(geometric_mean("over"), factor=1.02),
        "test attention over that, the least and the most of a seed's cells,",
        "what is missing goes as 1/√d_h",
        name="wide-heads-test-attention",
        statement="As d_h → ∞, test attention on the signal is (2M − 1)/M²: the signal's query "
        "pays all of its attention, and each of M − 1 new noise tokens pays 1/M.",
        preset="wide-heads",
    ),
    _sentence(
        partial(_over_formula, column="test_loss", number=wide_heads_test_loss),
        AT_WORST(geometric_mean("over"), factor=1.1),
        "the test loss over that, the least and the most,",
        "attention that is missing, and leaps, change it",
        name="wide-heads-test-loss",
        statement="As d_h → ∞, the test loss is log(1 + (e^ε − 1)^((2M − 1)/M²)).",
        preset="wide-heads",
    ),
    _sentence(
        _over_large_range,
        above(
            geometric_mean("test_loss[d_h is largest] / test_loss[d_h is smallest]"),
            1,
            strictly=False,
            over="worst",
        ),
        "the test loss with the widest heads over that with the narrowest, the least,",
        "1 is no change",
        name="wide-heads-test-loss-rises",
        statement="Wider heads raise the test loss, at the same training loss.",
        preset="wide-heads",
        hypotheses=DESIGN,
    ),
    _sentence(
        partial(_over_formula, column="deficit", number=attention_deficit),
        AT_WORST(geometric_mean("over"), factor=1.25),
        "what is missing over that, the least and the most,",
        "the next order is a tenth, and other keys and leaps take a few percent",
        name="attention-deficit-formula",
        statement="What the mean training attention misses of 1 is NM‖w_O‖²/(2 s² σ_h² d_h "
        "log²(1/(e^ε − 1))), averaged over tokens of length s.",
        preset="attention-deficit",
        source="(65) and (111)",
    ),
    Claim(
        **_fields(
            "attention-deficit-powers",
            "What the mean training attention misses of 1 scales as N·SNR²/√d_h.",
            "attention-deficit",
            "(65) and (111)",
        ),
        holds_where=f"each power has its whole interval within {POWER_TOLERANCE:g} of "
        f"{_POWERS_IN_WORDS} (the formula has a logarithm of N); at least 5 seeds",
        measure=_powers,
    ),
    _sentence(
        _over_paper_error,
        near(geometric_mean("over"), 1, factor=10, over="average"),
        "what is missing over that error",
        "an order of magnitude: the constant is open",
        name="attention-deficit-constant",
        statement="The error of stage 3, N·SNR² log(6N²M²/δ)³/√d_h with a constant of 1, is the "
        "order of what the mean training attention misses of 1.",
        preset="attention-deficit",
        source="(65) and (111)",
        kind="sharp",
    ),
    _sentence(
        _widths_over_formula,
        AT_WORST(geometric_mean("over"), factor=2),
        "that d_h over the formula's, the least and the most,",
        "the deficit's 1.25 squared, and steps of the grid that are decades wide",
        name="attention-deficit-width",
        statement=f"Training attention on the signal is {1 - SMALL_DEFICIT:g} where d_h is the "
        "formula's.",
        preset="attention-deficit",
        source="section 5.3, stage 3",
        hypotheses=DESIGN,
    ),
)
