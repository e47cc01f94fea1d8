"""Remarks 1 and 4: the sizes at which random weights have λ_B > 0 and δ > 0."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from overfit_cli.claims.cells import Selection, done, numbers
from overfit_cli.claims.rules import WITHOUT_EXCEPTION, vacuous, without_exception
from overfit_cli.core.claim import Claim, Measurement, not_run
from overfit_cli.studies.attention_kernel.regression.claims.selection import SOURCE
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters

_PRESET = "kernel-sizes"

ZERO = 1e-10
"""Singular values up to this are zero; the largest ones are near 1."""

_SIZES = Selection(
    KernelRegressionParameters,
    at={"trained": "value", "kernel": ("softmax", "gaussian")},
    vary=("heads", "learning_rate"),
    alike=("n", "tokens", "target", "training_steps", "sigma_w", "dtype"),
    fewest={"d": 2, "d_h": 2},
    preset=_PRESET,
)


def _wide(cells: pd.DataFrame) -> pd.Series[bool]:
    """Whether D d ≥ N n²."""
    return cells["d"] * cells["d_h"] >= cells["n"] * cells["tokens"] ** 2


def _lambda_b(cells: pd.DataFrame) -> Measurement:
    """Measure whether λ_B is above zero wherever D ≥ N n/H."""
    chosen = done(_SIZES.of(cells))
    chosen = chosen[chosen["d"] * chosen["heads"] >= chosen["n"] * chosen["tokens"]]
    if chosen.empty:
        raise not_run("It needs cells with D ≥ N n/H.")
    smallest = numbers(chosen, "lambda_b")
    by_heads = smallest.groupby(chosen["heads"]).min()
    return without_exception(
        smallest <= ZERO,
        chosen["seed"],
        details={
            "cells": len(chosen),
            **{f"least λ_B, H {heads}": float(one) for heads, one in by_heads.items()},
        },
    )


def _delta(cells: pd.DataFrame) -> Measurement:
    """Measure whether δ is above zero wherever D d ≥ N n²."""
    chosen = done(_SIZES.of(cells))
    chosen = chosen[_wide(chosen)]
    if chosen.empty:
        raise not_run("It needs cells with D d ≥ N n².")
    smallest = numbers(chosen, "delta")
    narrow = chosen["d_h"] < chosen["tokens"]
    dependent = ~narrow & (chosen["d"] < chosen["n"] * chosen["tokens"])
    others = smallest[~narrow & ~dependent]
    return without_exception(
        smallest <= ZERO,
        chosen["seed"],
        note="A token's scores depend on its query in at most min(n, d) directions, so the rank of "
        "∂C/∂W_Q is at most N n min(n, d): below N n² where d < n.",
        details={
            "cells": len(chosen),
            "cells with δ zero": int((smallest <= ZERO).sum()),
            "cells with d < n": int(narrow.sum()),
            "of them with δ zero": int((smallest[narrow] <= ZERO).sum()),
            "cells with d ≥ n, D < N n": int(dependent.sum()),
            "of those with δ zero": int((smallest[dependent] <= ZERO).sum()),
            "least δ with d ≥ n, D ≥ N n": float(others.min()),
        },
    )


def _delta_needs(cells: pd.DataFrame) -> Measurement:
    """Measure whether δ is zero wherever D d < N n²; it can't be otherwise."""
    chosen = done(_SIZES.of(cells))
    chosen = chosen[~_wide(chosen)]
    if chosen.empty:
        raise not_run("It needs cells with D d < N n².")
    smallest = numbers(chosen, "delta")
    why = (
        "A matrix of N n² rows and fewer columns can't have full row rank: this is linear algebra."
    )
    found = without_exception(smallest > ZERO, chosen["seed"], details={"cells": len(chosen)})
    if found.verdict == "fails":
        return found
    return vacuous(found, why, {"largest δ": float(smallest.max())})


def _claim(
    name: str,
    place: str,
    statement: str,
    symbol: str,
    measure: Callable[[pd.DataFrame], Measurement],
) -> Claim:
    return Claim(
        name=f"sizes-{name}",
        source=f"{SOURCE}, {place}",
        statement=statement,
        holds_where=f"{WITHOUT_EXCEPTION}; {symbol} is zero up to {ZERO:g}",
        measure=measure,
        preset=_PRESET,
    )


CLAIMS = (
    _claim(
        "lambda-b",
        "Remark 1",
        "Where D ≥ N n/H, random weights have λ_B > 0.",
        "λ_B",
        _lambda_b,
    ),
    _claim(
        "delta",
        "Remark 4, read as sufficient",
        "Where D d ≥ N n², random weights have δ > 0.",
        "δ",
        _delta,
    ),
    _claim("delta-needed", "Remark 4", "Where D d < N n², δ is 0.", "δ", _delta_needs),
)
