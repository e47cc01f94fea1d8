"""Claims of figures 2 and 3 of Deora et al. 2024: speed and margins for each H."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd

from overfit_cli.claims.cells import Selection, Values
from overfit_cli.claims.sentences import Sentence, read
from overfit_cli.claims.stated import stated_claim
from overfit_cli.core.claim import Claim, Kind
from overfit_cli.studies.multihead.claims import (
    ALL_HEADS,
    PAPER_NAME,
    REACHED,
    numbers,
    speed_claim,
)
from overfit_cli.studies.multihead.curve_claims import curve_claims, speed_in_test_claim
from overfit_cli.studies.multihead.mixture.bound_claims import BOUND_CLAIMS
from overfit_cli.studies.multihead.mixture.first_phase_claims import FIRST_PHASE_CLAIMS
from overfit_cli.studies.multihead.mixture.least_heads_claims import LEAST_HEADS_CLAIMS
from overfit_cli.studies.multihead.mixture.margin_claims import MARGIN_CLAIMS
from overfit_cli.studies.multihead.mixture.parameters import MultiheadMixtureParameters
from overfit_cli.studies.multihead.mixture.random_attention_claims import RANDOM_ATTENTION_CLAIMS

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


SHORT, LONG = 1000, 10_000
"""The steps between which a margin must rise, and within which it is asked to arrive."""


def _margins_of_few(cells: pd.DataFrame, preset: str) -> pd.DataFrame:
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


def _lacking(cells: pd.DataFrame, preset: str) -> pd.DataFrame:
    few = _margins_of_few(cells, preset)
    return few.assign(missing=(1 - numbers(few, "margin_share")).clip(lower=0))


def _fields(
    kind: Kind, name: str, source: str, statement: str, preset: str, hypotheses: str = ""
) -> dict[str, Any]:
    return {
        "name": f"mixture-{name}",
        "kind": kind,
        "source": source,
        "statement": statement,
        "hypotheses": hypotheses,
        "figure": "heads",
        "preset": preset,
    }


def _speed_claim(
    settings: Values,
    preset: str,
    name: str,
    source: str,
    statement: str,
    hypotheses: str,
    *,
    faster: bool,
) -> Claim:
    return speed_claim(
        partial(_select, settings=settings, preset=preset),
        MultiheadMixtureParameters,
        faster=faster,
        average="mean",
        to_the_end=True,
        **_fields("paper", name, source, statement, preset, hypotheses),
    )


def _sentence(
    choose: Callable[..., pd.DataFrame],
    stated: str | Sentence,
    number: str,
    because: str,
    name: str,
    source: str,
    statement: str,
    *,
    preset: str,
    kind: Kind = "ours",
    hypotheses: str = "",
) -> Claim:
    return stated_claim(
        partial(choose, preset=preset),
        MultiheadMixtureParameters,
        stated,
        number=number,
        because=because,
        **_fields(kind, name, source, statement, preset, hypotheses),
    )


_APPENDIX = f"{PAPER_NAME}, appendix G"
_DM1 = (
    "DM1 with the sizes of appendix G, 100 samples, zero initialisation; H from 1 to 50 is this "
    "tool's"
)
_SHARE = "the least margin over γ_attn"

LOST = 0.05
"""The least share of γ_attn that is lost where the margin falls away from it."""

MARGIN_FALLS = (
    "mean of margin_share falls along heads; "
    f"mean of margin_share[heads is smallest] - margin_share[heads is largest] >= {LOST} "
    "with at least 10 seeds"
)
CLAIMS = (
    _speed_claim(
        CONSTANT,
        "heads-fig2",
        "constant-slower",
        f"{_APPENDIX}, figure 2",
        "Overparameterization slows down gradient descent with constant step size: with η = 1 the "
        "training loss takes more steps to 0.001 the more heads there are.",
        f"{_DM1}; the training loss of 0.001 is this tool's mark",
        faster=False,
    ),
    _speed_claim(
        ROOT,
        "heads-fig3-sqrt",
        "sqrt-faster",
        f"{_APPENDIX}, figure 3, left",
        "With step sizes c √H convergence speeds up for larger H: with c = 1, which the text "
        "leaves open, the training loss takes fewer steps to 0.001.",
        f"{_DM1}; c = 1 and the training loss of 0.001 are this tool's",
        faster=True,
    ),
    _speed_claim(
        ADAM,
        "heads-fig3-adam",
        "adam-faster",
        f"{_APPENDIX}, figure 3, right",
        "With Adam at the constant step size 0.06 convergence speeds up for larger H: the training "
        "loss takes fewer steps to 0.001.",
        f"{_DM1}; the training loss of 0.001 is this tool's mark",
        faster=True,
    ),
    _sentence(
        _lacking,
        f"missing[training_steps={LONG}] / missing[training_steps={SHORT}] <= 1 at worst "
        "with at least 10 seeds",
        "what is missing of γ_attn after many steps over that after few",
        "1 is no approach",
        "margin-approached",
        f"{_APPENDIX}, where smaller H achieve γ_attn, in a number of steps that the text leaves "
        "open",
        f"With 1, 2 and 5 heads gradient descent with η = 1 comes nearer to the margin γ_attn from "
        f"{SHORT} to {LONG} steps.",
        preset="heads-margin",
    ),
    _sentence(
        _margins_of_few,
        "mean of margin_share >= 0.95 with at least 10 seeds "
        f"where heads = 1 and training_steps = {LONG}",
        _SHARE,
        REACHED.because,
        f"margin-{LONG}",
        _APPENDIX,
        f"One head comes within a twentieth of the margin γ_attn in {LONG} steps of gradient "
        "descent with η = 1.",
        preset="heads-margin",
    ),
    _sentence(
        partial(_select, settings=NORMALISED),
        read("mean of margin_share >= 0.95 at worst with at least 10 seeds").with_target(1),
        f"{_SHARE}, at the worst H,",
        REACHED.because,
        "normalised-margin",
        f"{PAPER_NAME}, section 7, a question",
        "Gradient descent on the logarithm of the loss comes within a twentieth of the margin "
        "γ_attn in 3000 steps, for every H from 1 to 50.",
        preset="heads-normalised",
    ),
    _sentence(
        partial(_select, settings=ROOT),
        MARGIN_FALLS,
        "",
        "",
        "sqrt-margin-falls",
        _APPENDIX,
        "With step sizes c √H the margin attained by gradient descent falls away from γ_attn for "
        "larger H, here with c = 1 and after 1000 steps.",
        preset="heads-fig3-sqrt",
        kind="paper",
        hypotheses=f"{_DM1}; c = 1 and the 1000 steps are this tool's",
    ),
    *BOUND_CLAIMS,
    *curve_claims(MultiheadMixtureParameters, CONSTANT),
    *(
        speed_in_test_claim(
            MultiheadMixtureParameters,
            settings,
            preset=f"heads-fig3-{name}",
            words=words,
            mark=0.001,
            name=f"mixture-{name}-test-faster",
            kind="paper",
            source=f"{PAPER_NAME}, caption of figure 3",
            hypotheses=f"{_DM1}; c = 1 and the test loss of 0.001 are this tool's",
        )
        for name, settings, words in (
            ("sqrt", ROOT, "gradient descent with steps of √H"),
            ("adam", ADAM, "Adam with constant steps of 0.06"),
        )
    ),
    *FIRST_PHASE_CLAIMS,
    *RANDOM_ATTENTION_CLAIMS,
    *LEAST_HEADS_CLAIMS,
    *MARGIN_CLAIMS,
)
