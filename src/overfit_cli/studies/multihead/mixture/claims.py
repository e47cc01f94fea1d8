"""Claims of figures 2 and 3 of Deora et al. 2024: speed and margins for each H.

Also whether heads stay identical, and whether W converges in direction to the solution of the
attention support vector machine.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, Values, finite_numbers, require_done
from overfit_cli.claims.rules import (
    FALLS_WHERE,
    THEOREM_RULE,
    Margin,
    falls,
    joint_verdict,
    judge_estimate,
    judge_theorem,
)
from overfit_cli.core.claim import Claim, Kind, Measurement, inconclusive
from overfit_cli.stats.intervals import mean_estimate, median_estimate
from overfit_cli.studies.multihead.claims import (
    ALL_HEADS,
    FASTER,
    PAPER_NAME,
    REACHED,
    SLOWER,
    bound_claims,
    independent_seeds,
    mean_between,
    numbers,
    theorem_claims,
    trend_in_words,
    trend_of_heads,
)
from overfit_cli.studies.multihead.curve_claims import curve_claims, speed_claims
from overfit_cli.studies.multihead.mixture.first_phase_claims import FIRST_PHASE_CLAIMS
from overfit_cli.studies.multihead.mixture.least_heads_claims import LEAST_HEADS_CLAIMS
from overfit_cli.studies.multihead.mixture.margin_claims import MARGIN_CLAIMS
from overfit_cli.studies.multihead.mixture.parameters import MultiheadMixtureParameters
from overfit_cli.studies.multihead.mixture.random_attention_claims import RANDOM_ATTENTION_CLAIMS
from overfit_cli.studies.multihead.step_size_claims import contour_claim, second_head_claims

ALIKE_UP_TO = 1e-9
"""The distance of heads from their mean, over its length, that is taken for none."""

CONSTANT: Values = {"optimiser": "gd", "step_rule": "constant"}
ROOT: Values = {"optimiser": "gd", "step_rule": "sqrt-heads"}
ADAM: Values = {"optimiser": "adam", "learning_rate": 0.06}
NORMALISED: Values = {"optimiser": "loss-normalised", "learning_rate": 0.1, "training_steps": 3000}

_FREE = frozenset({"certify", "test_samples"})


def _select(cells: pd.DataFrame, settings: Values, preset: str) -> pd.DataFrame:
    """The cells of a setting; step size, samples and steps are the paper's, or the preset's."""
    return Selection(
        MultiheadMixtureParameters,
        at=settings,
        vary={"heads"},
        alike=_FREE,
        includes=ALL_HEADS,
        preset=preset,
    ).of(cells)


def _speed(cells: pd.DataFrame, settings: Values, margin: Margin, preset: str) -> Measurement:
    chosen = _select(cells, settings, preset)
    return trend_of_heads(chosen, margin, MultiheadMixtureParameters, mean_between)


SHORT, LONG = 1000, 10_000
"""The steps between which a margin must rise, and within which it is asked to arrive."""

CLOSER = Margin(most=1.0, because="1 is no approach", fewest_seeds=10)


def _margins_of_few(cells: pd.DataFrame, preset: str) -> pd.DataFrame:
    """The cells of one, two and five heads, after few and after many steps."""
    steps: dict[str, tuple[object, ...]] = {
        "training_steps": (SHORT, LONG),
        "heads": (1, 2, 5),
    }
    return Selection(
        MultiheadMixtureParameters,
        at={**CONSTANT, **steps},
        vary={"heads", "training_steps"},
        alike=_FREE,
        includes=steps,
        preset=preset,
    ).of(cells)


def _approaches(cells: pd.DataFrame, preset: str) -> Measurement:
    """Measure what is missing of γ_attn after many steps over that after few, at the worst H."""
    chosen = _margins_of_few(cells, preset)
    shares = numbers(chosen, "margin_share")
    missing = (
        (1 - shares)
        .clip(lower=0)
        .groupby([chosen["training_steps"], chosen["seed"], chosen["heads"]])
        .mean()
        .unstack()
    )  # (steps and seeds, heads)
    with np.errstate(divide="ignore", invalid="ignore"):
        long, short = (missing.xs(steps) for steps in (LONG, SHORT))
        ratio = pd.DataFrame(long / short)  # (seeds, heads)
    ratio = ratio.mask(pd.DataFrame(long) == 0, 0.0)  # it has arrived
    least, most = (ratio.fillna(end).max(axis=1) for end in (0.0, math.inf))
    means = shares.groupby([chosen["heads"], chosen["training_steps"]]).mean()
    return judge_estimate(
        median_estimate(least, up_to=most),
        CLOSER,
        details={
            f"mean share, H = {setting[0]}, {setting[1]} steps": float(share)
            for setting, share in zip(means.index.tolist(), means, strict=True)
        },
        note=f"What is missing of γ_attn after {LONG} steps over that after {SHORT}, at each "
        "seed's worst H: the median over seeds.",
    )


def _arrives(cells: pd.DataFrame, preset: str) -> Measurement:
    """Measure which share of γ_attn one head has after many steps."""
    few = _margins_of_few(cells, preset)
    chosen = require_done(few[(few["heads"] == 1) & (few["training_steps"] == LONG)])
    return judge_estimate(
        mean_estimate(finite_numbers(chosen, "margin_share").groupby(chosen["seed"]).mean()),
        REACHED,
        note=f"The least margin over γ_attn, after {LONG} steps.",
    )


def _margin_of_every(cells: pd.DataFrame, preset: str) -> Measurement:
    """Measure the least share of γ_attn over numbers of heads, seed by seed."""
    chosen = require_done(_select(cells, NORMALISED, preset))
    shares = finite_numbers(chosen, "margin_share")
    by_heads = shares.groupby(chosen["heads"]).mean()
    estimate = mean_estimate(shares.groupby(chosen["seed"]).min())
    return judge_estimate(
        independent_seeds(estimate, chosen, MultiheadMixtureParameters),
        REACHED,
        details={f"mean share, H = {heads}": float(share) for heads, share in by_heads.items()},
        note="The least margin over γ_attn, at each seed's worst H.",
    )


LOST = Margin(least=0.05, because="a twentieth of γ_attn", fewest_seeds=10)


def _margin_falls(cells: pd.DataFrame, preset: str, settings: Values) -> Measurement:
    """Measure whether the margin falls as H grows, and by how much."""
    chosen = require_done(_select(cells, settings, preset))
    falling = falls(chosen, "margin_share", "heads", "optimiser")
    shares = chosen.pivot(index="seed", columns="heads", values="margin_share")
    lost = judge_estimate(
        mean_estimate(shares.iloc[:, 0] - shares.iloc[:, -1]),
        LOST,
        note="The share of γ_attn that the largest H lacks of the least H's.",
    )
    verdict = joint_verdict((falling.verdict, lost.verdict))
    decisive = lost if lost.verdict == verdict else falling
    details = {f"mean share, H = {heads}": float(mean) for heads, mean in shares.mean().items()}
    return replace(decisive, details={**falling.details, **details})


def _identical(cells: pd.DataFrame, preset: str) -> Measurement:
    """Measure whether heads that begin at zero, each trained by itself, stay alike."""
    settings = {"separate_heads": True, "heads": (2, 5, 10, 20, 50)}
    free = {*_FREE, "optimiser", "step_rule", "learning_rate", "training_steps", "n"}
    chosen = Selection(
        MultiheadMixtureParameters, at=settings, vary=free, preset=preset, balanced=False
    ).of(cells)
    spread = numbers(chosen, "head_spread")
    return judge_theorem(
        spread > ALIKE_UP_TO,
        chosen["seed"],
        unknown=spread.isna(),
        details={"distance of heads from their mean over its length, most": float(spread.max())},
    )


NEAR = Margin(least=0.99, because="an angle of 8°", fewest_seeds=10)
_LATER_WORK = "Tarzanagh et al. 2023 and Vasudeva et al. 2024"
_DIRECTIONS = "heads-machine"


def _direction(cells: pd.DataFrame, trained: str, preset: str) -> Measurement:
    """Measure the cosine at the last step, at each seed's worst H."""
    settings = {"optimiser": "gradient-normalised", "trained": trained, "machine": True}
    alike = set(MultiheadMixtureParameters.model_fields) - {"heads"} - set(settings)
    chosen = require_done(
        Selection(
            MultiheadMixtureParameters,
            at={**settings, "first_phase": "positive"},
            vary={"heads"},
            alike=alike - {"first_phase"},
            preset=preset,
        ).of(cells)
    )
    without = (finite_numbers(chosen, "machine_margin") <= 0).groupby(chosen["seed"]).any()
    solvable = chosen[~chosen["seed"].map(without)]
    if solvable.empty:
        raise inconclusive("On no seed does some W separate the best tokens from the others.")
    cosines = finite_numbers(solvable, "machine_cosine")
    by_heads = cosines.groupby(solvable["heads"])
    return judge_estimate(
        mean_estimate(cosines.groupby(solvable["seed"]).min(), within=(-1.0, 1.0)),
        NEAR,
        details={
            **{
                f"mean cosine, H = {heads}": float(cosine)
                for heads, cosine in by_heads.mean().items()
            },
            **{
                f"least cosine, H = {heads}": float(cosine)
                for heads, cosine in by_heads.min().items()
            },
            "steps": float(solvable["steps"].max()),
            "seeds on which no W separates the best tokens": float(np.sum(without)),
        },
        note="The cosine of W with the solution for U as it stands, at each seed's worst H.",
    )


def _claim(
    kind: Kind,
    name: str,
    source: str,
    statement: str,
    holds_where: str,
    measure: partial[Measurement],
    preset: str,
    hypotheses: str = "",
) -> Claim:
    return Claim(
        name=f"mixture-{name}",
        kind=kind,
        source=source,
        statement=statement,
        hypotheses=hypotheses,
        holds_where=holds_where,
        measure=partial(measure, preset=preset),
        figure="heads",
        preset=preset,
    )


_APPENDIX = f"{PAPER_NAME}, appendix G"
_DM1 = (
    "DM1 with the sizes of appendix G, 100 samples, zero initialisation; H from 1 to 50 is this "
    "tool's"
)
_SHARE = "the least margin over γ_attn"
_DIRECTION = (
    "Under gradient-normalised descent {on}, W comes to point where the attention support vector "
    "machine's solution does."
)

CLAIMS = (
    _claim(
        "paper",
        "constant-slower",
        f"{_APPENDIX}, figure 2",
        "Overparameterization slows down gradient descent with constant step size: with η = 1 the "
        "training loss takes more steps to 0.001 the more heads there are.",
        trend_in_words(SLOWER),
        partial(_speed, settings=CONSTANT, margin=SLOWER),
        "heads-fig2",
        f"{_DM1}; the training loss of 0.001 is this tool's mark",
    ),
    _claim(
        "paper",
        "sqrt-faster",
        f"{_APPENDIX}, figure 3, left",
        "With step sizes c √H convergence speeds up for larger H: with c = 1, which the text "
        "leaves open, the training loss takes fewer steps to 0.001.",
        trend_in_words(FASTER),
        partial(_speed, settings=ROOT, margin=FASTER),
        "heads-fig3-sqrt",
        f"{_DM1}; c = 1 and the training loss of 0.001 are this tool's",
    ),
    _claim(
        "paper",
        "adam-faster",
        f"{_APPENDIX}, figure 3, right",
        "With Adam at the constant step size 0.06 convergence speeds up for larger H: the training "
        "loss takes fewer steps to 0.001.",
        trend_in_words(FASTER),
        partial(_speed, settings=ADAM, margin=FASTER),
        "heads-fig3-adam",
        f"{_DM1}; the training loss of 0.001 is this tool's mark",
    ),
    _claim(
        "ours",
        "margin-approached",
        f"{_APPENDIX}, where smaller H achieve γ_attn, in a number of steps that the text leaves "
        "open",
        f"With 1, 2 and 5 heads gradient descent with η = 1 comes nearer to the margin γ_attn from "
        f"{SHORT} to {LONG} steps.",
        CLOSER.in_words("what is missing of γ_attn after many steps over that after few"),
        partial(_approaches),
        "heads-margin",
    ),
    _claim(
        "ours",
        f"margin-{LONG}",
        _APPENDIX,
        f"One head comes within a twentieth of the margin γ_attn in {LONG} steps of gradient "
        "descent with η = 1.",
        REACHED.in_words(_SHARE),
        partial(_arrives),
        "heads-margin",
    ),
    _claim(
        "ours",
        "normalised-margin",
        f"{PAPER_NAME}, section 7, a question",
        "Gradient descent on the logarithm of the loss comes within a twentieth of the margin "
        "γ_attn in 3000 steps, for every H from 1 to 50.",
        REACHED.in_words(f"{_SHARE}, at the worst H,"),
        partial(_margin_of_every),
        "heads-normalised",
    ),
    _claim(
        "paper",
        "sqrt-margin-falls",
        _APPENDIX,
        "With step sizes c √H the margin attained by gradient descent falls away from γ_attn for "
        "larger H, here with c = 1 and after 1000 steps.",
        f"{FALLS_WHERE}; {LOST.in_words('the share of γ_attn lost from least H to largest')}",
        partial(_margin_falls, settings=ROOT),
        "heads-fig3-sqrt",
        f"{_DM1}; c = 1 and the 1000 steps are this tool's",
    ),
    _claim(
        "ours",
        "adam-margin-falls",
        f"{_APPENDIX}, figure 3, right, of which the text says nothing",
        "With Adam at the constant step size 0.06 the margin falls away from γ_attn for larger H, "
        "after 1000 steps.",
        f"{FALLS_WHERE}; {LOST.in_words('the share of γ_attn lost from least H to largest')}",
        partial(_margin_falls, settings=ADAM),
        "heads-fig3-adam",
    ),
    _claim(
        "identity",
        "identical-heads",
        f"{_APPENDIX}, zero initialisation",
        "From zero all heads stay alike, each trained by itself.",
        f"{THEOREM_RULE}: the distance of heads from their mean is at most {ALIKE_UP_TO:g} of "
        "its length",
        partial(_identical),
        "heads-identical",
    ),
    *bound_claims("mixture", "heads-fig2", "heads-random"),
    *theorem_claims("mixture", "heads-fig2"),
    *curve_claims(MultiheadMixtureParameters, CONSTANT),
    *speed_claims(
        MultiheadMixtureParameters,
        "mixture",
        (
            ("sqrt", ROOT, "heads-fig3-sqrt", "gradient descent with steps of √H"),
            ("adam", ADAM, "heads-fig3-adam", "Adam with constant steps of 0.06"),
        ),
        mark=0.001,
        kind="paper",
        source="caption of figure 3",
        hypotheses=f"{_DM1}; c = 1 and the test loss of 0.001 are this tool's",
    ),
    *FIRST_PHASE_CLAIMS,
    *RANDOM_ATTENTION_CLAIMS,
    *LEAST_HEADS_CLAIMS,
    *MARGIN_CLAIMS,
    contour_claim(MultiheadMixtureParameters, "mixture", "heads-steps"),
    *second_head_claims(MultiheadMixtureParameters, "mixture", "heads-second", errors=False),
    *(
        _claim(
            "ours",
            f"machine-{name}",
            source,
            _DIRECTION.format(on=on),
            NEAR.in_words("their cosine, at the worst H,"),
            partial(_direction, trained=trained_weights),
            _DIRECTIONS,
        )
        for name, trained_weights, source, on in (
            ("fixed", "attention", _LATER_WORK, "on W, with U as the first phase leaves it"),
            ("both", "all", f"beyond {_LATER_WORK}", "on both U and W"),
        )
    ),
)
