"""The study `multihead-mixture`: figures 2 and 3 of Deora et al. 2024."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from overfit_cli.core.cell import Column
from overfit_cli.core.claim import Claim
from overfit_cli.core.figure import LINES, Figure, FigureOptions, collect_figures, lazily
from overfit_cli.studies.multihead.mixture.parameters import MultiheadMixtureParameters
from overfit_cli.studies.multihead.parameters import Problem
from overfit_cli.studies.multihead.study import MultiheadStudy, cell_columns, step_columns

_FIGURES = "overfit_cli.studies.multihead.mixture.figures"
ATTENTION = (
    Column(
        "attention",
        "softmax on relevant tokens, mean over samples and heads",
        label="softmax on relevant tokens",
    ),
)

FIRST_PHASE = (
    Column(
        "first_coefficient",
        "what the first phase puts on the oracle classifier, over ζ",
        label="oracle coefficient over ζ",
    ),
    Column(
        "first_deviation",
        "length of what it adds besides ζ/4 of it",
        symbol="P",
        label="first phase's deviation",
    ),
    Column("good_norm", "a head's norm over P1's bound, most", label="head norm over P1's bound"),
    Column(
        "good_output", "a sample's output over P2's bound, most", label="output over P2's bound"
    ),
    Column(
        "optimal_noise", "noise over what Proposition 3 allows", label="share of the allowed noise"
    ),
    Column(
        "optimal_missed",
        "softmax that θ_opt misses over Proposition 3's bound, most",
        label="missed softmax over bound",
    ),
    Column(
        "optimal_margin",
        "Proposition 3's bound over the least margin of θ_opt",
        label="bound over θ_opt's margin",
    ),
    Column(
        "ntk_margin",
        "largest margin of the tangent kernel",
        symbol=r"\gamma",
        label="tangent kernel's margin",
    ),
    Column(
        "ntk_margin_first",
        "largest margin of the tangent kernel after a first phase with one head",
        label="margin after first phase",
    ),
    Column("ntk_margin_constructed", "margin of section 5.2's θ⋆"),
    Column(
        "gamma_tangent",
        "the margin that equation (7) states, with ζ/4 for ζ/2 and the first phase's mean size",
        symbol=r"\gamma_*",
        label="margin of equation (7)",
    ),
    Column(
        "gamma_tangent_without",
        "what it would be were P zero",
        label="margin of (7) without P",
    ),
    Column(
        "tangent_heads",
        "decimal logarithm of the heads that Lemma 15 requires for that margin",
        label="log₁₀ heads of Lemma 15",
    ),
    Column(
        "margin_attention",
        "least margin of θ_opt",
        label="margin of θ_opt",
    ),
    Column(
        "margin_linear",
        "least margin of the oracle linear classifier",
        label="margin of the linear oracle",
    ),
    Column("gamma_linear", "the linear model's margin", symbol=r"\gamma_{\mathrm{lin}}"),
    Column("gamma_attention", "attention's margin", symbol=r"\gamma_{\mathrm{attn}}"),
)
"""Measurements after the first phase, where bounds are compared with measured values."""


class MultiheadMixture(MultiheadStudy[MultiheadMixtureParameters]):
    """Tokens of which a few carry the label, among patterns that don't."""

    name = "multihead-mixture"
    version = 1
    title = "Attention heads on the tokenized mixture model (DM1)"
    parameters = MultiheadMixtureParameters
    headline = "train_loss"
    columns = cell_columns(*ATTENTION, *FIRST_PHASE)
    trajectory_columns = step_columns(*ATTENTION)
    progress_columns = (*MultiheadStudy.progress_columns, "attention")
    source_of_heads = "Deora et al. 2024, figures 2 and 3"
    share = "margin / (strength * (tokens / 2)**0.5)"
    rows_of_heads = f"train_loss,test_loss; norm_w,norm_u; attention; {share}"

    def draw(self, parameters: MultiheadMixtureParameters, seed: int) -> Problem:
        from overfit_cli.studies.multihead.mixture.data import draw_problem

        return draw_problem(parameters, seed)

    def figures(self) -> Mapping[str, Figure]:
        certificates = Figure(
            name="certificates",
            title="What is measured over each bound, and margins side by side",
            reads="cells",
            draw=lazily("overfit_cli.studies.multihead.mixture.certificates:draw_certificates"),
            source="Deora et al. 2024, sections 3 to 5",
        )
        least = Figure(
            name="least-heads",
            title="Theorem 1's loss over its bound, and the H that it requires over H",
            reads="cells",
            draw=lazily(f"{_FIGURES}:draw_least_heads"),
        )
        sparsity = replace(
            LINES,
            name="sparsity",
            title="Attention's margin less the linear model's, against relevant tokens",
            options=FigureOptions(
                x="relevant",
                value="margin_attention - margin_linear",
                by="sigma",  # lines of both deviations coincide
                threshold=0,  # above it attention's margin is the larger one
                log=frozenset(),
                mean="median",
                band="quartiles",
            ),
            labels={"margin_attention - margin_linear": "attention's margin less linear one"},
        )
        least_margin = replace(
            LINES,
            name="least-margin",
            title="The tangent kernel's margin over γ⋆/2 of Proposition 2, against heads",
            options=FigureOptions(
                x="heads",
                value="2 * ntk_margin / gamma_tangent",
                threshold=1,
                log=frozenset({"x"}),
                mean="median",
                band="quartiles",
            ),
            labels={"2 * ntk_margin / gamma_tangent": r"tangent kernel's margin over $\gamma_*/2$"},
            draw=lazily(f"{_FIGURES}:draw_least_margin"),
        )
        concavity = replace(
            LINES,
            name="concavity",
            title="Concavity of the training loss against heads, with a line of 1/√H",
            labels={"heads**-0.5": r"a fall as $H^{-1/2}$ (slope only)"},
            options=FigureOptions(
                x="heads",
                value="concavity",
                theory="heads**-0.5",
                log=frozenset({"x", "value"}),
                mean="median",
                band="quartiles",
            ),
        )
        random_attention = replace(
            LINES,
            name="random-attention",
            title="The tangent kernel's margin with random attention over that after a first phase",
            options=FigureOptions(
                x="heads",
                value="ntk_margin / ntk_margin_first",
                threshold=2,
                log=frozenset({"x"}),
                mean="median",
            ),
            labels={"ntk_margin / ntk_margin_first": "margin over the first phase's"},
        )
        others = (certificates, random_attention, least, sparsity, least_margin, concavity)
        return collect_figures(*super().figures().values(), *others)

    def claims(self) -> Sequence[Claim]:
        from overfit_cli.studies.multihead.mixture.claims import CLAIMS

        return CLAIMS


study = MultiheadMixture()
