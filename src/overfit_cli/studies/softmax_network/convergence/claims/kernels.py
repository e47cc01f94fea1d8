"""Claims on kernel regression by equation (24), and on powers of the width.

Kernels move, and networks part from kernel regression, by powers of the width: whether the bounds
of Lemmas 5.1 and 5.3 and of Theorem F.2 are tight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pandas as pd

from overfit_cli.claims.cells import Selection, finite_numbers, require_done, require_trained
from overfit_cli.claims.sentences import Sentence, read
from overfit_cli.claims.stated import Choose, joined, stated_claim
from overfit_cli.core.claim import Claim, Kind, Measurement, UndecidedError, add_remark, not_run
from overfit_cli.studies.softmax_network.convergence.parameters import SoftmaxConvergenceParameters
from overfit_cli.studies.softmax_network.paper import NAMES, Activation, Initialisation

TWENTIETH = "a twentieth of the labels' norm"
WIDE = 512
"""The hidden units from which on a network is called wide."""

FARTHEST = 0.01
"""The movement below which Lemmas 5.1 and D.1 are stated."""

DRIFT_PRESET = "softmax-drift"
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

    Of m hidden units or more, and of several outputs or of one.
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


def _wide_cells(cells: pd.DataFrame) -> pd.DataFrame:
    return require_done(require_trained(paper_cells(cells, DRIFT_PRESET, WIDE)), 1.0)


def _gradient_cells(cells: pd.DataFrame) -> pd.DataFrame:
    held = _wide_cells(cells)
    growth = finite_numbers(held, "gradient_growth").min()
    add_remark(
        "The distance over ‖Y‖ is a least one, by the triangle inequality with the network. The "
        "gradient of (23) is m H (m H γ − Y). Its step size here is η/(m λ_max): with that of (24) "
        f"a step grows by {growth:.3g} decades or more. No theorem of the paper uses ∇_γ, and (24) "
        "is gradient descent in the β = √m φ(X) γ of appendix F.1."
    )
    return held


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
    """Return a claim whose name begins with `softmax-`, with its place in the paper."""
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


def softmax_sentence(
    choose: Choose,
    stated: str | Sentence,
    number: str,
    because: str,
    between: Mapping[str, tuple[str, str]] | None = None,
    **fields: Any,
) -> Claim:
    """Return a claim that is a sentence; see `stated_claim`."""
    claim = stated_claim(
        choose,
        SoftmaxConvergenceParameters,
        stated,
        number=number,
        because=because,
        between=between,
        name="",
        source="",
        statement="",
    )
    return softmax_claim(holds_where=claim.holds_where, measure=claim.measure, **fields)


KERNEL_CLAIMS = (
    softmax_sentence(
        _wide_cells,
        read("mean of train_gap <= 0.05 at worst with at least 10 seeds").with_target(0),
        "the network's distance from it on the training samples",
        TWENTIETH,
        name="equation-24",
        kind="ours",
        source="equation 24",
        statement=f"With {WIDE} hidden units or more, kernel regression by the update (24) as it "
        "is printed tracks the network up to a twentieth of the labels' norm.",
        figure="curves",
        preset=DRIFT_PRESET,
    ),
    softmax_sentence(
        _gradient_cells,
        read(
            "mean of gradient_gap - train_gap <= 0.05 at worst with at least 10 seeds"
        ).with_target(0),
        "the distance between the predictions of the two, on the training samples and from γ = 0,",
        TWENTIETH,
        name="gradient-of-23",
        kind="paper",
        source="equations 23 and 24",
        statement="The update (24) is gradient descent on the loss (23): γ ← γ − η ∇L_ntk(γ).",
        figure="curves",
        preset=DRIFT_PRESET,
        hypotheses="it requires none; both have the same kernel and labels and begin at γ = 0",
    ),
)

_ALIKE = set(SoftmaxConvergenceParameters.model_fields) - {
    *("m", "activation", "initialisation", "dtype", "sigma")
}


def _cells(cells: pd.DataFrame, activation: Activation, way: str, *, small: bool) -> pd.DataFrame:
    chosen = Selection(
        SoftmaxConvergenceParameters,
        at={"activation": activation, "initialisation": way, "dtype": "float64"},
        alike=_ALIKE | {"sigma"} if small else _ALIKE,
        fewest={"m": 3},
        preset=SMALL_PRESET if small else DRIFT_PRESET,
    ).of(cells)
    return require_done(chosen)


def _in_the_lemmas(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells of the widths at which all meet what the proofs take from Theorem 4.2."""
    cells = _cells(cells, "softmax", "symmetric", small=True)
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


def _power_claim(choose: Choose, number: str, value: float, **fields: Any) -> Claim:
    tolerance, because = _TOLERANCES[value]
    return softmax_sentence(
        choose,
        f"mean of power of m in {number} is {value} within {tolerance} with at least 10 seeds",
        f"the power of m in the {number.replace(' / ', ' over ').replace('_', ' ')}",
        because,
        **fields,
    )


_TOLERANCES = {-1.0: (0.25, "half the way to the next multiple of 1/2"), 0.0: (0.1, "a tenth")}

_TAKEN = (
    "‖F − Y‖² falls by 1 − m η λ/2 at every step, weights move by less than 0.01, and H by at most "
    "λ/2, as the proofs use it; Theorem 4.2's m and η and Lemma C.2's D < R = λ/(2nd e^(10B)) are "
    "not met"
)


_tight_claim = partial(
    _power_claim, _in_the_lemmas, kind="sharp", preset=SMALL_PRESET, hypotheses=_TAKEN
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

_AT_ONE = {
    "drift": ("kernel_drift", "Lemma 5.1", "kernel-drift", "the Gram matrix changes"),
    "gap": ("test_gap", "Theorem F.2", "ntk-gap", "networks part from kernel regression"),
}


def _power_at_one(name: str, kind: str, way: Initialisation, *activations: Activation) -> Claim:
    """Return the claim that a number goes as 1/m for some networks at σ = 1."""
    column, source, figure, words = _AT_ONE[kind]
    networks = " and ".join(", ".join(NAMES[each] for each in activations).rsplit(", ", 1))
    parts = {
        NAMES[activation]: _power_claim(
            partial(_cells, activation=activation, way=way, small=False),
            column,
            -1.0,
            name=name,
            kind="ours",
            source=source,
            statement=f"{networks}, {way} initialisation, σ = 1: {words} as 1/m.",
            figure=figure,
            preset=DRIFT_PRESET,
        )
        for activation in activations
    }
    return joined(parts) if len(parts) > 1 else parts[NAMES[activations[0]]]


POWER_CLAIMS = (
    *(
        _tight_claim(
            column,
            -1.0,
            name=f"{name}-tight",
            source=source,
            statement=f"The bound on {subject} by 1/m is tight: it falls no faster.",
            figure=figure,
        )
        for name, (column, source, figure, subject) in _BOUNDED.items()
    ),
    _tight_claim(
        "test_gap_most / kernel_drift",
        0.0,
        name="theorem-f2-tight",
        source="Theorem F.2",
        statement="The worst test gap goes with the width as the kernel's change does, no faster.",
        figure="ntk-gap",
    ),
    _power_at_one("drift-symmetric", "drift", "symmetric", "softmax", "exp"),
    _power_at_one("drift-relu-symmetric", "drift", "symmetric", "relu"),
    _power_at_one("gap-symmetric", "gap", "symmetric", "softmax", "exp"),
    _power_at_one("gap-relu-symmetric", "gap", "symmetric", "relu"),
    _power_at_one("drift-independent", "drift", "independent", *NAMES),
)
