"""Claims on kernels: formulas held to slow computations, and powers of the width.

- Definitions 3.6 and 3.7 and equation (24) are what they are said to be.
- Kernels move, and networks part from kernel regression, by powers of the width: whether the bounds
  of Lemmas 5.1 and 5.3 and of Theorem F.2 are tight.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import (
    Selection,
    finite_numbers,
    is_unknown,
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
from overfit_cli.core.claim import (
    Claim,
    Kind,
    Measurement,
    UndecidedError,
    inconclusive,
    not_run,
)
from overfit_cli.stats.boundaries import scaling_exponents
from overfit_cli.stats.intervals import mean_estimate
from overfit_cli.studies.softmax_network.convergence.parameters import SoftmaxConvergenceParameters
from overfit_cli.studies.softmax_network.paper import NAMES, Activation

NONE = 1e-12
"""The largest share beside 1 that counts as none, in float64."""

TRACKS = Margin(most=0.05, because="a twentieth of the labels' norm", fewest_seeds=10)
WIDE = 512
"""The hidden units from which on a network is called wide."""

FARTHEST = 0.01
"""The movement below which Lemmas 5.1 and D.1 are stated."""

VERIFIED_PRESET, DRIFT_PRESET = "softmax-kernels", "softmax-drift"
SMALL_PRESET, OUTPUTS_PRESET = "softmax-small-weights", "softmax-outputs"

SMALL = 0.03
"""The σ at which Definition 4.1's B is 1, its least value, in all presets."""


def paper_cells(
    cells: pd.DataFrame,
    preset: str,
    m: int = 0,
    *,
    several: bool = False,
    sigma: float | None = None,
) -> pd.DataFrame:
    """Return the cells of the paper's network that take a step, in float64, failed ones included.

    Args:
        cells: one row per cell.
        preset: a preset that has such cells.
        m: the least number of hidden units.
        several: those with several outputs, else those with one.
        sigma: the deviation of the initial weights; None for any.

    Raises:
        UndecidedError: `not run` without such cells.
    """
    keep = (cells["activation"] == "softmax") & (cells["initialisation"] == "symmetric")
    keep &= (cells["dtype"] == "float64") & (cells["m"] >= m)
    keep &= (cells["outputs"] > 1) == several
    if sigma is not None:
        keep &= cells["sigma"] == sigma
    keep &= (cells["status"] != "done") | ~(cells["steps"].astype(float) <= 0)
    if not keep.any():
        width = f" and m of {m} or more" if m else ""
        width += ", of several outputs" if several else ""
        width += f", of sigma={sigma:g}" if sigma is not None else ""
        raise not_run(
            "It needs cells of activation=softmax, initialisation=symmetric, dtype=float64"
            f"{width} that take a step, as in `overfit sweep {preset}`."
        )
    return cells[keep]


def _exact(cells: pd.DataFrame, column: str, **fixed: str) -> Measurement:
    """Measure whether a number is none, in all cells that were verified."""
    held = cells[cells["verify"].astype(bool) & (cells["dtype"] == "float64")]
    for name, value in fixed.items():
        held = held[held[name] == value]
    if held.empty:
        raise not_run(f"It needs cells of verify=true, as in `overfit sweep {VERIFIED_PRESET}`.")
    values = held[column].astype(float)
    unknown = is_unknown(held) | values.isna()
    details = {"most": float(values.max())}
    # sums over hidden units are round-off by so much
    limit = np.maximum(NONE, held["m"].astype(float) * np.finfo(np.float64).eps)
    return judge_theorem(values > limit, held["seed"], unknown=unknown, details=details)


def _wide_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells of the paper's network with `WIDE` hidden units or more, all trained."""
    return require_done(require_trained(paper_cells(cells, DRIFT_PRESET, WIDE)), 1.0)


def _follows(cells: pd.DataFrame) -> Measurement:
    """Measure the gap of wide softmax networks, as the paper has them, to (24)."""
    held = _wide_cells(cells)
    gaps = finite_numbers(held, "train_gap")
    return judge_estimate(
        mean_estimate(gaps.groupby(held["seed"]).max(), within=(0, float("inf"))),
        TRACKS,
        details={"most": float(gaps.max())},
        note="‖F − m H γ‖ over ‖Y‖ on the training samples, the largest on the way; of a seed the "
        "worst m.",
    )


def _is_gradient(cells: pd.DataFrame) -> Measurement:
    """Measure how far (24) and descent along the gradient of (23) part, at least.

    By the triangle inequality with the network, to which both distances were measured.
    """
    held = _wide_cells(cells)
    apart = finite_numbers(held, "gradient_gap") - finite_numbers(held, "train_gap")
    growth = finite_numbers(held, "gradient_growth")
    return judge_estimate(
        mean_estimate(apart.groupby(held["seed"]).max()),
        TRACKS,
        details={
            "decades by which a step along the gradient of (23) grows, least": float(growth.min())
        },
        note="The distance over ‖Y‖ is a least one, by the triangle inequality with the network. "
        "The gradient of (23) is m H (m H γ − Y). Its step size here is η/(m λ_max): with the "
        "η of (24) its steps grow. No theorem of the paper uses ∇_γ, and (24) is gradient descent "
        "in the β = √m φ(X) γ of appendix F.1.",
    )


def softmax_claim(
    name: str,
    kind: Kind,
    source: str,
    statement: str,
    holds_where: str,
    measure: Callable[[pd.DataFrame], Measurement],
    figure: str,
    preset: str,
    hypotheses: str = "",
) -> Claim:
    """Return a claim whose name begins with `softmax-`.

    Its source is a place in the paper; what is ours only follows it.
    """
    return Claim(
        name=f"softmax-{name}",
        kind=kind,
        source=f"{'after ' if kind == 'ours' else ''}Cao et al. 2024, {source}",
        statement=statement,
        hypotheses=hypotheses,
        holds_where=holds_where,
        measure=measure,
        figure=figure,
        preset=preset,
    )


KERNEL_CLAIMS = (
    softmax_claim(
        "gram-matrix",
        "identity",
        "Definition 3.6",
        "JJᵀ = m H, for softmax as in the paper, and for exp and ReLU likewise.",
        f"JJᵀ by autograd differs by at most {NONE:g} of its largest entry, or by m times the "
        f"precision of float64; {THEOREM_RULE}",
        partial(_exact, column="gram_error"),
        "lines",
        VERIFIED_PRESET,
    ),
    softmax_claim(
        "zero-output",
        "identity",
        "Definition 3.7",
        "With the symmetric initialisation the network's output is zero.",
        f"outputs are at most {NONE:g}; {THEOREM_RULE}",
        partial(_exact, column="start_output", initialisation="symmetric"),
        "lines",
        VERIFIED_PRESET,
    ),
    softmax_claim(
        "shift-invariance",
        "identity",
        "equation 1",
        "Moving the weights of all hidden units alike doesn't change a softmax network.",
        f"outputs change by at most {NONE:g} of the largest; {THEOREM_RULE}",
        partial(_exact, column="shift_change", activation="softmax"),
        "lines",
        VERIFIED_PRESET,
    ),
    softmax_claim(
        "equation-24",
        "ours",
        "equation 24",
        f"With {WIDE} hidden units or more, kernel regression by the update (24) as it is printed "
        "tracks the network up to a twentieth of the labels' norm.",
        TRACKS.in_words("the network's distance from it on the training samples"),
        _follows,
        "curves",
        DRIFT_PRESET,
    ),
    softmax_claim(
        "gradient-of-23",
        "paper",
        "equations 23 and 24",
        "The update (24) is gradient descent on the loss (23): γ ← γ − η ∇L_ntk(γ).",
        TRACKS.in_words(
            "the distance between the predictions of the two, on the training samples and from "
            "γ = 0,"
        ),
        _is_gradient,
        "curves",
        DRIFT_PRESET,
        hypotheses="it requires none; both have the same kernel and labels and begin at γ = 0",
    ),
)

INVERSE = tolerance_margin(-1.0, 0.25, "half the way to the next multiple of 1/2", fewest_seeds=10)
ALIKE = tolerance_margin(0.0, 0.1, "a tenth", fewest_seeds=10)
WAYS = ("symmetric", "independent")

_ALIKE = set(SoftmaxConvergenceParameters.model_fields) - {
    *("m", "activation", "initialisation", "dtype", "sigma")
}


def _cells(cells: pd.DataFrame, activation: Activation, way: str, *, small: bool) -> pd.DataFrame:
    """Cells over widths in float64: of one σ, or with the default of it."""
    chosen = Selection(
        SoftmaxConvergenceParameters,
        at={"activation": activation, "initialisation": way, "dtype": "float64"},
        alike=_ALIKE | {"sigma"} if small else _ALIKE,
        fewest={"m": 3},
        preset=SMALL_PRESET if small else DRIFT_PRESET,
    ).of(cells)
    return require_done(chosen)


def _widths_in_the_lemmas(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells of the widths at which all meet what the proofs take from Theorem 4.2.

    Raises:
        UndecidedError: `vacuous` where fewer than three widths do.
    """
    met = (finite_numbers(cells, "rate_ratio") <= 1) & (cells["movement"] <= FARTHEST)
    met &= cells["kernel_drift"] <= cells["lambda_start"] / 2
    widths = met.groupby(cells["m"]).all()
    kept = cells[cells["m"].isin(widths.index[widths])]
    if kept["m"].nunique() < 3:
        note = (
            f"All cells meet its hypotheses at {int(widths.sum())} of {len(widths)} widths, and a "
            "power takes three."
        )
        raise UndecidedError(Measurement(verdict="vacuous", note=note))
    return kept


def _power(cells: pd.DataFrame, columns: tuple[str, ...], margin: Margin) -> Measurement:
    """Measure the power of m in a column, or in one over another, seed by seed."""
    value = positive_numbers(cells, columns[0])
    for name in columns[1:]:
        value = value / positive_numbers(cells, name)
    words = " over ".join(name.replace("_", " ") for name in columns)
    powers = scaling_exponents(cells.assign(value=value), ["m"], "value")
    if powers is None:
        raise inconclusive("On no seed does m change.")
    middle = value.groupby(cells["m"]).median()
    return judge_estimate(
        powers["m"],
        margin,
        details={f"median, m = {m}": float(number) for m, number in middle.items()},
        note=f"The power of m in the {words}, seed by seed.",
    )


def _paper_power(cells: pd.DataFrame, columns: tuple[str, ...], margin: Margin) -> Measurement:
    held = _cells(cells, "softmax", "symmetric", small=True)
    return _power(_widths_in_the_lemmas(held), columns, margin)


def _other_power(cells: pd.DataFrame, column: str, activation: Activation, way: str) -> Measurement:
    return _power(_cells(cells, activation, way, small=False), (column,), INVERSE)


_TAKEN = (
    "‖F − Y‖² falls by 1 − m η λ/2 at every step, weights move by less than 0.01, and H by at most "
    "λ/2, as the proofs use it; Theorem 4.2's m and η and Lemma C.2's D < R = λ/(2nd e^(10B)) are "
    "not met"
)


def _tight_claim(
    name: str, source: str, statement: str, columns: tuple[str, ...], margin: Margin, figure: str
) -> Claim:
    """Return a claim that a bound is tight in m."""
    words = " over ".join(name.replace("_", " ") for name in columns)
    return softmax_claim(
        f"{name}-tight",
        "sharp",
        source,
        statement,
        margin.in_words(f"the power of m in the {words}"),
        partial(_paper_power, columns=columns, margin=margin),
        figure,
        SMALL_PRESET,
        hypotheses=_TAKEN,
    )


_BOUNDED = {
    "drift": ("kernel_drift", "Lemmas 5.1 and 5.3", "kernel-drift", "‖H − H*‖_F"),
    "gap": (
        "test_gap",
        "Theorem F.2 with Lemmas 5.1 and 5.3",
        "ntk-gap",
        "the test gap between the network and kernel regression",
    ),
    "movement": ("movement", "Lemma 5.3", "kernel-drift", "max_r ‖w_r − w_r(0)‖"),
}

POWER_CLAIMS = (
    *(
        _tight_claim(
            name,
            source,
            f"The bound on {subject} by 1/m is tight: it falls no faster.",
            (column,),
            INVERSE,
            figure,
        )
        for name, (column, source, figure, subject) in _BOUNDED.items()
    ),
    _tight_claim(
        "theorem-f2",
        "Theorem F.2",
        "The worst test gap goes with the width as the kernel's change does, no faster.",
        ("test_gap_most", "kernel_drift"),
        ALIKE,
        "ntk-gap",
    ),
    *(
        softmax_claim(
            f"{name}-{activation}-{way}",
            "ours",
            source,
            f"{NAMES[activation]}, {way} initialisation, σ = 1: {words} as 1/m.",
            INVERSE.in_words(f"the power of m in the {column.replace('_', ' ')}"),
            partial(_other_power, column=column, activation=activation, way=way),
            figure,
            DRIFT_PRESET,
        )
        for name, column, source, figure, words in (
            ("drift", "kernel_drift", "Lemma 5.1", "kernel-drift", "the Gram matrix changes"),
            ("gap", "test_gap", "Theorem F.2", "ntk-gap", "networks part from kernel regression"),
        )
        for activation in NAMES
        for way in WAYS
    ),
)
