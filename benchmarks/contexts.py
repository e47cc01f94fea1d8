"""Linear attention in context, against the loop that its user would write, one thread.

In each round a cell is pretrained by the study, in law, and by a loop over explicit contexts, which
solves the normal equations; on the loop's draws both give the same Γ. What is printed are medians
of a round's ratios of the time per cell, and the study's seconds.
"""

from __future__ import annotations

import argparse
import statistics
from functools import partial

import numpy as np

from benchmarks.timing import timed
from overfit_cli.core.arrays import Floats
from overfit_cli.core.training import training_conditions
from overfit_cli.studies.linear_attention.data import draw_problem
from overfit_cli.studies.linear_attention.engine import pretrain
from overfit_cli.studies.linear_attention.parameters import Parameters
from overfit_cli.studies.linear_attention.reference import pretrain_plainly

AGREE = 1e-7
"""How far apart the Γ of both may be, of the largest entry."""


def pretrained(p: Parameters) -> Floats:
    """Return Γ of a cell."""
    return pretrain(p, draw_problem(p, 0))


def main() -> None:
    """Print the ratios at a few sizes."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--d", type=int, nargs="+", default=[16, 32])
    given = options.parse_args()
    for d in given.d:
        ratios, times = [], []
        p = Parameters(d=d)
        drawn = p.model_copy(update={"sampling": "direct"})
        for _ in range(given.rounds):
            plain_time, plain = timed(partial(pretrain_plainly, drawn, 0))
            time, _ = timed(partial(pretrained, p))
            ratios.append(plain_time / time)
            times.append(time)
        assert np.abs(pretrained(drawn) - plain).max() < AGREE * np.abs(plain).max()
        ratio, seconds = statistics.median(ratios), statistics.median(times)
        print(f"d {d}: {ratio:.0f} times the loop; a cell in {seconds:.2g} s", flush=True)


if __name__ == "__main__":
    with training_conditions():
        main()
