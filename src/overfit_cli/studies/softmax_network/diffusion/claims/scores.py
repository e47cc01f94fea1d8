"""The claims of Cao et al. 2024, section 6, on scores, and ours on the samples."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd

from overfit_cli.claims.rules import Margin
from overfit_cli.core.claim import Claim, Measurement
from overfit_cli.studies.softmax_network.diffusion.claims.measuring import (
    ALIKE,
    AS_IN_THE_PAPER,
    DESCENT,
    DIGITS,
    FALLS,
    MIXTURE,
    WEIGHTINGS,
    at_end,
    falls,
    optimisers,
    over,
    theorem,
)
from overfit_cli.studies.softmax_network.names import NAMES

BETTER = Margin(most=1.0, because="1 is no better")
LEARNS = Margin(most=1.0, because="that of a score of zero")
A_TENTH = Margin(most=0.1, because="a tenth")
NO_COPIES = Margin(most=0.1, because="fresh draws have 0, and a tenth")
COPIES = Margin(least=0.5, because="half the way from fresh draws to copies")

Measure = Callable[[pd.DataFrame], Measurement]


def _claim(
    name: str,
    statement: str,
    holds_where: str,
    measure: Measure,
    figure: str = "score",
    preset: str = MIXTURE,
) -> Claim:
    return Claim(
        name=f"diffusion-{name}",
        source="Cao et al. 2024, Theorem 6.6" + ("" if name == "theorem66" else "; ours"),
        statement=statement,
        holds_where=holds_where,
        measure=measure,
        figure=figure,
        preset=preset,
    )


_BOTH = "both squared score errors, weighted by 1 and by 4 sinh² t, at the largest n:"


def _compared(
    name: str,
    statement: str,
    models: tuple[str, str],
    margin: Margin,
) -> Claim:
    """Return a claim on the score errors of two models."""
    words = margin.in_words(f"{_BOTH} the ratio of {models[0]} over {models[1]}")
    return _claim(
        name,
        statement,
        words,
        partial(over, models=models, columns=WEIGHTINGS, margin=margin),
    )


def _of_samples(name: str, statement: str, model: str, margin: Margin) -> Claim:
    """Return a claim on how near samples lie to training points."""
    number = "what samples have memorised, 0 as fresh draws and 1 as noised copies,"
    return _claim(
        name,
        statement,
        margin.in_words(f"at the smallest n, {number}"),
        partial(
            at_end,
            model=model,
            column="memorised",
            margin=margin,
            at={"target": "digits"},
            smallest=True,
        ),
        "samples",
        DIGITS,
    )


CLAIMS = (
    *(
        _claim(
            f"falls-{model}",
            f"The score error of a network with {NAMES[model]} falls with n.",
            FALLS.in_words("for both weightings, the power of n in the squared score error"),
            partial(falls, model=model, target="mixture"),
        )
        for model in NAMES
    ),
    *(
        _compared(
            f"constant-{model}",
            f"A fitted {NAMES[model]} network's score is nearer to the true one than that of the "
            "constant denoiser.",
            (model, "constant"),
            BETTER,
        )
        for model in NAMES
    ),
    *(
        _claim(
            f"truth-{model}",
            f"A fitted {NAMES[model]} network has the score up to a tenth of its square.",
            A_TENTH.in_words("the squared score error over the squared score, at the largest n,"),
            partial(
                at_end,
                model=model,
                column="score_share",
                margin=A_TENTH,
                at={"target": "mixture"},
            ),
        )
        for model in NAMES
    ),
    *(
        _compared(
            f"softmax-{other}",
            f"Softmax and {NAMES[other]} networks learn the score alike.",
            ("softmax", other),
            ALIKE,
        )
        for other in ("exp", "relu")
    ),
    _compared(
        "posterior",
        "A fitted softmax network's score is nearer to the true one than that of the exact "
        "posterior over the training points.",
        ("softmax", "posterior"),
        BETTER,
    ),
    _claim(
        "samples",
        "Samples drawn with a fitted softmax network are as near to the target as those drawn "
        "with the true score.",
        ALIKE.in_words("the ratio of their sliced Wasserstein distances, at the largest n,"),
        partial(over, models=("softmax", "true"), columns=["sliced_wasserstein"], margin=ALIKE),
        "samples",
    ),
    _claim(
        "gd",
        "Gradient descent at the paper's scale learns the score as well as Adam with outputs over "
        "√m does.",
        ALIKE.in_words("for both weightings, the ratio of squared score errors"),
        optimisers,
        "curves",
        DESCENT,
    ),
    _claim(
        "gd-learns",
        "The score that gradient descent at the paper's scale learns is nearer to the true one "
        "than a score of zero.",
        LEARNS.in_words("the squared score error over the squared score, at the largest n,"),
        partial(
            at_end,
            model="softmax",
            column="score_share",
            margin=LEARNS,
            at=AS_IN_THE_PAPER,
        ),
        "curves",
        DESCENT,
    ),
    *(
        _claim(
            f"digits-{words}",
            f"On handwritten digits a fitted softmax network denoises better than {other}.",
            BETTER.in_words("the ratio of ‖F − x(0)‖² on test digits, at the largest n,"),
            partial(
                over,
                models=("softmax", words),
                columns=["denoising_loss"],
                margin=BETTER,
                target="digits",
            ),
            preset=DIGITS,
        )
        for words, other in (
            ("constant", "the constant denoiser"),
            ("posterior", "the exact posterior over the training digits"),
        )
    ),
    _claim(
        "digits-falls",
        "On handwritten digits a softmax network's loss on test digits falls with n.",
        FALLS.in_words("the power of n in ‖F − x(0)‖²"),
        partial(falls, model="softmax", target="digits"),
        preset=DIGITS,
    ),
    _of_samples(
        "copies-posterior",
        "Samples drawn with the exact posterior over few training digits are copies of them.",
        "posterior",
        COPIES,
    ),
    _of_samples(
        "copies-softmax",
        "Samples drawn with a softmax network lie no nearer to its training digits than fresh "
        "draws do.",
        "softmax",
        NO_COPIES,
    ),
    _claim(
        "theorem66",
        "With m and η as stated, ‖F − E[x(0) | x(t)]‖² is O(1/(λ√n)) and more.",
        "m and η are as stated (C = 10, δ = 0.05), and no cell's error is above 1/(λ√n)",
        theorem,
        "curves",
        DESCENT,
    ),
)
