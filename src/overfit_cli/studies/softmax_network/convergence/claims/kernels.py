"""Claims on kernels: formulas held to slow computations, and powers of the width.

- Definitions 3.6 and 3.7 and equation (24) are what they are said to be.
- Kernels move, and networks part from kernel regression, by powers of the width (Lemma 5.1, Theorem
  F.2).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd

from overfit_cli.claims.cells import (
    Selection,
    finite_numbers,
    positive_numbers,
    require_done,
    require_trained,
)
from overfit_cli.claims.rules import (
    THEOREM_RULE,
    Margin,
    judge_estimate,
    judge_theorem,
    tolerance_margin,
)
from overfit_cli.core.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.stats.boundaries import scaling_exponents
from overfit_cli.stats.intervals import mean_estimate
from overfit_cli.studies.softmax_network.convergence.parameters import SoftmaxConvergenceParameters
from overfit_cli.studies.softmax_network.paper import NAMES, Activation

NONE = 1e-12
"""The largest share beside 1 that counts as none, in float64."""

TRACKS = Margin(most=0.05, because="a twentieth of the labels' norm", fewest_seeds=10)
WIDE = 512
"""The hidden units from which on a network is called wide."""

VERIFIED_PRESET, DRIFT_PRESET = "softmax-kernels", "softmax-drift"


def _exact(cells: pd.DataFrame, column: str, **fixed: str) -> Measurement:
    """Measure whether a number is none, in all cells that were verified."""
    held = cells[cells["verify"].astype(bool) & (cells["dtype"] == "float64")]
    for name, value in fixed.items():
        held = held[held[name] == value]
    held = require_done(require_trained(held), 1.0)
    if held.empty:
        raise not_run(f"It needs cells of verify=true, as in `overfit sweep {VERIFIED_PRESET}`.")
    values = finite_numbers(held, column)
    return judge_theorem(values > NONE, held["seed"], details={"most": float(values.max())})


def _follows(cells: pd.DataFrame, column: str) -> Measurement:
    """Measure the gap to a kernel regression, of wide softmax networks as the paper has them."""
    of_softmax = (cells["activation"] == "softmax") & (cells["initialisation"] == "symmetric")
    held = require_done(require_trained(cells[of_softmax & (cells["m"] >= WIDE)]), 1.0)
    held = held[finite_numbers(held, "steps") > 0]
    if held.empty:
        raise not_run(
            f"It needs cells of activation=softmax, initialisation=symmetric and m of {WIDE} or "
            f"more that take a step, as in `overfit sweep {DRIFT_PRESET}`."
        )
    gaps = finite_numbers(held, column)
    growth = finite_numbers(held, "gradient_growth")
    return judge_estimate(
        mean_estimate(gaps.groupby(held["seed"]).max()),
        TRACKS,
        details={
            "most": float(gaps.max()),
            "decades by which a step along the gradient of (23) grows, least": float(growth.min()),
        },
        note="‖F − m H γ‖ over ‖Y‖ on the training samples, the largest on the way; of a seed the "
        "worst m.",
    )


def softmax_claim(
    name: str,
    source: str,
    statement: str,
    holds_where: str,
    measure: Callable[[pd.DataFrame], Measurement],
    figure: str,
    preset: str,
) -> Claim:
    """Return a claim whose name begins with `softmax-`, and whose source is in the paper."""
    return Claim(
        name=f"softmax-{name}",
        source=f"Cao et al. 2024, {source}",
        statement=statement,
        holds_where=holds_where,
        measure=measure,
        figure=figure,
        preset=preset,
    )


_GAP = "the network's distance from it on the training samples"

KERNEL_CLAIMS = (
    softmax_claim(
        "gram-matrix",
        "Definition 3.6",
        "JJᵀ = m H, for softmax, exp and ReLU.",
        f"JJᵀ by autograd differs by at most {NONE:g} of its largest entry; {THEOREM_RULE}",
        partial(_exact, column="gram_error"),
        "lines",
        VERIFIED_PRESET,
    ),
    softmax_claim(
        "zero-output",
        "Definition 3.7",
        "With the symmetric initialisation the network's output is zero.",
        f"outputs are at most {NONE:g}; {THEOREM_RULE}",
        partial(_exact, column="start_output", initialisation="symmetric"),
        "lines",
        VERIFIED_PRESET,
    ),
    softmax_claim(
        "shift-invariance",
        "equation 1; ours",
        "Moving the weights of all hidden units alike doesn't change a softmax network.",
        f"outputs change by at most {NONE:g} of the largest; {THEOREM_RULE}",
        partial(_exact, column="shift_change", activation="softmax"),
        "lines",
        VERIFIED_PRESET,
    ),
    softmax_claim(
        "equation-24",
        "equation 24 and Theorem F.2",
        "Kernel regression by the update (24) as it is printed tracks the network.",
        TRACKS.in_words(_GAP),
        partial(_follows, column="train_gap"),
        "curves",
        DRIFT_PRESET,
    ),
    softmax_claim(
        "gradient-of-23",
        "equations 23 and 24",
        "The update (24) is gradient descent on the loss (23), which so tracks the network.",
        TRACKS.in_words(f"with the step size η/(m λ_max), {_GAP}"),
        partial(_follows, column="gradient_gap"),
        "curves",
        DRIFT_PRESET,
    ),
)

INVERSE = tolerance_margin(-1.0, 0.25, "half the way to the next multiple of 1/2", fewest_seeds=10)
LINEAR = Margin(least=0.9, because="1, less a tenth", fewest_seeds=10)
WAYS = ("symmetric", "independent")

_ALIKE = set(SoftmaxConvergenceParameters.model_fields) - {"m", "activation", "initialisation"}


def _cells(cells: pd.DataFrame, activation: Activation, way: str) -> pd.DataFrame:
    chosen = Selection(
        SoftmaxConvergenceParameters,
        at={"activation": activation, "initialisation": way},
        alike=_ALIKE,
        fewest={"m": 3},
        preset=DRIFT_PRESET,
    ).of(cells)
    return require_done(chosen)


def _power(
    cells: pd.DataFrame, activation: Activation, way: str, column: str, margin: Margin, against: str
) -> Measurement:
    """Measure the power of one column in another, or in m, over the widths of each seed."""
    held = _cells(cells, activation, way)
    for name in (column, against):
        positive_numbers(held, name)
    powers = scaling_exponents(held, [against], column)
    if powers is None:
        raise inconclusive(f"On no seed does {against.replace('_', ' ')} change.")
    middle = held.groupby("m")[column].median()
    return judge_estimate(
        powers[against],
        margin,
        details={f"median, m = {m}": float(value) for m, value in middle.items()},
        note=f"The power of {against.replace('_', ' ')} in the {column.replace('_', ' ')}, seed by "
        "seed.",
    )


def _power_claim(
    name: str,
    source: str,
    statement: str,
    columns: tuple[str, str, str],
    margin: Margin,
    ways: tuple[Activation, str],
    figure: str,
) -> Claim:
    column, against, words = columns
    activation, way = ways
    measure = partial(
        _power, activation=activation, way=way, column=column, margin=margin, against=against
    )
    return softmax_claim(
        name, source, statement, margin.in_words(words), measure, figure, DRIFT_PRESET
    )


_FALLING = {
    "drift": ("kernel_drift", "Lemmas 5.1 and 5.3", "kernel-drift", "the Gram matrix changes"),
    "gap": ("test_gap", "Theorem F.2", "ntk-gap", "the network parts from kernel regression"),
}

POWER_CLAIMS = (
    *(
        _power_claim(
            f"{name}-{activation}-{way}",
            source,
            f"{NAMES[activation]}, {way} initialisation: {words} as 1/m, as the bounds do.",
            (column, "m", f"the power of m in the {column.replace('_', ' ')}"),
            INVERSE,
            (activation, way),
            figure,
        )
        for name, (column, source, figure, words) in _FALLING.items()
        for activation in NAMES
        for way in WAYS
    ),
    _power_claim(
        "movement",
        "Lemma 5.3",
        "Weights move by 1/m, as D does.",
        ("movement", "m", "the power of m in the movement"),
        INVERSE,
        ("softmax", "symmetric"),
        "kernel-drift",
    ),
    _power_claim(
        "lemma51",
        "Lemma 5.1",
        "The Gram matrix changes by no more than in proportion to the movement R.",
        ("kernel_drift", "movement", "the power of R in the kernel drift, over widths,"),
        LINEAR,
        ("softmax", "symmetric"),
        "kernel-drift",
    ),
    _power_claim(
        "theorem-f2",
        "Theorem F.2",
        "The test gap is no more than in proportion to the kernel's change.",
        ("test_gap_most", "kernel_drift", "the power of the drift in the worst test gap"),
        LINEAR,
        ("softmax", "symmetric"),
        "ntk-gap",
    ),
)
