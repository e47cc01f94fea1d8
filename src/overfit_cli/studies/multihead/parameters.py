"""Parameters of the four studies."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import StudyParameters, parameter, parameter_of

Optimiser = Literal["gd", "momentum", "adam", "loss-normalised"]
StepRule = Literal["constant", "sqrt-heads", "heads"]

STEP_RULES: dict[StepRule, float] = {"constant": 0.0, "sqrt-heads": 0.5, "heads": 1.0}
"""The power of H by which each rule multiplies the step size."""

MOST_HEADS_APART = 100_000
"""The largest H where heads differ at the start: each has a step size or weights of its own."""

LEVELS = 1000
"""The number of sizes that uniform first steps have beyond: heads of one size are a class."""

CHANCE = 0.05
"""δ, the chance with which what holds with high probability may fail."""

MISSED = 0.01
"""ε of Proposition 3: the softmax that may miss the relevant tokens."""


class MultiheadParameters(StudyParameters):
    """Logistic regression with one layer of multi-head attention, trained by full batches."""

    heads: int = parameter(1, "attention heads", "H", within="[1, 9e18]", shades=(1, 100))
    optimiser: Optimiser = parameter(
        "gd",
        "optimiser; loss-normalised divides the gradient by the loss",
        label="optimiser",
        value_labels={"gd": "gradient descent", "adam": "Adam"},
    )
    learning_rate: float = parameter(
        1.0, "step size, before the step rule", r"\eta", "base step size", "(0, 1e6]"
    )
    step_rule: StepRule = parameter(
        "constant",
        "what multiplies the step size: 1, the root of heads, or heads",
        label="step rule",
        value_labels={"sqrt-heads": "times √H", "heads": "times H"},
    )
    momentum: float = parameter(0.9, "momentum, for optimiser=momentum", "", "momentum", "[0, 1)")
    training_steps: int = parameter(1000, "gradient steps of a cell", within="[1, 1e8]")
    target_loss: float = parameter(
        1e-3, "training loss up to which steps are counted", "", "target training loss", "(0, 10]"
    )
    epsilon: float = parameter(
        0.0, "training loss at which training ends", r"\epsilon", "loss to stop at", "[0, 10]"
    )
    trained: Literal["all"] = parameter("all", "what is trained: U and W", label="trained weights")
    first_phase: Literal["none", "signs", "uniform"] = parameter(
        "none",
        "section 5.1's first step from zero: none, or with a step size of ±1 for each head, or "
        "uniform on [−1, 1] for each head, as the factor 1/2 of (116) suggests (1000 sizes "
        f"above {MOST_HEADS_APART} heads)",
        label="first phase",
    )
    first_samples: int = parameter(
        100,
        "samples of the first phase, in addition to n",
        "n_1",
        "samples of the first phase",
        "[1, 1e6]",
    )
    initialisation: Literal["zero", "gaussian", "attention"] = parameter(
        "zero",
        "initial weights, before the first phase: zero, Gaussian, or Gaussian W and U of zero",
        label="initial weights",
        value_labels={"gaussian": "Gaussian"},
    )
    sigma_init: float = parameter(
        0.1,
        "deviation of Gaussian initial weights",
        r"\sigma_0",
        "deviation of initial weights",
        "(0, 100]",
    )
    head_width: Literal["full"] = parameter("full", "U and W are full matrices")
    separate_heads: bool = parameter(
        False,
        "train every head by itself, even those that begin alike and stay so",
        label="separate training of heads",
    )
    n: int = parameter(100, "training samples", "n", within="[1, 1e6]")
    test_samples: int = parameter(300, "test samples", within="[1, 1e6]")
    tokens: int = parameter(10, "tokens of a sample", "T", within="[2, 1000]")
    d: int = parameter(4, "features of a token", "d", within="[1, 1000]")
    certify: bool = parameter(
        False,
        "check the bounds of Proposition 1 and Corollary 1 at every logged step",
        label="check of the bounds",
    )
    machine: bool = parameter(
        False,
        "false: W is no longer compared with the attention support vector machine's solution",
        label="attention SVM comparison",
    )
    dtype: Literal["float32", "float64"] = parameter("float64", "floating-point precision")

    @property
    def step_size(self) -> float:
        """The step size that each head takes."""
        return float(self.learning_rate * math.pow(self.heads, STEP_RULES[self.step_rule]))

    @property
    def has_levels(self) -> bool:
        """Whether uniform first steps are of `LEVELS` sizes, as heads are too many for their own.

        They are the middles of as many parts of [−1, 1]: their mean square is 1/3 to a millionth.
        """
        return self.first_phase == "uniform" and self.heads > MOST_HEADS_APART

    @property
    def each_head(self) -> bool:
        """Whether heads begin apart, or are to be trained one by one."""
        drawn = self.first_phase == "uniform" and not self.has_levels
        return self.separate_heads or drawn or self.initialisation != "zero"

    @property
    def classes(self) -> int:
        """How many classes of heads there are: those of a class begin alike, and stay so."""
        if self.each_head:
            return self.heads
        if self.has_levels:
            return LEVELS
        return 2 if self.first_phase == "signs" else 1

    def refusals(self) -> Iterator[BadValue]:
        """Give sentences on too many heads, and on two starts at once."""
        if self.machine:
            yield self.refuse("machine", "it takes false: the comparison is no longer made.")
        begins_apart = self.each_head or self.first_phase == "signs"
        if begins_apart and self.heads > MOST_HEADS_APART:
            accepts = "initialisation takes zero, first_phase none or uniform, separate_heads false"
            yield self.refuse(
                "heads", f"above {MOST_HEADS_APART} all heads begin alike: {accepts}."
            )
        if self.initialisation != "zero" and self.first_phase != "none":
            start = f"with initialisation={self.initialisation}, first_phase takes none"
            yield self.refuse("first_phase", f"{start}: section 5.1 begins at zero.")


class MultiheadMixtureParameters(MultiheadParameters):
    """Data model DM1: orthogonal patterns of length S, a share ζ of the tokens relevant."""

    relevant: int = parameter(
        1, "relevant tokens of a sample, ζT", r"\zeta T", "relevant tokens", "[1, 1000]"
    )
    patterns: int = parameter(
        2, "patterns that say nothing about the label", "M", "irrelevant patterns", "[1, 1000]"
    )
    strength: float = parameter(2.0, "length of all patterns", "S", within="(0, 1000]")
    sigma: float = parameter(
        0.1,
        "deviation of the noise on irrelevant tokens",
        r"\sigma",
        "deviation of the noise",
        "[0, 100]",
    )

    @property
    def sparsity(self) -> float:
        """The share of tokens that are relevant, ζ."""
        return self.relevant / self.tokens

    def refusals(self) -> Iterator[BadValue]:
        """Give sentences on patterns and tokens for which there is no room."""
        yield from super().refusals()
        if self.d < self.patterns + 2:
            least = f"a whole number of at least {self.patterns + 2}: the patterns are orthogonal"
            yield self.refuse("d", f"with patterns={self.patterns}, d takes {least}.")
        if self.relevant >= self.tokens:
            most = f"a whole number up to {self.tokens - 1}"
            yield self.refuse("relevant", f"with tokens={self.tokens}, relevant takes {most}.")


class MultiheadPlantedParameters(MultiheadParameters):
    """Data model DM2: Gaussian tokens, labelled by a single head, the doubtful ones dropped."""

    n: int = parameter_of(MultiheadParameters, "n", 1000)
    test_samples: int = parameter_of(MultiheadParameters, "test_samples", 3000)
    target_loss: float = parameter_of(MultiheadParameters, "target_loss", 0.02)
    d: int = parameter_of(MultiheadParameters, "d", 5)
    least_logit: float = parameter(
        0.2,
        "samples whose planted logit is smaller are dropped",
        r"\gamma_{\mathrm{attn}}",
        "least planted logit",
        "[0, 1]",
    )


class MultiheadPathsParameters(StudyParameters):
    """Gradient descent from zero on data model DM1, with a target θ and leave-one-out copies."""

    heads: int = parameter_of(MultiheadParameters, "heads", 1)
    learning_rate: float = parameter(1.0, "step size", r"\eta", within="(0, 1e6]")
    training_steps: int = parameter(200, "gradient steps of a cell", "K", within="[1, 1e6]")
    target_distance: float = parameter(
        0.5,
        "distance of the target θ from the start, along the linear part's widest margin",
        r"\|\theta - \theta_0\|",
        "distance of the target",
        "(0, 1e6]",
    )
    leave_one_out: bool = parameter(
        False, "train a copy without each sample beside it", label="leave-one-out copies"
    )
    n: int = parameter(20, "training samples", "n", within="[2, 1e4]")
    test_samples: int = parameter_of(MultiheadParameters, "test_samples", 300)
    tokens: int = parameter_of(MultiheadParameters, "tokens", 2)
    d: int = parameter_of(MultiheadParameters, "d", 3)
    relevant: int = parameter_of(MultiheadMixtureParameters, "relevant", 1)
    patterns: int = parameter_of(MultiheadMixtureParameters, "patterns", 1)
    strength: float = parameter_of(MultiheadMixtureParameters, "strength", 1.0)
    sigma: float = parameter_of(MultiheadMixtureParameters, "sigma", 0.0)

    def refusals(self) -> Iterator[BadValue]:
        """Give the sentences of the mixture on patterns and tokens for which there is no room."""
        yield from self.mixture().refusals()

    def mixture(self) -> MultiheadMixtureParameters:
        """Return the parameters of the mixture whose samples these are."""
        names = ("n", "test_samples", "tokens", "d", "relevant", "patterns", "strength", "sigma")
        values = {name: getattr(self, name) for name in names}
        return MultiheadMixtureParameters.model_construct(**values, first_samples=1)


class MultiheadSst2Parameters(StudyParameters):
    """A RoBERTa of equal width for every number of heads, and its training on SST-2."""

    heads: int = parameter(
        4, "attention heads of a layer", "H", within="[1, 1000]", shades=(1, 100)
    )
    weights: Literal["scratch", "pretrained"] = parameter(
        "scratch",
        "initial weights: random, or those of the folder roberta-base in --data",
        label="initial weights",
    )
    learning_rate: float = parameter(1e-3, "step size of AdamW", r"\eta", within="(0, 1e3]")
    batch_size: int = parameter(32, "sentences of a gradient step", within="[1, 1e5]")
    training_steps: int = parameter(
        800,
        "gradient steps of a cell; 2105 of 32 are an epoch of all",
        label="gradient steps of a cell",
        within="[1, 1e7]",
    )
    evaluate_every: int = parameter(50, "steps between evaluations", within="[1, 1e7]")
    n: int = parameter(67_349, "training sentences", "n", within="[2, 1e6]")
    test_samples: int = parameter(872, "test sentences", within="[2, 1e6]")
    tokens: int = parameter(64, "most tokens, both ends among them", "", "most tokens", "[3, 510]")
    vocabulary: int = parameter(
        8000, "words known, the most frequent; for weights=scratch", "", "known words", "[1, 1e5]"
    )
    layers: int = parameter(2, "transformer layers", within="[1, 100]")
    d: int = parameter(64, "width of a token", "d", within="[1, 10000]")
    hidden: int = parameter(128, "width of the hidden layers", within="[1, 1e5]")
    dropout: float = parameter(0.1, "chance that an activation is dropped", within="[0, 1)")
    weight_decay: float = parameter(0.01, "decay of the weights", within="[0, 1]")
    dtype: Literal["float32", "float64"] = parameter("float32", "floating-point precision")

    def refusals(self) -> Iterator[BadValue]:
        """Give a sentence where the heads don't share a token's width."""
        if self.d % self.heads:
            divisor = f"heads takes a divisor of d, which is {self.d}"
            yield self.refuse("heads", f"the heads share a token's width, so {divisor}.")
