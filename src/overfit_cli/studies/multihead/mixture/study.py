"""The study `multihead-mixture`: figures 2 and 3 of Deora et al. 2024."""

from __future__ import annotations

from collections.abc import Sequence

from overfit_cli.core.cell import Column
from overfit_cli.core.claim import Claim
from overfit_cli.studies.multihead.mixture.parameters import MultiheadMixtureParameters
from overfit_cli.studies.multihead.parameters import Problem
from overfit_cli.studies.multihead.study import MultiheadStudy, cell_columns, step_columns

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
        "ntk_margin_bound",
        "what that margin can't exceed, by duality",
        label="bound on the kernel's margin",
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
    source_of_heads = "Deora et al. 2024, figures 2 and 3"

    def draw(self, parameters: MultiheadMixtureParameters, seed: int) -> Problem:
        from overfit_cli.studies.multihead.mixture.data import draw_problem

        return draw_problem(parameters, seed)

    def claims(self) -> Sequence[Claim]:
        from overfit_cli.studies.multihead.mixture.claims import CLAIMS

        return CLAIMS


study = MultiheadMixture()
