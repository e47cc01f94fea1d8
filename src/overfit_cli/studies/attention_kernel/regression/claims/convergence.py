"""Theorem 3, with W_Q alone trained: which kernel reaches zero loss, and which stops above it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Values, finite_numbers, is_unknown
from overfit_cli.claims.parts import Margin, Part
from overfit_cli.claims.rules import THEOREM_RULE, Requirements, judge, judge_theorem
from overfit_cli.claims.stated import joined
from overfit_cli.core.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.studies.attention_kernel.regression.claims.rates import (
    AT_BEST,
    GOES_TO_ZERO,
    SOURCE,
    STOPPED,
    cells_under,
    has_stopped,
    judge_zero,
    selection,
    step_sizes,
    zero_loss,
    zero_loss_of,
)
from overfit_cli.studies.attention_kernel.regression.parameters import SUBOPTIMAL

LEAST_DESCENT = 0.5
"""The factor of the squared gradients over η, where η is below 1/(2G): appendix 1.5, the last step.

The appendix calls the step size η' as well, and ends with ½ η': in (14) that is read as η/2."""

_LABELS = {
    "below": "below the hull of the token values",
    "inside": "inside the hull of the token values",
    "mixed-sign": "of random sign",
}
_GAUSSIAN: Values = {"kernel": "gaussian", "trained": "query"}
_SOFTMAX: Values = {"kernel": "softmax", "trained": "query"}
_PRESET, _NEAR = "kernel-theorem3", "kernel-theorem3-near"
_MEETS_12 = (
    "condition (12) is met, for W_Q and W_K are small (deviation 0.02) and the labels lie near the "
    "outputs at the start (3e-9)"
)


def _is_trapped(cells: pd.DataFrame) -> Measurement:
    """Measure on which seeds the lowest loss of all step sizes has stopped above its optimum.

    The optimum over W_Q is ½ Σ dist(y, hull)², 0 inside the hull: a loss that comes down to it has
    found a global optimum, however far above zero that is. A seed counts with any of its labels.
    """
    chosen = selection({**_SOFTMAX, "target": tuple(_LABELS)}, _PRESET).of(cells)
    done = chosen[chosen["status"] == "done"]
    if done.empty:
        raise inconclusive("No cell is done.")
    for name in ("floor", "start_loss"):
        finite_numbers(done, name)
    problems = ["target", "seed"]
    loss = finite_numbers(done, "train_loss")
    best = done.loc[loss.groupby([done[name] for name in problems]).idxmin()].set_index(problems)
    above = best["train_loss"] - best["floor"]
    share = above / best["start_loss"]
    missing = is_unknown(chosen).groupby([chosen[name] for name in problems]).any()
    is_open = missing.reindex(best.index)  # another step size may have served it better
    trapped = has_stopped(best, above) & (share > SUBOPTIMAL) & ~is_open
    by_seed = trapped.groupby("seed").any()
    undecided = missing.groupby("seed").any().reindex(by_seed.index) & ~by_seed
    seeds = Part.of(by_seed, Margin(), "share", up_to=by_seed | undecided)
    note = "The share of seeds on which it has stopped above its optimum, for some labels."
    if not trapped.any():
        note += " None has here, which does not say that none can."
    by_labels = trapped.groupby("target").sum()
    return replace(
        judge([seeds], note=note),
        verdict="holds" if trapped.any() else "inconclusive",
        decided="case",
        margin=None,
        needed_seeds=0,
        details={
            "seeds": len(by_seed),
            **{
                f"seeds that stopped above their optimum, labels {_LABELS[str(target)]}": int(count)
                for target, count in by_labels.items()
            },
            "loss above its optimum over the start, median of those": float(
                share[trapped].median()
            ),
            "largest": float(share[trapped].max()),
            "loss over its start, largest of those": float(
                (best["train_loss"] / best["start_loss"])[trapped].max()
            ),
        },
    )


def _gaussian_zero(cells: pd.DataFrame) -> Measurement:
    chosen, decades = cells_under("12", cells, _GAUSSIAN, _NEAR)
    return judge_zero(chosen, {"decades by which (12) is missed": decades})


def _rate_is_gamma(cells: pd.DataFrame) -> Measurement:
    """Judge whether the Gaussian's loss is at most (1 − ηγ)^t of its start, for a small η."""
    chosen, decades = cells_under("12", cells, _GAUSSIAN, _NEAR)
    smallest = chosen["learning_rate"] == chosen["learning_rate"].min()
    chosen, decades = chosen[smallest], decades[smallest]
    done = chosen["status"] == "done"
    for name in ("steps", "relative_loss"):
        finite_numbers(chosen[done], name)
    counts = finite_numbers(chosen[done], "violations_gamma").reindex(chosen.index)
    rate = finite_numbers(chosen[done], "log10_gamma").reindex(chosen.index)
    above = counts > 0
    is_small = finite_numbers(chosen[done], "descent").reindex(chosen.index) >= LEAST_DESCENT
    log_bound = step_sizes(chosen) * chosen["steps"] * 10.0**rate  # −ln of it, as ηγ is small
    fall = -np.log(chosen["relative_loss"].astype(float).clip(lower=np.finfo(np.float64).tiny))
    return judge_theorem(
        above & is_small,
        chosen["seed"],
        unknown=~done | (above & ~is_small),  # a smaller step size may serve
        requirements=Requirements({"decades by which (12) is missed": decades}, "condition (12)"),
        decades_over=np.log10(log_bound / fall),
        note="The decades are those of γ over the measured rate.",
        details={"decades of γ, median": float(rate.median())},
    )


def _softmax_under_12(cells: pd.DataFrame) -> Measurement:
    chosen, decades = cells_under("12", cells, _SOFTMAX, _NEAR)
    if not (decades <= 0).any():
        raise not_run(f"It needs cells that meet condition (12), as in `overfit sweep {_NEAR}`.")
    return zero_loss_of(chosen[decades <= 0])


def _gaussian_from_drawn_weights(target: str, labels: str) -> Claim:
    return Claim(
        name=f"zero-gaussian-{target}",
        kind="ours",
        source=f"{SOURCE}, section 4.2.2, without condition (12)",
        statement="Trained in W_Q alone from drawn weights, Gaussian attention reaches zero "
        f"loss: labels {labels}.",
        holds_where=AT_BEST,
        measure=partial(zero_loss, values={**_GAUSSIAN, "target": target}, preset=_PRESET),
        figure="curves",
        preset=_PRESET,
    )


_TRAPPED = Claim(
    name="trapped-softmax",
    kind="paper",
    source=f"{SOURCE}, abstract and section 4.2.2",
    statement="Gradient descent on W_Q with softmax attention may sometimes lead to a suboptimal "
    "local solution.",
    hypotheses="none: the weights are drawn, and the sentence says that it may happen",
    holds_where="for some labels a seed's lowest loss of all step sizes lies above its closed-form "
    f"optimum by {SUBOPTIMAL:g} of its start or more, and as many steps again, at the last "
    f"gradient, would lower that by less than {STOPPED:g}; it can't fail, for draws do not refute "
    "that something may happen",
    measure=_is_trapped,
    figure="curves",
    preset=_PRESET,
)


def _under_condition_12() -> list[Claim]:
    return [
        Claim(
            name="theorem3-gaussian-zero",
            kind="paper",
            source=f"{SOURCE}, Theorem 3 (1)",
            statement="Where condition (12) is met and W_Q alone is trained, there is a step size "
            "with which Gaussian attention reaches zero loss.",
            hypotheses=_MEETS_12,
            holds_where=GOES_TO_ZERO,
            measure=_gaussian_zero,
            figure="curves",
            preset=_NEAR,
        ),
        Claim(
            name="theorem3-rate",
            kind="paper",
            source=f"{SOURCE}, Theorem 3 (1), equation (13), γ from appendix 1.5",
            statement="Where condition (12) is met and W_Q alone is trained, there is a step size "
            "η for which Gaussian attention's loss is at most (1 − ηγ)^t of its start.",
            hypotheses=_MEETS_12,
            holds_where=f"{THEOREM_RULE} (at the smallest step size, at every step)",
            measure=_rate_is_gamma,
            preset=_NEAR,
        ),
        Claim(
            name="zero-softmax-near",
            kind="ours",
            source=f"{SOURCE}, section 4.2.2, the other kernel under the conditions of Theorem 3",
            statement="On random draws that meet condition (12), with labels 3e-9 from its own "
            "outputs, softmax attention trained in W_Q alone reaches zero loss too.",
            holds_where=AT_BEST,
            measure=_softmax_under_12,
            figure="curves",
            preset=_NEAR,
        ),
    ]


_BELOW_OR_INSIDE = "below or inside the hull of the token values"

CLAIMS = (
    *_under_condition_12(),
    joined(
        {
            "below the hull": _gaussian_from_drawn_weights("below", _BELOW_OR_INSIDE),
            "inside the hull": _gaussian_from_drawn_weights("inside", _BELOW_OR_INSIDE),
        }
    ),
    _gaussian_from_drawn_weights(
        "mixed-sign", f"{_LABELS['mixed-sign']}. No output is negative here, so that it can't"
    ),
    _TRAPPED,
)
