"""The appendix: Lemmas 1, 2, 3, 7 and 8.

(27) of Lemma 1 is the gradient of an unrestricted W_V. Where W_V is block-diagonal, as in (5), it
is too large, which is the slip behind Theorems 1 and 2. The other lemmas are bounds with explicit
constants. The other equations of Lemmas 1 and 6 are exact: unit tests hold them.
"""

from __future__ import annotations

from functools import partial

import pandas as pd

from overfit_cli.claims.cells import require_values
from overfit_cli.claims.papers import on
from overfit_cli.studies.attention_kernel.claims.cells import THE_GAUSSIAN, song

SOFTMAX = on("kernel-theorem2", kernel="softmax")
GAUSSIAN = on("kernel-theorem2", kernel="gaussian")
QUERY = on("kernel-theorem3", kernel="gaussian")

song.paper(
    "lemma1-value-several",
    "Lemma 1, (27), and the last steps of appendix 1.3",
    "With 2 or 4 heads softmax attention's gradient in W_V is Bᵀ (MH − y) W_Oᵀ, so that ‖∇f‖² is "
    "at least 2f ‖W_O‖² λ_B² at every step.",
    "pl_ratio_min / rate_paper >= 0.999999999 on all seeds if lambda_b >= 1e-10",
    on=on("kernel-theorem1", "training_steps >= 3000", heads=(2, 4), learning_rate=(0.03, 0.1)),
    hypotheses="λ_B > 0; W_V is block-diagonal over heads, as in (5), while (27) is that of an "
    "unrestricted W_V: one slip, for Lemma 1, Theorem 1 and Theorem 2; logged steps are judged",
)


def _with_a_path(cells: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the cells with bounded weights: a run that diverged breaks a lemma or says nothing.

    Some are needed of each number of heads. What a cell began with is known, wherever it went.
    """
    diverged = cells["reason"] == "diverged"
    if column == "lemma_gradients":
        begun = diverged & cells[column].notna()
        return cells.assign(status=cells["status"].mask(begun, "done"))
    silent = diverged & ~(cells[column] > 1)
    return require_values(cells[~silent], heads={*cells["heads"]})


for name, place, column, cells, statement in (
    (
        "lemma2-gradients",
        "Lemma 2 (4, 5)",
        "lemma_gradients",
        SOFTMAX,
        "A sample's gradients in W_Q and W_K are at the start at most Q_i and K_i times its "
        "residual.",
    ),
    (
        "lemma3-outputs",
        "Lemma 3 (1), constant (90)",
        "lemma_outputs",
        SOFTMAX,
        "From a logged step to the next one the outputs change by at most Z times the change of "
        "the weights.",
    ),
    (
        "lemma3-gradients",
        "Lemma 3 (2), constant (98)",
        "lemma_change",
        SOFTMAX,
        "From a logged step to the next one the gradient changes by at most G times the change of "
        "the weights.",
    ),
    (
        "lemma7-gradients",
        "Lemma 7 (4)",
        "lemma_gradients",
        GAUSSIAN,
        "A sample's gradient in W_Q is at the start at most Q'_i times its residual.",
    ),
    (
        "lemma8-outputs",
        "Lemma 8 (1), constant in its proof",
        "lemma_outputs",
        QUERY,
        "With W_Q alone, from a logged step to the next one the Gaussian's outputs change by at "
        "most Z' times the change of the weights.",
    ),
    (
        "lemma8-gradients",
        "Lemma 8 (2), constant in its proof",
        "lemma_change",
        QUERY,
        "With W_Q alone, from a logged step to the next one the Gaussian's gradient changes by at "
        "most G' times the change of the weights.",
    ),
):
    song.paper(
        name,
        f"appendix, {place}",
        statement,
        f"{column} <= 1.000000001 on all seeds",
        on=cells,
        cells=partial(_with_a_path, column=column),
        hypotheses="the weights are bounded: by their start, and by the length of their path, "
        "which a run that diverges has not" + f"; {THE_GAUSSIAN}" * (cells is not SOFTMAX),
        figure="",
    )
