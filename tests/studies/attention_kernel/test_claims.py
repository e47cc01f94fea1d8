"""Claims that derive numbers from cells, on cells whose verdict is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from overfit_cli import Claim
from overfit_cli.claims.stated import JointMeasure
from overfit_cli.core.classification import COLUMNS
from overfit_cli.studies.attention_kernel.classifiers import landscape, pathfinder, text
from overfit_cli.studies.attention_kernel.study import study
from tests.judged import changed, claims_by_name, design, lines

CLAIMS = claims_by_name(study.name, text.name, pathfinder.name, landscape.name)
"""By name, with the functions that derive numbers from cells."""

MADE = r"""
theorem1-paper-two: lambda_b=0.1 stability=0.4 rate_margin=1.5 violations_paper=0
theorem2-paper-two: lambda_b=0.1 stability=0.4 condition_8=-1 rate_margin=1.5 violations_paper=0
corollary1-linear: lambda_b=0.1 relative_loss=1e-13 train_loss=1 gradient=0 steps=3000 \
    steps_to_millionth=1000 steps_to_trillionth=2100
remark2-rate: steps=3000 steps_to_millionth=1000
theorem3-gaussian-zero: condition_12=-1 relative_loss=1e-9 start_loss=2 train_loss=1 gradient=0 \
    steps=60000
theorem3-rate: condition_12=-1 relative_loss=1e-4 log10_gamma=-6 violations_gamma=0 descent=0.9 \
    steps=60000
zero-gaussian-below: relative_loss=1e-9
trapped-softmax: floor=0.4 start_loss=1 train_loss=0.4 gradient=0 steps=3000
example-gradient: condition_12=-1 gradient_query_start=0 gradient_key_start=0 start_loss=1 \
    train_loss=1
example-escape: condition_12=-1 gradient_query_start=1 relative_loss=0.5
sizes-lambda-b: lambda_b=0.1
sizes-delta: delta=0.1
ranks-softmax-five: delta=0.1
tangent-slower: condition_12=-1 steps_to_millionth=100 tangent_steps=100
lemma8-outputs: lemma_outputs=0.1
text-gaussian-faster: mean_test_loss=0.5
landscape-curvature: rms_laplacian=1
landscape-minima: interior_minima=1
pathfinder-above-shortcut: mean_test_loss=0.5 test_accuracy=0.7 shortcut_accuracy=0.6
"""
"""What the cells of a claim's preset have, unless a case says otherwise."""

CASES = r"""
# A theorem says that there is a step size: one that is allowed serves
theorem1-paper-two: violations_paper=7 where learning_rate > 0.05 => holds
theorem1-paper-two: violations_paper=7 => fails
theorem1-paper-two: violations_paper=7 where heads == 4 and seed == 3 => fails
theorem1-paper-two: violations_paper=7, stability=0.9 where learning_rate < 0.05 => fails
theorem1-paper-two: violations_paper=7 stability=0.9 where learning_rate > 0.05 => holds
theorem1-paper-two: stability=0.9 => not run
theorem1-paper-two: rate_margin=0.9 where seed == 3 => fails
theorem1-paper-two: status=failed reason=diverged violations_paper=nan => fails
theorem1-paper-two: status=failed reason=worker_killed violations_paper=nan \
    where seed == 3 and learning_rate > 0.05 => holds
theorem2-paper-two: rate_margin=0.9 => inconclusive
theorem2-paper-two: rate_margin=0.9 violations_paper=7 => fails

# A loss goes to zero, stops above it, or still falls
theorem3-gaussian-zero: relative_loss=0.5 where learning_rate > 1 => holds
theorem3-gaussian-zero: status=failed reason=diverged relative_loss=nan where learning_rate > 1 \
    => holds
theorem3-gaussian-zero: status=failed reason=diverged relative_loss=nan => inconclusive
theorem3-gaussian-zero: relative_loss=0.5 => fails
theorem3-gaussian-zero: relative_loss=0.5 gradient=0.1 => inconclusive
theorem3-gaussian-zero: relative_loss=0.5 gradient=0.1 where seed < 3 => inconclusive
theorem3-gaussian-zero: relative_loss=0.5 gradient=1e-6 => fails
theorem3-gaussian-zero: relative_loss=0.5 gradient=1e-6 start_loss=1.0000000001 => inconclusive
theorem3-gaussian-zero: status=failed reason=worker_killed where seed == 3 => inconclusive
zero-gaussian-below: relative_loss=0.5 where learning_rate != 1 => holds
zero-gaussian-below: relative_loss=0.5 where target == 'inside' => fails
zero-gaussian-below: relative_loss=0.5 where seed > 1 => fails
zero-gaussian-below: relative_loss=0.5 where seed > 8 => inconclusive

# and linearly, or more slowly
corollary1-linear: steps_to_trillionth=100000 => fails
corollary1-linear: steps_to_trillionth=100000 where learning_rate > 0.005 => holds
corollary1-linear: steps_to_trillionth=100000 where trained == 'layers-4' => fails
corollary1-linear: steps_to_trillionth=nan relative_loss=1e-7 => fails
corollary1-linear: steps_to_trillionth=nan relative_loss=1e-7 gradient=1 => inconclusive
corollary1-linear: steps_to_trillionth=nan relative_loss=1e-7 gradient=1 steps=100000 => fails
corollary1-linear: status=failed reason=diverged relative_loss=nan steps_to_trillionth=nan \
    => inconclusive
remark2-rate: steps_to_millionth=nan steps=1500 where trained == 'layers-1' => inconclusive
remark2-rate: steps_to_millionth=nan steps=9000 where trained == 'layers-1' => fails
remark2-rate: steps_to_millionth=nan where trained == 'all' => holds

# γ is a slow rate; a step above its bound refutes it where the step size is small
theorem3-rate: log10_gamma=-9 => holds by far
theorem3-rate: violations_gamma=3 => fails
theorem3-rate: violations_gamma=3 where learning_rate > 1 => holds
theorem3-rate: violations_gamma=3 descent=0.1 => inconclusive
theorem3-rate: status=failed reason=diverged violations_gamma=nan => inconclusive

# Above the optimum, for some labels, at every step size
trapped-softmax: => fails
trapped-softmax: train_loss=0.5 => holds
trapped-softmax: train_loss=0.5 where target == 'inside' => holds
trapped-softmax: train_loss=0.5 where learning_rate > 1 => fails
trapped-softmax: train_loss=0.5 gradient=1 => inconclusive
trapped-softmax: train_loss=0.4001 => fails
trapped-softmax: train_loss=0.5 where seed < 5 => inconclusive
trapped-softmax: train_loss=0.5 where seed < 10 => holds
trapped-softmax: status=failed reason=worker_killed train_loss=nan where learning_rate > 20 \
    => inconclusive

# The example, in which nothing is random
example-gradient: => holds
example-gradient: gradient_key_start=1e-17 => fails
example-gradient: train_loss=0.999 => fails
example-gradient: condition_12=3 => fails
example-escape: => holds
example-escape: relative_loss=1 where learning_rate > 0.5 => fails

# Sizes, and lemmas along a path that ends
sizes-lambda-b: lambda_b=0 where d * heads < n * tokens => holds
sizes-lambda-b: lambda_b=0 where seed == 3 => fails
sizes-delta: delta=0 where d * d_h < n * tokens**2 => holds
sizes-delta: delta=1e-17 where seed == 3 => fails
ranks-softmax-five: delta=0 where d_h < 3 or d < 4 => holds
ranks-softmax-five: delta=0 where d == 14 and d_h == 9 and seed == 3 => fails
lemma8-outputs: status=failed reason=diverged lemma_outputs=nan where learning_rate > 1 => holds
lemma8-outputs: status=failed reason=diverged lemma_outputs=1.1 where seed == 3 => fails

# Two kernels, each at its best step size
tangent-slower: steps_to_millionth=nan where kernel == 'softmax' and learning_rate < 9e3, \
    steps_to_millionth=50 tangent_steps=50 where kernel == 'gaussian' and learning_rate == 8 \
    => holds
tangent-slower: steps_to_millionth=50 tangent_steps=50 \
    where kernel == 'softmax' and learning_rate > 9e3 => fails
tangent-slower: steps_to_millionth=50 tangent_steps=50 where kernel == 'gaussian', \
    tangent_steps=80 where kernel == 'softmax' and seed == 3 => fails
text-gaussian-faster: mean_test_loss=0.4 where kernel == 'gaussian' and learning_rate < 2e-4 \
    => holds
text-gaussian-faster: mean_test_loss=0.4 where kernel == 'softmax' and learning_rate < 2e-4 \
    => fails
pathfinder-above-shortcut: mean_test_loss=0.4 test_accuracy=0.5 where learning_rate > 2e-3 => fails
pathfinder-above-shortcut: mean_test_loss=0.4 test_accuracy=0.5 \
    where learning_rate > 2e-3 and kernel == 'softmax' => holds

# A flat surface has the least curvature of all
landscape-curvature: rms_laplacian=0 where kernel == 'gaussian' => holds
landscape-curvature: rms_laplacian=0 where kernel == 'softmax' => fails
landscape-curvature: rms_laplacian=2 where kernel == 'softmax' and pair == 0 => holds
landscape-curvature: rms_laplacian=0.5 where kernel == 'softmax' and seed < 3 => inconclusive
landscape-minima: interior_minima=0 where kernel == 'gaussian' => holds
"""


def cells_of(claim: Claim) -> pd.DataFrame:
    """The cells of a claim's preset; numbers differ a little from seed to seed."""
    names = [column.name for column in (*study.columns, *COLUMNS, *landscape.columns)]
    cells = design(claim.preset).assign(steps=0.0, **dict.fromkeys(names, np.nan))
    made = changed(cells, dict(line.split(": ") for line in lines(MADE))[claim.name])
    if claim.name.startswith(("text-", "pathfinder-", "landscape-curvature", "tangent-")):
        spread = 1 + 1e-4 * made["seed"] * np.where(made["kernel"] == "softmax", 2, 1)
        shown = [name for name in names if made[name].notna().any()]
        made[shown] = made[shown].mul(spread, axis=0)
    return made


@pytest.mark.parametrize("case", lines(CASES))
def test_a_change_of_cells_has_its_verdict(case: str) -> None:
    name, _, rest = case.partition(": ")
    changes, _, verdict = rest.rpartition("=> ")
    claim = CLAIMS[name]
    measured = claim.judge(changed(cells_of(claim), changes.strip()))
    assert measured.verdict == verdict, measured.note


def test_the_interval_of_the_best_of_three_step_sizes_is_wider() -> None:
    """It is Student's, at the level of all three together."""
    claim = CLAIMS["text-gaussian-faster"]
    cells = cells_of(claim)
    loss = 0.4 + np.linspace(-0.025, 0.025, 6)[cells["seed"]]
    losses = np.where(cells["kernel"] == "gaussian", loss, 0.5)
    measured = claim.judge(cells.assign(mean_test_loss=losses))
    assert measured.value == pytest.approx(-0.1)
    assert measured.interval is not None
    assert measured.interval.high == pytest.approx(-0.1 + 3.534066 * 0.0076376, rel=1e-4)


def test_curves_are_as_steady_as_they_are_at_the_same_step() -> None:
    """Curves that rise as one are steady, however far they rise; the start does not count."""
    claim = CLAIMS["pathfinder-lra-gaussian-steadier-epochs"]
    cells = design(claim.preset, claim.profile)
    apart = np.array([-0.022, -0.02, -0.018, 0.018, 0.02, 0.022])[cells["seed"]]
    calm = np.where(cells["kernel"] == "gaussian", 0.1 * apart, apart)
    logged = [
        cells.assign(step=step, test_accuracy=0.5 + rise + wobble)
        for step, rise, wobble in ((0, 0.0, 9 * apart), (50, 0.1, calm), (100, 0.3, calm))
    ]
    measured = claim.judge(pd.concat(logged, ignore_index=True))
    assert measured.verdict == "holds"
    assert measured.value == pytest.approx(0.018)


@pytest.mark.parametrize(
    "name",
    [
        *("text-imdb-gaussian-faster", "pathfinder-lra-gaussian-more-accurate"),
        *("landscape-real-minima", "landscape-real-curvature"),
    ],
)
def test_claims_of_the_paper_are_on_its_data_and_optimiser(name: str) -> None:
    """On generated data the same questions are this tool's."""
    claim = CLAIMS[name]
    parts = claim.measure.parts.values() if isinstance(claim.measure, JointMeasure) else [claim]
    for part in parts:
        cells = design(part.preset, "paper").assign(
            mean_test_loss=0.5, test_accuracy=0.6, interior_minima=1, rms_laplacian=1.0
        )
        assert part.judge(cells).verdict in ("fails", "inconclusive"), "as good is no better"
        for other in ({"source": "generated"}, {"optimiser": "adamw"}, {"d": 32}, {"layers": 1}):
            assert part.judge(cells.assign(**other)).verdict == "not run", other
        assert part.judge(design(part.preset)).verdict == "not run"
