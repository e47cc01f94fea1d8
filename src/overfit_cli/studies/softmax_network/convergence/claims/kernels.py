"""Claims that formulas are what they are said to be: Definitions 3.6 and 3.7, equation (24)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd

from overfit_cli.claims.cells import done, numbers, trained
from overfit_cli.claims.rules import WITHOUT_EXCEPTION, Margin, judged, without_exception
from overfit_cli.core.claim import Claim, Measurement, not_run
from overfit_cli.stats.intervals import mean_estimate

NONE = 1e-12
"""What is taken for none beside 1, in float64."""

TRACKS = Margin(most=0.05, because="a twentieth of the labels' norm", fewest_seeds=10)
WIDE = 512
"""The hidden units from which on a network is called wide."""

_VERIFIED, _DRIFT = "softmax-kernels", "softmax-drift"


def _exact(cells: pd.DataFrame, column: str, **at: str) -> Measurement:
    """Measure whether a number is none, in all cells that were verified."""
    held = cells[cells["verify"].astype(bool) & (cells["dtype"] == "float64")]
    for name, value in at.items():
        held = held[held[name] == value]
    held = done(trained(held), 1.0)
    if held.empty:
        raise not_run(f"It needs cells of verify=true, as in `overfit sweep {_VERIFIED}`.")
    found = numbers(held, column)
    return without_exception(found > NONE, held["seed"], details={"most": float(found.max())})


def _follows(cells: pd.DataFrame, column: str) -> Measurement:
    """Measure the gap to a kernel regression, of wide softmax networks as the paper has them."""
    of_softmax = (cells["activation"] == "softmax") & (cells["initialisation"] == "symmetric")
    held = done(trained(cells[of_softmax & (cells["m"] >= WIDE)]), 1.0)
    held = held[numbers(held, "steps") > 0]
    if held.empty:
        raise not_run(
            f"It needs cells of activation=softmax, initialisation=symmetric and m of {WIDE} or "
            f"more that take a step, as in `overfit sweep {_DRIFT}`."
        )
    found = numbers(held, column)
    growth = numbers(held, "gradient_growth")
    return judged(
        mean_estimate(found.groupby(held["seed"]).max()),
        TRACKS,
        details={
            "most": float(found.max()),
            "decades by which a step along the gradient of (23) grows, least": float(growth.min()),
        },
        note="‖F − m H γ‖ over ‖Y‖ on the training samples, the largest on the way; of a seed the "
        "worst m.",
    )


def _claim(
    name: str,
    source: str,
    statement: str,
    holds_where: str,
    measure: Callable[[pd.DataFrame], Measurement],
    figure: str,
    preset: str,
) -> Claim:
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
    _claim(
        "gram-matrix",
        "Definition 3.6",
        "JJᵀ = m H, for softmax, exp and ReLU.",
        f"JJᵀ by autograd differs by at most {NONE:g} of its largest entry; {WITHOUT_EXCEPTION}",
        partial(_exact, column="gram_error"),
        "lines",
        _VERIFIED,
    ),
    _claim(
        "zero-output",
        "Definition 3.7",
        "With the symmetric initialisation the network's output is zero.",
        f"outputs are at most {NONE:g}; {WITHOUT_EXCEPTION}",
        partial(_exact, column="start_output", initialisation="symmetric"),
        "lines",
        _VERIFIED,
    ),
    _claim(
        "shift-invariance",
        "equation 1; ours",
        "Moving the weights of all hidden units alike doesn't change a softmax network.",
        f"outputs change by at most {NONE:g} of the largest; {WITHOUT_EXCEPTION}",
        partial(_exact, column="shift_change", activation="softmax"),
        "lines",
        _VERIFIED,
    ),
    _claim(
        "equation-24",
        "equation 24 and Theorem F.2",
        "Kernel regression by the update (24) as it is printed tracks the network.",
        TRACKS.in_words(_GAP),
        partial(_follows, column="train_gap"),
        "curves",
        _DRIFT,
    ),
    _claim(
        "gradient-of-23",
        "equations 23 and 24",
        "The update (24) is gradient descent on the loss (23), which so tracks the network.",
        TRACKS.in_words(f"with the step size η/(m λ_max), {_GAP}"),
        partial(_follows, column="gradient_gap"),
        "curves",
        _DRIFT,
    ),
)
