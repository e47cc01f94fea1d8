"""The study `softmax-diffusion`: section 6 of Cao et al."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from overfit_cli.core.cell import Batch, CellResult, Column, Results
from overfit_cli.core.claim import Claim
from overfit_cli.core.figure import (
    CURVES,
    HEATMAP,
    LINES,
    Figure,
    FigureOptions,
    collect_figures,
    lazily,
)
from overfit_cli.core.study import Study
from overfit_cli.core.training import BYTES_OF_LIBRARIES, Training
from overfit_cli.studies.softmax_network.diffusion.parameters import (
    LEAST_STEPS,
    PATIENCE,
    DiffusionCell,
    SoftmaxDiffusionParameters,
)
from overfit_cli.studies.softmax_network.paper import PAPER

P = SoftmaxDiffusionParameters
LOSSES = (
    Column(
        "train_loss",
        "loss on training points, best step size",
        symbol=r"\|F - x(0)\|^2",
        label="loss on training points",
        diverges=True,
    ),
    Column(
        "validation_loss",
        "the same on the validation draw, by which networks are tuned",
        label="loss on validation points",
        diverges=True,
    ),
    Column(
        "step_size",
        "step size that is best on the validation draw",
        symbol=r"\eta",
        label="best step size",
    ),
)
ERRORS = (
    Column(
        "score_error",
        "squared error of the score",
        symbol=r"\|s - \nabla \log p_t\|^2",
        label="score error",
        diverges=True,
    ),
    Column(
        "denoiser_error",
        "the same weighted by 4 sinh² t",
        symbol=r"\|F - F_*\|^2",
        label="denoiser error",
        diverges=True,
    ),
    Column("denoising_loss", "loss on test points", symbol=r"\|F - x(0)\|^2", diverges=True),
    Column("score_square", "squared score", symbol=r"\|\nabla \log p_t\|^2"),
)


class SoftmaxDiffusion(Study[P]):
    """Two-layer networks that learn to denoise, beside the truth and two simple denoisers.

    Errors of a cell are means over t, uniform between T₀ and T. Its logged rows are three tables,
    one after the other: losses at gradient steps; errors at times; samples.
    """

    name = "softmax-diffusion"
    version = 1
    stop = (
        f"Training stops early: after step {LEAST_STEPS}, once {PATIENCE} times as many steps have "
        "been taken as at the best validation loss"
    )
    title = "Score estimation by two-layer networks, and diffusion with the scores"
    paper = PAPER
    parameters = SoftmaxDiffusionParameters
    headline = "score_error"
    columns = (
        *ERRORS,
        Column(
            "score_share",
            "score error over the squared score, both means over t",
            label="relative score error",
        ),
        Column(
            "sliced_wasserstein",
            "sliced Wasserstein distance of samples to fresh draws",
            label="sliced Wasserstein distance",
        ),
        Column(
            "wasserstein_fresh",
            "the same of as many other fresh draws",
            label="Wasserstein of fresh draws",
        ),
        Column(
            "memorised",
            "0 where samples are as near as fresh draws, 1 as such copies",
            label="memorisation",
        ),
        *LOSSES,
        Column(
            "best_step",
            "gradient step that is best on the validation draw",
            kind="int",
            label="best gradient step",
        ),
        Column(
            "lambda_limit",
            "smallest eigenvalue of the kernel of infinitely many hidden units, at most",
            symbol=r"\lambda",
            label="eigenvalue at infinite width",
        ),
        Column(
            "width_missing",
            "decades of hidden units that Theorem 6.6 lacks, at least",
            label="decades of width missing",
        ),
        Column(
            "step_size_beyond",
            "decades by which gradient descent's step is above Theorem 6.6's",
            label="decades of excess step size",
        ),
        Column(
            "bound_over_error",
            "decades of Theorem 6.6's 1/(λ√n) over the error weighted by 4 sinh² t, at least",
            label="log₁₀ bound over error",
        ),
    )
    trajectory_columns = (
        *LOSSES,
        Column("time", "time", symbol="t"),
        *ERRORS,
        Column("sample_1", "first coordinate of a sample", label="first coordinate"),
        Column("sample_2", "second coordinate of a sample", label="second coordinate"),
    )
    progress_columns = ("train_loss", "validation_loss", "step_size")

    def figures(self) -> Mapping[str, Figure]:
        folder = "overfit_cli.studies.softmax_network.diffusion.figures"
        return collect_figures(
            Figure(
                name="score",
                title="Score errors against time and against n, for each model",
                reads="trajectories",
                draw=lazily(f"{folder}:draw_score"),
                fits=lazily(f"{folder}:has_errors"),
                source="Cao et al. 2024, section 6",
            ),
            Figure(
                name="samples",
                title="Samples of each model and the target's density",
                reads="trajectories",
                draw=lazily(f"{folder}:draw_samples"),
                fits=lazily(f"{folder}:has_planes"),
                source="Cao et al. 2024, section 6",
            ),
            replace(HEATMAP, options=FigureOptions(by="model")),
            replace(LINES, options=FigureOptions(x="n")),
            replace(
                CURVES,
                options=FigureOptions(
                    value="train_loss,validation_loss",
                    by="model,optimiser",
                    log=frozenset({"x"}),
                ),
            ),
        )

    def claims(self) -> Sequence[Claim]:
        from overfit_cli.studies.softmax_network.diffusion.claims import CLAIMS

        return CLAIMS

    def cost(self, cell: DiffusionCell) -> float:
        """Return about how many exponentials a cell costs."""
        settings = cell.parameters
        drawn = float(settings.sampling_steps * settings.samples)
        if settings.model == "posterior":
            return drawn * settings.n
        if not settings.is_network:
            return drawn
        return settings.m * (drawn + 10 * settings.training_steps * settings.n * settings.noisings)

    def memory(self, cell: DiffusionCell) -> float:
        settings = cell.parameters
        pairs = max(settings.n * settings.noisings, settings.samples, settings.validation)
        wide = settings.m if settings.is_network else settings.n
        return BYTES_OF_LIBRARIES + 8.0 * 8 * pairs * wide

    def train(self, batch: Batch[P], training: Training) -> Results[P]:
        from overfit_cli.studies.softmax_network.diffusion.training import train_cell

        for cell in batch:
            yield train_cell(cell, training)

    def summary(self, result: CellResult[P]) -> str:
        measured = result.measurements
        if result.reason:
            return "The loss diverged with every step size."
        distances = (
            f"Samples lie {measured['sliced_wasserstein']:.3g} from fresh draws, other fresh draws "
            f"{measured['wasserstein_fresh']:.3g} (sliced Wasserstein)."
        )
        if "score_share" not in measured:
            return f"On test points ‖F − x(0)‖² is {measured['denoising_loss']:.3g}. {distances}"
        share = 100 * measured["score_share"]
        return f"The score misses {share:.3g} % of the true one's square. {distances}"


study = SoftmaxDiffusion()
