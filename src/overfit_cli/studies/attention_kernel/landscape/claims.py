"""The claims of section 5.3.2 of Song et al. 2024: which kernel's landscape is rougher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from overfit_cli.claims.cells import Values, add_absent, describe_values, one_setting, select_values
from overfit_cli.claims.stated import stated_claim
from overfit_cli.core.claim import Claim, Kind, inconclusive, not_run
from overfit_cli.core.parameters import Value
from overfit_cli.core.text import plural
from overfit_cli.studies.attention_kernel.landscape.parameters import KernelLandscapeParameters
from overfit_cli.studies.attention_kernel.parameters import PAPER_RATES, PAPER_TRAINING

SOURCE = "Song et al. 2024, section 5.3.2, figure 4"
LEAST_PAIRS = 2
_FREE = ("kernel", "pair")

CURVATURE = "rms_laplacian"
"""A column that is 0 on a flat surface, which has no ratio."""


def _both_kernels(cells: pd.DataFrame, settings: Sequence[Values]) -> pd.DataFrame:
    kernels: Values = {"kernel": ("softmax", "gaussian")}
    cells = pd.concat([select_values(cells, {**values, **kernels}) for values in settings])
    if cells.empty:
        raise not_run(f"It needs cells of {'; or of '.join(map(describe_values, settings))}.")
    names = list(KernelLandscapeParameters.model_fields)
    cells = one_setting(cells, [name for name in names if name not in _FREE])
    if cells["kernel"].nunique() < 2:
        raise not_run("It needs cells of kernel=softmax,gaussian.")
    cells = add_absent(cells, names)
    fewest = int(cells.groupby("seed")["pair"].nunique().min())
    if fewest < LEAST_PAIRS:
        pairs = f"{plural(fewest, 'pair')} of directions"
        raise inconclusive(f"A network has {pairs}: fewer than {LEAST_PAIRS}.")
    if CURVATURE not in cells:
        return cells
    return cells.assign(**{CURVATURE: cells[CURVATURE].where(cells[CURVATURE] > 0)})


REAL: tuple[Mapping[str, Value], ...] = tuple(
    {
        "task": task,
        **training,
        "learning_rate": PAPER_RATES[task],
        "training_steps": 8000,
        "second_steps": 500,
        "points": 50,
        "spacing": 0.02,
    }
    for task, training in PAPER_TRAINING.items()
)
"""The two settings of section 5.2's second experiment."""


_WORDS = {
    "paper": "trained as in section 5.2 on IMDb or on LRA's Pathfinder images, for 8000 and 500 "
    "steps",
    "ours": "trained on generated reviews, which stand in for IMDb",
}
"""The networks that claims are about, by the claims' kind, after "around networks"."""

_SETTINGS: Mapping[str, Sequence[Values]] = {
    "paper": REAL,
    "ours": ({"source": "generated", "task": "text"},),
}


def _claims(kind: Kind) -> tuple[Claim, Claim]:
    return (
        _claim(
            "minima",
            "Softmax attention's landscape has more local minima than Gaussian attention's",
            "the median log₂ ratio of one more than each",
            "(interior_minima[kernel={}] + 1)",
            kind,
        ),
        _claim(
            "curvature",
            "Gaussian attention's landscape is flatter",
            "the median log₂ ratio of Laplacians",
            f"{CURVATURE}[kernel={{}}]",
            kind,
        ),
    )


def _claim(name: str, statement: str, number: str, measure: str, kind: Kind) -> Claim:
    softmax, gaussian = (measure.format(kernel) for kernel in ("softmax", "gaussian"))
    real = kind == "paper"
    claim = stated_claim(
        partial(_both_kernels, settings=_SETTINGS[kind]),
        KernelLandscapeParameters,
        f"log({softmax} / {gaussian}) / log(2) >= 0 on average with at least 6 seeds",
        number=number,
        because="softmax as rough as Gaussian",
        name=f"landscape-{'real-' if real else ''}{name}",
        kind=kind,
        source=SOURCE,
        statement=f"{statement}, around networks {_WORDS[kind]}.",
        hypotheses="both kernels go on from the same network, with one step size and batch"
        if real
        else "",
        figure="landscape",
        preset="kernel-fig4",
        profile="paper" if real else "quick",
    )
    return replace(claim, holds_where=claim.holds_where.replace("seeds", "networks"))


CLAIMS = (*_claims("paper"), *_claims("ours"))
