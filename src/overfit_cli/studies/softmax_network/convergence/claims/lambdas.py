"""Claims on Table 1 with its λ kept: steps and widths against λ, over n, d and the data.

All are ours. The table's steps are λ⁻² n² log(n/ε) and its widths λ⁻² n² log²(n), up to n^o(1), and
both suffice. Here the powers of λ are measured, of the steps and the widths that are needed.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, positive_numbers
from overfit_cli.claims.parts import Margin, Part, factor_margin, tolerance_margin
from overfit_cli.claims.rules import judge
from overfit_cli.core.claim import Measurement, inconclusive
from overfit_cli.studies.softmax_network.convergence.claims.kernels import softmax_claim
from overfit_cli.studies.softmax_network.convergence.claims.table1 import (
    RULES,
    step_ranges,
    width_range,
)
from overfit_cli.studies.softmax_network.convergence.parameters import SoftmaxConvergenceParameters
from overfit_cli.studies.softmax_network.convergence.widths import by_data, table1_steps, widest
from overfit_cli.studies.softmax_network.paper import NAMES

STEPS_PRESET, WIDTHS_PRESET = "softmax-lambda-steps", "softmax-lambda-widths"
DATA, DIMENSIONS = ("sphere", "digits"), (16, 64)
SAMPLES = {"paper": (3, 4, 6), "stability": (8, 16, 32, 64)}
"""The n of the presets, by step rule: T is of the order n⁴ at 0.1 λ/(m n²)."""

SETTING = ["activation", "data", "d", "n"]

LARGEST_LAMBDA = 1.0
"""Table 1's caption has λ < 1."""

FEWEST_SETTINGS = 12
"""Of each seed, out of 48: a power, one of n, a constant, and two of activations are fitted."""

HALF = "half the way to the next multiple of 1/2"
ALMOST_THE_SAME = factor_margin(1.0, 2.0, "a factor of two", fewest_seeds=10)
SQUARE = tolerance_margin(2.0, 0.25, HALF, fewest_seeds=10)
LINEAR = tolerance_margin(1.0, 0.25, HALF, fewest_seeds=10)
SQUARE_OF_WIDTHS = tolerance_margin(2.0, 0.5, "half the way to the next power", fewest_seeds=10)


def _cells(cells: pd.DataFrame, rule: str) -> pd.DataFrame:
    swept = {"activation": tuple(NAMES), "data": DATA, "d": DIMENSIONS, "n": SAMPLES[rule]}
    alike = set(SoftmaxConvergenceParameters.model_fields) - set(swept) - {"step_rule", "dtype"}
    return Selection(
        SoftmaxConvergenceParameters,
        at={"step_rule": rule, "dtype": "float64", **swept},
        alike=alike if rule == "paper" else alike - {"m"},
        fewest={} if rule == "paper" else {"m": 4},
        includes=swept,
        preset=STEPS_PRESET if rule == "paper" else WIDTHS_PRESET,
    ).of(cells)


def _log_ends(cells: pd.DataFrame) -> pd.DataFrame:
    with np.errstate(divide="ignore"):  # of 0
        return cells.assign(least=np.log(cells["least"]), most=np.log(cells["most"]))


def _collapse(cells: pd.DataFrame) -> Measurement:
    held = _log_ends(step_ranges(_cells(cells, "paper")))
    positive_numbers(held, "lambda_start")
    stated = np.log(table1_steps(held))
    over = held.assign(least=held["least"] - stated, most=held["most"] - stated)
    centre = over.groupby("seed")[["least", "most"]].transform("mean")
    over = over.assign(
        least=over["least"] - centre["most"], most=over["most"] - centre["least"]
    ).fillna({"least": -np.inf, "most": np.inf})
    groups = dict(list(over.groupby(SETTING)))
    ratios = [
        Part.of(
            np.exp(rows["least"]),
            ALMOST_THE_SAME,
            "geometric mean",
            up_to=np.exp(rows["most"]),
            called=", ".join(map(str, setting)),
        )
        for setting, rows in groups.items()
    ]
    alone = held.assign(middle=(held["least"] + held["most"]) / 2).groupby(SETTING)["middle"].mean()
    constant = ((held["least"] + held["most"]) / 2 - stated).mean()
    return judge(
        ratios,
        details={
            "T, largest setting over smallest": float(np.exp(alone.max() - alone.min())),
            "T λ²/(n² log(n/ε)), geometric mean": float(np.exp(constant)),
        },
        note="T λ²/(n² log(n/ε)) over its geometric mean in all settings of a seed; activation, "
        "data, d and n name a setting.",
    )


def _power(
    cells: pd.DataFrame, causes: dict[str, pd.Series[float]], margin: Margin, note: str
) -> Measurement:
    """Measure the power of the first cause in a number, all causes fitted together in each seed."""
    rows = []
    for _, each in cells.groupby("seed"):
        logs = [np.log(cause[each.index].to_numpy(float)) for cause in causes.values()]
        weights = np.linalg.pinv(np.column_stack([*logs, np.ones(len(each))]))  # (causes + 1, rows)
        least, most = each["least"].to_numpy(float), each["most"].to_numpy(float)
        signs = weights > 0
        with np.errstate(invalid="ignore"):  # 0 times an infinity
            low = np.nansum(weights * np.where(signs, least, most), axis=1)
            high = np.nansum(weights * np.where(signs, most, least), axis=1)
        rows.append((low, high))
    low, high = (np.array(ends) for ends in zip(*rows, strict=True))
    with np.errstate(invalid="ignore"):  # between infinities
        middle = ((low + high) / 2).mean(axis=0)
    powers = {f"power of {name}": float(middle[index]) for index, name in enumerate(causes)}
    censored = cells.loc[cells["least"] < cells["most"], "seed"].nunique()
    return judge(
        [Part.of(low[:, 0], margin, up_to=high[:, 0])],
        details={**powers, "seeds with a number beyond the sweep": censored},
        note=note,
    )


def _steps_power(cells: pd.DataFrame) -> Measurement:
    held = _log_ends(step_ranges(_cells(cells, "paper")))
    causes = {"1/λ": 1 / positive_numbers(held, "lambda_start"), "n": held["n"].astype(float)}
    note = "Fitted over activations, data, d and n together, seed by seed; one power is that of η."
    return _power(held, causes, SQUARE, note)


def _condition_power(cells: pd.DataFrame) -> Measurement:
    held = _log_ends(step_ranges(widest(_cells(cells, "stability"))))
    note = "Of the widest networks, over activations, data, d and n together, seed by seed."
    return _power(held, {"κ": positive_numbers(held, "kappa")}, LINEAR, note)


def _width_power(cells: pd.DataFrame) -> Measurement:
    grid = _cells(cells, "stability")
    largest = widest(grid).set_index([*SETTING, "seed"])
    wide = largest.assign(smallest=positive_numbers(largest, "lambda_start"))["smallest"]
    widths = by_data(grid, width_range).join(wide, on=[*SETTING, "seed"])
    widths = widths[widths["smallest"] < LARGEST_LAMBDA]
    if widths.groupby("seed").size().min() < FEWEST_SETTINGS:
        raise inconclusive(f"On some seed fewer than {FEWEST_SETTINGS} settings have λ < 1.")
    causes = {"1/λ": 1 / widths["smallest"].astype(float), "n": widths["n"].astype(float)}
    note = (
        "Fitted over activations, data, d and n together, seed by seed. λ is that of the widest "
        "networks."
    )
    logs = _log_ends(widths)
    measured = _power(logs, causes, SQUARE_OF_WIDTHS, note)
    own = {name: (widths["activation"] == name) * math.e + 1.0 for name in ("exp", "relu")}
    each = _power(logs, {**causes, **own}, SQUARE_OF_WIDTHS, "").interval
    words = "power of 1/λ, each activation with its own constant"
    ends = {} if each is None else {f"{words}, from": each.low, f"{words}, to": each.high}
    return replace(measured, details={**measured.details, **ends})


_SETTINGS = "over three activations, the sphere and digits, d = 16 and 64 and all n of the sweep"
_STEPS = (
    "the step size is Theorem 4.2's without its e^(−16B), which Table 1 writes as n^o(1); Table "
    "1's λ < 1 is not asked for, and a third of the settings have a larger one"
)
_ours = partial(softmax_claim, kind="ours", source="Table 1", figure="lambda")

LAMBDA_CLAIMS = (
    _ours(
        name="steps-collapse",
        statement="At the step size 0.1 λ/(m n²) T is one constant times λ⁻² n² log(n/ε), "
        f"{_SETTINGS}.",
        holds_where=ALMOST_THE_SAME.in_words(
            "in each setting the ratio of T λ²/(n² log(n/ε)) to its mean in all"
        ),
        measure=_collapse,
        preset=STEPS_PRESET,
        hypotheses=_STEPS,
    ),
    _ours(
        name="steps-lambda-power",
        statement=f"At the step size 0.1 λ/(m n²) T goes as λ⁻² at given n, {_SETTINGS}: one power "
        "is that of the step size, the other is the rate's.",
        holds_where=SQUARE.in_words("the power of 1/λ in T"),
        measure=_steps_power,
        preset=STEPS_PRESET,
        hypotheses=_STEPS,
    ),
    _ours(
        name="steps-condition-power",
        statement=f"At the step size {RULES['stability']}, which has no λ, T goes as κ = λ_max/λ: "
        "one power of λ is left.",
        holds_where=LINEAR.in_words("the power of κ in T, of the widest networks"),
        measure=_condition_power,
        preset=WIDTHS_PRESET,
    ),
    _ours(
        name="width-lambda-power",
        statement=f"At the step size {RULES['stability']} the smallest width that suffices goes as "
        f"λ⁻² at given n, as Table 1's does, {_SETTINGS}, where λ < 1.",
        holds_where=SQUARE_OF_WIDTHS.in_words("the power of 1/λ in the smallest sufficient width"),
        measure=_width_power,
        preset=WIDTHS_PRESET,
        hypotheses="λ < 1, as Table 1's caption has it, for each setting and seed; λ isn't varied "
        "by itself: settings differ in their data and activations too",
    ),
)
