"""The study `softmax-diffusion`: section 6 of Cao et al. 2024."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

from overfit_cli.core.cell import Cell, Column
from overfit_cli.core.errors import BadValue
from overfit_cli.core.figure import CURVES, HEATMAP, LINES, drawn_in
from overfit_cli.core.parameters import StudyParameters, parameter
from overfit_cli.core.study import Study
from overfit_cli.core.training import BYTES_OF_LIBRARIES
from overfit_cli.studies.softmax_network import DIGITS, PAPER, PIXELS

Model = Literal["softmax", "exp", "relu", "true", "posterior", "constant"]

TEST_DIGITS = 500
"""The number of test digits."""

LEAST_STEPS, PATIENCE = 100, 2
"""Training ends after so many steps, where the best network is from less than half of them."""


class SoftmaxDiffusionParameters(StudyParameters):
    """A denoiser learned from noisy points, and the samples that it makes."""

    model: Model = parameter(
        "softmax",
        "what denoises: a network, the truth, the exact posterior over the training points, or "
        "their mean",
        label="denoiser",
        value_labels={"relu": "ReLU", "true": "true score", "posterior": "exact posterior"},
    )
    target: Literal["mixture", "digits"] = parameter(
        "mixture",
        "what is learned: Gaussians on a circle, or principal components of digits",
        label="target distribution",
    )
    modes: int = parameter(6, "Gaussians of the mixture", within="[1, 1000]")
    radius: float = parameter(
        0.7, "distance of the mixture's modes from 0", "r", "radius of the modes", within="[0, 1]"
    )
    deviation: float = parameter(0.08, "deviation of a mode", within="[0, 1]")
    d: int = parameter(2, "dimension of the points", "d", within="[1, 64]")
    n: int = parameter(400, "training points", "n", within="[2, 100000]", shades=(30, 30_000))
    noisings: int = parameter(1, "noisy copies of a point", within="[1, 1000]")
    validation: int = parameter(
        800, "points on which networks are tuned", label="validation points", within="[10, 100000]"
    )
    m: int = parameter(256, "hidden units", "m", within="[2, 1000000]")
    sigma: float = parameter(1.0, "deviation of initial weights", r"\sigma", within="(0, 100]")
    optimiser: Literal["adam", "gd"] = parameter(
        "adam",
        "how networks are trained",
        label="optimiser",
        value_labels={"adam": "Adam", "gd": "gradient descent"},
    )
    output_scale: Literal["root", "paper"] = parameter(
        "root",
        "outputs: as in the paper, m ⟨a, softmax⟩, or these over √m",
        label="scale of the outputs",
        value_labels={"root": r"over $\sqrt{m}$", "paper": "the paper's"},
    )
    training_steps: int = parameter(
        1000,
        "gradient steps with each step size, at most",
        label="most gradient steps",
        within="[1, 10000000]",
    )
    first_time: float = parameter(0.02, "time at which noising begins", "T_0", within="(0, 10]")
    last_time: float = parameter(1.0, "time at which noising ends", "T", within="(0, 10]")
    sampling_steps: int = parameter(100, "steps of the backward process", within="[2, 100000]")
    samples: int = parameter(1000, "samples drawn", within="[10, 1000000]")
    dtype: Literal["float32", "float64"] = parameter("float32", "networks' precision")

    @property
    def is_network(self) -> bool:
        """Whether the denoiser is trained."""
        return self.model in ("softmax", "exp", "relu")

    def refusals(self) -> Iterator[BadValue]:
        """Give sentences on what can't be drawn, trained or known."""
        if self.m % 2:
            words = "hidden units come in pairs of opposite signs, so m takes an even number."
            yield self.refuse("m", words)
        if self.first_time >= self.last_time:
            words = f"with last_time={self.last_time:g}, first_time takes a number below it."
            yield self.refuse("first_time", words)
        if self.target == "mixture":
            limit = (1 - self.radius) / (2 * math.sqrt(self.d))
            if self.deviation > limit:
                words = (
                    f"with radius={self.radius:g} and d={self.d}, deviation takes a number of up "
                )
                words += (
                    f"to {limit:.3g}, so that the points lie in the unit ball, as in the paper."
                )
                yield self.refuse("deviation", words)
            return
        left = DIGITS - TEST_DIGITS
        if self.model == "true":
            yield self.refuse("model", "with target=digits the true score is unknown.")
        if self.n + self.validation > left:
            words = (
                f"with target=digits, n and validation={self.validation} take up to {left} digits "
            )
            yield self.refuse("n", f"{words}together: of {DIGITS}, {TEST_DIGITS} are tested on.")
        if self.d > PIXELS:
            yield self.refuse("d", f"with target=digits, d takes a whole number of up to {PIXELS}.")


P = SoftmaxDiffusionParameters

LOSSES = (
    Column(
        "train_loss",
        "loss on training points, best step size",
        r"\|F - x(0)\|^2",
        "loss on training points",
        diverges=True,
    ),
    Column(
        "validation_loss",
        "the same on the validation draw, by which networks are tuned",
        label="loss on validation points",
        diverges=True,
    ),
    Column("step_size", "step size that is best on the validation draw", r"\eta", "best step size"),
)
COLUMNS = (
    Column(
        "score_error", "squared error of the score", r"\|s - \nabla \log p_t\|^2", diverges=True
    ),
    Column(
        "denoiser_error",
        "the same weighted by 4 sinh² t",
        r"\|F - F_*\|^2",
        "weighted score error",
        diverges=True,
    ),
    Column("denoising_loss", "loss on test points", r"\|F - x(0)\|^2", diverges=True),
    Column("score_share", "score error over the squared score, both means over t"),
    Column("sliced_wasserstein", "sliced Wasserstein distance of samples to fresh draws"),
    Column("wasserstein_fresh", "the same of as many other fresh draws"),
    Column(
        "memorised", "0 where samples are as near to training points as fresh draws, 1 as copies"
    ),
    *LOSSES,
    Column("best_step", "gradient step that is best on the validation draw", kind="int"),
    Column("lambda_limit", "smallest eigenvalue at infinite width, at most", r"\lambda"),
    Column("width_missing", "decades of hidden units that Theorem 6.6 lacks", decades=True),
    Column("step_size_beyond", "decades of gradient descent's step over its own", decades=True),
    Column("bound_over_error", "Theorem 6.6's 1/(λ√n) over the weighted error", decades=True),
)

_FIGURES, SECTION = "overfit_cli.studies.softmax_network.figures", "Cao et al. 2024, section 6"


class SoftmaxDiffusion(Study[P]):
    """Two-layer networks that learn to denoise, beside the truth and two simple denoisers.

    Errors of a cell are means over t, uniform between T₀ and T. Its logged rows are two tables, one
    after the other: losses at gradient steps; samples.
    """

    name, version = "softmax-diffusion", 1
    stop = (
        f"Training stops early: after step {LEAST_STEPS}, once {PATIENCE} times as many steps have "
        "been taken as at the best validation loss"
    )
    title = "Score estimation by two-layer networks, and diffusion with the scores"
    paper, parameters = PAPER, SoftmaxDiffusionParameters
    headline, columns = "score_error", COLUMNS
    trajectory_columns = (
        *LOSSES,
        *(
            Column(
                f"sample_{number}",
                f"{nth} coordinate of a sample",
                label=f"{nth} coordinate",
                kind="single",
            )
            for number, nth in ((1, "first"), (2, "second"))
        ),
    )
    progress_columns = ("train_loss", "validation_loss", "step_size")
    claims_in = "overfit_cli.studies.softmax_network.claims.scores"
    shows = (
        "On test points ‖F − x(0)‖² is {denoising_loss:.3g}. Samples lie {sliced_wasserstein:.3g} "
        "from fresh draws, other fresh draws {wasserstein_fresh:.3g} (sliced Wasserstein)."
    )
    drawn = (
        LINES.showing("score", "Score errors against n, for each model", x="n", source=SECTION),
        LINES.showing(
            "test-loss", "Losses on test points against n", x="n", value="denoising_loss"
        ),
        drawn_in(
            _FIGURES,
            "samples",
            "Samples of each model and the target's density",
            "softmax-scores",
            reads="trajectories",
            source=SECTION,
        ),
        HEATMAP.showing(by="model"),
        LINES.showing(x="n"),
        CURVES.showing(
            value="train_loss,validation_loss", by="model,optimiser", log=frozenset({"x"})
        ),
    )

    def cost(self, cell: Cell[P]) -> float:
        p = cell.parameters  # exponentials
        drawn = float(p.sampling_steps * p.samples)
        if not p.is_network:
            return drawn * (p.n if p.model == "posterior" else 1)
        return p.m * (drawn + 10 * p.training_steps * p.n * p.noisings)

    def memory(self, cell: Cell[P]) -> float:
        p = cell.parameters
        pairs = max(p.n * p.noisings, p.samples, p.validation)
        return BYTES_OF_LIBRARIES + 8.0 * 8 * pairs * (p.m if p.is_network else p.n)


study = SoftmaxDiffusion()
