"""Section 4.2: Theorem 3, with W_Q alone trained, its example, and Remark 4."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.papers import on
from overfit_cli.studies.attention_kernel.claims.cells import (
    ZERO,
    at_some_step_size,
    song,
    stops_above_optimum,
    stops_above_zero,
)
from overfit_cli.studies.attention_kernel.parameters import EXAMPLE
from overfit_cli.studies.attention_kernel.theory import lacking

MEETS_12 = on("kernel-theorem3-near", kernel="gaussian")
RANDOM = on("kernel-theorem3", kernel="gaussian")
EXAMPLE_12 = on("kernel-example-condition").where("condition_12 <= 0", kernel="softmax", **EXAMPLE)
SMALLEST = "smallest singular values up to 1e-10 count as 0"
SMALL = "W_Q and W_K are small (deviation 0.02) and labels lie 3e-9 from the first outputs"
GOES_TO_ZERO = f"share of seeds with relative_loss[best learning_rate] < {ZERO:g} >= 0.5"

song.paper(
    "theorem3-gaussian-zero",
    "Theorem 3 (1)",
    "Where condition (12) is met and W_Q alone is trained, there is a step size with which "
    "Gaussian attention reaches zero loss.",
    "stops_above_zero <= 0 on all seeds if condition_12 <= 0",
    on=MEETS_12,
    cells=stops_above_zero,
    hypotheses=f"(12) is met: {SMALL}",
)


def _over_gamma(cells: pd.DataFrame) -> pd.DataFrame:
    """Return γ over the measured rate at the smallest step size, infinite where a step is above.

    It is not known where η is not below 1/(2G), so that the loss falls by less than half of η times
    the squared gradients: a smaller step size may serve. (The appendix ends with ½ η'.)
    """
    cells = cells[cells["learning_rate"] == cells["learning_rate"].min()]
    above = cells["violations_gamma"].astype(float)
    fall = -np.log(cells["relative_loss"].astype(float).clip(lower=np.finfo(np.float64).tiny))
    bound = cells["learning_rate"] * cells["steps"] * 10.0 ** cells["log10_gamma"].astype(float)
    over: pd.Series[float] = (bound / fall).mask(above > 0, np.inf)
    is_large = (above > 0) & ~(cells["descent"].astype(float) >= 0.5)
    known = over.mask(above.isna() | is_large)  # nor of one that diverged, which is no refutation
    return cells.assign(gamma_over_rate=known, status="done")


song.paper(
    "theorem3-rate",
    "Theorem 3 (1), equation (13), γ from appendix 1.5",
    "Where condition (12) is met and W_Q alone is trained, there is a step size η for which "
    "Gaussian attention's loss is at most (1 − ηγ)^t of its start.",
    "gamma_over_rate <= 1 on all seeds if condition_12 <= 0",
    on=MEETS_12,
    cells=_over_gamma,
    hypotheses=f"(12) is met: {SMALL}",
    figure="",
)
song.ours(
    "zero-softmax-near",
    "section 4.2.2, the other kernel under the conditions of Theorem 3",
    "On random draws that meet condition (12) softmax attention trained in W_Q alone reaches zero "
    "loss too, at the best of four step sizes.",
    GOES_TO_ZERO,
    on=MEETS_12.where("condition_12 <= 0", kernel="softmax"),
    among=4,
    hypotheses=f"{SMALL}, softmax's own",
)
for name, targets, labels in (
    ("below", {"below the hull": "below", "inside the hull": "inside"}, "below or inside the hull"),
    ("mixed-sign", {"": "mixed-sign"}, "of random sign, which no output has"),
):
    song.ours(
        f"zero-gaussian-{name}",
        "section 4.2.2, without condition (12)",
        "Trained in W_Q alone from random weights Gaussian attention reaches zero loss at the best "
        f"of eight step sizes: labels {labels} of the token values.",
        GOES_TO_ZERO,
        on={label: RANDOM.where(target=target) for label, target in targets.items()},
        among=8,
    )
song.paper(
    "trapped-softmax",
    "abstract and section 4.2.2",
    "Gradient descent on W_Q with softmax attention may sometimes lead to a suboptimal local "
    "solution: on 5 % of draws or more, for some labels, the lowest loss of eight step sizes stops "
    "above its closed-form optimum by 0.1 % of its start.",
    "share of seeds with stops_above_optimum >= 1 >= 0.05",
    on=on("kernel-theorem3", kernel="softmax"),
    because="our reading of sometimes",
    cells=stops_above_optimum,
)

# The example

song.paper(
    "example-gradient",
    "section 4.2.2, example",
    "Where condition (12) is met and both token values are equal, softmax's gradient in W_Q is "
    "zero at a loss above zero.",
    "gradient_query_start + gradient_key_start <= 0; start_loss - train_loss <= 0; start_loss > 0",
    on=EXAMPLE_12.where(value_gap=0.0),
    drawn=False,
    hypotheses="(12) is met with W_Q = W_K = 0.1 I and label 2.995, which the paper leaves open",
)
song.ours(
    "example-escape",
    "section 4.2.2, example, with token values set apart",
    "Where condition (12) is met, with token values 3 + ε and 3 − ε softmax leaves the stationary "
    "point.",
    "1 - relative_loss > 0",
    on=EXAMPLE_12.where("value_gap > 0"),
    drawn=False,
)

# Sizes at which δ is above zero


def _lost_rank(cells: pd.DataFrame) -> pd.DataFrame:
    """Return whether δ is zero, 0 or 1."""
    delta = cells["delta"].astype(float)
    return cells.assign(lost_rank=(delta <= 1e-10).astype(float).mask(delta.isna()))


def _of_needed_sizes(cells: pd.DataFrame) -> pd.DataFrame:
    sizes = [cells[name].to_numpy() for name in ("n", "tokens", "d", "d_h")]
    lacks = lacking(bool((cells["kernel"] == "softmax").all()), *sizes).values()
    return _lost_rank(cells[~np.logical_or.reduce([*lacks])])


song.ours(
    "sizes-delta",
    "the size of Remark 4, which the paper says is necessary, read as sufficient",
    "Where D d ≥ N n², random weights have δ > 0.",
    "lost_rank <= 0 on all seeds",
    on=on("kernel-sizes", "d * d_h >= n * tokens**2"),
    cells=_lost_rank,
    hypotheses=SMALLEST,
    figure="",
)
song.ours(
    "ranks-softmax-five",
    "Remark 4, with sizes that it leaves open",
    "With random weights and N ≥ 2 the scores' Jacobian ∂C/∂W_Q has full rank, δ > 0, at all sizes "
    "that are not ruled out by linear algebra.",
    "lost_rank <= 0 on all seeds",
    on={
        label: on("kernel-ranks-further", kernel=kernel)
        for label, kernel in (("softmax", "softmax"), ("Gaussian", "gaussian"))
    },
    cells=_of_needed_sizes,
    hypotheses="softmax: d ≥ n, D d ≥ N n², D ≥ 2n, N n (n + 1) ≤ D (D + 1) and (M − 1) d ≥ M n; "
    "the Gaussian: d ≥ n, D d ≥ N n², D ≥ 2n − 2, N n² ≤ N n + min(N n (n + 1), D (D + 1))/2 + "
    "min(N n (n − 1), D (D − 1))/2 and (M − 1) d ≥ M (n − 1); M is the fewest samples with M n > D "
    f"tokens, where there are so many; {SMALLEST}",
    figure="ranks",
    after_selection=True,
)

# Which kernel is faster


def _over(column: str) -> str:
    return f"{column}[kernel=gaussian] / {column}[kernel=softmax]"


song.ours(
    "tangent-ratio",
    "section 4.2",
    "At small W_Q and W_K, in the geometric mean over draws, the Gaussian's tangent kernel is "
    "larger than softmax's by the ratio of (Σ_j a_j)² ‖x_k‖² + ‖Σ_j a_j x_j‖² to "
    "‖Σ_j (a_j − ā) x_j‖²/n².",
    f"geometric mean of ({_over('tangent_trace')}) / ({_over('tangent_small')}) is 1 within a "
    "factor of 1.25 on average with at least 10 seeds",
    on=on("kernel-tangent", sigma_w=0.02),
    because="at d = 8 traces spread by √(2/d), which is 0.5 a draw and 0.11 in the mean of 20",
    figure="tangent",
)
song.ours(
    "tangent-slower",
    "section 4.2",
    "Where condition (12) is met, softmax takes more steps than the Gaussian, each at its own best "
    "step size.",
    "geometric mean of steps_to_millionth[kernel=softmax] / steps_to_millionth[kernel=gaussian] "
    ">= 1 with at least 10 seeds",
    on=on("kernel-tangent-steps", "condition_12 <= 0"),
    cells=partial(at_some_step_size, column="steps_to_millionth", most=np.inf),
    hypotheses=f"(12) is met: {SMALL}",
    figure="tangent-steps",
)
