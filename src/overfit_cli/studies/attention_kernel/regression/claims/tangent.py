"""Claims of ours where W_Q alone is trained: what tangent kernels predict."""

from __future__ import annotations

import pandas as pd

from overfit_cli.claims.cells import Selection, require_trained
from overfit_cli.claims.stated import stated_claim
from overfit_cli.core.claim import inconclusive
from overfit_cli.studies.attention_kernel.regression.claims.rates import SOURCE, cells_under
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters

SIZES, STEPS = "kernel-tangent", "kernel-tangent-steps"
"""The presets."""

BOTH = ("softmax", "gaussian")
SMALL = 0.02
"""The deviation of W_Q and W_K at which the formula of small weights is claimed."""


def _traces(cells: pd.DataFrame) -> pd.DataFrame:
    return require_trained(
        Selection(
            KernelRegressionParameters,
            at={"trained": "query", "kernel": BOTH, "sigma_w": SMALL, "target": "near"},
            vary=("learning_rate",),
            alike=("n", "d", "d_h", "training_steps", "distance", "dtype"),
            fewest={"tokens": 2},
            preset=SIZES,
        ).of(cells)
    )


def _at_best(cells: pd.DataFrame) -> pd.DataFrame:
    chosen, decades = cells_under("12", cells, {"kernel": BOTH, "trained": "query"}, STEPS)
    done = chosen[(chosen["status"] == "done") & (decades <= 0)]
    done = done[done["steps_to_millionth"].notna()]
    if done.empty:
        raise inconclusive("No cell comes down to a millionth of its start.")
    steps = done["steps_to_millionth"].astype(float)
    best: pd.DataFrame = done.loc[steps.groupby([done["kernel"], done["seed"]]).idxmin()]
    if len(best) < len(BOTH) * chosen["seed"].nunique():
        raise inconclusive("On some seeds no cell of a kernel comes down to a millionth.")
    return best.drop(columns="learning_rate")


def _over(column: str) -> str:
    return f"{column}[kernel=gaussian] / {column}[kernel=softmax]"


_SECTION = f"{SOURCE}, section 4.2"
_MET = (
    "condition (12) is met: W_Q and W_K have deviation 0.02, the labels lie 3e-9 from the outputs"
)


CLAIMS = (
    stated_claim(
        _traces,
        KernelRegressionParameters,
        f"geometric mean of ({_over('tangent_trace')}) / ({_over('tangent_small')}) "
        "is 1 within a factor of 1.25 on average with at least 10 seeds",
        number="the geometric mean of the traces' ratio over it",
        because="at d = 8 traces spread by √(2/d), which is 0.5 a draw and 0.11 in the mean of 20",
        name="tangent-ratio",
        kind="ours",
        source=_SECTION,
        statement="At small W_Q and W_K, in the geometric mean over draws, the Gaussian's tangent "
        "kernel is larger than softmax's by the ratio of (Σ_j a_j)² ‖x_k‖² + ‖Σ_j a_j x_j‖² to "
        "‖Σ_j (a_j − ā) x_j‖²/n².",
        figure="tangent",
        preset=SIZES,
    ),
    stated_claim(
        _at_best,
        KernelRegressionParameters,
        "geometric mean of steps_to_millionth[kernel=softmax] / "
        "steps_to_millionth[kernel=gaussian] >= 1 with at least 10 seeds",
        number="the geometric mean of the ratio of steps",
        because="as many steps as the Gaussian",
        name="tangent-slower",
        kind="ours",
        source=_SECTION,
        statement="Where condition (12) is met, softmax takes more steps than the Gaussian, each "
        "at its own best step size.",
        hypotheses=_MET,
        figure="tangent-steps",
        preset=STEPS,
    ),
)
