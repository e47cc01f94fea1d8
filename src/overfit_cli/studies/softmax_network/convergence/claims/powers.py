"""Claims on how far kernels move and networks part from them, against width (Lemma 5.1, F.2)."""

from __future__ import annotations

from functools import partial

import pandas as pd

from overfit_cli.claims.cells import Selection, done, positive
from overfit_cli.claims.rules import Margin, around, judged
from overfit_cli.core.claim import Claim, Measurement, inconclusive
from overfit_cli.stats.boundaries import scaling_exponents
from overfit_cli.studies.softmax_network.convergence.parameters import SoftmaxConvergenceParameters
from overfit_cli.studies.softmax_network.names import NAMES, Activation

INVERSE = around(-1.0, 0.25, "half the way to the next multiple of 1/2", fewest_seeds=10)
LINEAR = Margin(least=0.9, because="1, less a tenth", fewest_seeds=10)
PRESET = "softmax-drift"
WAYS = ("symmetric", "independent")

_ALIKE = set(SoftmaxConvergenceParameters.model_fields) - {"m", "activation", "initialisation"}


def _cells(cells: pd.DataFrame, activation: Activation, way: str) -> pd.DataFrame:
    chosen = Selection(
        SoftmaxConvergenceParameters,
        at={"activation": activation, "initialisation": way},
        alike=_ALIKE,
        fewest={"m": 3},
        preset=PRESET,
    ).of(cells)
    return done(chosen)


def _power(
    cells: pd.DataFrame, activation: Activation, way: str, of: str, margin: Margin, against: str
) -> Measurement:
    """Measure the power of one column in another, or in m, over the widths of each seed."""
    held = _cells(cells, activation, way)
    for name in (of, against):
        positive(held, name)
    found = scaling_exponents(held, [against], of)
    if found is None:
        raise inconclusive(f"On no seed does {against.replace('_', ' ')} change.")
    middle = held.groupby("m")[of].median()
    return judged(
        found[against],
        margin,
        details={f"median, m = {m}": float(value) for m, value in middle.items()},
        note=f"The power of {against.replace('_', ' ')} in the {of.replace('_', ' ')}, seed by "
        "seed.",
    )


def _claim(
    name: str,
    source: str,
    statement: str,
    what: tuple[str, str, str],
    margin: Margin,
    ways: tuple[Activation, str],
    figure: str,
) -> Claim:
    of, against, words = what
    activation, way = ways
    return Claim(
        name=f"softmax-{name}",
        source=f"Cao et al. 2024, {source}",
        statement=statement,
        holds_where=margin.in_words(words),
        measure=partial(
            _power, activation=activation, way=way, of=of, margin=margin, against=against
        ),
        figure=figure,
        preset=PRESET,
    )


_FALLING = {
    "drift": ("kernel_drift", "Lemmas 5.1 and 5.3", "kernel-drift", "the Gram matrix changes"),
    "gap": ("test_gap", "Theorem F.2", "ntk-gap", "the network parts from kernel regression"),
}

POWER_CLAIMS = (
    *(
        _claim(
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
    _claim(
        "movement",
        "Lemma 5.3",
        "Weights move by 1/m, as D does.",
        ("movement", "m", "the power of m in the movement"),
        INVERSE,
        ("softmax", "symmetric"),
        "kernel-drift",
    ),
    _claim(
        "lemma51",
        "Lemma 5.1",
        "The Gram matrix changes by no more than in proportion to the movement R.",
        ("kernel_drift", "movement", "the power of R in the kernel drift, over widths,"),
        LINEAR,
        ("softmax", "symmetric"),
        "kernel-drift",
    ),
    _claim(
        "theorem-f2",
        "Theorem F.2",
        "The test gap is no more than in proportion to the kernel's change.",
        ("test_gap_most", "kernel_drift", "the power of the drift in the worst test gap"),
        LINEAR,
        ("softmax", "symmetric"),
        "ntk-gap",
    ),
)
