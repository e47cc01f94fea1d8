"""The claims of section 5.3.2 of Song et al. 2024: which kernel's landscape is rougher.

The paper draws it for IMDb and Pathfinder after 8000 and 500 steps. Generated data, and fewer
steps, stand in for that: what is measured there is a question of this tool.
Networks are what varies by chance; the pairs of directions around one network share it. So a
network's pairs are averaged, and the interval is over networks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pandas as pd

from overfit_cli.claims.cells import (
    Values,
    add_absent,
    describe_values,
    one_setting,
    select_values,
)
from overfit_cli.claims.python import above
from overfit_cli.claims.sentences import Sentence
from overfit_cli.claims.stated import stated_claim
from overfit_cli.core.claim import Claim, inconclusive, not_run
from overfit_cli.core.parameters import Value
from overfit_cli.core.text import plural
from overfit_cli.studies.attention_kernel.landscape.parameters import KernelLandscapeParameters
from overfit_cli.studies.attention_kernel.parameters import PAPER_RATES, PAPER_TRAINING

SOURCE = "Song et al. 2024, section 5.3.2, figure 4"
LEAST_PAIRS = 2
_FREE = ("kernel", "pair")

COLUMNS = ("interior_minima", "rms_laplacian", "quadratic_residual", "sharpness")
"""What is compared; a surface on which one of the last three is 0 is flat, and has no ratio."""


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
    present = [name for name in COLUMNS[1:] if name in cells]
    return cells.assign(**{name: cells[name].where(cells[name] > 0) for name in present})


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


@dataclass(frozen=True)
class Networks:
    """The networks that claims are about.

    Attributes:
        name: of the claims' names; empty for generated reviews.
        words: how they were trained, after "around networks".
        settings: values of the cells' parameters, in any of several settings.
    """

    name: str
    words: str
    settings: Sequence[Values]
    preset: str


_REAL = Networks(
    "real",
    "trained as in section 5.2 on IMDb or on LRA's Pathfinder images, for 8000 and 500 steps",
    REAL,
    "kernel-fig4",
)
_REVIEWS = Networks(
    "",
    "trained on generated reviews, which stand in for IMDb",
    ({"source": "generated", "task": "text"},),
    "kernel-fig4",
)
_IMAGES = Networks(
    "pathfinder",
    "trained on tiny generated images, which stand in for LRA's Pathfinder",
    ({"source": "generated", "task": "pathfinder"},),
    "kernel-fig4-pathfinder",
)


@dataclass(frozen=True)
class Question:
    """A question about a column of both kernels' landscapes.

    Attributes:
        statement: the sentence, before "around networks".
        column: the column of which softmax has more.
        added: what is added to counts, of which some are 0.
    """

    name: str
    statement: str
    number: str
    column: str
    added: int = 0

    def sentence(self) -> Sentence:
        """Return that softmax has more: the median over networks, each the mean of its pairs."""
        softmax, gaussian = (
            f"({self.column}[kernel={kernel}] + {self.added})" for kernel in ("softmax", "gaussian")
        )
        ratio = f"log({softmax} / {gaussian}) / log(2)"
        return above(ratio, 0, strictly=False, over="average", seeds=6)


def _claim(question: Question, networks: Networks) -> Claim:
    real = networks is _REAL
    claim = stated_claim(
        partial(_both_kernels, settings=networks.settings),
        KernelLandscapeParameters,
        question.sentence(),
        number=question.number,
        because="softmax as rough as Gaussian",
        name="-".join(filter(None, ("landscape", networks.name, question.name))),
        kind="paper" if real else "ours",
        source=SOURCE,
        statement=f"{question.statement}, around networks {networks.words}.",
        hypotheses="both kernels go on from the same network, with one step size and batch"
        if real
        else "",
        figure="landscape",
        preset=networks.preset,
        profile="paper" if real else "quick",
    )
    return replace(claim, holds_where=claim.holds_where.replace("seeds", "networks"))


_MINIMA = Question(
    "minima",
    "Softmax attention's landscape has more local minima than Gaussian attention's",
    "the median log₂ ratio of one more than each",
    COLUMNS[0],
    added=1,
)
_FLATTER = Question(
    "curvature",
    "Gaussian attention's landscape is flatter",
    "the median log₂ ratio of Laplacians",
    COLUMNS[1],
)
_COMPLICATED = Question(
    "quadratic",
    "Softmax attention's landscape is more complicated: a quadratic fits it worse",
    "the median log₂ ratio of residuals",
    COLUMNS[2],
)
_SHARPER = Question(
    "sharpness",
    "Gaussian attention's landscape is flatter: softmax's rises more sharply",
    "the median log₂ ratio of sharpness",
    COLUMNS[3],
)

CLAIMS = (
    _claim(_MINIMA, _REAL),
    _claim(_FLATTER, _REAL),
    *(
        _claim(question, networks)
        for networks in (_REVIEWS, _IMAGES)
        for question in (_MINIMA, _FLATTER, _COMPLICATED, _SHARPER)
    ),
)
