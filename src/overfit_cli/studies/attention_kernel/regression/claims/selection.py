"""Selection of the cells that a claim is judged on, and how often their loss went to zero."""

from __future__ import annotations

import pandas as pd

from overfit_cli.analysis.intervals import Estimate, level_of_each, share_estimate
from overfit_cli.claim import inconclusive
from overfit_cli.claims.cells import Selection, Values, numbers, trained
from overfit_cli.claims.rules import Margin
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters

SOURCE = "Song et al. 2024"
ZERO = 1e-6
"""The share of its start at which a loss counts as having gone to zero."""

ON_MOST_DRAWS = Margin(least=0.5, because="more draws than not", fewest_seeds=6)
ON_FEW_DRAWS = Margin(most=0.5, because="fewer draws than not", fewest_seeds=6)

_ALIKE = ("target", "training_steps", "sigma_w", "dtype")


def selection(values: Values, preset: str, *, any_target: bool = False) -> Selection:
    """Return which cells have some values; their heads, if not named, are one.

    Args:
        values: by parameter.
        preset: one that has such cells.
        any_target: whether cells with different targets may be judged together.
    """
    alike = [
        name for name in _ALIKE if name not in values and not (any_target and name == "target")
    ]
    vary = ["learning_rate", "value_gap", *(["target"] if any_target else [])]
    fixed = {"heads": 1, **values}
    return Selection(
        KernelRegressionParameters,
        at=fixed,
        vary=[name for name in vary if name not in fixed],
        alike=alike,
        preset=preset,
    )


def at_zero(cells: pd.DataFrame) -> pd.Series[bool]:
    """Return which cells' losses went to zero; that of one that diverged did not.

    Raises:
        UndecidedError: `inconclusive` where a cell has no loss, or none that training gave it.
    """
    zero = pd.Series(False, index=cells.index)
    ended = trained(cells)[cells["status"] == "done"]
    zero[ended.index] = numbers(ended, "relative_loss") < ZERO
    return zero


def most_at_zero(cells: pd.DataFrame) -> Estimate:
    """Return the share of seeds whose loss went to zero, at the step size that has most of them.

    Its interval allows for the choice among all step sizes. Of those that all seeds were run at,
    one is chosen; a seed counts where all of its cells there went to zero.
    """
    by_seed = at_zero(cells).groupby([cells["learning_rate"], cells["seed"]]).all().unstack()
    whole = by_seed.dropna()
    if whole.empty:
        raise inconclusive("At no step size were all seeds run.")
    best = whole.astype(bool).sum(axis=1).max()
    return share_estimate(int(best), whole.shape[1], level_of_each(len(whole)))


def zero_by_step_size(cells: pd.DataFrame) -> dict[str, float]:
    """Return how many seeds went to zero at each step size."""
    counts = at_zero(cells).groupby(cells["learning_rate"]).sum()
    return {f"seeds at zero, step size {rate:g}": int(count) for rate, count in counts.items()}
