"""The study `multihead-paths`: the proofs of Theorems 1 and 2 of Deora et al. 2024."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from overfit_cli.core.cell import Batch, Cell, CellResult, Column, Results
from overfit_cli.core.claim import Claim
from overfit_cli.core.figure import HEATMAP, LINES, Figure, FigureOptions, collect_figures
from overfit_cli.core.study import Study
from overfit_cli.core.text import plural
from overfit_cli.core.training import Training
from overfit_cli.studies.multihead import PAPER
from overfit_cli.studies.multihead.paths.parameters import MultiheadPathsParameters

P = MultiheadPathsParameters


class MultiheadPaths(Study[P]):
    """Gradient descent from zero, held to the lemmas from which Theorems 1 and 2 follow."""

    name = "multihead-paths"
    version = 1
    title = "Gradient descent's path, its target and its leave-one-out copies (DM1)"
    paper = PAPER
    parameters = MultiheadPathsParameters
    headline = "mean_train_loss"
    columns = (
        Column("train_loss", "final training loss", symbol=r"\hat L", diverges=True),
        Column(
            "mean_train_loss",
            "mean training loss over all steps",
            label="mean training loss",
            diverges=True,
        ),
        Column("test_loss", "test loss", symbol="L", diverges=True),
        Column(
            "target_loss",
            "training loss of the target θ",
            symbol=r"\hat L(\theta)",
            label="training loss of the target",
        ),
        Column(
            "theorem1_bound",
            "Theorem 1's bound on the mean training loss",
            symbol=r"B_1",
            label="Theorem 1's bound",
        ),
        Column(
            "theorem1_heads",
            "decimal logarithm of the heads that Theorem 1 requires in the corrected version",
            label="log₁₀ heads of Theorem 1",
        ),
        Column(
            "theorem2_bound",
            "Theorem 2's bound on test less training loss",
            label="Theorem 2's bound",
        ),
        Column(
            "theorem2_heads",
            "decimal logarithm of the heads that Theorem 2 requires in that version",
            label="log₁₀ heads of Theorem 2",
        ),
        Column(
            "theorem_step_size",
            "decimal logarithm of the largest step size of both, in that version",
            label="log₁₀ largest step size",
        ),
        Column(
            "theorem1_distance",
            "largest distance from the start over Theorem 1's bound, 4 ‖θ − θ₀‖",
            label="distance over its bound",
        ),
        Column(
            "descent_share",
            "share of the steps whose η is at most 1/ρ_k of Lemma 7",
            label="steps of Lemma 7",
        ),
        Column(
            "descent_allowed",
            "least descent of these steps over η/2 ‖∇L‖²",
            label="descent over Lemma 7's bound",
        ),
        Column(
            "descent",
            "least descent of all steps over η/2 ‖∇L‖²",
            label="least descent over its bound",
        ),
        Column(
            "segment_rise",
            "largest rise of the loss on a segment over Proposition 4's third, of its ends",
            label="rise over its bound",
        ),
        Column(
            "lemma8", "mean training loss over Lemma 8's bound", label="loss over Lemma 8's bound"
        ),
        Column(
            "lemma9", "mean training loss over Lemma 9's bound", label="loss over Lemma 9's bound"
        ),
        Column(
            "lemma9_heads",
            "decimal logarithm of the heads that Lemma 9 requires",
            label="log₁₀ heads of Lemma 9",
        ),
        Column(
            "lemma10",
            "largest distance to the target over Lemma 10's bound, 3 ‖θ − θ₀‖",
            label="distance over Lemma 10's",
        ),
        Column(
            "lemma3_bound",
            "Lemma 3's bound on test less training loss",
            symbol=r"2 G \frac{1}{n}\sum \|\theta_K - \theta_K^{-i}\|",
            label="Lemma 3's bound",
        ),
    )

    def figures(self) -> Mapping[str, Figure]:
        descent = replace(
            HEATMAP,
            name="descent",
            title="The least descent of a step over η/2 ‖∇L‖², over heads and step size",
            options=FigureOptions(
                x="heads",
                y="learning_rate",
                value="descent",
                threshold=1,
                log=frozenset({"x", "y"}),
            ),
        )
        regret = replace(
            LINES,
            name="regret",
            title="The mean training loss over Lemma 9's bound, against the step size",
            options=FigureOptions(
                x="learning_rate",
                value="lemma9",
                by="heads",  # lines of both H coincide
                threshold=1,
                mean="median",
                band="quartiles",
            ),
        )
        return collect_figures(
            descent,
            regret,
            replace(
                LINES,
                options=FigureOptions(x="heads", value="lemma9", log=frozenset({"x"})),
            ),
        )

    def claims(self) -> Sequence[Claim]:
        from overfit_cli.studies.multihead.paths.claims import CLAIMS

        return CLAIMS

    def cost(self, cell: Cell[P]) -> float:
        """Return about how many products of two tokens' features a cell computes, and more."""
        settings = cell.parameters
        copies = 1 + settings.n * settings.leave_one_out
        return settings.training_steps * (1e4 + copies * settings.n * settings.tokens**2)

    def probe(self, cell: Cell[P]) -> Cell[P]:
        return cell.with_at_most(training_steps=50)

    def train(self, batch: Batch[P], training: Training) -> Results[P]:
        from overfit_cli.studies.multihead.paths.training import train_cell

        for cell in batch:
            yield train_cell(cell, training)

    def summary(self, result: CellResult[P]) -> str:
        measured = result.measurements
        if result.reason:
            return f"The training {result.reason}."
        return (
            f"The mean training loss over {plural(result.steps, 'step')} is "
            f"{measured['mean_train_loss']:.3g}; Theorem 1's bound is "
            f"{measured['theorem1_bound']:.3g}."
        )


study = MultiheadPaths()
