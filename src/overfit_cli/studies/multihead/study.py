"""The studies `multihead-mixture`, `-planted`, `-paths` and `-sst2`: columns, figures, cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from overfit_cli.core.cell import Batch, Batches, Cell, Column
from overfit_cli.core.classification import COLUMNS, TRAJECTORY_COLUMNS
from overfit_cli.core.figure import (
    CURVES,
    HEATMAP,
    LINES,
    Figure,
    bounds_figure,
    defaults_but,
    learning_figures,
)
from overfit_cli.core.files import require_extra
from overfit_cli.core.study import Study
from overfit_cli.core.text import plural
from overfit_cli.core.training import BYTES_OF_LIBRARIES, group_cells, shared_values
from overfit_cli.studies.multihead import PAPER
from overfit_cli.studies.multihead.parameters import (
    MultiheadMixtureParameters,
    MultiheadParameters,
    MultiheadPathsParameters,
    MultiheadPlantedParameters,
    MultiheadSst2Parameters,
)

if TYPE_CHECKING:
    from overfit_cli.core.cells import Cells

P = TypeVar("P", bound=MultiheadParameters)

# Heads on synthetic samples

AT_STEPS = (
    Column("train_loss", "training loss", r"\hat L", diverges=True),
    Column("log10_train_loss", "its log₁₀, which doesn't underflow", diverges=True),
    Column("test_loss", "test loss", "L", diverges=True),
    Column("test_error", "test samples of the wrong sign", label="test error", diverges=True),
    Column("norm_w", "mean norm of W over heads", r"\frac{1}{H}\sum \|W_h\|", "norm of W"),
    Column("norm_u", "sum of norms of U over √H", r"H^{-1/2}\sum \|U_h\|", "norm of U"),
    Column("margin", "least margin over the norm of all U", r"\min y\Phi / \|U\|"),
)
ATTENTION = Column(
    "attention", "softmax on relevant tokens, mean over samples", label="softmax on relevant tokens"
)
ALIGNMENTS = (
    Column("alignment_w", "cosine of W with the planted head's", r"\cos(W, W_*)", "alignment of W"),
    Column("alignment_u", "cosine of U with the planted head's", r"\cos(U, U_*)", "alignment of U"),
)
MEAN_LOSS = Column(
    "mean_train_loss", "mean training loss", r"\frac{1}{K}\sum \hat L", diverges=True
)
THEOREMS = (
    Column("theorem1_bound", "Theorem 1's bound on the training loss", label="Theorem 1's bound"),
    Column(
        "theorem2_bound", "Theorem 2's bound on the generalisation gap", label="Theorem 2's bound"
    ),
)
AT_END = (
    MEAN_LOSS,
    Column("steps_to_target", "steps to the target loss", kind="int", reached=False),
    Column("margin_share", "least margin over ‖U‖, over γ_attn", label="margin over γ_attn"),
    Column("model_gradient", "a head's gradient over Proposition 1's bound, most"),
    Column("model_hessian", "a head's Hessian over Proposition 1's bound, most"),
    Column("loss_gradient", "the loss's gradient over Corollary 1's bound, most"),
    Column("loss_hessian", "the loss's Hessian over Corollary 1's bound, most"),
    Column("loss_concavity", "the loss's concavity over Corollary 1's bound, most"),
    Column("concavity", "−λ_min(∇²L̂), most", r"-\lambda_{\min}(\nabla^2 \hat L)", "concavity"),
    *THEOREMS,  # of the last step as θ
    Column("required_heads", "log₁₀ of the heads that Theorem 1 requires for the last step as θ"),
)
FIRST_PHASE = (
    Column("first_coefficient", "what the first phase puts on u⋆, over ζ"),
    Column("first_deviation", "length of what it adds besides ζ/4 of u⋆", "P"),
    Column("optimal_noise", "noise over what Proposition 3 allows"),
    Column("optimal_missed", "softmax that θ_opt misses over Proposition 3's bound, most"),
    Column("optimal_margin", "Proposition 3's bound over the least margin of θ_opt"),
    Column("ntk_margin", "largest margin of the tangent kernel", r"\gamma"),
    Column("ntk_margin_first", "the same after a first phase with one head"),
    Column("ntk_margin_constructed", "margin of section 5.2's θ⋆"),
    Column("gamma_tangent", "margin of equation (7), with ζ/4 for ζ/2 and E|α|", r"\gamma_*"),
    Column("tangent_heads", "log₁₀ of the heads that Lemma 15 requires for that margin"),
    Column("margin_attention", "least margin of θ_opt"),
    Column("margin_linear", "least margin of the oracle linear classifier"),
    Column("gamma_linear", "the linear model's margin", r"\gamma_{\mathrm{lin}}"),
    Column("gamma_attention", "attention's margin", r"\gamma_{\mathrm{attn}}"),
)

APART = frozenset({"heads", "learning_rate", "step_rule", "momentum"})
"""Parameters in which cells that are trained together may differ."""

_LARGEST_BATCH = {"cpu": 1e6, "cuda": 2e8}
"""The most products of tokens, samples and classes in a batch: what is measured of all at once."""

_STEP_OVERHEAD = 1e4
"""A step's fixed cost, in products of two tokens' features."""

OF_FIGURES = ("gd", "momentum", "adam")
"""The optimisers of figures 2 to 5."""

_MEDIANS: dict[str, Any] = {"mean": "median", "band": "quartiles"}
SHARE = "margin / (strength * (tokens / 2)**0.5)"


def _reproduces(data: Cells) -> bool:
    free = ("heads", "optimiser", "learning_rate", "step_rule", "momentum", "certify")
    return bool(data.trained["optimiser"].isin(OF_FIGURES).all()) and defaults_but(*free)(data)


def _heads(rows: str, figures: str) -> tuple[Figure, ...]:
    """The figures of losses, norms, attention and margins, and of steps to the target."""
    return (
        CURVES.showing(
            "heads",
            "Losses, norms, attention and margins against the step, a line for each H",
            source=f"{PAPER}, {figures}",
            reproduces=_reproduces,
            labels={SHARE: r"margin over $\gamma_{\mathrm{attn}}$"},
            value=f"train_loss,test_loss; norm_w,norm_u; {rows}",
        ),
        HEATMAP.showing(
            title="Steps until the training loss is below the target, over two parameters",
            x="heads",
            y="learning_rate",
            value="steps_to_target",
        ),
        LINES.showing(x="heads", value="steps_to_target"),
        CURVES,
    )


class MultiheadStudy(Study[P]):
    """One layer of multi-head attention on one kind of data."""

    version = 1
    paper, headline = PAPER, "train_loss"
    shows = (
        "With H = {heads} the training loss is {train_loss:.3g} after {steps}, the test loss "
        "{test_loss:.3g} and the test error {test_error:.1%}."
    )

    def batches(self, cells: Batch[P], device: str) -> Batches[P]:
        """Group cells of a seed that share their draws and shapes; costliest first."""

        def shape(cell: Cell[P]) -> tuple[object, ...]:
            return cell.seed, cell.parameters.classes, *shared_values(cell, APART)

        by_heads = sorted(cells, key=lambda cell: cell.parameters.heads)
        return group_cells(by_heads, shape, _pairs, _LARGEST_BATCH[device], self.cost)

    def cost(self, cell: Cell[P]) -> float:
        return cell.parameters.training_steps * (_pairs(cell) + _STEP_OVERHEAD)

    def probe(self, cell: Cell[P]) -> Cell[P]:
        few = cell.with_at_most(training_steps=200)
        return replace(few, parameters=few.parameters.model_copy(update={"epsilon": 0.0}))

    def memory(self, cell: Cell[P]) -> float:
        p = cell.parameters
        trained = (3 + 2 * (1 + p.d) / p.tokens) * max(_LARGEST_BATCH["cpu"], _pairs(cell))
        return BYTES_OF_LIBRARIES + 8.0 * (trained + 4 * p.tokens * p.d * p.test_samples)


def _pairs(cell: Cell[P]) -> float:
    p = cell.parameters
    return float(p.classes * p.n * p.tokens**2)


class MultiheadMixture(MultiheadStudy[MultiheadMixtureParameters]):
    """Tokens of which a few carry the label, among patterns that don't."""

    name, title = "multihead-mixture", "Attention heads on the tokenized mixture model (DM1)"
    parameters = MultiheadMixtureParameters
    columns = (*AT_STEPS, *AT_END, ATTENTION, *FIRST_PHASE)
    trajectory_columns = (*AT_STEPS, ATTENTION)
    progress_columns = ("train_loss", "test_loss", "norm_u", "margin", "attention")
    claims_in = ".claims:MIXTURE"
    drawn = (
        *_heads(f"attention; {SHARE}", "figures 2 and 3"),
        bounds_figure(
            {
                "Prop. 1: gradient of a head": "model_gradient <= 1",
                "Prop. 1: Hessian of a head": "model_hessian <= 1",
                "Cor. 1: gradient of the loss": "loss_gradient <= 1",
                "Cor. 1: Hessian of the loss": "loss_hessian <= 1",
                "Cor. 1: concavity of the loss": "loss_concavity <= 1",
                "Prop. 3: softmax missed": "optimal_missed <= 1 if optimal_noise <= 1",
                "Prop. 3: margin, inverse": "optimal_margin <= 1 if optimal_noise <= 1",
                "5.3: γ⋆ of θ⋆ over γ_attn": "ntk_margin_constructed <= gamma_attention",
                "5.3: γ_lin over γ⋆ of θ⋆": "gamma_linear <= ntk_margin_constructed",
                "Theorem 1": "mean_train_loss <= theorem1_bound if 10**required_heads <= heads",
            },
            told=("sigma_init", "heads", "sigma", "first_samples"),
            source=f"{PAPER}, sections 3 to 5",
        ),
        LINES.showing(
            "least-heads",
            "Theorem 1's loss over its bound, and the H that it requires over H",
            x="heads",
            value="mean_train_loss / theorem1_bound",
            theory="10**required_heads / heads",
            threshold=1,
            labels={
                "mean_train_loss / theorem1_bound": "mean loss over Theorem 1's",
                "10**required_heads / heads": "heads that Theorem 1 requires, over $H$",
            },
            log=frozenset({"x", "value"}),
            **_MEDIANS,
        ),
        LINES.showing(
            "least-margin",
            "The tangent kernel's margin over γ⋆/2 of Proposition 2, against heads",
            x="heads",
            value="2 * ntk_margin / gamma_tangent",
            theory="10**tangent_heads / heads",
            threshold=1,
            labels={
                "2 * ntk_margin / gamma_tangent": r"tangent kernel's margin over $\gamma_*/2$",
                "10**tangent_heads / heads": "heads that Lemma 15 requires, over $H$",
            },
            log=frozenset({"x", "value"}),
            **_MEDIANS,
        ),
        LINES.showing(
            "sparsity",
            "Attention's margin less the linear model's, against relevant tokens",
            x="relevant",
            by="sigma",  # lines of both deviations coincide
            value="margin_attention - margin_linear",
            threshold=0,  # above it attention's margin is the larger one
            labels={"margin_attention - margin_linear": "attention's margin less linear one"},
            log=frozenset[str](),
            **_MEDIANS,
        ),
        LINES.showing(
            "concavity",
            "Concavity of the training loss against heads, with a line of 1/√H",
            x="heads",
            value="concavity",
            theory="heads**-0.5",
            labels={"heads**-0.5": r"a fall as $H^{-1/2}$ (slope only)"},
            log=frozenset({"x", "value"}),
            **_MEDIANS,
        ),
        LINES.showing(
            "random-attention",
            "The tangent kernel's margin with random attention over that after a first phase",
            x="heads",
            value="ntk_margin / ntk_margin_first",
            threshold=2,
            labels={"ntk_margin / ntk_margin_first": "margin over the first phase's"},
            log=frozenset({"x"}),
            mean="median",
        ),
    )


class MultiheadPlanted(MultiheadStudy[MultiheadPlantedParameters]):
    """Gaussian tokens, labelled by a single planted head."""

    name, title = "multihead-planted", "Attention heads that learn from a planted one (DM2)"
    parameters = MultiheadPlantedParameters
    columns = (*AT_STEPS, *AT_END, *ALIGNMENTS)
    trajectory_columns = (*AT_STEPS, *ALIGNMENTS)
    progress_columns = ("train_loss", "test_loss", "norm_u", "margin", "alignment_w")
    claims_in = ".claims:PLANTED"
    drawn = (
        *_heads("alignment_w,alignment_u", "figures 4 and 5"),
        LINES.showing(
            "gap",
            "The generalisation gap against samples, with Theorem 2's bound",
            x="n",
            value="test_loss - train_loss",
            theory="theorem2_bound",
            labels={"test_loss - train_loss": r"generalisation gap $L - \hat{L}$"},
            log=frozenset({"x", "value"}),
            mean="median",
        ),
    )


# The proofs of Theorems 1 and 2


class MultiheadPaths(Study[MultiheadPathsParameters]):
    """Gradient descent from zero, held to the lemmas from which Theorems 1 and 2 follow."""

    name, version = "multihead-paths", 1
    title = "Gradient descent's path, its target and its leave-one-out copies (DM1)"
    paper, parameters = PAPER, MultiheadPathsParameters
    headline = "mean_train_loss"
    columns = (
        Column("train_loss", "final training loss", r"\hat L", diverges=True),
        MEAN_LOSS,
        Column("test_loss", "test loss", "L", diverges=True),
        Column("target_loss", "training loss of the target θ", r"\hat L(\theta)"),
        *THEOREMS,
        Column("theorem1_heads", "log₁₀ of the heads that Theorem 1 requires"),
        Column("theorem2_heads", "log₁₀ of the heads that Theorem 2 requires"),
        Column("theorem_step_size", "log₁₀ of the largest step size of both"),
        Column("descent_share", "share of the steps whose η is at most 1/ρ_k of Lemma 7"),
        Column("descent_allowed", "least descent of these steps over η/2 ‖∇L‖²"),
        Column(
            "descent",
            "least descent of all steps over η/2 ‖∇L‖²",
            label="least descent over its bound",
        ),
        Column("segment_rise", "rise of the loss on a segment over Proposition 4's bound, most"),
        Column("lemma8", "mean training loss over Lemma 8's bound"),
        Column(
            "lemma9", "mean training loss over Lemma 9's bound", label="loss over Lemma 9's bound"
        ),
        Column("lemma9_heads", "log₁₀ of the heads that Lemma 9 requires in the print"),
        Column("lemma10", "distance to the target over Lemma 10's bound, 3 ‖θ − θ₀‖, most"),
        Column("lemma3_bound", "Lemma 3's bound on test less training loss"),
    )
    trained_in, claims_in = ".descent", ".claims:PATHS"
    shows = (
        "The mean training loss over {steps} is {mean_train_loss:.3g}; Theorem 1's bound is "
        "{theorem1_bound:.3g}."
    )
    drawn = (
        HEATMAP.showing(
            "descent",
            "The least descent of a step over η/2 ‖∇L‖², over heads and step size",
            x="heads",
            y="learning_rate",
            value="descent",
            threshold=1,
            log=frozenset({"x", "y"}),
        ),
        LINES.showing(
            "regret",
            "The mean training loss over Lemma 9's bound, against the step size",
            x="learning_rate",
            by="heads",  # lines of both H coincide
            value="lemma9",
            threshold=1,
            **_MEDIANS,
        ),
        LINES.showing(
            "largest-step",
            "The least descent of a step over η/2 ‖∇L‖², and Lemma 7's condition, against the step",
            x="learning_rate",
            value="descent",
            theory="descent_share",
            threshold=0,  # below it the loss has risen
            labels={"descent_share": r"share of the steps with $\eta \leq 1/\rho_k$"},
            log=frozenset({"x"}),
            **_MEDIANS,
        ),
        LINES.showing(x="heads", value="lemma9", log=frozenset({"x"})),
    )

    def cost(self, cell: Cell[MultiheadPathsParameters]) -> float:
        p = cell.parameters
        copies = 1 + p.n * p.leave_one_out
        return p.training_steps * (1e4 + copies * p.n * p.tokens**2)

    def probe(self, cell: Cell[MultiheadPathsParameters]) -> Cell[MultiheadPathsParameters]:
        return cell.with_at_most(training_steps=50)


# Figure 6


class MultiheadSst2(Study[MultiheadSst2Parameters]):
    """Sentiment of SST-2's sentences with a RoBERTa of several numbers of heads."""

    name, version = "multihead-sst2", 1
    title = "RoBERTa of several numbers of heads on SST-2, or a small network in its place"
    paper, paper_data = PAPER, "SST-2 and roberta-base"
    parameters = MultiheadSst2Parameters
    headline = "mean_test_loss"
    columns = (
        *COLUMNS,
        Column("mean_train_loss", "mean training loss", diverges=True),
    )
    trajectory_columns = TRAJECTORY_COLUMNS
    trained_in, claims_in = ".encoder", ".claims:SST2"
    shows = (
        "Test accuracy {test_accuracy:.1%} after {steps}; counting words has "
        "{shortcut_accuracy:.1%}."
    )
    drawn = tuple(
        learning_figures(
            "each number of heads", f"{PAPER}, figure 6", "train_loss,test_loss,test_accuracy"
        ).values()
    )

    def stand_in(self, parameters: MultiheadSst2Parameters) -> str:
        if parameters.weights == "pretrained":
            return ""
        return (
            f"A network of {plural(parameters.layers, 'layer')} and width {parameters.d}, trained "
            "from random weights, stands in for roberta-base."
        )

    def prepare(self, cells: Batch[MultiheadSst2Parameters]) -> Mapping[str, str]:
        from overfit_cli.studies.multihead import sentences

        require_extra("transformers", "text", self.name)
        folder = sentences.sst2_folder()
        settings = [cell.parameters for cell in cells]
        pretrained = [parameters for parameters in settings if parameters.weights == "pretrained"]
        fingerprints = dict(sentences.check_enough(folder, settings))
        if pretrained:
            from overfit_cli.studies.multihead import encoder

            fingerprints |= encoder.check_pretrained(folder, pretrained)
        return fingerprints

    def cost(self, cell: Cell[MultiheadSst2Parameters]) -> float:
        """Return about how many multiplications a cell's training and evaluations cost."""
        p = cell.parameters
        evaluations = p.training_steps / p.evaluate_every + 2
        sentences = 3 * p.training_steps * p.batch_size + evaluations * p.test_samples
        of_token = 4 * p.d**2 + 2 * p.d * p.hidden + 8 * p.heads
        return sentences * p.tokens * p.layers * of_token

    def probe(self, cell: Cell[MultiheadSst2Parameters]) -> Cell[MultiheadSst2Parameters]:
        return cell.with_at_most(n=256, training_steps=10, test_samples=64)


mixture, planted = MultiheadMixture(), MultiheadPlanted()
paths, sst2 = MultiheadPaths(), MultiheadSst2()
